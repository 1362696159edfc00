"""Jobs with ticks that wait for an operator, written as a leader and its housekeeping do; and answers to them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sexton.decisions import Cause, JobDecision, LatePlan, LateVerdict, NewProposal, NewSkip, SkipReason
from sexton.holds import ALL, Part, in_start_order
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.store.protocol import Approval, HoldAnswer, JobRow, Store
from tests.support.leader_scene import MINUTE, SECOND, batch, claim, create, definition, read, set_columns

HOLD = MissedRules(policy=MissedPolicy.HOLD, grace=timedelta(0))
DAY = timedelta(days=1)


def hold_gap(store: Store, url: str, term: int, count: int = 5, *, lapses: timedelta = DAY, **keys: Any) -> JobRow:
    """A job whose newest ``count`` ticks, one a second, wait in a proposal."""
    (new,) = create(store, definition("held", **{"missed": HOLD, **keys}))
    since = new.at.replace(microsecond=0) - (count + 1) * SECOND
    set_columns(url, "cursors", {"job_id": new.job_id}, at=since)
    set_columns(url, "revisions", {"job_id": new.job_id}, in_force_since=since)
    job = read(store, new.job_id)
    upto = since + count * SECOND
    skip = NewSkip(job.job_id, since, upto, count, SkipReason.HELD, "policy hold: older than grace 0s", 1)
    lapses_at = store.now() + lapses
    proposal = NewProposal(job.job_id, 1, since, upto, count, since - DAY, lapses_at, skip.detail)
    written = batch(store, term, [(job, [upto])], claims=(), skips=(skip,), proposals=(proposal,))
    assert store.ticks.commit(written).moved == 1
    return job


def hold_claims(store: Store, term: int, count: int = 3, job: JobRow | None = None) -> tuple[JobRow, list[datetime]]:
    """A job with claims that nobody started in time and that wait in a proposal."""
    job = job or create(store, definition("late", missed=HOLD))[0]
    ticks = [job.at.replace(microsecond=0) + number * SECOND for number in range(1, count + 1)]
    claims = tuple(claim(job, at, start_by=store.now() - MINUTE) for at in ticks)
    assert store.ticks.commit(batch(store, term, [(job, ticks)], claims=claims)).moved == 1
    assert store.ticks.decide_late(late_plan(store, term, job, ticks)) == count
    return job, ticks


def late_plan(store: Store, term: int, job: JobRow, ticks: list[datetime]) -> LatePlan:
    count = len(ticks)
    counts = {"missed": count, "fired": 0, "merged": 0, "skipped": 0, "expired": 0, "held": count}
    why = "claimed but not started"
    decision = JobDecision(job.job_id, 1, Cause.NOT_STARTED, ticks[0], ticks[-1], "hold", reason=why, **counts)
    after, lapses_at = ticks[0] - timedelta(microseconds=1), store.now() + DAY
    proposal = NewProposal(job.job_id, 1, after, ticks[-1], count, after - DAY, lapses_at, why)
    verdicts = tuple(LateVerdict(at, SkipReason.HELD.value) for at in ticks)
    return LatePlan(term, job.job_id, job.seq, verdicts, decision, proposal)


def approve(store: Store, part: Part = ALL, actor: str = "ana", note: str = "") -> HoldAnswer:
    """Approve a part of the one open proposal, as it stands."""
    (hold,) = store.reads.holds()
    return store.holds.approve(approval(store, hold.proposal_id, part, note), actor)


def approval(store: Store, proposal_id: int, part: Part = ALL, note: str = "") -> Approval:
    found = store.reads.hold(proposal_id)
    assert found.ticks is not None
    firing = found.ticks.firing
    ticks = found.ticks.chosen(part)
    parts = found.ticks.gap_parts(ticks)
    return Approval(proposal_id, found.mark, in_start_order(ticks, firing), firing, parts, note)
