"""``sexton status``: one screen and an exit code. 0: healthy; 1: something needs a human now."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer

from sexton.cluster_views import FailingJob, Overview, Undecided
from sexton.store.protocol import Store
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.printing import is_ascii_output, print_lines
from sexton_tui.cli.output import Output, OutputOption, json_value, print_json
from sexton_tui.console.core import overview as blocks
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.lines import Line, line
from sexton_tui.console.core.needs import Need, needs

WATCH_SECONDS = 2.0
_PLOT_WIDTH, _PLOT_HEIGHT = 72, 6


def status(
    ctx: typer.Context,
    output: OutputOption = Output.TABLE,
    watch: Annotated[bool, typer.Option("--watch", help="Again every 2 s, until interrupted.")] = False,
) -> int:
    """Who leads, how late things are, and what needs a human.

    Exit code 1 if a human is needed now: no leader, halted, ticks undecided or claims waiting too long, a queue without
    workers, a quarantined job, a proposal to answer.
    """
    with open_cluster(ctx, read_only=True) as store:
        while True:
            code = _once(store, output, clear=watch and sys.stdout.isatty())
            if not watch:
                return code
            sys.stdout.flush()
            time.sleep(WATCH_SECONDS)


def _once(store: Store, output: Output, *, clear: bool) -> int:
    overview, failing, undecided = store.reads.overview(), store.reads.failing(), store.reads.undecided()
    found = needs(overview, failing, undecided)
    is_healthy = not any(need.is_urgent for need in found)
    if clear and output is Output.TABLE:
        print("\x1b[H\x1b[2J", end="")
    if output is Output.TABLE:
        print_lines(status_lines(overview, found))
    elif output is Output.JSON:
        print_json(status_record(overview, found, failing, undecided, is_healthy=is_healthy))
    else:
        record = status_record(overview, found, failing, undecided, is_healthy=is_healthy)
        print(json.dumps(json_value(record), ensure_ascii=False))
    return 0 if is_healthy else 1


def status_lines(overview: Overview, found: tuple[Need, ...]) -> list[Line]:
    """The screen."""
    history = LatenessHistory().merged(overview)
    head = f"{overview.now:%Y-%m-%d %H:%M:%S} UTC"
    size = {"width": _PLOT_WIDTH, "height": _PLOT_HEIGHT}
    blocks_of_lines = (
        ("Needs a human", [blocks.need_line(need) for need in found] or [line("nothing")]),
        ("Leadership", blocks.leadership_lines(overview)),
        (
            "Lateness: 5 min, peaks of 30",
            blocks.lateness_lines(overview, history, ascii_only=is_ascii_output(), **size),
        ),
        ("Work", blocks.work_lines(overview)),
    )
    lines = [line(f"cluster {overview.cluster_id}  {head}")]
    for title, of_block in blocks_of_lines:
        lines += [line(), line(title), *(line("  ", one.text) for one in of_block)]
    return lines


def status_record(
    overview: Overview,
    found: tuple[Need, ...],
    failing: tuple[FailingJob, ...],
    undecided: Undecided,
    *,
    is_healthy: bool,
) -> dict[str, Any]:
    """The same as one object."""
    record: dict[str, Any] = json_value(overview)
    return {
        "is_healthy": is_healthy,
        "needs": found,
        **record,
        "due": overview.due,
        "ahead": overview.ahead,
        "catch_up": overview.catch_up,
        "oldest": overview.oldest,
        "failing": failing,
        "undecided": undecided,
    }
