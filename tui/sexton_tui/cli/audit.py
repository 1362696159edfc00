"""``sexton audit``: recompute what fell due, and compare it with the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Column, Output, OutputOption, counted, instant_text, print_json, print_rows
from sexton_tui.cli.progress import Bar, progress

if TYPE_CHECKING:
    from sexton.audit_findings import AuditReport
    from sexton.store.ledger_snapshot import Progress

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 50
_COLUMNS = (
    *(Column("job", folds=True), "verdict", Column("at", "tick"), Column("count", align="right")),
    Column("detail", is_note=True),
)


def audit(
    ctx: typer.Context,
    start: Annotated[str | None, typer.Option("--from", metavar="INSTANT", help="Judge ticks after this.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="Judge ticks up to this.")] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Recompute every tick that should have fallen due and find its one decision; exit 1 on any difference.

    --to is now at most (and by default): what is to come is not judged. On a cluster at work, ticks that may still be
    undecided are named `pending` and fail nothing; undecided past that, they are `overdue`.
    """
    from sexton.store.ledger_snapshot import audit_ledger

    after = parse_instant(start, "--from") if start else _BEGINNING
    upto = parse_instant(end, "--to") if end else None
    if upto is not None and after >= upto:
        raise typer.BadParameter(
            f"--from {instant_text(after)} is not before --to {instant_text(upto)}: nothing between"
        )
    with open_cluster(ctx, read_only=True) as store:
        if after > (now := store.now()):
            raise typer.BadParameter(
                f"--from {instant_text(after)} is still to come: the database's clock reads {instant_text(now)}"
            )
        with progress("auditing", output) as bar:
            report = audit_ledger(store, after, upto, None if bar is None else _told(bar))
    show_report(report, output)
    return 0 if report.is_clean else 1


def _told(bar: Bar) -> Progress:
    def tell(done: int, jobs: int, report: AuditReport) -> None:
        bar(done, jobs, f"{done:,} of {_thousands(jobs, 'job')}, {_thousands(report.due, 'tick')} due")

    return tell


def _thousands(number: int, what: str) -> str:
    """``1 job``, ``10,000 jobs``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def summary_line(report: AuditReport) -> str:
    """The whole audit in one sentence."""
    from sexton.audit_findings import Verdict

    told = ", ".join(
        f"{report.count(verdict)} {verdict.value}"
        for verdict in Verdict
        if report.count(verdict) or verdict in (Verdict.MISSING, Verdict.DOUBLE, Verdict.OVERDUE)
    )
    due = f"{counted(report.due, 'tick')} of {counted(report.jobs, 'job')}"
    return f"{due} fell due up to {instant_text(report.window.upto)}: {told}"


def show_report(report: AuditReport, output: Output) -> None:
    """Print a report: its sentence and its differences, or all of it as JSON."""
    if output is Output.JSON:
        print_json(
            {
                "from": report.window.after,
                "to": report.window.upto,
                "clean": report.is_clean,
                "jobs": report.jobs,
                "due": report.due,
                "decided": report.decided,
                "counts": report.counts(),
                "differences": report.differences,
            }
        )
        return
    if output is Output.JSONL:
        print_rows(report.differences, output, ())
        return
    print(summary_line(report))
    failing = [difference for difference in report.differences if difference.verdict.fails]
    failing.sort(key=lambda difference: difference.job.lower())  # of one job by their ticks
    if failing:
        print_rows(failing[:_SHOWN], output, _COLUMNS)
    if len(failing) > _SHOWN:
        print(f"... and {len(failing) - _SHOWN} more; --output jsonl lists them all")
