"""Resumes with what was missed, and ticks named ahead, from the reading to the writing; the same on both databases."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sexton.cluster_views import PauseOfAll
from sexton.errors import OtherInputs, Refused
from sexton.inputs import are_same, own_inputs
from sexton.pause_missed import plan_pause, would_fire
from sexton.resolutions import JobStretch
from sexton.skip_ahead import AheadPlan, Named, plan_naming, plan_unnaming
from sexton.store.protocol import ChangeDone, PauseSeen, Store
from sexton.tick_view import END_OF_TIME

_TRIES = 50
_BETWEEN_TRIES = 0.1  # seconds: a leader decides what has just fallen due
_MOST_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class ResumedMissed:
    """A job that runs again. ``reason``: the decision about what fell due in its pause, empty where nothing did."""

    done: ChangeDone
    fired: int
    held: int
    reason: str


def resume_together(
    store: Store,
    job_ids: Sequence[int],
    actor: str,
    *,
    with_all: bool = False,
    expected: PauseOfAll | None = None,
) -> tuple[ResumedMissed, ...]:
    """Resume these paused jobs in order, in one request: what would fire of all is counted before the first of them is
    resumed, and is held of all where it is more than ``catch_up.hold_above``.

    ``expected``: only while all are paused by this. Raises what ``resume_missed`` does; where one is not paused at the
    begin, none is resumed.
    """
    hold_above = store.edits.settings().catch_up_hold_above
    counts = [would_fire(_paused(store, job_id)) for job_id in job_ids]
    fired = hold_above if sum(counts) > hold_above else 0  # as if as many had fired: then every further one is held
    resumed = []
    for job_id in job_ids:
        resumed.append(resume_missed(store, job_id, actor, fired_before=fired, with_all=with_all, expected=expected))
        fired += resumed[-1].fired
    return tuple(resumed)


def resume_missed(
    store: Store,
    job_id: int,
    actor: str,
    *,
    fired_before: int = 0,
    with_all: bool = False,
    expected: PauseSeen | PauseOfAll | None = None,
) -> ResumedMissed:
    """Resume a paused job and decide by its policy what fell due in the pause.

    ``fired_before``: what the same request has fired of other jobs, for ``catch_up.hold_above``. ``expected``: end no
    other pause than this. Raises ``Refused`` where it is not paused, not so, or ticks fall due quicker than they are
    decided, and ``OtherInputs``.
    """
    hold_above = store.edits.settings().catch_up_hold_above
    for _ in range(_TRIES):
        plan = plan_pause(_paused(store, job_id), hold_above, fired_before)
        done = store.pauses.resume_missed(plan.resolution, actor, with_all=with_all, expected=expected)
        if done is not None:
            return ResumedMissed(done, plan.fired, plan.held, plan.reason)
    raise Refused(f"the job with id {job_id} changed through {_TRIES} tries to resume it", hint="try again")


def _paused(store: Store, job_id: int) -> JobStretch:
    """The job's pause up to now."""
    since = store.backfills.pause_of(job_id)
    if since is None:
        raise Refused(f"the job with id {job_id} is not paused", hint="there is nothing to resume")
    return _checked(store.backfills.stretch(job_id, since, max(since, store.now()), _MOST_RECORDS))


def skip_tick(store: Store, job_id: int, tick: datetime | None, actor: str, why: str) -> tuple[AheadPlan, ChangeDone]:
    """Name ``tick`` not to run, or the job's next one. Raises what ``plan_naming`` does, and ``Refused`` where a
    worker has it, or what fell due of the job stays undecided."""
    return _ahead(store, job_id, lambda stretch: plan_naming(stretch, tick, actor, why), actor, why)


def unskip_tick(
    store: Store, job_id: int, tick: datetime | None, actor: str, expected: Named | None = None
) -> tuple[AheadPlan, ChangeDone]:
    """Take the naming of ``tick`` back, or of the nearest one; ``expected``: only as it was named then. Raises what
    ``plan_unnaming`` does."""
    return _ahead(store, job_id, lambda stretch: plan_unnaming(stretch, tick, expected), actor, "")


def _ahead(
    store: Store, job_id: int, plan_from: Callable[[JobStretch], AheadPlan], actor: str, why: str
) -> tuple[AheadPlan, ChangeDone]:
    for _ in range(_TRIES):
        plan = plan_from(_checked(store.backfills.stretch(job_id, store.now(), END_OF_TIME, _MOST_RECORDS)))
        done = store.pauses.skip_ahead(plan, actor, _said(plan, why))
        if done is not None:
            return plan, done
        time.sleep(_BETWEEN_TRIES)
    raise Refused(
        f"ticks of {plan.name} that fell due are not decided yet, and none ahead of them can be",
        hint="`sexton status` says why: a leader decides them",
    )


def _said(plan: AheadPlan, why: str) -> str:
    tick = plan.changed.isoformat().replace("+00:00", "Z")
    if not plan.is_named:
        return f"{tick} is to run after all"
    return f"{tick} is not to run" + (f": {why}" if why else "")


def _checked(stretch: JobStretch) -> JobStretch:
    own = own_inputs().inputs_id
    if stretch.inputs_id and not are_same(stretch.inputs_id, own):
        raise OtherInputs(
            f"the cluster's ticks are computed with {stretch.inputs_id}, and here is {own}",
            hint="use a Sexton of the cluster's release and zone data",
        )
    return stretch
