"""``sexton takeovers [TERM]``: each takeover, its gap, and what it decided about the ticks in it; and the gaps that the
same leader ended.

In the table a gap within a term is a row of its own, above the term's; in JSON it is among the term's ``gaps``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from sexton.views import DecisionTotals, DecisionView, GapView, TakeoverView
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import LARGEST_TERM, LimitOption
from sexton_tui.cli.listings.preview import show_preview
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Column, Output, OutputOption, print_record, print_rows
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.details import takeover_lines
from sexton_tui.console.core.tables import gap_ended_by

_COLUMNS: tuple[Column | str, ...] = (
    *(Column("term", align="right"), Column("node", folds=True), Column("taken_at", in_seconds=True)),
    *(Column("until", gives_way=4, in_seconds=True), Column("ended_by", gives_way=5)),
    *(Column("predecessor", gives_way=6, folds=True), Column("predecessor_ended", gives_way=7), "gap"),
    *(Column("missed", align="right", gives_way=1, usual="0"), Column("fired", align="right", gives_way=2, usual="0")),
    *(Column(key, align="right", gives_way=3, usual="0") for key in ("merged", "skipped", "expired", "held")),
    Column("not_started", align="right", gives_way=3, usual="0"),
)
_DECISION_COLUMNS: tuple[Column | str, ...] = (
    *(Column("job", folds=True), Column("after", gives_way=1), "upto", Column("cause", gives_way=2)),
    *(Column("missed", align="right"), Column("policy", gives_way=3), Column("reason", is_note=True)),
)


@watchable
def takeovers(
    ctx: typer.Context,
    term: Annotated[
        int | None, typer.Argument(metavar="[TERM]", min=1, max=LARGEST_TERM, help="One takeover, with decisions.")
    ] = None,
    limit: LimitOption = 20,
    preview: Annotated[
        bool, typer.Option("--preview", help="What a takeover now would decide; nothing is written.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List takeovers and gaps, newest first; with a TERM, what that one decided, job by job, and why.

    A gap in which nobody took over, as its leader was frozen or without its database, has a row of its own: `taken_at`
    is then when it began, `until` when the same leader ended it.


    `missed` to `held` count ticks that nobody had decided; `not_started`: ticks claimed in that term that no worker
    took in time.
    """
    if preview:
        if term is not None:
            raise typer.BadParameter("--preview is of a takeover now; leave out the TERM")
        show_preview(ctx, output)
        return
    with open_cluster(ctx, read_only=True) as store:
        if term is None:
            found = store.reads.takeovers(limit)
            rows = [_row(one) for one in found] if output is not Output.TABLE else list(_table_rows(found))
            print_rows(rows, output, _COLUMNS, empty="nobody has led this cluster yet")
            return
        detail = store.reads.takeover(term, max(limit, 500))
        if output is not Output.TABLE:
            record = {**_row(detail.takeover), "decisions": detail.decisions, "is_whole": detail.is_whole}
            print_record(record, output)
            return
        print_lines(takeover_lines(detail, store.now()))
        if detail.decisions:
            print()
            print_rows([_decision_row(decision) for decision in detail.decisions], output, _DECISION_COLUMNS)


def _row(takeover: TakeoverView) -> dict[str, Any]:
    row = {field.name: getattr(takeover, field.name) for field in dataclasses.fields(takeover)}
    totals, late, gaps = row.pop("totals"), row.pop("not_started"), row.pop("gaps")
    return {
        **row,
        "gap": takeover.gap,
        **_counts(totals),
        "jobs": takeover.jobs,
        "not_started": late.missed,
        "gaps": [_gap_record(gap) for gap in gaps],
    }


def _table_rows(found: Sequence[TakeoverView]) -> Iterator[dict[str, Any]]:
    for takeover in found:
        yield from (_gap_row(gap) for gap in takeover.gaps)
        yield _row(takeover)


def _gap_record(gap: GapView) -> dict[str, Any]:
    return {"node": gap.node, "gap_from": gap.gap_from, "gap_until": gap.gap_until, "gap": gap.gap} | _counts(
        gap.totals
    )


def _gap_row(gap: GapView) -> dict[str, Any]:
    """The gap in the columns of a takeover."""
    times = {"taken_at": gap.gap_from, "until": gap.gap_until, "ended_by": gap_ended_by(gap), "gap": gap.gap}
    ended = {"predecessor": gap.node, "predecessor_ended": "wrote nothing", "not_started": 0}
    return {"term": gap.term, "node": gap.node, **times, **ended, **_counts(gap.totals)}


def _counts(totals: DecisionTotals) -> dict[str, int]:
    counts = dataclasses.asdict(totals)
    return {"jobs_decided": counts.pop("jobs"), **counts}


def _decision_row(decision: DecisionView) -> dict[str, Any]:
    return {field.name: getattr(decision, field.name) for field in dataclasses.fields(decision)}
