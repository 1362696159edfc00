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

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.job_rules import FiringRules
from sexton.jobfiles.plan_quiet_hours import HOURS_AWAY, hours_away, is_quiet
from sexton.jobfiles.plan_schedules import ScheduleBook
from sexton.jobs import JobDefinition
from sexton.schedules import EPOCH, Schedule
from sexton.zones import load_zone

_MINUTE, _MILLISECOND = timedelta(minutes=1), timedelta(milliseconds=1)
_WORK = 150_000  # minutes looked at, over all schedules
_LEAST_WINDOW = timedelta(hours=1)
_ALIASES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0"}
_HOURS_TRIED = (1, 2, 3, 4, 6)
_SPREAD_WORK = 40_000  # minutes worked out to see what one way to write H does; beyond it a part of the jobs tells
_WORK_OF_A_SCHEDULE = 60  # what making one costs, in minutes
_WAYS_TRIED = 3
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
    due in one minute that these land in; an estimate from a part of them where they are very many."""

    schedules: Mapping[str, str]
    most: int
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class Crowd:
    """Minutes of the clock in which the same jobs of the plan make more than the limit fall due at once.

    ``clocks``: those minutes (``02:00``), the fullest first. In the fullest minute of any day, ``jobs`` jobs of the
    whole cluster fall due; the first crowded one begins at ``first`` (UTC), and ``minutes`` is how many the window has.
    ``touched``: the jobs of the plan in it. ``spread`` gives some of them ``H``; ``jitter`` is another way, for all.
    ``is_spread_by_another``: what is proposed for a fuller crowd takes this one apart too.
    """

    clocks: tuple[str, ...]
    first: datetime
    minutes: int
    jobs: int
    touched: tuple[str, ...]
    spread: Spread | None
    jitter: str | None
    is_spread_by_another: bool = False


@dataclass(frozen=True, slots=True)
class Crowds:
    """The minutes of (since, until] with more than ``limit`` jobs, fullest first; read on the clock of ``zone``.

    ``heat``: for 24 hours of 60 minutes the most jobs that fall due in that minute of any day. ``more``: how many
    crowded minutes of the window are in none of ``crowds``, which are the fullest. ``others``: how many crowded minutes
    of the clock there are in which this plan has no part.
    """

    limit: int
    since: datetime
    until: datetime
    zone: str
    crowds: tuple[Crowd, ...]
    more: int
    others: int
    heat: tuple[tuple[int, ...], ...]

    @property
    def proposed(self) -> dict[str, str]:
        """By the names of jobs, the cron expressions that are proposed for them."""
        return {name: text for one in self.crowds if one.spread for name, text in one.spread.schedules.items()}


def find_crowds(
    jobs: Iterable[FutureJob], since: datetime, until: datetime, limit: int, book: ScheduleBook, named: int = 5
) -> Crowds | None:
    """The ``named`` fullest crowds in which a touched job is; None where there is none."""
    window = _Window(jobs, since, until, book)
    crowded = [minute for minute in sorted(window.touched) if window.counts[minute] > limit]
    if not crowded:
        return None
    groups_of = window.touched_groups(crowded)
    zone = _zone_of(frozenset().union(*groups_of.values()), window)
    place = load_zone(zone)
    heat = [[0] * 60 for _ in range(24)]
    same_jobs: dict[frozenset[int], list[int]] = defaultdict(list)
    own, others = set(), set()
    for minute, count in window.counts.items():
        local = (EPOCH + minute * _MINUTE).astimezone(place)
        heat[local.hour][local.minute] = max(heat[local.hour][local.minute], count)
        if minute in groups_of:
            same_jobs[groups_of[minute]].append(minute)
            own.add((local.hour, local.minute))
        elif count > limit:
            others.add((local.hour, local.minute))
    proposing = _Proposing(window, limit)
    crowds: list[Crowd] = []
    fullest = sorted(same_jobs.items(), key=lambda item: _fullest_first(item[1], window.counts))
    for groups, minutes in fullest[:named]:
        touched = window.touched_jobs(groups)
        is_spread = bool(proposing.written) and all(proposing.counts[minute] <= limit for minute in minutes)
        spread = None if is_spread else proposing.spread(touched)
        most = max(window.counts[minute] for minute in minutes)
        by_fullness = sorted(minutes, key=lambda minute: (-window.counts[minute], minute))
        clocks = dict.fromkeys(f"{(EPOCH + minute * _MINUTE).astimezone(place):%H:%M}" for minute in by_fullness)
        crowds.append(
            Crowd(
                clocks=tuple(clocks),
                first=EPOCH + min(minutes) * _MINUTE,
                minutes=len(minutes),
                jobs=most,
                touched=tuple(job.name for job in touched),
                spread=spread,
                jitter=_jitter_for(most, limit),
                is_spread_by_another=is_spread,
            )
        )
    more = sum(len(minutes) for _, minutes in fullest[named:])
    return Crowds(limit, since, window.until, zone, tuple(crowds), more, len(others - own), tuple(map(tuple, heat)))


def _fullest_first(minutes: Sequence[int], counts: Mapping[int, int]) -> tuple[int, int]:
    return -max(counts[minute] for minute in minutes), min(minutes)


def _zone_of(groups: Iterable[int], window: _Window) -> str:
    """The zone of most touched jobs in these groups."""
    zones = Counter(job.definition.timezone for job in window.touched_jobs(groups))
    return min(zones, key=lambda zone: (-zones[zone], zone))


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
        self.book = book
        self.groups = _groups(jobs, book)
        self.since = since
        work = sum(group.work(since, until) for group in self.groups)
        if work > _WORK:
            until = since + max((until - since) * _WORK / work, min(_LEAST_WINDOW, until - since))
        self.until = until
        self.counts: Counter[int] = Counter()
        self.touched: Counter[int] = Counter()
        self.minutes_of_touched: dict[int, frozenset[int]] = {}
        for number, group in enumerate(self.groups):
            size, touched = len(group.jobs), group.touched
            minutes = list(group.minutes(since, until))
            for minute in minutes:
                self.counts[minute] += size
            if touched:
                self.minutes_of_touched[number] = frozenset(minutes)
                for minute in minutes:
                    self.touched[minute] += touched

    def touched_groups(self, minutes: Iterable[int]) -> dict[int, frozenset[int]]:
        """Which groups have touched jobs in each of these minutes."""
        found: dict[int, list[int]] = {minute: [] for minute in minutes}
        for number, has in self.minutes_of_touched.items():
            for minute in has:
                if minute in found:
                    found[minute].append(number)
        return {minute: frozenset(numbers) for minute, numbers in found.items()}

    def touched_jobs(self, groups: Iterable[int]) -> list[FutureJob]:
        """The touched jobs of these groups, by name."""
        jobs = (job for number in groups for job in self.groups[number].jobs if job.is_touched)
        return sorted(jobs, key=lambda job: job.name)

    def minutes_with(self, job: FutureJob, cron: str) -> frozenset[int]:
        """The minutes of the job if ``cron`` were its schedule."""
        other = replace(job.definition, schedule_parts=({"cron": cron},))
        schedule = self.book.schedule_of(other, job.hash_seed)
        if schedule is None:
            return frozenset()
        return frozenset(_Group(schedule, FiringRules(), [job]).minutes(self.since, self.until))


class _Proposing:
    """Proposals one after the other: each counts on those before it, so that together they leave no new crowd."""

    def __init__(self, window: _Window, limit: int) -> None:
        self._window = window
        self._limit = limit
        self.counts = Counter(window.counts)
        self.written: dict[str, str] = {}

    def spread(self, jobs: Sequence[FutureJob]) -> Spread | None:
        """The narrowest use of H under which no minute that these jobs land in has more than the limit, or else the
        best of those tried; None where it would make nothing better."""
        crons = {
            job.name: cron for job in jobs if job.name not in self.written and (cron := _hashable(job)) is not None
        }
        able = [job for job in jobs if job.name in crons]
        if not able:
            return None
        before: Counter[int] = Counter()
        work = len(able) * _WORK_OF_A_SCHEDULE
        for number, minutes in self._window.minutes_of_touched.items():
            size = sum(job.name in crons for job in self._window.groups[number].jobs)
            if size:
                before.update(dict.fromkeys(minutes, size))
                work += size * len(minutes)
        crowded_before = max((self.counts[minute] for minute in before), default=0)
        step = -(-work // _SPREAD_WORK)
        best: tuple[Spread, Counter[int]] | None = None
        hopeful = [hours for hours in _HOURS_TRIED if len(able) <= hours * 60 * self._limit] or _HOURS_TRIED[-1:]
        for hours in hopeful[:_WAYS_TRIED]:
            written = {
                job.name: text for job in able if (text := self._hashed(job, crons[job.name], hours)) is not None
            }
            if not written or (best is not None and written == best[0].schedules):
                continue
            after = self._after(able, written, step)
            most = max(self.counts[minute] - before[minute] + after[minute] for minute in after)
            if best is None or most < best[0].most:
                best = Spread(written, most, step > 1), after
            if most <= self._limit:
                break
        if best is None or best[0].most >= crowded_before:
            return None
        self.counts.subtract(before)
        self.counts.update(best[1])
        self.written |= best[0].schedules
        return best[0]

    def _hashed(self, job: FutureJob, cron: str, hours: int) -> str | None:
        """The expression with H, and where a changed clock would then touch it, in an hour near by that none touches,
        so that one proposal is not the next one's warning."""
        text = _with_hash(cron, hours)
        if text is None or is_quiet(job.definition, text, self._window.since):
            return text
        for away in HOURS_AWAY:
            elsewhere = hours_away(cron, away)
            other = None if elsewhere is None else _with_hash(elsewhere, hours)
            if other is not None and is_quiet(job.definition, other, self._window.since):
                return other
        return text

    def _after(self, able: Sequence[FutureJob], written: Mapping[str, str], step: int) -> Counter[int]:
        """How many of these jobs fall due in each minute, as written; told by each ``step``-th of them."""
        part = able[::step]
        after: Counter[int] = Counter()
        for job in part:
            after.update(self._window.minutes_with(job, written[job.name]))
        if step == 1:
            return after
        return Counter({minute: -(-count * len(able) // len(part)) for minute, count in after.items()})


def _hashable(job: FutureJob) -> str | None:
    """The job's cron expression, where H could take the place of its minute."""
    cron = _cron_of(job)
    return cron if cron is not None and _with_hash(cron, 1) is not None else None


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
