"""``sexton explain JOB TICK``: why a tick ran or did not, by whom it was decided, and what comes next."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import SextonError
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Output, OutputOption, instant_text, json_value, print_record, printable
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.local_readings import LocalReading
    from sexton.store.protocol import Store
    from sexton.tick_explanation import NearTick, TickExplanation
    from sexton.views import DecisionView, EventView, RunView, TakeoverView

_LABEL = 10
_NARROWEST = 50
_NEAR = ("last", "next")
_YEARS = range(1900, 2200)


@watchable
def explain(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[
        str, typer.Argument(metavar="TICK", help="An instant, a reading of the local clock, `last` or `next`.")
    ],
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The zone of a local reading; the job's by default.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Tell whether a tick was due and why, what was decided by whom, each attempt, and what comes next.

    TICK is an instant (2026-03-29T01:00:00Z), a reading of the clock on the wall (2026-03-29T02:30), last, or next.
    """
    from sexton.tick_explanation import explain as explain_facts

    with open_cluster(ctx, read_only=True) as store:
        instant, reading = _asked(store, job, tick, tz)
        facts = store.reads.tick_facts(job, instant)
        found = explain_facts(facts)
        note = "" if reading is None else _reading_note(store, found, reading)
    if output is not Output.TABLE:
        print_record({"asked": tick, "note": note, **json_value(found)}, output)
        return
    width = max(min(shutil.get_terminal_size().columns, 120), _NARROWEST) if sys.stdout.isatty() else 80
    for line in _lines(found, note, width):
        print(line)


# --- which instant ----------------------------------------------------------------------------------


def _asked(store: Store, job: str, text: str, tz: str | None) -> tuple[datetime, LocalReading | None]:
    """The instant that is meant; with it the local reading, where one was given."""
    from sexton.local_readings import find_reading

    if text.lower() in _NEAR:
        if tz is not None:
            raise typer.BadParameter(f"--tz goes with a local reading, not with {text.lower()}")
        return store.reads.near_tick(job, text.lower()), None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"TICK: {text!r} is no instant and no reading of a clock; write e.g. 2026-03-29T01:00:00Z, "
            "2026-03-29T02:30 for the job's own clock, last, or next"
        ) from None
    if given.year not in _YEARS:
        raise typer.BadParameter(f"TICK: {text!r} lies outside the years {_YEARS.start} to {_YEARS.stop - 1}")
    if given.tzinfo is not None:
        if tz is not None:
            raise typer.BadParameter(f"--tz goes with a local reading; {text} says its offset itself")
        return given.astimezone(UTC), None
    zone = store.reads.zone(job) if tz is None else tz
    try:
        reading = find_reading(given, zone)
    except SextonError as error:
        raise typer.BadParameter(f"--tz: {error}") from None
    if reading.jump is not None:
        return reading.jump.at, reading
    return _showing(store, job, reading), reading


def _showing(store: Store, job: str, reading: LocalReading) -> datetime:
    """Of two showings the one that is a tick; the first where both or neither are."""
    from sexton.tick_explanation import explain as explain_facts

    for instant in reading.instants[:1] if len(reading.instants) == 1 else reading.instants:
        if len(reading.instants) == 1 or explain_facts(store.reads.tick_facts(job, instant)).is_due:
            return instant
    return reading.instants[0]


def _reading_note(store: Store, found: TickExplanation, reading: LocalReading) -> str:
    """What there is to say of a reading that no instant, or two, show."""
    from sexton.tick_reasons import change_words, clock_text, local_text

    when = f"{clock_text(reading.reading)} on {reading.reading:%Y-%m-%d} in {reading.zone}"
    if reading.jump is not None:
        jump = f"{when} does not exist ({change_words(reading.jump)})"
        if not found.is_due:
            return f"{jump}; nothing fires for it: {found.why}"
        fires = "fired" if found.tick <= store.now() else "fires"
        return f"{jump}; what is due then {fires} at {local_text(found.tick, reading.zone)}"
    others = [instant for instant in reading.instants if instant != found.tick]
    if others:
        return f"{when} comes twice, this is {instant_text(found.tick)}; ask for {instant_text(others[0])} as well"
    return ""


# --- as text ------------------------------------------------------------------------------------------


def _lines(found: TickExplanation, note: str, width: int) -> Iterator[str]:
    title = f"{found.job}  {instant_text(found.tick)}"
    yield printable(f"{title}  ({found.local})" if found.zone != "UTC" else title)
    for label, text in _facts(found, note):
        indent = " " * (_LABEL + 2)
        yield from textwrap.wrap(
            printable(text),
            width,
            initial_indent=f"{label:<{_LABEL}}  ",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )


