"""Faults that other schedulers had (S01 to S32 of the catalogue); each test's name carries its number.

Expected instants are written out, and were found by two brute-force programs that agree. Rules: R1 wildcard jobs follow
elapsed time; R2 fixed times fire once; R3 both day fields must match where one starts with `*`; R4 next is strict.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.zones import load_zone
from tests.support.effort import with_lines_run


def cron(text: str, zone: str = "UTC") -> CronSchedule:
    return CronSchedule(CronExpression.parse(text), zone)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(text: str, zone: str, start: str, count: int) -> list[str]:
    schedule, tick, found = cron(text, zone), at(start), []
    for _ in range(count):
        after = schedule.next_after(tick)
        assert after is not None
        assert after > tick, "a next that does not advance would spin its caller"
        found.append(_shown(tick := after))
    assert [_shown(tick) for tick in schedule.between(at(start), tick)] == found
    return found


def preceding(text: str, zone: str, start: str, count: int) -> list[str]:
    schedule, tick, found = cron(text, zone), at(start), []
    for _ in range(count):
        before = schedule.previous_before(tick)
        assert before is not None
        assert before < tick
        found.append(_shown(tick := before))
    return found


def _shown(tick: datetime) -> str:
    return tick.strftime("%Y-%m-%dT%H:%M" if tick.second == 0 else "%Y-%m-%dT%H:%M:%S")


def local(text: str, zone: str, start: str, count: int) -> list[str]:
    return [at(tick).astimezone(load_zone(zone)).strftime("%d %H:%M") for tick in following(text, zone, start, count)]


def test_s01_forward_backward_and_match_agree_on_a_reading_that_does_not_exist() -> None:
    schedule = cron("30 2 * * *", "Australia/Lord_Howe")
    assert following("30 * * * *", "Australia/Lord_Howe", "2019-10-05T14:20", 2) == [
        "2019-10-05T15:00",
        "2019-10-05T15:30",
    ]
    assert preceding("0 * * * *", "Australia/Lord_Howe", "2019-10-05T16:30", 2) == [
        "2019-10-05T16:00",
        "2019-10-05T14:30",
    ]
    assert schedule.contains(at("2019-10-05T15:30"))
    assert not cron("0 * * * *", "Australia/Lord_Howe").contains(at("2019-10-05T15:30"))


@pytest.mark.parametrize(
    "start", ["2020-03-28T12:00", "2020-03-29T00:00", "2020-03-29T00:58:55", "2020-03-29T00:59:55"]
)
def test_s02_the_start_before_a_gap_does_not_change_what_comes_after_it(start: str) -> None:
    assert following("1 2 * * *", "Europe/Berlin", start, 2) == ["2020-03-29T01:00", "2020-03-30T00:01"]


def test_s03_the_iterator_passes_the_spring_change() -> None:
    assert following("*/1 * * * *", "America/Los_Angeles", "2025-03-09T09:58", 4) == [
        "2025-03-09T09:59",
        "2025-03-09T10:00",
        "2025-03-09T10:01",
        "2025-03-09T10:02",
    ]
    assert following("0 * * * *", "America/New_York", "2025-03-09T05:30", 3) == [
        "2025-03-09T06:00",
        "2025-03-09T07:00",
        "2025-03-09T08:00",
    ]


def test_s04_the_local_time_of_day_stays_the_same_over_a_change() -> None:
    assert local("0 20 * * *", "Europe/Paris", "2022-10-28T22:00", 4) == [
        "29 20:00",
        "30 20:00",
        "31 20:00",
        "01 20:00",
    ]
    assert local("0 8 * * 1-5", "America/New_York", "2018-11-01T22:00", 2) == ["02 08:00", "05 08:00"]
    assert local("0 20 * * *", "Europe/Paris", "2022-03-25T22:00", 3) == ["26 20:00", "27 20:00", "28 20:00"]


def test_s05_a_day_field_that_starts_with_a_star_is_anded() -> None:
    assert following("0 9 */2 * SAT", "UTC", "2025-03-01T10:00", 2) == ["2025-03-15T09:00", "2025-03-29T09:00"]
    assert following("0 9 */31 * MON", "UTC", "2025-01-01T00:00", 2) == ["2025-09-01T09:00", "2025-12-01T09:00"]
    assert following("0 9 1 * MON", "UTC", "2025-01-01T00:00", 3) == [
        "2025-01-01T09:00",
        "2025-01-06T09:00",
        "2025-01-13T09:00",
    ]


def at_once(call: Callable[[], object]) -> object:
    answer, lines = with_lines_run(call)
    assert lines < 10_000, "odd dates must not loop"
    return answer


def refuse_as_never_firing(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="never fires"):
        CronExpression.parse(text)


def test_s06_impossible_dates_are_refused_and_odd_ones_found_at_once() -> None:
    at_once(lambda: refuse_as_never_firing("* * 31 2 *"))
    assert at_once(lambda: preceding("5 0 */2 * *", "UTC", "2025-03-01T00:05", 2)) == [
        "2025-02-27T00:05",
        "2025-02-25T00:05",
    ]


def test_s07_a_start_with_seconds_never_gives_the_minute_it_is_in() -> None:
    assert following("* * * * *", "UTC", "2018-05-15T09:00:30", 2) == ["2018-05-15T09:01", "2018-05-15T09:02"]
    assert following("0 * * * * *", "UTC", "2018-05-15T09:00:00.000001", 1) == ["2018-05-15T09:01"]


def test_s08_half_a_second_after_a_tick_the_previous_tick_is_todays() -> None:
    assert preceding("0 10 * * *", "UTC", "2018-01-02T10:00:00.500000", 2) == ["2018-01-02T10:00", "2018-01-01T10:00"]
    assert preceding("0 10 * * *", "UTC", "2018-01-02T10:00:00.000001", 1) == ["2018-01-02T10:00"]
    assert preceding("0 10 * * *", "UTC", "2018-01-02T10:00:00", 1) == ["2018-01-01T10:00"]


def test_s09_backward_is_forward_reversed_over_february() -> None:
    for text in ("0 0 16,30 * *", "0 0 29 2 *", "0 0 L * *", "0 12 28-31 2,3 *"):
        forward = following(text, "UTC", "2019-12-31T00:00", 10)
        assert preceding(text, "UTC", f"{forward[-1]}:01", 10) == forward[::-1]
    assert following("0 0 16,30 * *", "UTC", "2025-01-30T00:00", 3) == [
        "2025-02-16T00:00",
        "2025-03-16T00:00",
        "2025-03-30T00:00",
    ]


def test_s10_equal_ranges_and_a_start_at_the_end_name_one_value() -> None:
    assert following("0 5-5 * * *", "UTC", "2025-01-01T00:00", 2) == ["2025-01-01T05:00", "2025-01-02T05:00"]
    assert following("0 0 1 JAN-jan *", "UTC", "2025-01-01T00:00", 2) == ["2026-01-01T00:00", "2027-01-01T00:00"]
    assert following("59/15 23/5 * * *", "UTC", "2025-01-01T00:00", 2) == ["2025-01-01T23:59", "2025-01-02T23:59"]
    assert following("5-5/10 * * * *", "UTC", "2025-01-01T00:00", 2) == ["2025-01-01T00:05", "2025-01-01T01:05"]


def test_s11_the_midnight_after_the_23_hour_day_fires() -> None:
    assert following("0 0 * * *", "US/Pacific", "2022-03-12T09:00", 3) == [
        "2022-03-13T08:00",
        "2022-03-14T07:00",
        "2022-03-15T07:00",
    ]


def test_s12_the_autumn_change_never_returns_one_instant_twice() -> None:
    assert following("30 * * * *", "Europe/Helsinki", "2025-10-25T23:45", 3) == [
        "2025-10-26T00:30",
        "2025-10-26T01:30",
        "2025-10-26T02:30",
    ]
    assert following("0 */2 * * *", "Europe/London", "2025-10-25T22:30", 3) == [
        "2025-10-25T23:00",
        "2025-10-26T02:00",
        "2025-10-26T04:00",
    ]
    assert following("6 2,3,4 * * *", "Europe/Helsinki", "2025-10-25T22:00", 4) == [
        "2025-10-25T23:06",
        "2025-10-26T00:06",
        "2025-10-26T02:06",
        "2025-10-27T00:06",
    ]


def test_s13_zero_and_seven_are_sunday() -> None:
    sundays = ["2026-06-28T03:00", "2026-07-05T03:00"]
    for weekday in ("0", "7", "SUN", "7-7", "0,7"):
        assert following(f"0 3 * * {weekday}", "UTC", "2026-06-22T00:00", 2) == sundays
    assert following("30 7 * * 4", "UTC", "2018-02-05T00:00", 1) == ["2018-02-08T07:30"]


def test_s14_a_time_in_the_gap_is_neither_months_away_nor_in_the_past() -> None:
    assert following("30 2 * * *", "America/New_York", "2026-03-08T06:30", 2) == [
        "2026-03-08T07:00",
        "2026-03-09T06:30",
    ]
    assert following("30 2 8 3 *", "America/New_York", "2026-03-08T00:00", 2) == [
        "2026-03-08T07:00",
        "2027-03-08T07:30",
    ]
    assert following("*/5 2 * * *", "America/New_York", "2026-03-08T06:58", 1) == ["2026-03-09T06:00"]


def test_s15_two_in_the_gap_is_one_tick() -> None:
    assert cron("0 2 * * *", "America/New_York").count_between(at("2019-03-10T00:00"), at("2019-03-11T00:00")) == 1


def test_s16_the_hosts_zone_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ["2025-10-26T00:30", "2025-10-26T01:30", "2025-10-26T02:30"]
    for host in ("Europe/London", "Asia/Tokyo", "UTC"):
        monkeypatch.setenv("TZ", host)
        time.tzset()
        assert following("30 0-23 * * *", "UTC", "2025-10-26T00:00", 3) == expected
    monkeypatch.delenv("TZ")
    time.tzset()


def test_s17_a_weekly_time_is_found_over_the_23_hour_sunday() -> None:
    assert following("0 12 * * 0", "Europe/Berlin", "2022-03-24T11:00", 2) == ["2022-03-27T10:00", "2022-04-03T10:00"]
    assert following("0 0 * * */2", "UTC", "2026-01-02T00:00", 4) == [
        "2026-01-03T00:00",
        "2026-01-04T00:00",
        "2026-01-06T00:00",
        "2026-01-08T00:00",
    ]


def test_s18_a_day_without_midnight_is_not_lost() -> None:
    assert following("0 1 4 11 *", "America/Sao_Paulo", "2018-11-04T02:00", 1) == ["2018-11-04T03:00"]
    assert following("*/15 1 4 11 *", "America/Sao_Paulo", "2018-10-01T00:00", 2) == [
        "2018-11-04T03:00",
        "2018-11-04T03:15",
    ]
    assert following("0 0 4 11 *", "America/Sao_Paulo", "2018-10-01T00:00", 1) == ["2018-11-04T03:00"]
    assert following("30 1 26 4 *", "Africa/Cairo", "2024-04-01T00:00", 1) == ["2024-04-25T22:30"]


def test_s19_summer_time_that_starts_at_midnight_terminates() -> None:
    assert following("0 6 * * *", "America/Santiago", "2018-08-11T00:00", 3) == [
        "2018-08-11T10:00",
        "2018-08-12T09:00",
        "2018-08-13T09:00",
    ]


def test_s20_the_25_hour_day_has_each_fixed_time_once() -> None:
    assert following("5 0 * * *", "Europe/Paris", "2022-10-29T12:00", 2) == ["2022-10-29T22:05", "2022-10-30T23:05"]
    assert following("0 30 2 * * *", "Europe/Zurich", "2022-10-29T12:00", 2) == ["2022-10-30T00:30", "2022-10-31T01:30"]


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 11 *", "0 0 30 FEB ?", "0 0 31 4,6,9,11 *"])
def test_s21_one_line_that_never_fires_is_refused_at_once(text: str) -> None:
    at_once(lambda: refuse_as_never_firing(text))


def test_s22_sparse_dates_are_found_backward_as_well() -> None:
    assert preceding("0 0 29 2 *", "UTC", "2021-12-07T00:00", 2) == ["2020-02-29T00:00", "2016-02-29T00:00"]
    assert preceding("0 0 29 2 *", "UTC", "2103-01-01T00:00", 1) == ["2096-02-29T00:00"]
    assert preceding("0 0 * 2 MON#5", "UTC", "2112-02-28T00:00", 1) == ["2072-02-29T00:00"]
    assert preceding("0 0 1 2 *", "UTC", "2021-12-07T00:00", 1) == ["2021-02-01T00:00"]


def test_s23_an_unbounded_schedule_never_ends_after_a_gap() -> None:
    assert following("30 2 * * SUN", "Europe/Rome", "2025-03-29T00:00", 3) == [
        "2025-03-30T01:00",
        "2025-04-06T00:30",
        "2025-04-13T00:30",
    ]
    assert len(following("30 2 L 3 *", "Europe/Rome", "2025-01-01T00:00", 50)) == 50


def test_s24_previous_then_next_comes_back_to_the_same_tick() -> None:
    for text in ("0 7,21 * * 3,5", "0 10 * * 1,3,5", "0 0 * * 7L", "1,3,5 * * * *"):
        tick = following(text, "UTC", "2020-08-14T21:00", 3)[-1]
        assert following(text, "UTC", preceding(text, "UTC", tick, 1)[0], 1) == [tick]
        assert CronExpression.parse(text).text == text, "kept as written, not printed back as something else"


def test_s25_the_last_workday_and_midnight_after_the_change() -> None:
    assert following("0 0 LW * *", "UTC", "2025-05-01T00:00", 4) == [
        "2025-05-30T00:00",
        "2025-06-30T00:00",
        "2025-07-31T00:00",
        "2025-08-29T00:00",
    ]
    assert following("0 0 * * *", "Europe/Prague", "2025-03-29T12:00", 2) == ["2025-03-29T23:00", "2025-03-30T22:00"]


def test_s26_a_minutely_job_is_not_silent_in_the_repeated_hour() -> None:
    assert cron("* * * * *", "Europe/Berlin").count_between(at("2023-10-29T00:00"), at("2023-10-29T03:00")) == 180
    assert following("* * * * *", "Europe/Berlin", "2023-10-29T00:58", 3) == [
        "2023-10-29T00:59",
        "2023-10-29T01:00",
        "2023-10-29T01:01",
    ]


def test_s27_a_secondly_job_has_no_hole_at_the_overlap() -> None:
    ticks = list(cron("* * * * * *", "Europe/Vienna").between(at("2025-10-26T00:59:00"), at("2025-10-26T01:01:00")))
    assert ticks == [at("2025-10-26T00:59:00") + timedelta(seconds=n) for n in range(1, 121)]


def test_s28_a_step_counts_from_the_start_of_its_range() -> None:
    assert following("0 0 */3 * *", "UTC", "2025-01-30T00:00", 3) == [
        "2025-01-31T00:00",
        "2025-02-01T00:00",
        "2025-02-04T00:00",
    ]
    assert following("0 0 * * 1-7/2", "UTC", "2025-01-01T00:00", 4) == [
        "2025-01-03T00:00",
        "2025-01-05T00:00",
        "2025-01-06T00:00",
        "2025-01-08T00:00",
    ]
    assert following("7-59/20 * * * *", "UTC", "2025-01-01T00:00", 4) == [
        "2025-01-01T00:07",
        "2025-01-01T00:27",
        "2025-01-01T00:47",
        "2025-01-01T01:07",
    ]


def test_s29_time_goes_on_after_2038() -> None:
    assert following("* * * * *", "UTC", "2038-01-19T03:14", 2) == ["2038-01-19T03:15", "2038-01-19T03:16"]
    assert following("0 0 19 1 *", "UTC", "2037-06-01T00:00", 2) == ["2038-01-19T00:00", "2039-01-19T00:00"]
    assert following("0 12 * * *", "America/New_York", "2040-07-01T00:00", 1) == ["2040-07-01T16:00"]
    assert following("30 2 * * SUN", "Europe/Berlin", "2150-03-28T00:00", 2) == ["2150-03-29T01:00", "2150-04-05T00:30"]
    assert following("0 0 1 1 *", "Europe/Berlin", "2199-06-01T00:00", 2) == ["2199-12-31T23:00", "2200-12-31T23:00"]


def test_s30_whether_an_expression_is_valid_does_not_depend_on_the_day() -> None:
    assert "now" not in CronExpression.parse.__code__.co_names
    for start in ("2026-03-28T12:00", "2026-03-29T01:00", "2026-10-25T00:30", "2026-07-01T00:00"):
        assert following("0 2 * * *", "Europe/Berlin", start, 1)


def test_s31_a_daily_time_has_no_48_hour_hole_in_spring_and_no_double_in_autumn() -> None:
    for text in ("30 1 * * *", "30 2 * * *", "0 3 * * *"):
        ticks = list(cron(text, "America/New_York").between(at("2025-01-01T05:00"), at("2026-01-01T05:00")))
        assert len(ticks) == 365
        gaps = [later - earlier for earlier, later in pairwise(ticks)]
        assert max(gaps) <= timedelta(hours=25)
        assert min(gaps) >= timedelta(hours=22, minutes=30)


def test_s32_next_is_reckoned_from_the_tick_and_not_from_a_clock_that_is_early() -> None:
    schedule, tick = cron("0 * * * *"), at("2026-01-01T10:00")
    woken_early = tick - timedelta(seconds=7)
    assert schedule.next_after(woken_early) == tick, "asking by the clock repeats the tick"
    assert schedule.next_after(tick) == tick + timedelta(hours=1), "asking by the last decided tick does not"


def test_what_is_evenly_spaced_includes_the_instant_it_is_asked_from() -> None:
    for text in ("* * * * * *", "*/5 * * * *", "17 * * * *", "0 */6 * * *", "0 2 * * *"):
        schedule = cron(text)
        tick = schedule.next_after(at("2026-01-01T00:00"))
        assert tick is not None
        assert schedule.next_after(tick - timedelta(seconds=1)) == tick
        assert schedule.next_after(tick - timedelta(microseconds=1)) == tick
        assert schedule.previous_before(tick + timedelta(microseconds=1)) == tick
