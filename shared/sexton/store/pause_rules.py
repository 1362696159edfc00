"""What both stores say and write of pauses of all, of what fell due in a pause, and of ticks named ahead."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sexton.claims import OnWorkerLost
from sexton.cluster_views import PauseOfAll
from sexton.decisions import JobDecision, NewClaim, NewProposal
from sexton.errors import Refused
from sexton.job_rules import FiringRules
from sexton.skip_ahead import AheadPlan
from sexton.store.edit_plan import pause_words

AT_ONCE = 5_000
"""Jobs that one transaction of a pause of all pauses."""


def all_detail(why: str) -> dict[str, object]:
    """What the event of a pause of all, or of its end, says."""
    return {"why": why} if why else {}


def another_of_all(standing: PauseOfAll | None) -> Refused:
    """The refusal to end a pause of all that does not stand any more: another does, or none."""
    if standing is None:
        return Refused("the jobs are not paused as a whole any more", hint="look at them again")
    return Refused(pause_words("all jobs are paused anew", standing), hint="look at it again")


def kept_on_its_own(job: str) -> Refused:
    """The refusal to resume, as one of all, a job that was paused on its own meanwhile."""
    return Refused(f"{job} was paused on its own meanwhile, and stays so", hint="the others: begin again")


def said_of_pause(actor: str) -> str:
    """The reason in the claims of what fell due in a pause."""
    return f"fell due in a pause; run by {actor}"


def not_ahead(plan: AheadPlan, effective: datetime) -> Refused:
    """The refusal to change what is decided about a tick that is not after E any more."""
    tick = _instant(plan.changed)
    return Refused(
        f"{tick} of {plan.name} is with a worker, or a later tick was: all up to {_instant(effective)} stands",
        hint=f"`sexton cancel {plan.name} {tick}` stops its run",
    )


def ahead_rules(firing: FiringRules) -> dict[str, Any]:
    """The columns of a claim of the schedule that its job's rules fill."""
    return {
        "queue": firing.queue,
        "priority": firing.priority,
        "overlap": int(firing.overlap),
        "once": firing.on_worker_lost is OnWorkerLost.FAIL,
    }


def start_by_of(claim: NewClaim) -> datetime:
    return claim.start_by or claim.available_at


def proposal_values(proposal: NewProposal) -> dict[str, Any]:
    return {
        "job": proposal.job_id,
        "revision": proposal.revision,
        "after": proposal.after,
        "upto": proposal.upto,
        "count": proposal.count,
        "within": proposal.within_from,
        "lapses": proposal.lapses_at,
        "reason": proposal.reason,
    }


def decision_values(decision: JobDecision) -> dict[str, Any]:
    return {
        "job": decision.job_id,
        "revision": decision.revision,
        "cause": decision.cause.value,
        "after": decision.after,
        "upto": decision.upto,
        "policy": decision.policy,
        "missed": decision.missed,
        "fired": decision.fired,
        "merged": decision.merged,
        "skipped": decision.skipped,
        "expired": decision.expired,
        "held": decision.held,
        "reason": decision.reason,
    }


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
