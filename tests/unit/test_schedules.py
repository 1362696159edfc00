"""Schedules as sets of ticks: cron, every, at, unions and bounds, and how they are described in a revision."""

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.schedule_specs import schedule_from_spec
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import TICK_ENGINE_VERSION, BoundedSchedule, EverySchedule, InstantsSchedule, Schedule
from sexton.wall_clock_schedules import CronSchedule
from tests.support.effort import with_lines_run


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def cron(text: str, zone: str = "UTC") -> CronSchedule:
    return CronSchedule(CronExpression.parse(text), zone)


def every(seconds: float, anchor: str = "1970-01-01T00:00:00Z") -> EverySchedule:
    return EverySchedule(timedelta(seconds=seconds), at(anchor))


NEW_YEAR, NEXT_YEAR = at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")
A_DAY = timedelta(days=1)


def test_next_and_previous_are_strict_to_the_microsecond() -> None:
    for schedule in (cron("0 10 * * *"), every(86_400, "2018-01-01T10:00:00Z")):
        tick = at("2018-01-02T10:00:00Z")
        just = timedelta(microseconds=1)
        assert schedule.next_after(tick) == tick + A_DAY
        assert schedule.next_after(tick - just) == tick
        assert schedule.next_after(tick + just) == tick + A_DAY
        assert schedule.previous_before(tick) == tick - A_DAY
        assert schedule.previous_before(tick + just) == tick
        assert schedule.previous_before(tick - just) == tick - A_DAY
        assert schedule.count_between(tick - just, tick) == 1
        assert schedule.count_between(tick, tick + just) == 0
        assert schedule.count_between(tick, tick) == 0
        assert schedule.count_between(tick, tick - A_DAY) == 0
        assert schedule.contains(tick)
        assert not schedule.contains(tick + just)


def test_instants_in_any_offset_are_the_same_instants_and_answers_are_utc() -> None:
    local = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    for schedule in (cron("0 11 * * *"), every(3600), InstantsSchedule((local + timedelta(hours=1),))):
        tick = schedule.next_after(local)
        assert tick == at("2026-05-01T11:00:00Z")
        assert tick is not None
        assert tick.tzinfo is UTC


def test_a_naive_instant_is_no_instant() -> None:
    with pytest.raises(TypeError):
        cron("0 11 * * *").next_after(datetime(2026, 5, 1))  # noqa: DTZ001  the mistake itself


def test_a_year_of_a_minutely_job_is_counted_and_not_listed() -> None:
    for zone, expected in (("UTC", 525_600), ("Europe/Berlin", 525_600)):
        schedule = cron("* * * * *", zone)
        schedule.count_between(NEW_YEAR, NEXT_YEAR)
        count, lines = with_lines_run(partial(schedule.count_between, NEW_YEAR, NEXT_YEAR))
        assert count == expected
        assert lines < 5_000
    assert cron("* * * * * *").count_between(NEW_YEAR, NEW_YEAR + 100 * 365 * A_DAY) == 100 * 365 * 86_400


def test_fixed_hours_count_the_gap_once_and_the_overlap_once() -> None:
    half_hourly = cron("0,30 0-23 * * *", "Europe/Berlin")
    spring, autumn = at("2026-03-28T23:00:00Z"), at("2026-10-24T22:00:00Z")
    instant = timedelta(microseconds=1)
    assert half_hourly.count_between(spring - instant, spring + timedelta(hours=23) - instant) == 46
    assert half_hourly.count_between(autumn - instant, autumn + timedelta(hours=25) - instant) == 48
    assert cron("15,45 2 * * *", "Europe/Berlin").count_between(spring, spring + timedelta(hours=23)) == 1
    assert half_hourly.count_between(NEW_YEAR, NEXT_YEAR, limit=100) == 100


def test_only_the_newest_are_computed() -> None:
    secondly = cron("* * * * * *")
    newest, lines = with_lines_run(lambda: secondly.newest_between(NEW_YEAR, NEXT_YEAR, 3))
    assert lines < 2_000
    assert newest == [NEXT_YEAR - timedelta(seconds=2), NEXT_YEAR - timedelta(seconds=1), NEXT_YEAR]
    assert secondly.newest_between(NEXT_YEAR - timedelta(seconds=2), NEXT_YEAR, 9) == newest[1:]
    assert secondly.newest_between(NEW_YEAR, NEXT_YEAR, 0) == []


