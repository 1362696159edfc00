"""A plan with all that it means: per job what changes, its ticks, claims and runs; then totals and crowds. Pure.

How a change of a job counts (docs/architecture.md, invariant 2): from ``since`` on, which is now, or the last tick that
is already decided ahead of now. Claims written ahead of it that nobody was granted are withdrawn, and those of the new
revision written. Runs go on under the revision they started with, also those of a job that is retired. A job that is
paused or quarantined fires nothing; a pause by file ends with ``enabled: true``, one by an operator does not, and a new
revision ends a quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain

from sexton.job_rules import FiringRules
from sexton.job_standing import JobStanding, Standings
from sexton.jobfiles.differences import Difference, keys_of_new_job, keys_of_retired_job
from sexton.jobfiles.plan import ApplyPlan, Revised
from sexton.jobfiles.plan_crowds import Crowds, FutureJob, find_crowds
from sexton.jobfiles.plan_schedules import ScheduleBook
from sexton.jobfiles.plan_ticks import NOTHING, Firing, TickChange, change_of_schedules, with_jitter
from sexton.jobs import JobDefinition
from sexton.schedules import Schedule
from sexton.store.edit_plan import PAUSED_BY_FILE
from sexton.store.protocol import CurrentJob

DEFAULT_WINDOW = timedelta(days=7)
DEFAULT_CROWD = 20


class PlannedKind(StrEnum):
    ADD = "add"
    CHANGE = "change"
    RENAME = "rename"  # perhaps with other keys changed
    RETIRE = "retire"

    @property
    def sign(self) -> str:
        return {"add": "+", "change": "~", "rename": "→", "retire": "-"}[self.value]


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """What a plan does to one job. ``withdrawn``: claims written ahead that go; ``rewritten``: those that the leader
    will write in their place, at once. ``seed``: what H and jitter hash afterwards."""

    kind: PlannedKind
    name: str
    old_name: str | None
    revision: int
    before: JobDefinition | None
    after: JobDefinition | None
    seed: str
    differences: tuple[Difference, ...]
    fired: Firing
    fires: Firing
    ticks: TickChange
    standing: JobStanding
    withdrawn: int
    rewritten: int
    is_quarantined: bool = False

    @property
    def has_other_ticks(self) -> bool:
        """Whether its schedule means other ticks than before, in this window or later."""
        return self.fired.schedule != self.fires.schedule


@dataclass(frozen=True, slots=True)
class TickTotals:
    jobs: int = 0
    appear: int = 0
    vanish: int = 0
    move: int = 0
    keep: int = 0


@dataclass(frozen=True, slots=True)
class PlanReport:
    """All of a plan against the cluster at ``now``, looking ahead to ``until``. ``inputs_id``: with which inputs its
    ticks are computed (``sexton.inputs``); empty where they are the cluster's."""

    plan: ApplyPlan
    now: datetime
    until: datetime
    jobs: tuple[PlannedJob, ...]
    totals: TickTotals
    crowds: Crowds | None
    standings: Standings
    inputs_id: str = ""

    @property
    def is_empty(self) -> bool:
        return self.plan.is_empty


def touched_ids(plan: ApplyPlan) -> list[int]:
    """The jobs of the cluster that the plan changes or retires: those whose standing a report needs."""
    return [one.current.job_id for one in plan.revised] + [job.job_id for job in plan.retired]


def report_plan(
    plan: ApplyPlan,
    current: Sequence[CurrentJob],
    standings: Standings,
    *,
    until: datetime,
    horizon: timedelta,
    crowd: int = DEFAULT_CROWD,
    shown: int = 3,
    inputs_id: str = "",
    told: Callable[[int, int], None] | None = None,
) -> PlanReport:
    """The report. ``standings`` holds those of ``touched_ids``, read at its ``now``; ``horizon`` is the cluster's;
    ``crowd``: how many jobs may fall due in one minute; ``shown``: how many ticks of each kind are named per job;
    ``inputs_id``: this process's; ``told``: how many jobs are compared, of how many."""
    book = ScheduleBook()
    reporting = _Reporting(book, standings, until, horizon, shown)
    comparing = chain(
        map(reporting.added, plan.added), map(reporting.revised, plan.revised), map(reporting.retired, plan.retired)
    )
    count = len(plan.added) + len(plan.revised) + len(plan.retired)
    jobs = tuple(_counted(comparing, count, told))
    crowds = None
    if any(job.fires.schedule is not None for job in jobs):
        crowds = find_crowds(_future(plan, jobs, current), standings.now, until, crowd, book)
    return PlanReport(plan, standings.now, until, jobs, _totals(jobs), crowds, standings, inputs_id)


def _counted(jobs: Iterable[PlannedJob], count: int, told: Callable[[int, int], None] | None) -> Iterator[PlannedJob]:
    for done, job in enumerate(jobs):
        if told is not None:
            told(done, count)
        yield job


