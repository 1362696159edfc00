"""Deciding claims that nobody started in time, as leader or racer: what to fire, what to hold, and who counts it.

Every racer may do it at any time: who holds the job's cursor decides, and what fires is counted in the race's pass.

Late claims come a few at a time for as long as nobody takes them: an outage of the workers is many looks. So what
`catch_up.hold_above` is compared with is all that would wait to fire, with what earlier looks and passes left waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from sexton.decisions import LateJob, LatePlan
from sexton.late_claims import adds_waiting, decide_late, newly_fired, with_starts
from sexton.races import PassShare, RacePass
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_scheduler.catch_up_budget import CatchUpBudget

_log = structlog.get_logger("sexton.scheduler")


def decide_as_leader(
    store: Store, budget: CatchUpBudget, jobs: Sequence[LateJob], now: datetime, settings: ClusterSettings
) -> int:
    """Decide them all, fired or held alike; how many claims were decided."""
    plans = _plans(jobs, now, budget.term, force_hold=False)
    if _would_wait(store, jobs, plans, settings) > settings.catch_up_hold_above:
        plans = _plans(jobs, now, budget.term, force_hold=True)
    return _carry_out(store, budget, plans, now, settings, None)


def decide_as_racer(
    store: Store,
    budget: CatchUpBudget,
    jobs: Sequence[LateJob],
    now: datetime,
    settings: ClusterSettings,
    seen: RacePass,
) -> int:
    """The same, counted in the race's pass: the open one, or one of its own. ``jobs`` were read after ``seen``."""
    term, hold_above = budget.term, settings.catch_up_hold_above
    plans = _plans(jobs, now, term, force_hold=False)
    if not plans:
        return 0
    is_own, waits = not seen.is_open, _would_wait(store, jobs, plans, settings)
    if is_own:
        opened = store.races.open_pass(term, seen.number, waits, hold_above)
        if opened is None:
            return 0
        seen = opened
    if seen.holds or waits > hold_above:
        plans = _plans(jobs, now, term, force_hold=True)
    decided = _carry_out(store, budget, plans, now, settings, seen)
    if is_own:
        store.races.end_pass(term, seen.number)
    return decided


def _would_wait(store: Store, jobs: Sequence[LateJob], plans: Sequence[LatePlan], settings: ClusterSettings) -> int:
    """How many claims would wait to fire after the plans, counted far enough for the limit; 0 where none fires anew."""
    if not any(newly_fired(plan) for plan in plans):
        return 0
    job_of = {job.job_id: job for job in jobs}
    enough = settings.catch_up_hold_above + sum(len(job.claims) for job in jobs) + 1
    return store.ticks.waiting_catch_up(enough) + sum(adds_waiting(job_of[plan.job_id], plan) for plan in plans)


def _plans(jobs: Sequence[LateJob], now: datetime, term: int, *, force_hold: bool) -> list[LatePlan]:
    plans = (decide_late(job, now, term, force_hold=force_hold) for job in jobs)
    return [plan for plan in plans if plan is not None]


def _carry_out(
    store: Store,
    budget: CatchUpBudget,
    plans: Sequence[LatePlan],
    now: datetime,
    settings: ClusterSettings,
    race_pass: RacePass | None,
) -> int:
    decided = 0
    for plan in plans:
        starts = list[datetime]()
        if fires := newly_fired(plan):
            taken = budget.take(fires, settings.catch_up_rate, now)
            if taken is None:  # the term is over, or the cluster halted
                break
            starts = taken
            plan = with_starts(plan, starts)
            if race_pass is not None:
                share = PassShare(race_pass.number, plan.decision.fired, settings.catch_up_hold_above)
                plan = replace(plan, share=share)
        done = store.ticks.decide_late(plan)
        decided += done
        if not done:
            budget.give_back(starts)
        else:
            _log.warning("claims.late", job_id=plan.job_id, claims=done, reason=plan.decision.reason)
    return decided
