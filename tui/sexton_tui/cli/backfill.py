"""``sexton backfill``: run ticks of the past that did not run, or again."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.backfill_plan import BackfillPlan, Does
from sexton.errors import InvalidInput
from sexton.settings import format_duration
from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Column, Output, OutputOption, counted, instant_text, print_json, print_rows
from sexton_tui.cli.progress import progress

if TYPE_CHECKING:
    from sexton.holds import Pace
    from sexton.resolutions import Resolved

_LONGEST_NOTE = 1_000
_COLUMNS = (Column("tick"), Column("state", "so far"), Column("does", "would"))


def backfill(
    ctx: typer.Context,
    job: JobArgument,
    begin: Annotated[str, typer.Option("--from", metavar="T", help="The first instant of the stretch.")],
    end: Annotated[str, typer.Option("--to", metavar="T", help="The instant at which it ends, not in it; or `now`.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List each tick and what would become of it.")] = False,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run those again that ran.")] = False,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; shown with the claims.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run the ticks of a job in [from, to) that were decided not to run: skipped, merged, expired, paused, rejected.

    A tick that ran stays, unless --rerun is given. They run as the job is now, in its catch_up order, at the pace of
    the catch-up budget and after live ticks, at most 10,000 at once. No tick of the schedule is consumed or shifted.
    """
    from sexton.store.backfilling import carry_out, read_backfill

    if not note.isprintable() or len(note) > _LONGEST_NOTE:
        raise InvalidInput(
            f"--note has a line break, a control character, or more than {_LONGEST_NOTE} characters",
            hint="write it shorter, on one line",
        )
    start = parse_instant(begin, "--from")
    stop = None if end.lower() == "now" else parse_instant(end, "--to")
    with open_cluster(ctx) as store:
        found, stop = find_job(store, job), stop or store.now()
        with progress("reading ticks", output):
            plan = read_backfill(store, found.job_id, start, stop, rerun=rerun)
        pace = store.reads.pace()
        if dry_run:
            _list(plan, output, pace)
            return
        if not plan.runs:
            _say_nothing_runs(plan, output)
            return
        if not yes:
            _ask(plan, pace, rerun=rerun)
        with progress("writing claims", output):
            done = carry_out(store, plan, start, stop, actor(), note, rerun=rerun)
    _say_done(done, output)


def _list(plan: BackfillPlan, output: Output, pace: Pace) -> None:
    rows = [
        {"job": plan.job, "tick": tick.scheduled_at, "state": tick.state, "does": tick.does.value}
        for tick in plan.ticks
    ]
    print_rows(rows, output, _COLUMNS, empty=f"no tick of {plan.job} fell due in there")
    if output is Output.TABLE and rows:
        print(f"\n{_summary(plan, pace)}; nothing was changed")


def _say_nothing_runs(plan: BackfillPlan, output: Output) -> None:
    if output is not Output.TABLE:
        print_json({"job": plan.job, "count": 0})
    elif not plan.ticks:
        print(f"no tick of {plan.job} fell due in there; nothing was changed")
    else:
        ran = counted(len(plan.ticks), "tick")
        print(f"nothing of {plan.job} is left to run in there: {ran} ran or will (--dry-run lists, --rerun runs again)")


def _ask(plan: BackfillPlan, pace: Pace, *, rerun: bool) -> None:
    print(_summary(plan, pace), file=sys.stderr)
    again = sum(tick.does is Does.RUNS_AGAIN for tick in plan.ticks)
    more = f", {again:,} of them again" if rerun and again else ""
    what = "this tick" if len(plan.runs) == 1 else f"these {len(plan.runs):,} ticks"
    ask(f"Run {what} of {plan.job}{more}?", instead="add --yes, or --dry-run to list them")


def _summary(plan: BackfillPlan, pace: Pace) -> str:
    runs = plan.runs
    stay = len(plan.ticks) - len(runs)
    stays = f"; {stay:,} {'stays as it is' if stay == 1 else 'stay as they are'}" if stay else ""
    if not runs:
        return f"0 of {counted(len(plan.ticks), 'tick')} of {plan.job} would run"
    return (
        f"{len(runs):,} of {counted(len(plan.ticks), 'tick')} of {plan.job} would run: {_ends(runs)}, started within"
        f" {_drain(len(runs), pace)} at the earliest{stays}"
    )


def _ends(ticks: tuple[datetime, ...]) -> str:
    first = instant_text(ticks[0])
    return first if len(ticks) == 1 else f"{first} to {instant_text(ticks[-1])}"


def _drain(count: int, pace: Pace) -> str:
    """How long the budget takes to let so many start, after what has drawn on it before."""
    last = pace.start(count - 1) - pace.now
    return format_duration(max(timedelta(seconds=1), timedelta(seconds=round(last.total_seconds()))))


def _say_done(done: Resolved, output: Output) -> None:
    if output is not Output.TABLE:
        record: dict[str, Any] = {"job": done.name, "count": done.count, "is_paused": done.is_paused}
        print_json(record | {"first_start": done.first_start, "last_start": done.last_start})
        return
    assert done.first_start is not None  # noqa: S101 - something runs
    print(f"{done.name}: {counted(done.count, 'tick')} to run, from {instant_text(done.first_start)} on")
    if done.is_paused:
        print(f"{done.name} is paused: they wait for `sexton resume {done.name}`", file=sys.stderr)