def test_every_counts_elapsed_time_from_its_anchor_in_both_directions() -> None:
    schedule = every(0.001 * 1_500, "2026-01-01T00:00:00.250Z")
    start = at("2026-01-01T00:00:00.250Z")
    assert list(schedule.between(start - timedelta(seconds=2), start + timedelta(seconds=3))) == [
        start - timedelta(seconds=1.5),
        start,
        start + timedelta(seconds=1.5),
        start + timedelta(seconds=3),
    ]
    assert schedule.count_between(NEW_YEAR - A_DAY, NEW_YEAR) == 57_600


def test_every_15_minutes_follows_elapsed_time_over_a_clock_change() -> None:
    ticks = list(every(900).between(at("2026-03-29T00:30:00Z"), at("2026-03-29T01:30:00Z")))
    assert [tick.strftime("%H:%M") for tick in ticks] == ["00:45", "01:00", "01:15", "01:30"]


@pytest.mark.parametrize(
    "interval", [timedelta(0), timedelta(seconds=-5), timedelta(milliseconds=999), timedelta(seconds=1, microseconds=1)]
)
def test_an_interval_that_is_too_short_or_off_the_millisecond_is_refused(interval: timedelta) -> None:
    with pytest.raises(InvalidSchedule, match="at least 1s in whole milliseconds"):
        EverySchedule(interval, NEW_YEAR)


def test_listed_instants_are_kept_in_order_and_once_each() -> None:
    schedule = InstantsSchedule(
        (at("2026-12-24T18:00:00+01:00"), at("2026-01-01T00:00:00Z"), at("2026-12-24T17:00:00Z"))
    )
    assert schedule.instants == (NEW_YEAR, at("2026-12-24T17:00:00Z"))
    assert schedule.next_after(NEW_YEAR) == at("2026-12-24T17:00:00Z")
    assert schedule.next_after(at("2026-12-24T17:00:00Z")) is None
    assert schedule.previous_before(NEW_YEAR) is None
    assert schedule.count_between(NEW_YEAR - A_DAY, NEXT_YEAR) == 2
    assert InstantsSchedule(()).next_after(NEW_YEAR) is None
    with pytest.raises(InvalidSchedule, match="finer than a millisecond"):
        InstantsSchedule((NEW_YEAR + timedelta(microseconds=1),))


def test_parts_are_one_set_in_which_equal_instants_are_one_tick() -> None:
    union = UnionSchedule(
        (cron("0 * * * *"), cron("*/30 * * * *"), every(900), InstantsSchedule((at("2026-01-01T00:10:00Z"),)))
    )
    ticks = list(union.between(NEW_YEAR, NEW_YEAR + timedelta(hours=1)))
    assert [tick.minute for tick in ticks] == [10, 15, 30, 45, 0]
    assert union.count_between(NEW_YEAR, NEW_YEAR + timedelta(hours=1)) == 5
    assert union.count_between(NEW_YEAR, NEW_YEAR + timedelta(hours=1), limit=2) == 2
    assert union.newest_between(NEW_YEAR, NEW_YEAR + timedelta(hours=1), 4) == ticks[1:]
    assert all(one < following for one, following in pairwise(ticks))


UNIONS = [
    ("*/7 * * * *", "*/5 * * * *"),
    ("30 1-3 * * *", "*/15 * * * *", "30 2 * * SUN"),
    ("15,30 2 * * *", "30,45 2 * * *", "0 3 * * *"),
    ("0 0-23 * * *", "0 * * * *"),
    ("30 2 29 3 *", "45 1-2 * * *"),
]


@pytest.mark.parametrize("texts", UNIONS)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"])
def test_a_union_counts_what_it_lists_also_over_clock_changes(texts: tuple[str, ...], zone: str) -> None:
    union = UnionSchedule(tuple(cron(text, zone) for text in texts))
    for start in (
        at("2026-03-06T00:00:00Z"),
        at("2026-03-27T00:00:00Z"),
        at("2026-10-24T00:00:00Z"),
        at("2026-10-31T12:00:00Z"),
    ):
        end = start + timedelta(days=3, minutes=7)
        assert union.count_between(start, end) == len(list(union.between(start, end)))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "Europe/Berlin", "Australia/Lord_Howe"])
