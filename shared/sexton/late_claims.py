"""What becomes of claims that nobody started in time: the rules of ``missed_ticks`` over rows that exist.

All late claims of a job are decided together, and with them those that were
turned into catch-up earlier and never granted; one at a time, a minutely
``latest`` job without a worker for three days would run 4,320 times. What fires
becomes catch-up, whatever its age: it was missed once, and live ticks go first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sexton.claims import Origin
from sexton.decisions import (
    Cause,
    JobDecision,
    LateClaim,
    LateJob,
    LatePlan,
    LateVerdict,
    NewProposal,
    RevisionInForce,
    SkipReason,
)
from sexton.job_rules import CatchUpOrder, MissedPolicy
from sexton.missed_reasons import ReasonNumbers, reason_sentence
from sexton.missed_ticks import HOLD_ABOVE_DETAIL, effective_within
from sexton.settings import format_duration
from sexton.tick_view import MICROSECOND

FIRES = "fires"


def decide_late(job: LateJob, now: datetime, term: int, *, force_hold: bool = False) -> LatePlan | None:
    """Decide the late claims of ``job``; None where nothing changes.

    Verdicts that fire stand in the order in which they should start, still without ``available_at``:
    ``with_starts`` gives it. Claims that stay as they are have no verdict.
    """
    rules = job.revision.firing.missed
    within = effective_within(job.revision, job.claims[-1].scheduled_at)
    decided: list[tuple[LateClaim, SkipReason | None, str]] = []
    fired = 0
    newest_fire: datetime | None = None
    for claim in reversed(job.claims):
        age = now - claim.scheduled_at - claim.jitter
        reason, detail = _settled(age > within, age > rules.grace, job.revision)
        if age > within:
            detail = f"expired: older than within {format_duration(within)}"
        if reason is None and rules.policy is MissedPolicy.LATEST and newest_fire is not None:
            reason, detail = SkipReason.MERGED, f"merged into {newest_fire.isoformat().replace('+00:00', 'Z')}"
        elif reason is None and fired >= rules.max:
            reason, detail = SkipReason.EXPIRED, f"expired: beyond max {rules.max}"
        elif reason is None:
            fired += 1
            newest_fire = newest_fire or claim.scheduled_at
            if force_hold:
                reason, detail = SkipReason.HELD, HOLD_ABOVE_DETAIL
        decided.append((claim, reason, detail))
    decided.reverse()
    changed = [item for item in decided if item[1] is not None or item[0].origin is not Origin.CATCH_UP]
    if not changed:
        return None
    return LatePlan(
        term=term,
        job_id=job.job_id,
        seq=job.seq,
        verdicts=_verdicts(changed, rules.order),
        decision=_decision(job, changed, now, force_hold),
        proposal=_proposal(job, changed, now - within, now + rules.hold_for),
    )


def newly_fired(plan: LatePlan) -> int:
    """How many starts the plan asks of the catch-up budget."""
    return sum(verdict.becomes == FIRES for verdict in plan.verdicts)


def adds_waiting(job: LateJob, plan: LatePlan) -> int:
    """How many more claims of ``job`` wait to fire once the plan for it is carried out; below 0 where fewer do."""
    waited = {claim.scheduled_at for claim in job.claims if claim.origin is Origin.CATCH_UP}
    ended = sum(verdict.becomes != FIRES and verdict.scheduled_at in waited for verdict in plan.verdicts)
    return newly_fired(plan) - ended


def with_starts(plan: LatePlan, starts: Sequence[datetime]) -> LatePlan:
    """The plan with an ``available_at`` for each verdict that fires."""
    remaining = iter(starts)
    return replace(
        plan,
        verdicts=tuple(
            replace(verdict, available_at=next(remaining)) if verdict.becomes == FIRES else verdict
            for verdict in plan.verdicts
        ),
    )


def _settled(is_expired: bool, is_old: bool, revision: RevisionInForce) -> tuple[SkipReason | None, str]:
    rules = revision.firing.missed
    if is_expired:
        return SkipReason.EXPIRED, ""
    if is_old and rules.policy is MissedPolicy.SKIP:
        return SkipReason.SKIPPED, f"policy skip: older than grace {format_duration(rules.grace)}"
    if is_old and rules.policy is MissedPolicy.HOLD:
        return SkipReason.HELD, f"policy hold: older than grace {format_duration(rules.grace)}"
    return None, ""


def _verdicts(
    changed: Sequence[tuple[LateClaim, SkipReason | None, str]], order: CatchUpOrder
) -> tuple[LateVerdict, ...]:
    verdicts = [
        LateVerdict(claim.scheduled_at, FIRES if reason is None else reason.value) for claim, reason, _ in changed
    ]
    if order is CatchUpOrder.NEWEST:
        verdicts.reverse()
    return tuple(verdicts)


def _decision(
    job: LateJob, changed: Sequence[tuple[LateClaim, SkipReason | None, str]], now: datetime, force_hold: bool
) -> JobDecision:
    fired = [claim for claim, reason, _ in changed if reason is None]
    counts = dict.fromkeys(SkipReason, 0)
    for _, reason, _ in changed:
        if reason is not None:
            counts[reason] += 1
    newest = changed[-1][0].scheduled_at
    numbers = ReasonNumbers(
        now=now,
        fired=len(fired),
        fired_first=fired[0].scheduled_at if fired else None,
        fired_last=fired[-1].scheduled_at if fired else None,
        lateness=now - fired[-1].scheduled_at - fired[-1].jitter if fired else None,
        skipped=tuple((reason, 1, detail) for _, reason, detail in changed if reason is not None),
        is_forced=force_hold,
    )
    return JobDecision(
        job_id=job.job_id,
        revision=job.revision.revision,
        cause=Cause.NOT_STARTED,
        after=changed[0][0].scheduled_at - MICROSECOND,
        upto=newest,
        policy=job.revision.firing.missed.policy.value,
        missed=len(changed),
        fired=len(fired),
        merged=counts[SkipReason.MERGED],
        skipped=counts[SkipReason.SKIPPED],
        expired=counts[SkipReason.EXPIRED],
        held=counts[SkipReason.HELD],
        reason=f"claimed but not started: {reason_sentence(numbers, job.revision.schedule, newest)}",
    )


def _proposal(
    job: LateJob,
    changed: Sequence[tuple[LateClaim, SkipReason | None, str]],
    within_from: datetime,
    lapses_at: datetime,
) -> NewProposal | None:
    held = [claim.scheduled_at for claim, reason, _ in changed if reason is SkipReason.HELD]
    if not held:
        return None
    detail = next(detail for _, reason, detail in changed if reason is SkipReason.HELD)
    return NewProposal(
        job_id=job.job_id,
        revision=job.revision.revision,
        after=held[0] - MICROSECOND,
        upto=held[-1],
        count=len(held),
        within_from=within_from,
        lapses_at=lapses_at,
        reason=f"claimed but not started; {detail}",
    )