def _facts(found: TickExplanation, note: str) -> Iterator[tuple[str, str]]:
    if note:
        yield "asked", note
    yield "due" if found.is_due else "not due", found.why
    yield from _around(found)
    if found.revision is not None:
        said = found.revision
        yield "revision", f"{said.revision}, applied by {said.applied_by} at {_second(said.applied_at)}"
    if found.pause is not None:
        until = "still open" if found.pause.until is None else f"until {_second(found.pause.until)}"
        why = f": {found.pause.why}" if found.pause.why else ""
        yield "pause", f"by {found.pause.who} since {_second(found.pause.since)}, {until}{why}"
    if found.decided:
        yield "decided", found.decided
    if found.takeover is not None:
        yield "term", _takeover(found.takeover)
    for decision in found.decisions:
        yield "because", _decision(decision)
    if found.proposal is not None:
        yield "proposal", _proposal(found)
    yield from _claim(found)
    for event in found.acts:
        yield "operator", _act(event)
    for run in found.runs:
        yield f"try {run.attempt}", _run(run)
    for refused in found.refused:
        yield (
            "refused",
            f"{refused.worker} reported {refused.outcome.word} for try {refused.attempt} under token {refused.token} "
            f"at {_second(refused.at)}: the token did not count any more, nothing was written",
        )
    if found.next:
        yield "next", found.next


def _around(found: TickExplanation) -> Iterator[tuple[str, str]]:
    """The ticks beside what is none."""
    if found.is_due:
        return
    for label, near in (("before", found.before), ("after", found.after)):
        if near is not None:
            yield label, _near(near, found.zone)
    for instant in found.near_claims:
        yield "but", f"a run was triggered at {instant_text(instant)}: ask for it with its fraction"


def _near(near: NearTick, zone: str) -> str:
    local = "" if zone == "UTC" else f" = {near.local}"
    return f"{instant_text(near.tick)}{local}" + (f": {near.why}" if near.why else "")


def _takeover(takeover: TakeoverView) -> str:
    said = f"{takeover.term}: {takeover.node} leads since {_second(takeover.taken_at)}"
    if takeover.predecessor:
        said += f", after {takeover.predecessor} ({takeover.predecessor_ended.value})"
    if takeover.gap:
        said += f"; gap {_length(takeover.gap)}"
    return f"{said}: `sexton takeovers {takeover.term}`"


def _decision(decision: DecisionView) -> str:
    span = f"ticks after {_second(decision.after)} up to {_second(decision.upto)}"
    return f"{decision.cause.value} (term {decision.term}, policy {decision.policy}, {span}): {decision.reason}"


def _proposal(found: TickExplanation) -> str:
    proposal = found.proposal
    assert proposal is not None  # noqa: S101 - asked before
    said = f"{proposal.proposal_id}: {proposal.count:,} held ticks, {proposal.state}"
    if proposal.answered_at is not None:
        said += f" by {proposal.answered_by or 'nobody'} at {_second(proposal.answered_at)}"
        return said + (f": {proposal.note}" if proposal.note else "")
    return f"{said} until {_second(proposal.lapses_at)}"


def _claim(found: TickExplanation) -> Iterator[tuple[str, str]]:
    claim = found.claim
    if claim is None:
        return
    said = claim.state.word
    if claim.reason:
        said += f": {claim.reason}"
    yield "state", said
    if claim.started_at is None and not found.runs:
        jitter = f", jitter {_length(claim.jitter)}" if claim.jitter else ""
        yield "available", f"{_second(claim.available_at)}{jitter}, queue {claim.queue}, priority {claim.priority}"
    if found.budget:
        yield "budget", found.budget
    if found.claim is not None and claim.token is not None and claim.started_at is not None and not found.runs:
        late = "" if found.lateness is None else f", {_length(found.lateness)} late"
        yield f"try {claim.attempt}", f"on {claim.worker}, token {claim.token}, since {_second(claim.started_at)}{late}"


def _run(run: RunView) -> str:
    outcome: Any = "to be tried again" if run.outcome.word == "ready" else run.outcome.word.replace("_", " ")
    said = f"{outcome} on {run.worker}, token {run.token}"
    if run.started_at is None:
        said += f", never started, ended {_second(run.finished_at)}"
    else:
        late = "" if run.lateness is None else f" ({_length(run.lateness)} late)"
        took = run.finished_at - run.started_at
        said += f", started {_second(run.started_at)}{late}, ended {_second(run.finished_at)} after {_length(took)}"
    if run.exit_code is not None and not run.error.startswith("exited with code"):
        said += f", exit code {run.exit_code}"
    return said + (f": {run.error}" if run.error else "")


def _act(event: EventView) -> str:
    why = event.detail.get("reason") or event.detail.get("why") or ""
    what = event.action.partition(".")[2].replace("_", " ")
    return f"{what} by {event.actor} at {_second(event.at)}" + (f": {why}" if why else "")


def _second(instant: datetime) -> str:
    """An instant to the millisecond: what a person compares."""
    if instant.microsecond:
        return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return instant_text(instant)


def _length(duration: timedelta) -> str:
    from sexton.missed_reasons import rounded

    return f"-{rounded(-duration)}" if duration < timedelta(0) else rounded(duration)
