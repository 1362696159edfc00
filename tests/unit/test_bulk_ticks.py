"""Ticks all at once are those that a schedule gives one by one: for every kind of it, around changed clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from sexton.bulk_ticks import instant_of, micros_of, ticks_between
from sexton.errors import InvalidSchedule
from sexton.schedule_specs import schedule_from_spec
from tests.support.random_specs import random_spec

CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"),
    "Australia/Lord_Howe": ("2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"),
    "Pacific/Apia": ("2011-12-30T10:00:00Z",),
    "America/Sao_Paulo": ("2018-11-04T03:00:00Z",),
    "UTC": ("2026-06-01T00:00:00Z",),
}


@pytest.mark.parametrize("zone", CHANGES)
def test_a_stretch_has_the_ticks_that_the_schedule_gives_one_by_one(zone: str) -> None:
    draw = Random(zone)
    ticks = 0
    for number in range(60):
        moment = datetime.fromisoformat(CHANGES[zone][number % len(CHANGES[zone])]).astimezone(UTC)
        try:
            schedule = schedule_from_spec(random_spec(draw, zone, ZoneInfo(zone), moment))
        except InvalidSchedule:
            continue
        after = moment - timedelta(microseconds=draw.choice((0, 1, 3_600_000_000, draw.randint(0, 90_000_000_000))))
        upto = moment + timedelta(microseconds=draw.choice((0, 1, 7_200_000_000, draw.randint(0, 20_000_000_000))))
        one_by_one = [micros_of(tick) for tick in schedule.between(after, upto, 50_000)]
        if len(one_by_one) < 50_000:
            assert list(ticks_between(schedule, micros_of(after), micros_of(upto))) == one_by_one
            ticks += len(one_by_one)
    assert ticks > 100


def test_an_instant_comes_back_from_its_microseconds() -> None:
    at = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert micros_of(at) == -1
    assert instant_of(-1) == at