class _Reporting:
    """The jobs of one report."""

    def __init__(
        self, book: ScheduleBook, standings: Standings, until: datetime, horizon: timedelta, shown: int
    ) -> None:
        self._book = book
        self._standings = standings
        self._until = until
        self._horizon = horizon
        self._shown = shown
        self._changes: dict[tuple[Schedule | None, Schedule | None, str, str, datetime], TickChange] = {}

    def added(self, definition: JobDefinition) -> PlannedJob:
        seed = definition.hash_seed or definition.name
        fires = self._firing(definition, seed, "" if definition.enabled else PAUSED_BY_FILE)
        return self._planned(
            PlannedKind.ADD, definition.name, None, 0, None, definition, seed, NOTHING, fires, JobStanding(0)
        )

    def revised(self, one: Revised) -> PlannedJob:
        current, after = one.current, one.definition
        standing = self._standings.of(current.job_id)
        seed = after.hash_seed or current.hash_seed  # the name at the first apply, whatever it is called now
        fired = self._firing(current.definition, current.hash_seed, _silence(current, standing))
        silent = ""
        if not after.enabled:
            silent = PAUSED_BY_FILE
        elif current.is_paused and standing.pause_reason != PAUSED_BY_FILE:
            silent = "paused"
        fires = self._firing(after, seed, silent)
        kind = PlannedKind.RENAME if one.renamed else PlannedKind.CHANGE
        old_name = current.name if one.renamed else None
        planned = (
            kind,
            after.name,
            old_name,
            current.revision,
            current.definition,
            after,
            seed,
            fired,
            fires,
            standing,
        )
        return self._planned(*planned, differences=one.differences, is_quarantined=current.is_quarantined)

    def retired(self, job: CurrentJob) -> PlannedJob:
        standing = self._standings.of(job.job_id)
        fired = self._firing(job.definition, job.hash_seed, _silence(job, standing))
        return self._planned(
            PlannedKind.RETIRE,
            job.name,
            None,
            job.revision,
            job.definition,
            None,
            job.hash_seed,
            fired,
            NOTHING,
            standing,
            is_quarantined=job.is_quarantined,
        )

    def _planned(
        self,
        kind: PlannedKind,
        name: str,
        old_name: str | None,
        revision: int,
        before: JobDefinition | None,
        after: JobDefinition | None,
        seed: str,
        fired: Firing,
        fires: Firing,
        standing: JobStanding,
        differences: tuple[Difference, ...] | None = None,
        is_quarantined: bool = False,
    ) -> PlannedJob:
        now = self._standings.now
        since = min(max(now, standing.decided_upto or now), self._until)
        if differences is None:
            differences = keys_of_new_job(after) if after is not None else ()
            if before is not None:
                differences = keys_of_retired_job(before)
        return PlannedJob(
            kind=kind,
            name=name,
            old_name=old_name,
            revision=revision,
            before=before,
            after=after,
            seed=seed,
            differences=differences,
            fired=fired,
            fires=fires,
            ticks=self._change(fired, fires, since),
            standing=standing,
            withdrawn=standing.ahead,
            rewritten=0 if fires.schedule is None else fires.schedule.count_between(since, now + self._horizon),
            is_quarantined=is_quarantined,
        )

    def _change(self, fired: Firing, fires: Firing, since: datetime) -> TickChange:
        """Jobs that change alike share the work; jitter, which every job has for itself, is little of it."""
        key = (fired.schedule, fires.schedule, fired.zone, fires.zone, since)
        if key not in self._changes:
            self._changes[key] = change_of_schedules(fired, fires, since, self._until, shown=self._shown)
        return with_jitter(self._changes[key], fired, fires, shown=self._shown)

    def _firing(self, definition: JobDefinition, seed: str, silent: str) -> Firing:
        rules = FiringRules(jitter=definition.jitter, jitter_seed=seed if definition.jitter else "")
        schedule = None if silent else self._book.schedule_of(definition, seed)
        return Firing(schedule, definition.timezone, rules, silent)


def _silence(job: CurrentJob, standing: JobStanding) -> str:
    if job.is_quarantined:
        return "quarantined"
    if job.is_paused:
        return PAUSED_BY_FILE if standing.pause_reason == PAUSED_BY_FILE else "paused"
    return ""


def _future(plan: ApplyPlan, jobs: Sequence[PlannedJob], current: Sequence[CurrentJob]) -> Iterator[FutureJob]:
    """The jobs that would fire after the apply."""
    for job in jobs:
        if job.after is not None and job.fires.schedule is not None:
            yield FutureJob(job.after, job.seed, is_touched=True)
    touched = set(touched_ids(plan))
    for one in current:
        if one.job_id not in touched and not one.is_paused and not one.is_quarantined:
            yield FutureJob(one.definition, one.hash_seed, is_touched=False)


def _totals(jobs: Sequence[PlannedJob]) -> TickTotals:
    changes = [job.ticks for job in jobs]
    return TickTotals(
        jobs=sum(not change.is_none for change in changes),
        appear=sum(change.appear for change in changes),
        vanish=sum(change.vanish for change in changes),
        move=sum(change.move for change in changes),
        keep=sum(change.keep for change in changes),
    )
