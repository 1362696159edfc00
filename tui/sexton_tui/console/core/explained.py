"""Why a tick ran or did not, as facts with labels: what ``sexton explain`` prints and the console shows of a tick.

Instants are UTC, as commands take them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sexton.missed_reasons import rounded
from sexton.terms import ElectedBy
from sexton.tick_explanation import NearTick, TickExplanation
from sexton.views import DecisionView, EventView, GapView, RunView, TakeoverView
from sexton_tui.console.core.hold_words import count_text
from sexton_tui.console.core.words import iso_instant


def explained(found: TickExplanation, note: str = "") -> Iterator[tuple[str, str]]:
    """Each fact with its label, in the order in which they happened; ``note``: what there is to say of the question."""
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
        for gap in found.takeover.gaps:
            if gap.gap_from < found.tick <= gap.gap_until:
                yield "gap", _gap(gap)
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
        yield "but", f"a run was triggered at {iso_instant(instant)}: ask for it with its fraction"


def _near(near: NearTick, zone: str) -> str:
    local = "" if zone == "UTC" else f" = {near.local}"
    return f"{iso_instant(near.tick)}{local}" + (f": {near.why}" if near.why else "")


def _takeover(takeover: TakeoverView) -> str:
    is_race, until = takeover.elected_by is ElectedBy.RACE, takeover.until
    if until is None:
        who = "a race, all nodes decide," if is_race else f"{takeover.node} leads"
        said = f"{takeover.term}: {who} since {_second(takeover.taken_at)}"
    else:
        who = "a race, all nodes decided," if is_race else f"{takeover.node} led"
        said = f"{takeover.term}: {who} from {_second(takeover.taken_at)} to {_second(until)}"
    if takeover.predecessor:
        said += f", after {takeover.predecessor} ({takeover.predecessor_ended.value})"
    if takeover.gap:
        said += f"; gap {_length(takeover.gap)}"
    return f"{said}: `sexton takeovers {takeover.term}`"


def _gap(gap: GapView) -> str:
    until = f"until {_second(gap.gap_until)}, for {_length(gap.gap)}, and went on in its term"
    return f"{gap.node} wrote no claims from {_second(gap.gap_from)} {until}"


def _decision(decision: DecisionView) -> str:
    span = f"ticks after {_second(decision.after)} up to {_second(decision.upto)}"
    reason = decision.reason.removeprefix(f"{decision.cause.value}: ")
    return f"{decision.cause.value} (term {decision.term}, policy {decision.policy}, {span}): {reason}"


def _proposal(found: TickExplanation) -> str:
    proposal = found.proposal
    assert proposal is not None  # noqa: S101 - asked before
    said = f"{proposal.proposal_id}: {count_text(proposal.count)}, {proposal.state}"
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
    outcome = "to be tried again" if run.outcome.word == "ready" else run.outcome.word.replace("_", " ")
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
    return iso_instant(instant)


def _length(duration: timedelta) -> str:
    return f"-{rounded(-duration)}" if duration < timedelta(0) else rounded(duration)
