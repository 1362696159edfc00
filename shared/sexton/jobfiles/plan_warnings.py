"""What a plan warns of: a fact with its numbers, and a remedy that can be pasted. A warning changes no exit code.

Warned of are the jobs that the plan adds or changes, and of a changed one only what the change has to do with. Warnings
that say the same of several jobs are one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.claims import Overlap
from sexton.inputs import are_same
from sexton.job_rules import QUEUE_LIMIT, MissedPolicy
from sexton.jobfiles.plan_clock_changes import ClockChangeTold, clock_change_warning
from sexton.jobfiles.plan_crowds import Crowd
from sexton.jobfiles.plan_periods import longest_period, shortest_period
from sexton.jobfiles.plan_report import PlannedJob, PlannedKind, PlanReport
from sexton.jobs import JobDefinition
from sexton.settings import format_duration
from sexton.store.edit_plan import PAUSED_BY_FILE
from sexton.targets import CeleryTarget
from sexton.zones import load_zone

WEEKLY, MONTHLY = timedelta(days=6), timedelta(days=27)  # so rare a job is sparse
_DAY = timedelta(days=1)
_NAMES = 3
_NICE_INTERVALS = tuple(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440))


class WarningKind(StrEnum):
    CLOCK_CHANGE = "clock_change"
    CROWD = "crowd"
    SLOW = "slow"
    SPARSE = "sparse"
    LIKELY_RENAME = "likely_rename"
    NO_WORKER = "no_worker"
    SECRET = "secret"  # noqa: S105 - the name of a warning
    PAUSED = "paused"
    TAKEN_BACK = "taken_back"
    NEVER = "never"
    OTHER_INPUTS = "other_inputs"
    CALL = "call"
    IDLE_KEY = "idle_key"


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """``jobs`` is empty where it is about the plan as a whole. ``paste``: lines for a job file or a shell, as
    ``remedy`` says. ``numbers``: the fact's, as data."""

    kind: WarningKind
    jobs: tuple[str, ...]
    fact: str
    remedy: str
    paste: tuple[str, ...] = ()
    numbers: Mapping[str, object] = field(default_factory=dict)


def warnings_of(report: PlanReport) -> tuple[PlanWarning, ...]:
    """All warnings of a plan, those of one kind together."""
    found: list[PlanWarning] = []
    for job in report.jobs:
        if job.after is not None:
            found.extend(_of_job(job, job.after, report.now))
    found.extend(_clock_changes(report))
    found.extend(_likely_renames(report))
    found.extend(_queues_without_worker(report))
    found.extend(_crowds(report))
    found.extend(_other_inputs(report))
    kinds = list(WarningKind)
    return tuple(sorted(_merged(found), key=lambda one: (kinds.index(one.kind), one.jobs)))


def _merged(warnings: Iterable[PlanWarning]) -> Iterator[PlanWarning]:
    """Warnings that say the same, as one over all their jobs."""
    same: dict[str, list[PlanWarning]] = {}
    for one in warnings:
        same.setdefault(json.dumps([one.kind, one.fact, one.remedy, one.paste]), []).append(one)
    for ones in same.values():
        yield replace(ones[0], jobs=tuple(job for one in ones for job in one.jobs))


def _of_job(job: PlannedJob, after: JobDefinition, now: datetime) -> Iterator[PlanWarning]:
    is_new = job.kind is PlannedKind.ADD
    if job.fires.schedule is not None:
        if job.has_other_ticks and job.fires.schedule.next_after(now) is None:
            yield PlanWarning(
                WarningKind.NEVER,
                (job.name,),
                "its schedule has no tick left: the job never fires again",
                "give it a later end or instant, or take it out of the files and apply with --prune",
            )
        if is_new or job.has_other_ticks or (job.before is not None and job.before.missed != after.missed):
            yield from _sparse(job, after, now)
        yield from _slow(job, after, now)
    elif job.kind is not PlannedKind.ADD and job.fires.silent not in ("", PAUSED_BY_FILE):
        yield PlanWarning(
            WarningKind.PAUSED,
            (job.name,),
            "it was paused by an operator, and this plan does not end that: none of its ticks runs",
            "when it shall run again",
            (f"sexton resume {job.name}",),
            {"reason": job.standing.pause_reason},
        )
    yield from _taken_back(job)
    yield from _idle_keys(job, after)
    hidden = [one.key for one in job.differences if one.hides and one.new is not None]
    if hidden:
        yield PlanWarning(
            WarningKind.SECRET,
            (job.name,),
            f"{', '.join(hidden)} holds what looks like a secret; the database keeps it in plain text",
            _without_secret(hidden),
            numbers={"keys": hidden},
        )


