"""One instant of one job explained: due or not and why, what was decided by whom, what ran, and what comes next.

Pure: from what the ledger holds (``sexton.tick_facts``) to values with sentences. Nothing here decides a tick; where
the ledger holds no decision, the sentence says whether there should be one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.audit_findings import DECIDED_WITHIN
from sexton.claims import ENDED, PACED_ORIGINS, Origin, State
from sexton.decisions import Cause, SkipReason
from sexton.missed_reasons import rounded
from sexton.terms import ElectedBy
from sexton.tick_facts import ProposalFacts, RefusedWrite, RevisionFacts, TickFacts
from sexton.tick_outlook import outlook
from sexton.tick_reasons import ReasonKind, TickReason, exact_text, local_text, reason_at, short_text
from sexton.views import ClaimView, DecisionView, EventView, PauseView, RunView, SkipView, TakeoverView

A_RACER = "a node of the race (any may, and which is not recorded)"
MICROSECOND = timedelta(microseconds=1)
_ENDED_BY_POLICY = (State.HELD, State.SKIPPED, State.MERGED, State.EXPIRED)


class Answer(StrEnum):
    """What the ledger says about the instant, in a word."""

    CLAIMED = "claimed"  # with the state of its claim
    NOT_RUN = "not run"  # a skip record covers it
    HELD = "held"  # in a proposal that nobody has answered
    TO_COME = "to come"
    UNDECIDED = "undecided"  # it fell due, and may still be undecided
    OVERDUE = "overdue"  # it fell due, is undecided, and should not be
    MISSING = "missing"  # the cursor has passed it, and there is no decision: `sexton audit` fails
    PRUNED = "pruned"
    NOT_DUE = "not due"


@dataclass(frozen=True, slots=True)
class NearTick:
    """A tick of the job beside the instant, with its reading in the job's zone and what is special about it."""

    tick: datetime
    local: str
    why: str


@dataclass(frozen=True, slots=True)
class RevisionNote:
    """The revision in force at the instant, and who applied it."""

    revision: int
    applied_by: str
    applied_at: datetime
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class TickExplanation:
    """Sentences stand without their full stop; ``next`` is empty where nothing more will happen."""

    job: str
    tick: datetime
    zone: str
    local: str
    is_due: bool
    why: str
    kind: ReasonKind | None
    answer: Answer
    decided: str
    next: str
    revision: RevisionNote | None
    pause: PauseView | None
    node: str | None  # who led under the term that decided, the operator, or ``A_RACER``
    term: int | None
    takeover: TakeoverView | None
    decisions: tuple[DecisionView, ...]
    claim: ClaimView | None
    lateness: timedelta | None
    budget: str
    skip: SkipView | None
    proposal: ProposalFacts | None
    runs: tuple[RunView, ...]
    refused: tuple[RefusedWrite, ...]
    acts: tuple[EventView, ...]  # what operators did to the tick
    before: NearTick | None
    after: NearTick | None
    near_claims: tuple[datetime, ...]


def explain(facts: TickFacts) -> TickExplanation:
    """Explain one instant. Pure: equal facts give equal explanations."""
    facts = _of_the_tick(facts)
    revision = revision_at(facts)
    reason = _reason(facts, revision)
    zone = (revision or _nearest_revision(facts)).zone
    claim, skip = facts.claim, facts.skip
    answer = _answer(facts, reason, revision)
    before, after = near_ticks(facts)
    return TickExplanation(
        job=facts.job,
        tick=facts.instant,
        zone=zone,
        local=local_text(facts.instant, zone),
        is_due=reason.is_due,
        why=reason.sentence,
        kind=reason.kind if revision is not None else None,
        answer=answer,
        decided=_decided(facts, answer, revision),
        next=outlook(facts, revision) if _has_outlook(answer, reason) else "",
        revision=None if revision is None else _note(revision),
        pause=facts.pause,
        node=_decider(facts),
        term=claim.term if claim is not None else None if skip is None else skip.term,
        takeover=facts.takeover,
        decisions=facts.decisions,
        claim=claim,
        lateness=_lateness(claim),
        budget=_budget(facts),
        skip=skip,
        proposal=facts.proposal,
        runs=facts.runs,
        refused=facts.refused,
        acts=facts.events,
        before=before,
        after=after,
        near_claims=facts.near_claims,
    )