def test_a_union_of_crons_and_intervals_counts_what_it_lists(zone: str) -> None:
    parts: list[Schedule] = [
        cron("5 0-23 * * *", zone),
        cron("*/20 * * * *", zone),
        every(7_200, "2026-01-01T00:05:00Z"),
        every(420),
        every(1.5 * 60, "2026-01-01T00:00:00.500Z"),
        InstantsSchedule((at("2026-03-29T01:00:00Z"), at("2026-03-29T01:00:01Z"))),
    ]
    for start in (at("2026-03-28T00:00:00Z"), at("2026-04-04T00:00:00Z"), at("2026-10-24T11:00:00Z")):
        end = start + timedelta(days=2, minutes=7)
        for chosen in (parts[:3], parts[2:4], parts[1:3], parts, parts[3:], parts[2:3]):
            union = UnionSchedule(tuple(chosen))
            listed = list(union.between(start, end))
            assert union.count_between(start, end) == len(listed) == len(set(listed))
            assert union.count_between(start, end, limit=50) == min(50, len(listed))


@pytest.mark.parametrize(
    "parts",
    [
        (
            cron("* * * * *", "Europe/Berlin"),
            cron("*/2 * * * *", "Europe/Berlin"),
            cron("0-58 2-3 * * *", "Europe/Berlin"),
        ),
        (cron("* * * * *", "Europe/Berlin"), every(60), every(3600)),
        (every(60), every(120)),
    ],
)
def test_a_year_of_several_frequent_parts_is_counted_and_not_listed(parts: tuple[Schedule, ...]) -> None:
    union = UnionSchedule(parts)
    union.count_between(NEW_YEAR, NEXT_YEAR)
    count, lines = with_lines_run(lambda: union.count_between(NEW_YEAR, NEXT_YEAR))
    assert count == 525_600
    assert lines < 50_000


@pytest.mark.parametrize(
    ("texts", "seconds", "expected"),
    [
        (["* * * * * *"], [1.001], 5_178_822),
        (["*/5 * * * * *"], [7], 814_628),
        (["* * * * * *"], [7, 11.5], 2_704_695),
        (["1-59/2 * * * * *", "*/7 * * * * *"], [1.001, 1.003, 7, 13], 6_904_248),
        ([], [1.001, 1.002, 1.003, 1.5, 1.7, 2, 3], 11_674_482),
    ],
)
def test_a_month_of_seconds_and_intervals_off_the_day_is_counted_and_not_listed(
    texts: list[str], seconds: list[float], expected: int
) -> None:
    union = UnionSchedule((*(cron(text, "Europe/Berlin") for text in texts), *map(every, seconds)))
    count, lines = with_lines_run(lambda: union.count_between(NEW_YEAR, NEW_YEAR + 30 * A_DAY))
    assert count == expected
    assert lines < 50_000


@pytest.mark.parametrize("milliseconds", [range(1_500, 10_500, 500), range(1_001, 1_013), range(2_003, 30_000, 1_000)])
def test_many_intervals_off_the_second_are_counted_as_they_are_listed(milliseconds: range) -> None:
    parts = (cron("*/3 * * * * *"), *(every(each / 1000) for each in milliseconds))
    upto = NEW_YEAR + timedelta(minutes=40, milliseconds=500)
    listed = {tick for part in parts for tick in part.between(NEW_YEAR, upto)}
    assert UnionSchedule(parts).count_between(NEW_YEAR, upto) == len(listed)


def test_bounds_include_the_start_and_exclude_the_end() -> None:
    bounded = BoundedSchedule(cron("0 * * * *"), NEW_YEAR, NEW_YEAR + timedelta(hours=3))
    hours = [NEW_YEAR + timedelta(hours=n) for n in range(3)]
    assert list(bounded.between(NEW_YEAR - A_DAY, NEXT_YEAR)) == hours
    assert bounded.newest_between(NEW_YEAR - A_DAY, NEXT_YEAR, 9) == hours
    assert bounded.count_between(NEW_YEAR - A_DAY, NEXT_YEAR) == 3
    assert bounded.next_after(hours[-1]) is None
    assert bounded.previous_before(hours[0]) is None
    assert bounded.previous_before(NEXT_YEAR) == hours[-1]
    assert not bounded.contains(NEW_YEAR + timedelta(hours=3))
    assert bounded.count_between(NEXT_YEAR, NEXT_YEAR + A_DAY) == 0
    open_end = BoundedSchedule(cron("0 * * * *"), NEW_YEAR, None)
    assert open_end.next_after(NEW_YEAR - 10 * A_DAY) == NEW_YEAR
    open_start = BoundedSchedule(cron("0 * * * *"), None, NEW_YEAR)
    assert open_start.previous_before(NEXT_YEAR) == NEW_YEAR - timedelta(hours=1)