def _taken_back(job: PlannedJob) -> Iterator[PlanWarning]:
    """An edit takes back what was named before it: the new revision may not have those ticks at all."""
    if not job.standing.named:
        return
    ticks = [named.tick.isoformat().replace("+00:00", "Z") for named in job.standing.named]
    by = ", ".join(dict.fromkeys(named.named_by for named in job.standing.named))
    told = ticks[0] if len(ticks) == 1 else f"{ticks[0]} and {len(ticks) - 1} more"
    is_one = len(ticks) == 1
    yield PlanWarning(
        WarningKind.TAKEN_BACK,
        (job.name,),
        f"the edit takes back a skip-next: {told} ({by}) would run again, if the schedule still names "
        + ("it" if is_one else "them"),
        "to skip " + ("it" if is_one else "them") + " all the same, once this is applied",
        tuple(f"sexton skip-next {job.name} {tick}" for tick in ticks),
        {"ticks": ticks, "named_by": by},
    )


def _without_secret(keys: Iterable[str]) -> str:
    """Where a worker fills a secret in; elsewhere the job has to get it by itself."""
    if all(key.startswith(("env.", "http.url", "http.headers.", "http.body", "celery.b")) for key in keys):
        return "write ${secret:NAME} in its place, which the worker fills in"
    return "take it out of the job file: let the job read it from a file or a variable (env: {NAME: '${secret:NAME}'})"


# --- keys that say nothing ------------------------------------------------------------------------


def _idle_keys(job: PlannedJob, after: JobDefinition) -> Iterator[PlanWarning]:
    """What was written for an effect that another key takes from it."""
    changed = {one.key.partition(".")[0] for one in job.differences if one.new is not None}
    if after.queue_limit != QUEUE_LIMIT and after.overlap is not Overlap.QUEUE and changed & {"queue_limit", "overlap"}:
        yield PlanWarning(
            WarningKind.IDLE_KEY,
            (job.name,),
            f"queue_limit says nothing under overlap: {after.overlap.name.lower()}, which lets no tick wait",
            "to let ticks wait, or remove queue_limit",
            ("overlap: queue",),
            {"key": "queue_limit", "overlap": after.overlap.name.lower()},
        )
    target = after.target
    if isinstance(target, CeleryTarget) and not target.wait and changed & {"celery", "overlap", "concurrency_key"}:
        key = "concurrency_key" if after.concurrency_key else f"overlap: {after.overlap.name.lower()}"
        if after.concurrency_key or after.overlap in (Overlap.QUEUE, Overlap.REPLACE):
            yield PlanWarning(
                WarningKind.IDLE_KEY,
                (job.name,),
                f"a run ends when its task has been sent, so {key} holds nothing back while the task runs",
                "to have the run last as long as its task, in celery",
                ("wait: true",),
                {"key": key.partition(":")[0]},
            )


# --- sparse jobs ----------------------------------------------------------------------------------


