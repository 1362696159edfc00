"""``sexton cancel`` and ``sexton rerun``: what an operator does to single ticks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.claims import State
from sexton.errors import InvalidInput, Refused
from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Column, Output, OutputOption, instant_text, print_record, print_rows
from sexton_tui.cli.skip_next import skip

if TYPE_CHECKING:
    from sexton.store.protocol import CurrentJob, StoppedClaim, Store

_LONGEST_REASON = 1_000
_LOOK_SECONDS = 1.0  # without news of an end
_COLUMNS = (
    Column("scheduled_at", "tick"),
    "state",
    "outcome",
    Column("attempt", align="right"),
    Column("token", align="right"),
)

ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown with the claim.")]


def cancel(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[
        str | None, typer.Argument(metavar="[TICK]", help="One tick; without it all that fell due.")
    ] = None,
    reason: ReasonOption = "",
    running: Annotated[bool, typer.Option("--running", help="Only what runs; what waits its turn goes on.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the runs have ended; 1 if one ended otherwise.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, however many.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Stop a tick's run, or all of a job's: SIGTERM, then SIGKILL after the job's kill_after.

    What waits (due, parked, to be retried) ends as cancelled at once. Ticks to come are not touched: that is
    `sexton pause`; a single one that is named (TICK) is skipped, as by `sexton skip-next`. A run that ends by itself
    before it is stopped keeps its own outcome.
    """
    from sexton.store.protocol import StopOutcome

    _check_reason(reason)
    at = None if tick is None else parse_instant(tick, "TICK")
    if at is not None and running:
        raise typer.BadParameter("--running is for all of a job's runs; leave it out, or TICK")
    with open_cluster(ctx) as store:
        found = find_job(store, job)
        if at is not None and at > store.now() and _is_skipped(store, found, at, reason, output):
            return 0
        if at is None and not yes:
            _ask_first(store, found, running_only=running)
        with _news(store, wait) as news:
            stopped = store.operations.cancel(found.job_id, actor(), reason, at, running_only=running)
            if at is not None and stopped[0].outcome is StopOutcome.OVER:
                return _was_over(found, stopped[0], output)
            going = [one.scheduled_at for one in stopped if one.state is State.RUNNING]
            states = _ends(store, found.job_id, going, news) if news is not None else {}
    rows = [_row(found, one, states) for one in stopped]
    if output is Output.TABLE and not rows:
        print(f"{found.name}: nothing of it {'runs' if running else 'runs or waits'} now")
        return 0
    print_rows(rows, output, _COLUMNS)
    return int(any(state is not State.CANCELLED for state in states.values()))


def rerun(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[str, typer.Argument(metavar="TICK", help="The tick, as `sexton ticks` or `sexton runs` print it.")],
    reason: ReasonOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a tick that has ended once more: the same claim, with its revision, its retries as new, its runs kept.

    It waits for the job's slot where that is busy. No other tick is consumed or shifted.
    """
    _check_reason(reason)
    at = parse_instant(tick, "TICK")
    with open_cluster(ctx) as store:
        found = find_job(store, job)
        done = store.operations.rerun(found.job_id, at, actor(), reason)
    if output is not Output.TABLE:
        print_record(done, output)
        return
    print(
        f"{found.name} {instant_text(at)} is ready again as revision {done.revision}; it had ended as {done.was.word},"
        f" attempt {done.attempt + 1} is next"
    )
    if done.is_paused:
        print(f"{found.name} is paused: this waits for `sexton resume {found.name}`")


def _is_skipped(store: Store, job: CurrentJob, at: datetime, reason: str, output: Output) -> bool:
    """Skip a tick that is not due yet; False where it has begun all the same, or has ended: that is told as ever."""
    state = store.operations.states(job.job_id, [at]).get(at, State.READY)
    if state is not State.READY or job.is_paused:
        return False
    skip(store, job, at, reason, output)
    return True


def _ask_first(store: Store, job: CurrentJob, *, running_only: bool) -> None:
    """Where more than one claim would be stopped."""
    states = list(store.operations.states(job.job_id).values())
    running = states.count(State.RUNNING)
    waiting = 0 if running_only else len(states) - running
    if running + waiting > 1:
        what = [f"{count} that {verb}" for count, verb in ((running, "run"), (waiting, "wait")) if count]
        ask(f"Cancel {' and '.join(what)} of {job.name}?")


def _was_over(job: CurrentJob, one: StoppedClaim, output: Output) -> int:
    """There was nothing to stop: said, and a success where it had been cancelled."""
    if output is not Output.TABLE:
        print_rows([_row(job, one, {})], output, _COLUMNS)
    elif one.state is State.CANCELLED:
        print(f"{job.name} {instant_text(one.scheduled_at)} was cancelled before")
    else:
        at = instant_text(one.scheduled_at)
        raise Refused(
            f"the tick {at} of {job.name} had ended before: {one.state.word}", hint="there is nothing to stop"
        )
    return 0 if one.state is State.CANCELLED else 1


def _ends(store: Store, job_id: int, ticks: list[datetime], news: threading.Event) -> dict[datetime, State]:
    """How these claims ended, once none of them runs."""
    while True:
        news.clear()
        states = store.operations.states(job_id, ticks) if ticks else {}
        if State.RUNNING not in states.values():
            return states
        news.wait(_LOOK_SECONDS)


@contextlib.contextmanager
def _news(store: Store, wanted: bool) -> Iterator[threading.Event | None]:
    """Set whenever a run that was asked to stop may have ended."""
    from sexton.store.protocol import Channel

    if not wanted:
        yield None
        return
    event = threading.Event()
    with contextlib.closing(store.listen([Channel.STOPS], event)):
        yield event


def _row(job: CurrentJob, one: StoppedClaim, ends: dict[datetime, State]) -> dict[str, Any]:
    end = ends.get(one.scheduled_at)
    return {
        "job": job.name,
        "scheduled_at": one.scheduled_at,
        "state": one.state.word,
        "outcome": one.outcome.value if end is None else end.word,
        "attempt": one.attempt,
        "token": one.token,
    }


def _check_reason(reason: str) -> None:
    if not reason.isprintable():
        raise InvalidInput("--reason holds a line break or a control character", hint="write it on one line")
    if len(reason) > _LONGEST_REASON:
        raise typer.BadParameter(f"--reason has more than {_LONGEST_REASON} characters")