# --- due or not ----------------------------------------------------------------------------------------


def revision_at(facts: TickFacts) -> RevisionFacts | None:
    """The revision that was, is, or by what is known now will be in force at the instant."""
    return next((revision for revision in facts.revisions if revision.holds(facts.instant)), None)


def near_ticks(facts: TickFacts) -> tuple[NearTick | None, NearTick | None]:
    """The job's ticks next to the instant, by the revisions in force then."""
    before = after = None
    for revision in reversed(facts.revisions):
        if revision.schedule is None or before is not None:
            continue
        last = facts.instant if revision.until is None else min(facts.instant, revision.until + MICROSECOND)
        tick = revision.schedule.previous_before(last) if last > revision.since else None
        if tick is not None and tick > revision.since:
            before = _near(revision, tick)
    for revision in facts.revisions:
        if revision.schedule is None or after is not None:
            continue
        tick = revision.schedule.next_after(max(facts.instant, revision.since))
        if tick is not None and (revision.until is None or tick <= revision.until):
            after = _near(revision, tick)
    return before, after


def _near(revision: RevisionFacts, tick: datetime) -> NearTick:
    reason = reason_at(revision.spec, tick)
    return NearTick(tick, local_text(tick, revision.zone), "" if reason.kind is ReasonKind.NAMED else reason.sentence)


def _reason(facts: TickFacts, revision: RevisionFacts | None) -> TickReason:
    if revision is None:
        return TickReason(False, ReasonKind.NOT_NAMED, _why_no_revision(facts))
    if revision.schedule is None:
        sentence = f"revision {revision.revision} has a schedule that this release of Sexton cannot read"
        return TickReason(False, ReasonKind.NOT_NAMED, sentence)
    return reason_at(revision.spec, facts.instant)


def _why_no_revision(facts: TickFacts) -> str:
    first, last = facts.revisions[0], facts.revisions[-1]
    if facts.instant <= first.since:
        said = f"the job's first revision is in force since {short_text(first.since)}: no tick of the past is invented"
        if (earlier := facts.earlier) is None:
            return said
        asked = f"`sexton explain {earlier.address} {exact_text(facts.instant)}`"
        return f"{said}; an earlier job of this name was retired at {short_text(earlier.retired_at)}: {asked}"
    if facts.retired_at is not None and last.until is not None and facts.instant > last.until:
        return f"the job was retired at {short_text(facts.retired_at)}"
    return "no revision of the job was in force"


def _nearest_revision(facts: TickFacts) -> RevisionFacts:
    first, last = facts.revisions[0], facts.revisions[-1]
    return first if facts.instant <= first.since else last


def _note(revision: RevisionFacts) -> RevisionNote:
    return RevisionNote(revision.revision, revision.applied_by, revision.applied_at, revision.since, revision.until)


# --- the decision -------------------------------------------------------------------------------------


def _of_the_tick(facts: TickFacts) -> TickFacts:
    """Without the proposal and the decisions over late claims that only reach around it: between two claims that were
    late, there may be ticks that ran in time, or were paused."""
    claim, skip = facts.claim, facts.skip
    is_late = claim is not None and (claim.origin in PACED_ORIGINS or claim.state in _ENDED_BY_POLICY)
    is_held = (skip is not None and skip.reason is SkipReason.HELD) or (
        claim is not None and (claim.origin is Origin.HELD or claim.state in _ENDED_BY_POLICY)
    )
    decisions = tuple(one for one in facts.decisions if is_late or one.cause is not Cause.NOT_STARTED)
    return replace(facts, decisions=decisions, proposal=facts.proposal if is_held else None)


def _answer(facts: TickFacts, reason: TickReason, revision: RevisionFacts | None) -> Answer:
    claim, skip, now = facts.claim, facts.skip, facts.cluster.now
    if claim is not None:
        return Answer.HELD if claim.state is State.HELD else Answer.CLAIMED
    if skip is not None and reason.is_due:
        is_open = skip.reason is SkipReason.HELD and (facts.proposal is None or facts.proposal.state == "open")
        return Answer.HELD if is_open else Answer.NOT_RUN
    if not reason.is_due:
        return Answer.NOT_DUE
    pruned = facts.cluster.pruned_before
    if pruned is not None and facts.instant <= pruned:
        return Answer.PRUNED
    if facts.instant <= facts.cursor:
        return Answer.MISSING
    if facts.instant > now:
        return Answer.TO_COME
    grace = DECIDED_WITHIN if revision is None else max(revision.firing.missed.grace, DECIDED_WITHIN)
    is_paused = facts.pause is not None and facts.pause.until is None
    return Answer.UNDECIDED if is_paused or now - facts.instant <= grace else Answer.OVERDUE


