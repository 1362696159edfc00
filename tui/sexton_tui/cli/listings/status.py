"""``sexton status``: one screen and an exit code. 0: healthy; 1: something needs a human now."""

from __future__ import annotations

import json
from typing import Any

import typer

from sexton.catch_up import CatchUp, catch_up_sentences
from sexton.cluster_views import FailingJob, Overview, Undecided
from sexton.masked_url import masked_url
from sexton_tui.cli.invocation import invocation_of, open_cluster
from sexton_tui.cli.listings.printing import is_ascii_output, print_lines
from sexton_tui.cli.output import Output, OutputOption, json_value, print_json
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core import overview as blocks
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.leadership import alarm_lines, leadership_lines, leadership_record
from sexton_tui.console.core.lines import Line, Span, line
from sexton_tui.console.core.needs import ALERTS_COUNTED, Need, needs, standing_needs
from sexton_tui.console.core.standing import Word, word

_PLOT_WIDTH, _PLOT_HEIGHT = 72, 6


@watchable
def status(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """Who leads, how late things are, and what needs a human.

    Exit code 1 if a human is needed now: no leader (or racer), halted, the clock in doubt, ticks undecided or claims
    waiting too long, a queue without workers, a quarantined job, a proposal to answer, a run lost in the last hour. 0
    with warnings, such as unconfirmed or degraded: the schedule goes on.
    """
    database = masked_url(invocation_of(ctx).settings().database)
    with open_cluster(ctx, read_only=True) as store:
        overview, failing, undecided = store.reads.overview(), store.reads.failing(), store.reads.undecided()
        catch_up = store.reads.catch_up()
        standing = standing_needs(store.alerts.listed(ALERTS_COUNTED, only_open=True))
        found = needs(overview, failing, undecided) + standing
    is_healthy = not any(need.is_urgent for need in found)
    if output is Output.TABLE:
        print_lines(status_lines(overview, found, database, catch_up), coloured=True)
    elif output is Output.JSON:
        print_json(status_record(overview, found, failing, undecided, catch_up, is_healthy=is_healthy))
    else:
        record = status_record(overview, found, failing, undecided, catch_up, is_healthy=is_healthy)
        print(json.dumps(json_value(record), ensure_ascii=False))
    return 0 if is_healthy else 1


def status_lines(overview: Overview, found: tuple[Need, ...], database: str, catch_up: CatchUp) -> list[Line]:
    """The screen. ``database`` is the address that was read, without its password."""
    history = LatenessHistory().merged(overview)
    head = f"{overview.now:%Y-%m-%d %H:%M:%S} UTC"
    size = {"width": _PLOT_WIDTH, "height": _PLOT_HEIGHT}
    blocks_of_lines = (
        ("Needs a human", [blocks.need_line(need, under_banner=True) for need in found] or [line("nothing")]),
        ("Leadership", leadership_lines(overview)),
        (
            "Lateness: 5 min, peaks of 30",
            blocks.lateness_lines(overview, history, ascii_only=is_ascii_output(), **size),
        ),
        ("Work", blocks.work_lines(overview)),
        *([("Catch-up", [line(one) for one in sentences])] if (sentences := catch_up_sentences(catch_up)) else []),
    )
    lines = [*alarm_lines(overview), line(f"cluster {overview.cluster_id}  {head}"), line(f"in {database}")]
    if word(overview) in (Word.NO_LEADER, Word.NO_RACER):  # it may be a finished demo's
        lines[-1] = line(f"in {database}; --database or SEXTON_DATABASE names another cluster's")
    for title, of_block in blocks_of_lines:
        lines += [line(), line(title), *(Line((Span("  "), *one.spans)) for one in of_block)]
    return lines


def status_record(
    overview: Overview,
    found: tuple[Need, ...],
    failing: tuple[FailingJob, ...],
    undecided: Undecided,
    catch_up: CatchUp,
    *,
    is_healthy: bool,
) -> dict[str, Any]:
    """The same as one object."""
    record: dict[str, Any] = json_value(overview)
    return {
        "is_healthy": is_healthy,
        "needs": found,
        "leadership": leadership_record(overview),
        **record,
        "due": overview.due,
        "ahead": overview.ahead,
        "catch_up": overview.catch_up,
        "catch_up_budget": {**json_value(catch_up), "count": catch_up.count},
        "oldest": overview.oldest,
        "pace": blocks.pace_record(overview),
        "failing": failing,
        "undecided": undecided,
    }
