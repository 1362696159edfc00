"""What a takeover now would decide about the ticks that fell due undecided: the pass itself, without its commits.

The jobs are read as a new leader reads them, and the planner decides; nothing is written, and no node need run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sexton.claims import Origin
from sexton.decisions import Cause, CommitResult, JobDecision
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_scheduler.core.planner import Planner
from sexton_scheduler.job_book import JobBook

_LATE_JOBS = 10_000


@dataclass(frozen=True, slots=True)
class PreviewedJob:
    """One job's part of the pass, with its name."""

    job: str
    decision: JobDecision


@dataclass(frozen=True, slots=True)
class TakeoverPreview:
    """``holds_all``: the pass would fire ``would_fire`` ticks by the jobs' policies, which is more than
    ``catch_up.hold_above``, so that they are held instead. ``fired_before``: by a pass that no leader has finished
    yet, and which this one would go on with; ``holds_on``: because that one holds. ``faults``: jobs that would be put
    in quarantine, with the reason. ``not_started``: claims that no worker took in time; the pass leaves them to the
    leader's look at such claims, which decides them within seconds, by the same policies."""

    now: datetime
    is_halted: bool
    hold_above: int
    fired_before: int
    would_fire: int
    holds_all: bool
    jobs: tuple[PreviewedJob, ...]
    faults: tuple[tuple[str, str], ...]
    holds_on: bool = False
    not_started: int = 0


def preview_takeover(store: Store, settings: ClusterSettings) -> TakeoverPreview:
    """What a node that took the term now would decide, job by job, oldest first."""
    planner = Planner()
    JobBook(store.ticks, planner).refresh()
    cluster = store.terms.cluster()
    now, hold_above = cluster.database_now, settings.catch_up_hold_above
    before = store.ticks.unfinished_pass()
    planner.may_have_run_upto = now if cluster.is_displaced else cluster.may_have_run_upto
    would_fire = planner.would_fire(now, Cause.TAKEOVER)
    missed_pass = planner.begin_pass(Cause.TAKEOVER, now, before.fired, hold_above, holds=before.holds)
    jobs: list[PreviewedJob] = []
    while (draft := planner.draft(now, now, missed_pass)).plans:
        for plan in draft.plans:
            if plan.missed is not None and plan.missed.decision is not None:
                jobs.append(PreviewedJob(plan.job.name, plan.missed.decision))
        missed_pass.fired += draft.fired
        planner.settle(draft, CommitResult(True, True, len(draft.plans), 0))
    return TakeoverPreview(
        now=now,
        is_halted=cluster.halted,
        hold_above=hold_above,
        fired_before=before.fired,
        would_fire=would_fire,
        holds_all=missed_pass.force_hold,
        jobs=tuple(jobs),
        faults=tuple(sorted((fault.name, fault.reason) for fault in planner.faults.values())),
        holds_on=before.holds,
        not_started=sum(
            claim.origin is not Origin.CATCH_UP for job in store.ticks.late_jobs(_LATE_JOBS) for claim in job.claims
        ),
    )