def _has_outlook(answer: Answer, reason: TickReason) -> bool:
    return answer not in (Answer.NOT_DUE, Answer.NOT_RUN, Answer.PRUNED, Answer.MISSING) or (
        answer is Answer.MISSING and reason.is_due
    )


def _decided(facts: TickFacts, answer: Answer, revision: RevisionFacts | None) -> str:
    claim, skip = facts.claim, facts.skip
    if claim is not None:
        return _claimed(facts, claim)
    if skip is not None and answer in (Answer.NOT_RUN, Answer.HELD):
        return _skipped(facts, skip)
    now, ago = facts.cluster.now, rounded(abs(facts.cluster.now - facts.instant))
    match answer:
        case Answer.TO_COME:
            return f"not yet: it falls due in {ago}"
        case Answer.UNDECIDED:
            return (
                f"not yet: it fell due {ago} ago, and the job's grace is not over"
                if facts.pause is None
                else (f"not yet: it fell due {ago} ago, in a pause")
            )
        case Answer.OVERDUE:
            return f"not yet, and overdue: it fell due {ago} ago, at {short_text(now)} nobody had decided it"
        case Answer.MISSING:
            return f"missing: all up to {short_text(facts.cursor)} counts as decided, and this has no decision"
        case Answer.PRUNED:
            return f"unknown: the ledger goes back to {short_text(facts.cluster.pruned_before or now)}"
    return ""


def _claimed(facts: TickFacts, claim: ClaimView) -> str:
    if claim.origin is Origin.MANUAL:
        who = _decider(facts)
        return f"triggered{f' by {who}' if who else ''} at {short_text(claim.written_at)}: beside the schedule"
    ahead = facts.instant - claim.written_at
    when = f"{rounded(ahead)} ahead" if ahead >= timedelta(0) else f"{rounded(-ahead)} after it fell due"
    by = f"by {_decider(facts)} " if _decider(facts) else ""
    return f"claimed (origin {claim.origin.word}) {by}under term {claim.term} at {short_text(claim.written_at)}, {when}"


def _skipped(facts: TickFacts, skip: SkipView) -> str:
    by = _decider(facts)
    who = f"by {by} " if by else ""
    several = f", one of {skip.count:,} up to {short_text(skip.upto)}" if skip.count > 1 else ""
    detail = f": {skip.detail}" if skip.detail else ""
    said = f"{skip.reason.value} {who}under term {skip.term} at {short_text(skip.decided_at)}{several}{detail}"
    if skip.resolved_at is not None:
        said += f"; resolved by {skip.resolved_by or 'an operator'} at {short_text(skip.resolved_at)}"
    return said


def _decider(facts: TickFacts) -> str | None:
    """The operator of a manual claim or of a tick named not to run, else the node that led under the term; claims have
    no place for which racer it was."""
    if facts.claim is not None and facts.claim.origin is Origin.MANUAL:
        triggered = [event for event in facts.events if event.action == "job.triggered"]
        return triggered[-1].actor if triggered else None
    if facts.claim is None and facts.named_by is not None:
        return facts.named_by
    if facts.takeover is not None and facts.takeover.elected_by is ElectedBy.RACE:
        return A_RACER
    return None if facts.takeover is None else facts.takeover.node


def _lateness(claim: ClaimView | None) -> timedelta | None:
    if claim is None or claim.started_at is None:
        return None
    return claim.started_at - claim.scheduled_at - claim.jitter


def _budget(facts: TickFacts) -> str:
    """What catch-up's budget means for this claim; empty for others."""
    claim, cluster = facts.claim, facts.cluster
    if claim is None or claim.origin not in PACED_ORIGINS:
        return ""
    rate = f"at most {cluster.catch_up_rate}" if cluster.catch_up_rate else "by the budget"
    said = f"{claim.origin.word} is paced ({rate} in the cluster) and pulled after live ticks"
    if claim.state in ENDED or claim.available_at <= cluster.now:
        return said
    return f"{said}; its turn comes at {short_text(claim.available_at)}"
