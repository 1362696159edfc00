"""What happens next to a tick: who or what it waits for, and what an operator can do."""

from __future__ import annotations

from sexton.claims import State
from sexton.missed_reasons import rounded
from sexton.tick_facts import RevisionFacts, TickFacts
from sexton.tick_reasons import exact_text, short_text
from sexton.views import ClaimView


def outlook(facts: TickFacts, revision: RevisionFacts | None) -> str:
    """A sentence without its full stop; empty where nothing more happens by itself."""
    if facts.claim is not None:
        return _of_claim(facts, facts.claim, revision)
    if facts.skip is not None or facts.proposal is not None:
        return _of_proposal(facts)
    if facts.instant <= facts.cursor:
        return "`sexton audit` names it with what else is missing"
    return _to_be_decided(facts, revision)


def _to_be_decided(facts: TickFacts, revision: RevisionFacts | None) -> str:
    cluster, tick = facts.cluster, facts.instant
    if facts.quarantined_at is not None:
        why = facts.quarantine_reason or "no reason is recorded"
        return f"nothing while the job is quarantined ({why}): `sexton resume {facts.job}` brings it back"
    if facts.pause is not None and facts.pause.until is None:
        return (
            f"if the pause by {facts.pause.who} lasts, it is recorded as paused and does not run: "
            f"`sexton resume {facts.job}` ends the pause"
        )
    if cluster.halted_by is not None:
        reason = f": {cluster.halt_reason}" if cluster.halt_reason else ""
        return f"nothing while the cluster is halted by {cluster.halted_by}{reason}; `sexton halt --lift` ends that"
    if tick > cluster.now:
        return _future(facts, revision)
    policy = "" if revision is None else f"; after that missed: {revision.firing.missed.policy.value} decides"
    who = _who_decides(facts)
    if revision is None or cluster.now - tick <= revision.firing.missed.grace:
        grace = "" if revision is None else f" within its grace of {rounded(revision.firing.missed.grace)}"
        return f"{who} decides it: late{grace} it runs{policy}"
    return f"{who} decides it by the policy {revision.firing.missed.policy.value}: `sexton cluster` tells who leads"


def _future(facts: TickFacts, revision: RevisionFacts | None) -> str:
    cluster, tick = facts.cluster, facts.instant
    written = tick - cluster.horizon
    when = "at once" if written <= cluster.now else f"at about {short_text(written)}"
    said = f"{_who_decides(facts)} writes its claim {when} ({rounded(cluster.horizon)} ahead)"
    if not cluster.horizon:
        said = f"{_who_decides(facts)} writes its claim when it falls due"
    if revision is None:
        return said
    jitter = revision.firing.jitter_of(tick)
    if jitter:
        said += f", available at {short_text(tick + jitter)} (jitter {rounded(jitter)})"
    return f"{said}, for a worker of queue {revision.firing.queue}"


def _who_decides(facts: TickFacts) -> str:
    cluster = facts.cluster
    if cluster.strategy == "race":
        return "the first node to win the race"
    if cluster.leader is None:
        return "nobody leads now: the next leader"
    return f"the leader, {cluster.leader} (term {cluster.term}),"


def _of_claim(facts: TickFacts, claim: ClaimView, revision: RevisionFacts | None) -> str:
    match claim.state:
        case State.READY:
            return _ready(facts, claim, revision)
        case State.PARKED:
            return _parked(facts)
        case State.RUNNING:
            since = "" if claim.started_at is None else f" since {short_text(claim.started_at)}"
            lease = (
                "" if claim.lease_expires_at is None else f", its lease ends at {short_text(claim.lease_expires_at)}"
            )
            return f"it runs on {claim.worker}{since} (try {claim.attempt}){lease} unless renewed"
        case State.HELD:
            return _of_proposal(facts)
        case State.FAILED | State.TIMED_OUT:
            allowed = 0 if revision is None else revision.retries.max
            return f"nothing by itself: {claim.retries} of {allowed} retries are used up; {_rerun(facts)}"
        case State.SUCCEEDED:
            return ""
    return f"nothing by itself: {_rerun(facts)}"


def _rerun(facts: TickFacts) -> str:
    return f"`sexton rerun {facts.job} {exact_text(facts.instant)}` runs it once more"


def _ready(facts: TickFacts, claim: ClaimView, revision: RevisionFacts | None) -> str:
    cluster = facts.cluster
    again = "it is tried again" if claim.attempt else "it becomes available"
    if claim.is_blocked:
        return f"it waits for the end of the pause: `sexton resume {facts.job}`"
    if cluster.halted_by is not None:
        return f"no worker takes it while the cluster is halted by {cluster.halted_by}; `sexton halt --lift` ends that"
    workers = (
        f"one of the {facts.workers} workers of queue {claim.queue}"
        if facts.workers > 1
        else f"the worker of queue {claim.queue}"
        if facts.workers
        else f"a worker of queue {claim.queue}, which has none now,"
    )
    missed = "" if claim.start_by is None else f"; not started by {short_text(claim.start_by)} it is missed"
    if claim.start_by is not None and claim.start_by < cluster.now:
        policy = "" if revision is None else f" by the policy {revision.firing.missed.policy.value}"
        overdue = f"it is missed, for it was not started by {short_text(claim.start_by)}"
        return f"{overdue}: {_who_decides(facts)} decides it{policy}"
    if claim.available_at > cluster.now:
        return f"{again} at {short_text(claim.available_at)}: {workers} takes it{missed}"
    return f"it waits since {short_text(claim.available_at)} until {workers} has room{missed}"


def _parked(facts: TickFacts) -> str:
    if not facts.holders:
        return "it waits for its slot, which is free: it is promoted within seconds"
    held = ", ".join(
        f"{holder.job} {exact_text(holder.scheduled_at)} on {holder.worker}" for holder in facts.holders[:3]
    )
    return f"it waits for its slot, held by {held}"


def _of_proposal(facts: TickFacts) -> str:
    proposal = facts.proposal
    if proposal is None or proposal.state != "open":
        return ""
    return (
        f"proposal {proposal.proposal_id} waits for an answer until {short_text(proposal.lapses_at)}: "
        f"`sexton holds approve {proposal.proposal_id}`, or reject"
    )
