"""Random schedules around the changes of all clocks, against a walk through every second. A program of its own:

    .venv/bin/python -m tests.support.transition_trials [--per-change 2] [--seed 1] [--share 1/2] [--zone Europe/Berlin]

Every change of the offset to UTC that a zone of tzdata has from 1990 to 2040 is tried; zones with equal data (old
names) are tried once. All questions that a schedule answers must agree with the walk: what is listed forward and
backward, counted, contained, next and previous from random starts. Prints each difference, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

from sexton.errors import InvalidSchedule
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule
from sexton.zones import zone_names
from tests.support.random_specs import random_spec
from tests.support.wall_clock_walk import Walk, expected_ticks

FIRST, LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
JUDGED, WALKED = timedelta(minutes=150), 4 * 3600


def zone_of(name: str) -> ZoneInfo:
    """A zone from the tzdata package, read past Sexton. (`ZoneInfo(name)` would prefer the host's own, older data.)"""
    return ZoneInfo.from_file(io.BytesIO(_bytes_of(name)), key=name)


def zones_with_data_of_their_own() -> dict[str, ZoneInfo]:
    """One name for each different zone file."""
    found: dict[bytes, str] = {}
    for name in sorted(zone_names()):
        found.setdefault(_bytes_of(name), name)
    return {name: zone_of(name) for name in found.values()}


def _bytes_of(name: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def changes_of(zone: ZoneInfo) -> list[datetime]:
    """The instants from 1990 to 2040 at which the offset to UTC changes; four times a day are asked."""
    changes, at, offset = [], FIRST, FIRST.astimezone(zone).utcoffset()
    step = timedelta(hours=6)
    while at < LAST:
        following = (at + step).astimezone(zone).utcoffset()
        if following != offset:
            low, high = at, at + step
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0)
                low, high = (low, middle) if middle.astimezone(zone).utcoffset() != offset else (middle, high)
            changes.append(high)
            offset = following
        at += step
    return changes


def differences(draw: Random, name: str, zone: ZoneInfo, change: datetime, schedules: int) -> Iterator[str]:
    """What random schedules do otherwise than the walk, around one change."""
    walk = Walk(zone, int(change.timestamp()) - WALKED, int(change.timestamp()) + WALKED)
    for _ in range(schedules):
        spec = random_spec(draw, name, zone, change)
        try:
            schedule = schedule_from_spec(spec)
        except InvalidSchedule as refusal:
            if "never fires" in str(refusal) or "ends at" in str(refusal):
                continue
            yield f"{spec}: refused: {refusal}"
            continue
        ticks = expected_ticks(spec, walk, change - JUDGED, change + JUDGED)
        for problem in _disagreements(draw, schedule, ticks, change - JUDGED, change + JUDGED):
            yield f"{change.isoformat()} {spec}: {problem}"


def _disagreements(
    draw: Random, schedule: Schedule, ticks: list[datetime], after: datetime, upto: datetime
) -> Iterator[str]:
    limit = draw.choice((0, 1, 3, 10))
    answers = {
        "between": (list(schedule.between(after, upto)), ticks),
        "between, limited": (list(schedule.between(after, upto, limit)), ticks[:limit]),
        "newest_between": (schedule.newest_between(after, upto, len(ticks) + 1), ticks),
        "newest_between, limited": (schedule.newest_between(after, upto, limit), ticks[-limit:] if limit else []),
        "count_between": (schedule.count_between(after, upto), len(ticks)),
        "count_between, limited": (schedule.count_between(after, upto, limit), min(limit, len(ticks))),
    }
    for what, (found, wanted) in answers.items():
        if found != wanted:
            yield f"{what}: {found}, not {wanted}"
    for _ in range(4):
        start = after + timedelta(milliseconds=draw.randint(0, int((upto - after) / timedelta(milliseconds=1))))
        if ticks and draw.random() < 0.5:
            start = draw.choice(ticks) + timedelta(microseconds=draw.choice((-1, 0, 1)))
        later, earlier = [tick for tick in ticks if tick > start], [tick for tick in ticks if tick < start]
        following, preceding = schedule.next_after(start), schedule.previous_before(start)
        if following != later[0] if later else following is not None and following <= upto:
            yield f"next_after {start.isoformat()}: {following}"
        if preceding != earlier[-1] if earlier else preceding is not None and preceding > after:
            yield f"previous_before {start.isoformat()}: {preceding}"
        if schedule.contains(start) != (start in ticks):
            yield f"contains {start.isoformat()}: {schedule.contains(start)}"
        if schedule.count_between(start, upto) != len(later):
            yield f"count_between from {start.isoformat()}: {schedule.count_between(start, upto)}, not {len(later)}"
    if any(one >= other for one, other in pairwise(schedule.between(after, upto))):
        yield "between is not strictly ascending"


def main() -> int:
    """Try all; 1 where a schedule differs from the walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-change", type=int, default=2, help="random schedules per change of a clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", default="1/1", help="only this share of the zones, such as 1/2, for a core each")
    parser.add_argument("--zone", help="only this zone")
    options = parser.parse_args()
    share, of = (int(number) for number in options.share.split("/"))
    names = list(zones_with_data_of_their_own().items())[share - 1 :: of]
    zones = {options.zone: zone_of(options.zone)} if options.zone else dict(names)
    begun, tried, wrong = time.process_time(), 0, 0
    for name, zone in zones.items():
        for change in changes_of(zone):
            tried += 1
            for difference in differences(
                Random(f"{options.seed} {name} {change.isoformat()}"), name, zone, change, options.per_change
            ):
                wrong += 1
                print(difference, flush=True)
    spent = time.process_time() - begun
    print(
        f"{len(zones)} zones, {tried} changes, {tried * options.per_change} schedules: {wrong} differ ({spent:.0f} s)"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