@pytest.mark.parametrize(
    "edge", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
)
@pytest.mark.parametrize(
    "schedule", [cron("0 0 29 2 *", "Europe/Berlin"), cron("* * * * * *"), every(7), InstantsSchedule((NEW_YEAR,))]
)
def test_the_ends_of_the_calendar_are_answered_and_not_raised(schedule: Schedule, edge: datetime) -> None:
    following, preceding = schedule.next_after(edge), schedule.previous_before(edge)
    assert following is None or following > edge
    assert preceding is None or preceding < edge


SPEC: dict[str, Any] = {
    "parts": [{"cron": "0 2 * * *"}],
    "timezone": "Europe/Berlin",
    "start": None,
    "end": None,
}


def test_a_specification_gives_equal_schedules_for_equal_words() -> None:
    assert schedule_from_spec(SPEC) == schedule_from_spec(dict(SPEC)) == cron("0 2 * * *", "Europe/Berlin")
    assert hash(schedule_from_spec(SPEC)) == hash(cron("0 2 * * *", "Europe/Berlin"))


def test_a_specification_may_have_several_parts_and_bounds() -> None:
    schedule = schedule_from_spec(
        {
            "parts": [
                {"cron": "H 2 * * *"},
                {"every_ms": 900_000, "anchor": "1970-01-01T00:05:00Z"},
                {"at": ["2026-12-24T18:00:00+01:00"]},
            ],
            "timezone": "Europe/Berlin",
            "start": "2026-01-01T00:00:00Z",
            "end": "2026-12-31T00:00:00Z",
            "hash_seed": "nightly",
        }
    )
    assert schedule == BoundedSchedule(
        UnionSchedule(
            (
                CronSchedule(CronExpression.parse("H 2 * * *", hash_seed="nightly"), "Europe/Berlin"),
                every(900, "1970-01-01T00:05:00Z"),
                InstantsSchedule((at("2026-12-24T17:00:00Z"),)),
            )
        ),
        at("2026-01-01T00:00:00Z"),
        at("2026-12-31T00:00:00Z"),
    )
    assert isinstance(hash(schedule), int)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parts": []}, "no parts"),
        ({"parts": None}, "no parts"),
        ({"parts": ["0 2 * * *"]}, "not a mapping"),
        ({"parts": [{"monthly": 1}]}, "is not one of cron, every, calendar, at"),
        ({"parts": [{"cron": "0 2 * *"}]}, "weekday is missing"),
        ({"parts": [{"every_ms": 500}]}, "at least 1s"),
        ({"parts": [{"every_ms": "soon"}]}, "whole number of milliseconds"),
        ({"parts": [{"every_ms": 10**30}]}, "whole number of milliseconds"),
        ({"parts": [{"at": ["yesterday"]}]}, "not an instant"),
        ({"parts": [{"at": ["2026-12-24T17:00:00"]}]}, "no offset"),
        ({"parts": [{"at": "2026-12-24T17:00:00Z"}]}, "a list of instants"),
        ({"timezone": "Europe/Berln"}, "did you mean"),
        ({"parts": [{"every_ms": 60_000}], "timezone": "Europe/Berln"}, "did you mean"),
        ({"start": "2026-02-30T00:00:00Z"}, "start: '2026-02-30T00:00:00Z' is not an instant"),
        ({"start": "2026-02-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}, "never fires"),
    ],
)
def test_a_specification_that_means_nothing_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        schedule_from_spec({**SPEC, **change})
    assert says in str(refusal.value)


def test_the_tick_engine_has_a_version() -> None:
    assert TICK_ENGINE_VERSION == 1


