"""A job taken back to a revision it had: a plan like any other, which adds a revision and removes none.

* The name stays that of now, whatever it was then, unless ``with_name``: files and people know the job by it.
* What H and jitter hash is what they hashed then, so that the ticks are those of then.
* A retired job comes back as a new job, from now on: its history stays with the retired one, and no tick of the time
  between is invented.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sexton.history_views import PastRevision
from sexton.jobfiles.differences import differences_between
from sexton.jobfiles.plan import ApplyPlan, Revised, is_unchanged
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange


@dataclass(frozen=True, slots=True)
class Reversion:
    """What a revert does. ``change`` is None where the job is as it was already."""

    plan: ApplyPlan
    change: JobChange | None
    keeps_name: bool  # the revision had another one


def plan_reversion(past: PastRevision, reason: str = "", *, with_name: bool = False) -> Reversion:
    """The revert of a job to a past revision; refused by the edit where the job moves on meanwhile."""
    definition = _as_it_was(past, with_name)
    keeps_name = not with_name and past.definition.name != past.name
    why = f"reverted to revision {past.revision}" + (f": {reason}" if reason else "")
    if past.is_retired:
        change = JobChange(ChangeKind.CREATE, definition=definition, why=f"the retired job {why}")
        return Reversion(ApplyPlan((definition,), (), (), (), ()), change, keeps_name)
    current = CurrentJob(
        past.job_id,
        past.name,
        past.newest,
        past.current,
        past.hash_seed_now,
        past.is_paused,
        past.is_quarantined,
    )
    if is_unchanged(current, definition):
        return Reversion(ApplyPlan((), (), (past.name,), (), (), {past.job_id: past.newest}), None, keeps_name)
    revised = Revised(current, definition, differences_between(past.current, definition))
    change = JobChange(ChangeKind.REVISE, past.job_id, definition, past.newest, why)
    return Reversion(ApplyPlan((), (revised,), (), (), ()), change, keeps_name)


def _as_it_was(past: PastRevision, with_name: bool) -> JobDefinition:
    definition = past.definition if with_name else replace(past.definition, name=past.name)
    without = definition.hash_seed or (definition.name if past.is_retired else past.hash_seed_now)
    if past.hash_seed is None or past.hash_seed == without:
        return definition
    return replace(definition, hash_seed=past.hash_seed)