def _sparse(job: PlannedJob, after: JobDefinition, now: datetime) -> Iterator[PlanWarning]:
    schedule = job.fires.schedule
    period = None if schedule is None else shortest_period(schedule, now)
    if schedule is None or period is None or period < WEEKLY:
        return
    rules = after.missed
    every = format_duration(timedelta(days=round(period / _DAY)))
    grace, within = format_duration(rules.grace), format_duration(rules.within or _DAY)
    is_default = "" if rules.within is not None else ", its default"
    longest = longest_period(schedule, now) or period
    enough = timedelta(days=-(-longest // _DAY) + 1)
    if rules.policy is MissedPolicy.SKIP:
        fact = f"its ticks are {every} or more apart, and policy skip makes up none that is more than {grace} late"
        remedy = "to have a missed one run late, or wait for a human (hold)"
    elif rules.policy is MissedPolicy.LATEST and rules.within is None:
        if period < MONTHLY:
            return
        fact = (
            f"its ticks are {every} or more apart, and policy latest runs the newest missed one whenever the cluster "
            "is back, unasked; older ones are merged into it"
        )
        remedy = "where each tick counts, or a human should decide (hold)"
    elif (rules.within or _DAY) < period:
        fact = (
            f"its ticks are {every} or more apart, but a missed one expires after within, {within}{is_default}: an "
            "outage longer than that loses it, and policy " + rules.policy.value + " does not help"
        )
        remedy = "to keep a missed tick until the next one"
    else:
        return
    policy = "all" if rules.policy in (MissedPolicy.SKIP, MissedPolicy.LATEST) else rules.policy.value
    paste = f"missed: {{policy: {policy}, within: {format_duration(enough)}}}"
    numbers = {"period": period, "grace": rules.grace, "within": rules.within, "policy": rules.policy.value}
    yield PlanWarning(WarningKind.SPARSE, (job.name,), fact, remedy, (paste,), numbers)


# --- slow jobs ------------------------------------------------------------------------------------


def _slow(job: PlannedJob, after: JobDefinition, now: datetime) -> Iterator[PlanWarning]:
    usual, schedule = job.standing.usual_duration, job.fires.schedule
    if usual is None or schedule is None:
        return
    period = shortest_period(schedule, now)
    if period is None or usual.p95 <= period:
        return
    p50, p95, every = (format_duration(_rounded(length)) for length in (usual.p50, usual.p95, period))
    longer = usual.p50 if usual.p50 > period else usual.p95
    at_once = -(-longer // period)
    then = {
        Overlap.SKIP: f"skips the ticks that find it still running, up to {at_once - 1} of {at_once}",
        Overlap.QUEUE: f"lets them wait, and of more than {after.queue_limit} skips the oldest",
        Overlap.REPLACE: "ends each run before it is done, for the next one",
        Overlap.ALLOW: f"has up to {at_once} of its runs at the same time",
    }[after.overlap]
    how_often = "usually" if usual.p50 > period else "sometimes"
    fact = (
        f"its last {usual.runs} runs took {p50} (p50) to {p95} (p95), {how_often} longer than the {every} between "
        f"ticks: overlap {after.overlap.name.lower()} {then}"
    )
    nice = next((one for one in _NICE_INTERVALS if one > usual.p95), usual.p95 * 2)
    numbers = {"runs": usual.runs, "p50": usual.p50, "p95": usual.p95, "period": period}
    paste = (f"schedule: {{every: {format_duration(nice)}}}",)
    yield PlanWarning(WarningKind.SLOW, (job.name,), fact, "to give it more time", paste, numbers)


def _rounded(length: timedelta) -> timedelta:
    step = timedelta(seconds=1) if length >= timedelta(seconds=10) else timedelta(milliseconds=10)
    return round(length / step) * step


# --- the whole plan -------------------------------------------------------------------------------


def _clock_changes(report: PlanReport) -> Iterator[PlanWarning]:
    """Jobs of one schedule together, also where H draws another minute for each."""
    proposed = {} if report.crowds is None else report.crowds.proposed
    same: dict[str, list[tuple[PlannedJob, ClockChangeTold]]] = {}
    for job in report.jobs:
        if job.after is None or not job.has_other_ticks:
            continue
        told = clock_change_warning(job, job.after, report.now, proposed.get(job.name))
        if told is not None:
            written = json.dumps([list(job.after.schedule_parts), job.after.timezone])
            what = written if _uses_hash(job.after) else told.fact
            same.setdefault(json.dumps([what, told.remedy, told.paste]), []).append((job, told))
    for members in same.values():
        (first, told), fact = members[0], members[0][1].fact
        if any(one.fact != fact for _, one in members):
            fact = f"their H draws other times for each, and those of {first.name} tell of all: {fact}"
        names = tuple(job.name for job, _ in members)
        yield PlanWarning(WarningKind.CLOCK_CHANGE, names, fact, told.remedy, told.paste, told.numbers)


def _uses_hash(definition: JobDefinition) -> bool:
    return any(re.search(r"\bH\b", str(part.get("cron", ""))) for part in definition.schedule_parts)


def _likely_renames(report: PlanReport) -> Iterator[PlanWarning]:
    retired = {job.name for job in report.plan.retired}
    for is_retired in (False, True):
        pairs = [(old, new) for old, new in report.plan.likely_renames if (old in retired) is is_retired]
        if not pairs:
            continue
        becomes = "stays: both would run"
        if is_retired:
            becomes = "is retired: the new one begins without its cursor and history, and H and jitter move"
        old = pairs[0][0]
        fact = f"it does what {old} does, which is not in the files and {becomes}"
        remedy = f"if {old} was renamed, to keep its cursor, history and hash seed"
        paste: tuple[str, ...] = (f"renamed_from: {old}",)
        if len(pairs) > 1:
            fact = f"each does what a job does that is not in the files and {becomes}"
            remedy = "if these were renamed, to keep cursor, history and hash seed, in each of them its own line"
            paste = tuple(f"renamed_from: {gone}  # in {new}" for gone, new in pairs)
        numbers = {"old": old, "renamed_from": {new: gone for gone, new in pairs}, "is_retired": is_retired}
        yield PlanWarning(WarningKind.LIKELY_RENAME, tuple(new for _, new in pairs), fact, remedy, paste, numbers)


def _queues_without_worker(report: PlanReport) -> Iterator[PlanWarning]:
    served = report.standings.served_queues
    by_queue: dict[str, list[str]] = {}
    for job in report.jobs:
        if job.after is None or job.fires.schedule is None or job.after.queue in served:
            continue
        if job.before is None or job.before.queue != job.after.queue:
            by_queue.setdefault(job.after.queue, []).append(job.name)
    for queue, names in sorted(by_queue.items()):
        others = f"those there are serve {', '.join(sorted(served))}" if served else "no worker runs at all"
        yield PlanWarning(
            WarningKind.NO_WORKER,
            tuple(names),
            f"no worker serves queue {queue} now ({others}): its claims would wait",
            "start one",
            (f"sexton worker --queues {queue}",),
            {"queue": queue, "workers": report.standings.workers},
        )


def _other_inputs(report: PlanReport) -> Iterator[PlanWarning]:
    cluster = report.standings.inputs_id
    if not (cluster and report.inputs_id and report.jobs) or are_same(cluster, report.inputs_id):
        return
    yield PlanWarning(
        WarningKind.OTHER_INPUTS,
        (),
        f"the ticks above are computed with the inputs {report.inputs_id} (zone data / tick engine / holidays), those "
        f"of the cluster with {cluster}: they may differ, and a plan saved here could not be applied",
        "plan with a Sexton of the cluster's inputs; `sexton version` names those it has",
        numbers={"here": report.inputs_id, "cluster": cluster},
    )


def _crowds(report: PlanReport) -> Iterator[PlanWarning]:
    if report.crowds is None:
        return
    zone = report.crowds.zone
    for crowd in report.crowds.crowds:
        others = len(crowd.clocks) - 1
        clock = f"at {crowd.clocks[0]} {zone}" + (f" and {others} more times of the day" if others else "")
        fact = (
            f"{clock} {'up to ' if others else ''}{crowd.jobs} jobs of the cluster fall due in one minute, more than "
            f"{report.crowds.limit}; first on {crowd.first.astimezone(load_zone(zone)):%a %Y-%m-%d}"
        )
        paste: tuple[str, ...] = ()
        ways = []
        if crowd.is_spread_by_another:
            ways.append("the H proposed for a fuller crowd takes this one apart too")
        if crowd.spread is not None:
            most = f"{'about' if crowd.spread.is_estimate else 'at most'} {crowd.spread.most}"
            ways.append(f"spread them by H, in each of these: then {most} fall due in one minute")
            paste = _spread_lines(report, crowd)
        if crowd.jitter is not None and not crowd.is_spread_by_another:
            ways.append(f"{'or ' if ways else ''}let each start up to {crowd.jitter} late by `jitter: {crowd.jitter}`")
        remedy = ", ".join(ways) or "move some of them to another hour"
        numbers = {"clocks": list(crowd.clocks), "timezone": zone, "jobs": crowd.jobs, "minutes": crowd.minutes}
        numbers |= {"schedules": {} if crowd.spread is None else dict(crowd.spread.schedules)}
        numbers |= {"first": crowd.first, "limit": report.crowds.limit, "jitter": crowd.jitter}
        yield PlanWarning(WarningKind.CROWD, crowd.touched, fact, remedy, paste, numbers)


def _spread_lines(report: PlanReport, crowd: Crowd) -> tuple[str, ...]:
    """A line for each schedule to write, with the one that it takes the place of; with the jobs where that one alone
    does not say which."""
    if crowd.spread is None:
        return ()
    written = {job.name: job.after.schedule_parts[0].get("cron") for job in report.jobs if job.after is not None}
    places: dict[tuple[str, str], list[str]] = {}
    for name, text in crowd.spread.schedules.items():
        places.setdefault((str(written[name]), text), []).append(name)
    ways = Counter(old for old, _ in places)
    lines = []
    for (old, new), names in places.items():
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        where = f", in {', '.join(names[:_NAMES])}{more}" if ways[old] > 1 else ""
        lines.append(f'schedule: "{new}"  # instead of "{old}"{where}')
    return tuple(lines)