def test_the_last_second_of_the_day_is_reached_and_left() -> None:
    secondly, midnight = cron("* * * * * *"), at("2026-01-02T00:00:00Z")
    assert list(secondly.between(midnight - timedelta(seconds=4), midnight + timedelta(seconds=1))) == [
        midnight + timedelta(seconds=n) for n in range(-3, 2)
    ]
    late = cron("59 23 * * *")
    for before in (timedelta(seconds=61), timedelta(seconds=60, microseconds=1), timedelta(minutes=2)):
        assert late.next_after(midnight - before) == midnight - timedelta(minutes=1)
    assert secondly.newest_between(midnight - A_DAY, midnight + timedelta(seconds=1), 3) == [
        midnight + timedelta(seconds=n) for n in (-1, 0, 1)
    ]


def test_the_nearest_workday_does_not_leave_the_month() -> None:
    first = cron("0 0 1W * *").between(at("2025-01-31T00:00:00Z"), at("2025-07-01T00:00:00Z"))
    assert [tick.strftime("%m-%d") for tick in first] == ["02-03", "03-03", "04-01", "05-01", "06-02", "07-01"]
    last = cron("0 0 31W,30W * *").between(at("2025-05-01T00:00:00Z"), at("2025-09-01T00:00:00Z"))
    assert [tick.strftime("%m-%d") for tick in last] == ["05-30", "06-30", "07-30", "07-31", "08-29"]
    assert str(cron("0 0 15W * *").next_after(at("2025-06-01T00:00:00Z")))[:10] == "2025-06-16", "a Sunday's Monday"
    assert str(cron("0 0 15W * *").next_after(at("2025-03-01T00:00:00Z")))[:10] == "2025-03-14", "a Saturday's Friday"


def test_a_search_that_steps_over_seasons_finds_the_repeated_hour() -> None:
    yearly = cron("30 2 25 10 *", "Europe/Berlin")
    assert yearly.next_after(at("2026-02-01T00:00:00Z")) == at("2026-10-25T00:30:00Z")
    assert yearly.previous_before(at("2027-02-01T00:00:00Z")) == at("2026-10-25T00:30:00Z")
    assert yearly.previous_before(at("2027-07-01T00:00:00Z")) == at("2026-10-25T00:30:00Z")
    wildcard = cron("*/10 1 26 10 *", "Antarctica/Troll")
    assert wildcard.next_after(at("2025-02-01T00:00:00Z")) == at("2025-10-25T23:00:00Z")
    assert wildcard.previous_before(at("2026-07-01T00:00:00Z")) == at("2025-10-26T01:50:00Z")
    assert wildcard.count_between(at("2025-02-01T00:00:00Z"), at("2026-07-01T00:00:00Z")) == 12
    in_the_gap = cron("30 2 29 3 *", "Europe/Berlin")
    assert in_the_gap.next_after(at("2025-07-01T00:00:00Z")) == at("2026-03-29T01:00:00Z")
    assert in_the_gap.previous_before(at("2027-01-01T00:00:00Z")) == at("2026-03-29T01:00:00Z")


def test_a_search_that_starts_beside_a_repeated_hour_does_not_step_over_it() -> None:
    assert cron("*/10 1 26 10 *", "Antarctica/Troll").next_after(at("2025-10-26T00:55:00Z")) == at(
        "2025-10-26T01:00:00Z"
    )
    late = cron("*/10 2 26 10 *", "Antarctica/Troll")
    assert late.previous_before(at("2025-10-26T01:30:00Z")) == at("2025-10-26T00:50:00Z")
    assert late.next_after(at("2025-10-26T00:50:00Z")) == at("2025-10-26T02:00:00Z")


def test_a_search_that_begins_at_the_jump_finds_what_was_jumped_over_whatever_was_asked_before() -> None:
    """The span of the clock in which a search began last is looked at first."""
    schedule, jump = cron("30 2 * * *", "Europe/Berlin"), at("2026-03-29T01:00:00Z")
    second = timedelta(seconds=1)
    assert schedule.next_after(jump + A_DAY) == at("2026-03-31T00:30:00Z")
    assert schedule.next_after(jump - second) == jump
    assert schedule.next_after(jump) == at("2026-03-30T00:30:00Z")
    assert schedule.previous_before(jump + A_DAY) == at("2026-03-30T00:30:00Z")
    assert schedule.previous_before(jump + second) == jump
    assert schedule.previous_before(jump) == at("2026-03-28T01:30:00Z")
