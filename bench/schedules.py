"""Schedules: a next tick beside croniter, cronsim and APScheduler, many jobs at once, counting, and refusing.

    .venv/bin/python -m bench.schedules [--rounds 7]

Times are this process's own (time.process_time), best and median of rounds in which all take their turns, so that a
loaded machine slows all alike. Expressions are parsed before the clock runs, everywhere. `tests/` proves what they
answer; here they only have to answer. Goals: a next tick three times as fast as cronsim's, 100,000 jobs with 500
schedules in 0.1 s, 100,000 random expressions in 0.6 s, a year of a minutely job counted in 10 ms, and whatever 200
characters say refused or accepted in 50 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

from bench.hostile_schedules import hostile_specs, hostile_texts
from bench.machine import describe
from bench.measuring import show
from bench.planning import schedule_texts
from sexton import cron_expression, cron_fields
from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.public_holidays import region_of
from sexton.schedule_specs import firing_schedule_from_spec, schedule_from_spec
from sexton.schedules import Schedule
from sexton.wall_clock_schedules import CronSchedule
from sexton_scheduler.core.tick_cache import TickCache

START = datetime(2026, 6, 1, 12, 0, 7, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")
EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "17 * * * *",
    "0 2 * * *",
    "30 9-17 * * MON-FRI",
    "0 0 1 * *",
    "15 4 L * *",
    "0 12 * * MON#2",
    "0 0 29 2 *",
)
_STEPS = 50


def per_call(call: Callable[[], object], calls: int) -> float:
    """Microseconds of processor time of one call."""
    started = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - started) / calls * 1e6


def seconds(call: Callable[[], object]) -> float:
    """Seconds of processor time of one call."""
    return per_call(call, 1) / 1e6


def steppers(text: str, zone: str) -> dict[str, Callable[[], object]]:
    """Per library: take the next `_STEPS` ticks, one after another, always from the same start."""
    schedule = CronSchedule(CronExpression.parse(text), zone)
    start = START if zone == "UTC" else START.astimezone(ZoneInfo(zone))
    iterator, expression = CronSim(text, start), croniter(text, start)
    iterator_start = iterator.dt

    def sexton() -> None:
        tick: datetime | None = START
        for _ in range(_STEPS):
            tick = None if tick is None else schedule.next_after(tick)

    def cronsim() -> None:
        iterator.dt = iterator_start
        for _ in range(_STEPS):
            next(iterator)

    def of_croniter() -> None:
        expression.set_current(start)
        for _ in range(_STEPS):
            expression.get_next(datetime)

    found: dict[str, Callable[[], object]] = {"Sexton": sexton, "cronsim": cronsim, "croniter": of_croniter}
    if "L" not in text and "#" not in text:  # which its crontab syntax does not know
        trigger = CronTrigger.from_crontab(text, start.tzinfo)

        def apscheduler() -> None:
            tick = start
            for _ in range(_STEPS):
                tick = trigger.get_next_fire_time(tick, tick)

        found["APScheduler"] = apscheduler
    return found


def next_ticks(rounds: int) -> None:
    """One tick after another, of schedules as people write them."""
    print(f"  microseconds per next tick, best (median) of {rounds} rounds; {_STEPS} ticks in a row")
    slowest, shown = [], {}
    for text, zone in ((text, zone) for text in EXPRESSIONS for zone in ("UTC", "Europe/Berlin")):
        calls = steppers(text, zone)
        for call in calls.values():
            call()
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                taken[name].append(per_call(call, 20 if name in ("Sexton", "cronsim") else 3) / _STEPS)
        shown = {name: f"{min(times):7.1f} ({statistics.median(times):.1f})" for name, times in taken.items()}
        pairs = zip(taken["cronsim"], taken["Sexton"], strict=True)
        ratio = statistics.median(theirs / ours for theirs, ours in pairs)  # of neighbours in time
        slowest.append(ratio)
        print(
            f"  {text:<22}{zone:<15}" + "".join(f"{name} {text:<18}" for name, text in shown.items()) + f"{ratio:5.1f}x"
        )
    show("cronsim's time by Sexton's, least of all", f"{min(slowest):.1f}", "3", min(slowest) >= 3)
    show("the same, median", f"{statistics.median(slowest):.1f}")


def many_jobs(jobs: int, distinct: int, rounds: int) -> None:
    """Jobs that share schedules: as a node asks for their next ticks, by `TickCache`."""
    schedules = [schedule_from_spec(json.loads(text)) for text in schedule_texts(distinct, seed=1)]
    of_jobs = [schedules[number % distinct] for number in range(jobs)]

    def ask() -> None:
        cache = TickCache()
        for schedule in of_jobs:
            cache.next_after(schedule, START)

    ask()
    taken = [seconds(ask) for _ in range(rounds)]
    _show_seconds(f"{jobs:,} jobs with {distinct} schedules", taken, 0.1)


def random_expressions(count: int, rounds: int) -> None:
    """Expressions that nobody shares, over five zones; what reading them took stands beside it."""
    draw = random.Random(7)
    started = time.process_time()
    schedules: list[Schedule] = []
    while len(schedules) < count:
        fields = [_random_field(draw, *ends) for ends in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))]
        try:
            schedules.append(CronSchedule(CronExpression.parse(" ".join(fields)), draw.choice(ZONES)))
        except InvalidSchedule:
            continue
    read = time.process_time() - started
    gc.collect()

    def ask() -> None:
        for schedule in schedules:
            schedule.next_after(START)

    taken = [seconds(ask) for _ in range(rounds)]
    _show_seconds(f"{count:,} random expressions, five zones", taken, 0.6)
    show("making and reading them, once", f"{read:.1f} s")


def _random_field(draw: random.Random, low: int, high: int) -> str:
    one, other = sorted((draw.randint(low, high), draw.randint(low, high)))
    return draw.choice(
        (
            "*",
            str(one),
            f"{one}-{other}",
            f"*/{draw.randint(1, high - low + 1)}",
            f"{one}-{other}/{draw.randint(1, 5)}",
            ",".join(str(draw.randint(low, high)) for _ in range(draw.randint(2, 4))),
        )
    )


def counting(rounds: int) -> None:
    """A year of a minutely job, and of harder ones, counted."""
    year, next_year = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    minutely: dict[str, Any] = {"parts": [{"cron": "* * * * *"}], "timezone": "Europe/Berlin"}
    days = {"dates": ["2026-12-24"], "weekdays": [0, 6], "holidays": ["DE-BE"]}
    hourly = {"every_ms": 3_600_000, "anchor": "1970-01-01T00:17:00Z"}
    for name, spec in {
        "a minutely year, counted": minutely,
        "the same without weekends and holidays": minutely | {"exclude": days},
        "the same with an interval and a daily part": minutely
        | {"parts": [*minutely["parts"], {"cron": "30 2 * * *"}, hourly]},
    }.items():
        schedule = schedule_from_spec(spec)
        schedule.count_between(year, next_year)
        taken = [seconds(lambda schedule=schedule: schedule.count_between(year, next_year)) for _ in range(rounds)]
        _show_seconds(name, taken, 0.01)


def judging(count: int) -> None:
    """Hostile texts of 200 characters and hostile specifications: the one that takes longest, twice tried."""
    region_of("DE")  # loads the holidays package: some tenths of a second, once in a process that needs it
    taken = []
    for text in hostile_texts(count):
        taken.append((min(seconds(lambda text=text: _judge_text(text)) for _ in range(2)), text))
    worst, text = max(taken)
    show(f"200 characters, the worst of {count:,} texts", f"{worst * 1e3:.2f} ms", "50 ms", worst < 0.05)
    print(f"    it is {text[:70]}...")
    taken = []
    for zone in ("UTC", "Europe/London", "America/New_York", "Africa/Casablanca"):
        for name, spec in hostile_specs(zone):
            taken.append((min(seconds(lambda spec=spec: _judge_spec(spec)) for _ in range(2)), f"{name} ({zone})"))
    worst, name = max(taken)
    show("schedules that seldom or never fire, the worst", f"{worst * 1e3:.0f} ms", "50 ms", worst < 0.05)
    print(f"    it is {name}")


def _judge_text(text: str) -> None:
    cron_expression._parse.cache_clear()
    cron_fields._parse_field.cache_clear()
    with contextlib.suppress(InvalidSchedule):
        CronExpression.parse(text, hash_seed="job")


def _judge_spec(spec: dict[str, Any]) -> None:
    cron_expression._parse.cache_clear()
    with contextlib.suppress(InvalidSchedule):
        firing_schedule_from_spec(spec)


def _show_seconds(what: str, taken: list[float], goal: float) -> None:
    best, middle = min(taken) * 1e3, statistics.median(taken) * 1e3
    show(what, f"{best:.2f} ms ({middle:.2f} in the median)", f"{goal * 1e3:.0f} ms", middle < goal * 1e3)


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--texts", type=int, default=5_000, help="hostile texts")
    options = parser.parse_args()
    print(describe())
    next_ticks(options.rounds)
    many_jobs(100_000, 500, options.rounds)
    random_expressions(100_000, options.rounds)
    counting(options.rounds)
    judging(options.texts)


if __name__ == "__main__":
    main()
