"""``sexton runs``: what runs and what ran, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.claims import ENDED_BY_RUN, State
from sexton.views import ClaimView, RunFilter, RunKey, RunView
from sexton_tui.cli.completing import complete_job, complete_zone, words_of
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import (
    PAGE,
    TO_RETRY,
    JobOption,
    LimitOption,
    OwnerOption,
    QueueOption,
    TagOption,
    states_of,
)
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.store.protocol import Store

_COLUMNS = (
    *(Column("job", folds=True), "tick", "state", Column("lateness", gives_way=1), Column("took", gives_way=2)),
    *(Column("attempt", "try", align="right", gives_way=4, usual="1"), Column("worker", gives_way=3, folds=True)),
    *(Column("exit_code", "exit", align="right", gives_way=5, usual="0"), Column("error", is_note=True)),
)

_OUTCOMES = {state.word: state for state in (State.RUNNING, *sorted(ENDED_BY_RUN))} | {TO_RETRY: State.READY}


@watchable
def runs(
    ctx: typer.Context,
    of_job: Annotated[
        str, typer.Argument(metavar="[JOB]", help="Only this job's runs; as --job.", autocompletion=complete_job)
    ] = "",
    tick: Annotated[str | None, typer.Argument(metavar="[TICK]", help="Only this tick's: each try.")] = None,
    job: JobOption = "",
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            help="running, succeeded, failed, timed_out, ...; may be repeated.",
            autocompletion=words_of(_OUTCOMES),
        ),
    ] = None,
    queue: QueueOption = "",
    owner: OwnerOption = "",
    tag: TagOption = "",
    before: Annotated[
        str | None, typer.Option("--before", metavar="T", help="As of another time: those that had ended before it.")
    ] = None,
    calendar: Annotated[
        bool, typer.Option("--calendar", help="Half a year of a JOB's runs and failures, a shade a day.")
    ] = False,
    tz: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="Whose days, of a calendar; UTC's.", autocompletion=complete_zone),
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List runs: what runs now, then what ended, newest first. A try's output: `sexton logs JOB TICK --attempt N`.

    With --calendar, how many runs and failures a JOB had each day, for half a year.
    """
    states = states_of(state, _OUTCOMES)
    start = None if before is None else parse_instant(before, "--before")
    if of_job and job and of_job.lower() != job.lower():
        raise typer.BadParameter(f"JOB is {of_job} and --job {job}; name one")
    job = of_job or job
    if calendar:
        if not job or tick is not None or states or start is not None or queue or owner or tag:
            raise typer.BadParameter("--calendar is of all runs of one JOB: name it, and leave other filters out")
        from sexton_tui.cli.listings.run_calendar import print_run_calendar, zone_of

        zone = zone_of(tz)
        with open_cluster(ctx, read_only=True) as store:
            print_run_calendar(store, job, zone, output)
        return
    if tz is not None:
        raise typer.BadParameter("--tz goes with --calendar: instants are in UTC")
    if tick is not None and start is not None:
        raise typer.BadParameter("--before goes without a TICK")
    with open_cluster(ctx, read_only=True) as store:
        if tick is not None:
            detail = store.reads.claim(job, parse_instant(tick, "TICK"))
            rows = [_running_row(detail.claim)] if detail.claim.state is State.RUNNING else []
            rows += [_run_row(run) for run in reversed(detail.runs) if not states or run.outcome in states]
            rows = rows[:limit]
        else:
            if job:
                store.reads.job(job, 0)  # a wrong name is an error, not an empty list
            which = RunFilter(job=job, states=states, queue=queue, owner=owner, tag=tag)
            rows = list(_rows(store, which, start, limit))
        print_rows(rows, output, _COLUMNS, empty="no run")


def _rows(store: Store, which: RunFilter, start: datetime | None, limit: int) -> Iterator[dict[str, Any]]:
    found = 0
    if start is None and (not which.states or State.RUNNING in which.states):
        running = store.reads.running(limit, which)
        found = len(running)
        yield from map(_running_row, running)
    if which.states == {State.RUNNING}:
        return
    before = None if start is None else RunKey(start, 0)
    while found < limit:
        page = store.reads.runs_page(which, before, min(PAGE, limit - found))
        yield from (_run_row(run) for run in page.runs)
        found += len(page.runs)
        before = page.older
        if before is None:
            return


def _running_row(claim: ClaimView) -> dict[str, Any]:
    since = claim.started_at or claim.granted_at
    return {
        "token": claim.token,
        "job": claim.job,
        "tick": claim.scheduled_at,
        "state": State.RUNNING,
        "lateness": None if since is None else since - claim.scheduled_at - claim.jitter,
        "took": None,
        "attempt": claim.attempt,
        "worker": claim.worker,
        "exit_code": None,
        "error": "",
        "started_at": since,
        "finished_at": None,
        "revision": claim.revision,
    }


def _run_row(run: RunView) -> dict[str, Any]:
    return {
        "token": run.token,
        "job": run.job,
        "tick": run.scheduled_at,
        "state": TO_RETRY if run.outcome is State.READY else run.outcome,
        "lateness": run.lateness,
        "took": run.duration,
        "attempt": run.attempt,
        "worker": run.worker,
        "exit_code": run.exit_code,
        "error": run.error,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "revision": run.revision,
        "stdout_bytes": run.stdout_bytes,
        "stderr_bytes": run.stderr_bytes,
    }
