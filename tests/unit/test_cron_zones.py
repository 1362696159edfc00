"""Zones come from the tzdata package alone, and their clocks are known to the second."""

import random
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.zone_clock import Span, ZoneClock, clock_of
from sexton.zones import load_zone, zone_data_version, zone_names


def unix(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def test_the_version_is_the_iana_version_of_the_package() -> None:
    assert re.fullmatch(r"20\d\d[a-z]", zone_data_version())


def test_every_listed_zone_loads_and_is_the_same_object_each_time() -> None:
    for name in sorted(zone_names()):
        assert load_zone(name) is load_zone(name)
        assert load_zone(name).key == name


def test_the_hosts_zone_files_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONTZPATH", str(tmp_path))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    instant = datetime(2026, 7, 1, tzinfo=UTC)
    assert instant.astimezone(load_zone("Europe/Berlin")).isoformat() == "2026-07-01T02:00:00+02:00"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        (" Europe/Berlin", "did you mean 'Europe/Berlin'?"),
        ("utc", "did you mean 'UTC'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("Europe", "is a region"),
        ("America/Argentina/", "is a region"),
        ("../../etc/passwd", "is a path"),
        ("/etc/localtime", "is a path"),
        ("Europe/../UTC", "is a path"),
        ("UTC+2", "'Etc/GMT-2' for always UTC+2"),
        ("GMT-05:00", "'Etc/GMT+5' for always UTC-5"),
        ("+05:30", "is an offset"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "is a POSIX rule"),
        ("EST5EDT4", "did you mean 'EST5EDT'?"),
        ("AEST-10", "is a POSIX rule"),
        ("posixrules", "not in the zone database"),
        ("Factory", "not in the zone database"),
        ("localtime", "not in the zone database"),
        ("zone.tab", "not in the zone database"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("Europe/Berlin\0", "not in the zone database"),
        ("x" * 10_000, "not in the zone database"),
    ],
)
def test_what_is_no_exact_name_is_refused_with_a_remedy(name: str, says: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        load_zone(name)
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("zone", "change", "span"),
    [
        ("Europe/Berlin", "2026-03-29T01:00:00+00:00", ("01:00:00", 7200, -3600)),
        ("Europe/Berlin", "2026-10-25T01:00:00+00:00", ("01:00:00", 3600, 3600)),
        ("Australia/Lord_Howe", "2019-10-05T15:30:00+00:00", ("15:30:00", 39600, -1800)),
        ("Antarctica/Troll", "2025-10-26T01:00:00+00:00", ("01:00:00", 0, 7200)),
        ("Pacific/Apia", "2011-12-30T10:00:00+00:00", ("10:00:00", 50400, -86400)),
        ("Africa/Monrovia", "1972-01-07T00:44:30+00:00", ("00:44:30", 0, -2670)),
        ("Europe/Brussels", "1892-05-01T00:00:00+00:00", ("00:00:00", 0, 1050)),
    ],
)
def test_a_change_begins_a_span_that_knows_what_was_jumped_over_or_repeated(
    zone: str, change: str, span: tuple[str, int, int]
) -> None:
    found = clock_of(zone).span_at(unix(change))
    start, offset, repeated = span
    assert datetime.fromtimestamp(found.start, UTC).strftime("%H:%M:%S") == start
    assert (found.offset, found.frontier - found.start - found.offset) == (offset, repeated)


def test_spans_cover_all_time_without_a_seam() -> None:
    clock = ZoneClock(load_zone("America/New_York"))
    instant, before = unix("1880-01-01T00:00:00+00:00"), None
    changes = 0
    while instant < unix("2045-01-01T00:00:00+00:00"):
        span = clock.span_at(instant)
        assert span.start <= instant < span.end
        assert clock.span_at(span.start) == clock.span_at(span.end - 1) == span
        if isinstance(before, Span) and before.offset == span.offset:
            assert span.frontier == span.start + span.offset, "a cut between blocks is no change of the clock"
        elif before is not None:
            changes += 1
        instant, before = span.end, span
    zone = load_zone("America/New_York")
    days = range(unix("1880-01-01T00:00:00+00:00"), unix("2045-01-01T00:00:00+00:00"), 86_400)
    offsets = [datetime.fromtimestamp(day, zone).utcoffset() for day in days]
    assert changes == sum(one != next_one for one, next_one in pairwise(offsets)) > 200


def transitions_listed_in(name: str) -> Iterator[int]:
    """The instants that the zone file itself lists (RFC 8536, version 2 block), whether or not the offset changes."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    counts = struct.unpack(">6l", data[20:44])
    isut, isstd, leap, times, types, characters = counts
    second = 44 + times * 5 + types * 6 + characters + leap * 8 + isstd + isut
    (times,) = struct.unpack(">l", data[second + 32 : second + 36])
    yield from struct.unpack(f">{times}q", data[second + 44 : second + 44 + 8 * times])


def test_no_change_that_a_zone_file_lists_is_overlooked() -> None:
    first, last = unix("1990-01-01T00:00:00+00:00"), unix("2037-01-01T00:00:00+00:00")
    chosen = random.Random(1).sample(sorted(zone_names()), 120)
    compared = 0
    for name in [*chosen, "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Cairo", "Asia/Gaza"]:
        clock, zone = clock_of(name), load_zone(name)
        listed = [
            at
            for at in transitions_listed_in(name)
            if first < at <= last
            and datetime.fromtimestamp(at, zone).utcoffset() != datetime.fromtimestamp(at - 1, zone).utcoffset()
        ]
        found = [at for at, _ in clock.changes_between(first, last)]
        assert [at for at in found if at <= max(listed, default=0)] == listed, name
        compared += len(listed)
    assert compared > 1_000


def test_a_repeated_hour_across_a_seam_between_blocks_is_still_a_repeated_hour() -> None:
    seam = unix("2185-11-06T09:08:16+00:00")
    before, after = clock_of("America/Los_Angeles").span_at(seam - 1), clock_of("America/Los_Angeles").span_at(seam)
    assert before.end == after.start == seam, "blocks of 2^25 seconds meet inside the repeated hour of that night"
    assert after.frontier - after.start - after.offset == 3600 - 496, "of which 8 min 16 s had passed"
    schedule = CronSchedule(CronExpression.parse("30 1 * * *"), "America/Los_Angeles")
    start = datetime(2185, 11, 6, tzinfo=UTC)
    assert [tick.isoformat() for tick in schedule.between(start, start + timedelta(days=1, hours=12))] == [
        "2185-11-06T08:30:00+00:00",
        "2185-11-07T09:30:00+00:00",
    ]
