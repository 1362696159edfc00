"""Minutes in which many jobs fall due at once, in the cluster as it would be after an apply, and how to spread them.

A job falls due when its claim becomes available: at its tick, or with ``jitter`` that much later. Jobs that share a
schedule are counted together; where the whole window would still be too much work, a shorter one is looked at
(``Crowds.until`` says which). A crowd counts for a plan where a job that the plan touches is part of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.job_rules import FiringRules
from sexton.jobfiles.plan_schedules import ScheduleBook
from sexton.jobs import JobDefinition
from sexton.schedules import EPOCH, Schedule
from sexton.zones import load_zone

_MINUTE, _MILLISECOND = timedelta(minutes=1), timedelta(milliseconds=1)
_WORK = 400_000  # minutes looked at, over all schedules
_LEAST_WINDOW = timedelta(hours=1)
_ALIASES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0"}
_HOURS_TRIED = (1, 2, 3, 4, 6)
_JITTERS = (("5m", 5), ("10m", 10), ("15m", 15), ("30m", 30), ("1h", 60))
_SPREAD_EVENLY = 0.7  # chance is not even: so full of the limit may a minute be on average


@dataclass(frozen=True, slots=True)
class FutureJob:
    """A job that fires after the apply. ``is_touched``: the plan adds or changes it."""

    definition: JobDefinition
    hash_seed: str
    is_touched: bool

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass(frozen=True, slots=True)
class Spread:
    """How to take a crowd apart: for each job the schedule to write instead. ``most``: how many jobs would still fall
    due in one minute that these land in."""

    schedules: Mapping[str, str]
    most: int


@dataclass(frozen=True, slots=True)
class Crowd:
    """One minute of the clock with more jobs than the limit, on ``days`` days of the window; the first is at ``first``
    (UTC) and the fullest has ``jobs`` jobs. ``touched``: those of the plan among them. ``spread`` gives some of them
    ``H``, ``jitter`` would do for all; None where nothing of the kind helps."""

    clock: str
    first: datetime
    days: int
    jobs: int
    touched: tuple[str, ...]
    spread: Spread | None
    jitter: str | None


@dataclass(frozen=True, slots=True)
class Crowds:
    """The minutes of (since, until] with more than ``limit`` jobs, fullest first; read on the clock of ``zone``.

    ``heat``: for 24 hours of 60 minutes the most jobs that fall due in that minute of any day. ``others``: how many
    crowded minutes of the clock there are in which this plan has no part.
    """

    limit: int
    since: datetime
    until: datetime
    zone: str
    crowds: tuple[Crowd, ...]
    others: int
    heat: tuple[tuple[int, ...], ...]


def find_crowds(
    jobs: Iterable[FutureJob], since: datetime, until: datetime, limit: int, book: ScheduleBook, named: int = 5
) -> Crowds | None:
    """The crowds in which a touched job is; None where there is none. At most ``named`` are looked at closely."""
    window = _Window(jobs, since, until, book)
    crowded = {minute for minute in window.touched if window.counts[minute] > limit}
    if not crowded:
        return None
    zone = window.zone_of(crowded)
    place = load_zone(zone)
    heat = [[0] * 60 for _ in range(24)]
    by_clock: dict[str, list[int]] = defaultdict(list)
    others: set[str] = set()
    for minute, count in window.counts.items():
        local = (EPOCH + minute * _MINUTE).astimezone(place)
        heat[local.hour][local.minute] = max(heat[local.hour][local.minute], count)
        if minute in crowded:
            by_clock[f"{local:%H:%M}"].append(minute)
        elif count > limit:
            others.add(f"{local:%H:%M}")
    fullest = sorted(by_clock, key=lambda clock: (-max(window.counts[minute] for minute in by_clock[clock]), clock))
    crowds: list[Crowd] = []
    for clock in fullest:
        minutes = sorted(by_clock[clock])
        most = max(minutes, key=lambda minute: window.counts[minute])
        closely = len(crowds) < named
        touched = window.touched_in(minutes) if closely else []
        crowds.append(
            Crowd(
                clock=clock,
                first=EPOCH + minutes[0] * _MINUTE,
                days=len(minutes),
                jobs=window.counts[most],
                touched=tuple(job.name for job in touched),
                spread=window.spread(touched, limit) if closely else None,
                jitter=_jitter_for(window.counts[most], limit),
            )
        )
    others -= by_clock.keys()
    return Crowds(limit, since, window.until, zone, tuple(crowds), len(others), tuple(map(tuple, heat)))


@dataclass(frozen=True, slots=True)
class _Group:
    """Jobs that fall due in the same minutes: those of one schedule without jitter, or a single one with it."""

    schedule: Schedule
    rules: FiringRules
    jobs: list[FutureJob]

    @property
    def touched(self) -> int:
        return sum(job.is_touched for job in self.jobs)

    def minutes(self, since: datetime, until: datetime) -> Iterator[int]:
        """The minutes since 1970 in which it falls due; without jitter each once."""
        if self.rules.jitter:
            for due in self.schedule.between(since, until):
                yield (due + self.rules.jitter_of(due) - EPOCH) // _MINUTE
            return
        tick = self.schedule.next_after(since)
        while tick is not None and tick <= until:
            minute = (tick - EPOCH) // _MINUTE
            yield minute
            tick = self.schedule.next_after(EPOCH + (minute + 1) * _MINUTE - _MILLISECOND)

    def work(self, since: datetime, until: datetime) -> int:
        count = self.schedule.count_between(since, until)
        return count if self.rules.jitter else min(count, (until - since) // _MINUTE + 1)


class _Window:
    """How many jobs fall due in each minute of a window."""

    def __init__(self, jobs: Iterable[FutureJob], since: datetime, until: datetime, book: ScheduleBook) -> None:
        self._book = book
        self._groups = _groups(jobs, book)
        self._since = since
        work = sum(group.work(since, until) for group in self._groups)
        if work > _WORK:
            until = since + max((until - since) * _WORK / work, min(_LEAST_WINDOW, until - since))
        self.until = until
        self.counts: Counter[int] = Counter()
        self.touched: Counter[int] = Counter()
        for group in self._groups:
            size, touched = len(group.jobs), group.touched
            for minute in group.minutes(since, until):
                self.counts[minute] += size
                if touched:
                    self.touched[minute] += touched

    @cached_property
    def _minutes_of_touched(self) -> list[tuple[_Group, frozenset[int]]]:
        touched = (group for group in self._groups if group.touched)
        return [(group, frozenset(group.minutes(self._since, self.until))) for group in touched]

    def touched_in(self, minutes: Iterable[int]) -> list[FutureJob]:
        """The touched jobs that fall due in any of these minutes, by name."""
        wanted = frozenset(minutes)
        groups = (group for group, has in self._minutes_of_touched if not wanted.isdisjoint(has))
        return sorted((job for group in groups for job in group.jobs if job.is_touched), key=lambda job: job.name)

    def zone_of(self, minutes: Iterable[int]) -> str:
        """The zone of most touched jobs in these minutes."""
        zones = Counter(job.definition.timezone for job in self.touched_in(minutes))
        return min(zones, key=lambda zone: (-zones[zone], zone)) if zones else "UTC"

    def spread(self, jobs: Sequence[FutureJob], limit: int) -> Spread | None:
        """The narrowest use of H under which no minute that these jobs land in has more than the limit."""
        able = [(job, cron) for job in jobs if (cron := _cron_of(job)) is not None]
        if not able:
            return None
        before = self._counted({id(job) for job, _ in able})
        best: Spread | None = None
        for hours in _HOURS_TRIED:
            written = {job.name: text for job, cron in able if (text := _with_hash(cron, hours)) is not None}
            if not written or (best is not None and written == best.schedules):
                continue
            after = self._after_spread(able, written)
            most = max((self.counts[minute] - before[minute] + after[minute] for minute in after), default=0)
            if best is None or most < best.most:
                best = Spread(written, most)
            if most <= limit:
                break
        return best

    def _counted(self, ids: set[int]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for group, minutes in self._minutes_of_touched:
            number = sum(id(job) in ids for job in group.jobs)
            for minute in minutes if number else ():
                counts[minute] += number
        return counts

    def _after_spread(self, able: Sequence[tuple[FutureJob, str]], written: Mapping[str, str]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for job, _ in able:
            part = {"cron": written[job.name]} if job.name in written else job.definition.schedule_parts[0]
            schedule = self._book.schedule_of(replace(job.definition, schedule_parts=(part,)), job.hash_seed)
            if schedule is not None:
                counts.update(_Group(schedule, FiringRules(), [job]).minutes(self._since, self.until))
        return counts


def _groups(jobs: Iterable[FutureJob], book: ScheduleBook) -> list[_Group]:
    shared: dict[Schedule, _Group] = {}
    own: list[_Group] = []
    for job in jobs:
        schedule = book.schedule_of(job.definition, job.hash_seed)
        if schedule is None:
            continue
        if job.definition.jitter:
            rules = FiringRules(jitter=job.definition.jitter, jitter_seed=job.hash_seed)
            own.append(_Group(schedule, rules, [job]))
        else:
            shared.setdefault(schedule, _Group(schedule, FiringRules(), [])).jobs.append(job)
    return [*shared.values(), *own]


def _cron_of(job: FutureJob) -> str | None:
    """The job's one cron expression, as fields; None where it has another schedule, or jitter already."""
    parts = job.definition.schedule_parts
    if len(parts) != 1 or "cron" not in parts[0] or job.definition.jitter:
        return None
    text = str(parts[0]["cron"])
    return _ALIASES.get(text, text)


def _with_hash(cron: str, hours: int) -> str | None:
    """The expression with ``H`` for its minute, and in ``hours`` hours from its own on; None where it has no single
    minute, or no single hour where that is needed."""
    fields = cron.split()
    if len(fields) not in (5, 6):
        return None
    *seconds, minute, hour, day, month, weekday = fields
    if step := re.fullmatch(r"\*/(\d+)", minute):
        minute = f"H/{step[1]}"
    elif re.fullmatch(r"\d+", minute):
        minute = "H"
    else:
        return None
    if hours > 1 and re.fullmatch(r"\d+", hour):
        first = min(int(hour), 24 - hours)
        hour = f"H({first}-{first + hours - 1})"
    text = " ".join([*seconds, minute, hour, day, month, weekday])
    try:
        CronExpression.parse(text, hash_seed="any")
    except InvalidSchedule:
        return None
    return text


def _jitter_for(jobs: int, limit: int) -> str | None:
    """The shortest usual jitter over which so many jobs spread below the limit."""
    return next((text for text, minutes in _JITTERS if jobs / (minutes + 1) <= limit * _SPREAD_EVENLY), None)
