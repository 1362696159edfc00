"""Late claims between the rows of both databases and the values of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sexton.claims import Origin, State
from sexton.decisions import LatePlan, LateVerdict, SkipReason
from sexton.store.protocol import JobRow, LateClaimRow, LateJobRow, RevisionRow

_STATES = {
    "fires": State.READY,
    SkipReason.SKIPPED.value: State.SKIPPED,
    SkipReason.MERGED.value: State.MERGED,
    SkipReason.EXPIRED.value: State.EXPIRED,
    SkipReason.HELD.value: State.HELD,
}


def late_job_rows(
    claims: Iterable[tuple[int, datetime, int, int, int]],
    revisions: Iterable[tuple[int, int, str, str, datetime, datetime | None]],
    jobs: Mapping[int, JobRow],
) -> tuple[LateJobRow, ...]:
    """One value a job. ``claims``: job, tick, origin, jitter in ms, revision, in order; ``revisions``: the newest."""
    claims_of: dict[int, list[LateClaimRow]] = {}
    for job_id, scheduled_at, origin, jitter_ms, revision in claims:
        claim = LateClaimRow(scheduled_at, Origin(origin), timedelta(milliseconds=jitter_ms), revision)
        claims_of.setdefault(job_id, []).append(claim)
    revision_of = {row[0]: RevisionRow(row[1], row[2], row[3], row[4], row[5]) for row in revisions}
    return tuple(
        LateJobRow(jobs[job_id], revision_of[job_id], tuple(rows))
        for job_id, rows in claims_of.items()
        if job_id in jobs and job_id in revision_of
    )


# By the index of paced claims.
WAITING = """
SELECT count(*) FROM (
  SELECT 1 FROM claims WHERE state = 0 AND NOT blocked AND origin IN (1, 2, 3) AND origin = 1 AND attempt = 0
  LIMIT {}) waiting
"""

# A retired job has no row among those that can have undecided ticks, but its claims may still be late.
ENDED_JOBS = """
SELECT j.job_id, j.name, c.seq, c.at FROM jobs j JOIN cursors c ON c.job_id = j.job_id WHERE j.retired_at IS NOT NULL
"""


def ended_job(job_id: int, name: str, seq: int, at: datetime) -> JobRow:
    """A retired job whose ticks are all decided."""
    return JobRow(job_id, name, seq, at, (), (), "", None, is_quarantined=False)


def late_state(verdict: LateVerdict) -> State:
    """The state that a verdict gives the claim: READY where it fires after all."""
    return _STATES[verdict.becomes]


def late_values(plan: LatePlan) -> dict[str, Any]:
    """The plan as parameters of the statement."""
    decision, proposal = plan.decision, plan.proposal
    return {
        "term": plan.term,
        "job_id": plan.job_id,
        "seq": plan.seq,
        "ticks": [verdict.scheduled_at for verdict in plan.verdicts],
        "states": [int(late_state(verdict)) for verdict in plan.verdicts],
        "origins": [int(verdict.origin) for verdict in plan.verdicts],
        "available": [verdict.available_at for verdict in plan.verdicts],
        "reason": decision.reason,
        "p_revision": proposal.revision if proposal else 0,
        "p_after": proposal.after if proposal else None,
        "p_upto": proposal.upto if proposal else None,
        "p_count": proposal.count if proposal else 0,
        "p_within": proposal.within_from if proposal else None,
        "p_lapses": proposal.lapses_at if proposal else None,
        "p_reason": proposal.reason if proposal else "",
        "d_revision": decision.revision,
        "d_cause": decision.cause.value,
        "d_after": decision.after,
        "d_upto": decision.upto,
        "d_policy": decision.policy,
        "d_missed": decision.missed,
        "d_fired": decision.fired,
        "d_merged": decision.merged,
        "d_skipped": decision.skipped,
        "d_expired": decision.expired,
        "d_held": decision.held,
    }
