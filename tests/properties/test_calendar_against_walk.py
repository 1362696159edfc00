"""Calendar intervals and excluded days against a walk through every day."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sexton.calendar_readings import CalendarReadings, CalendarUnit, MonthEnd
from sexton.cron_expression import CronExpression
from sexton.excluded_days import ExcludedDays, ExcludedSchedule
from sexton.schedules import EverySchedule, Schedule
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import GapRule, OverlapRule
from sexton.zones import load_zone

DAY, MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "America/Havana", "Pacific/Apia", "Australia/Lord_Howe"]
exact = settings(deadline=None, derandomize=True)
DATES = st.one_of(
    st.dates(date(1999, 1, 1), date(2032, 12, 31)),
    st.sampled_from([date(2000, 2, 29), date(2026, 1, 31), date(2023, 8, 30), date(2024, 2, 29)]),
)


def dates_of(unit: str, every: int, start: date, month_end: str, upto: date) -> list[date]:
    """By walking the days: is this one a whole number of steps from the start?"""
    found, day = [], start
    while day <= upto:
        months = (day.year - start.year) * 12 + day.month - start.month
        last = (day.replace(day=28) + 4 * DAY).replace(day=1) - DAY
        in_its_month = day.day == start.day or (month_end == "clamp" and day == last and day.day < start.day)
        is_due = {
            "days": (day - start).days % every == 0,
            "weeks": (day - start).days % (7 * every) == 0,
            "months": in_its_month and months % every == 0,
            "years": in_its_month and months % (12 * every) == 0,
        }
        if is_due[unit]:
            found.append(day)
        day += DAY
    return found


def assert_all_questions_agree(schedule: Schedule, after: datetime, upto: datetime, ticks: list[datetime]) -> None:
    assert list(schedule.between(after, upto)) == ticks
    assert schedule.newest_between(after, upto, len(ticks) + 1) == ticks
    assert schedule.count_between(after, upto) == len(ticks)
    assert schedule.count_between(after, upto, limit=2) == min(len(ticks), 2)
    assert all(schedule.contains(tick) for tick in ticks[:20])
    assert all(not schedule.contains(tick + timedelta(seconds=1)) for tick in ticks[:20])
    for earlier, later in pairwise(ticks):
        assert schedule.next_after(earlier) == later
        assert schedule.previous_before(later) == earlier


@settings(exact, max_examples=110)
@given(
    st.sampled_from(CalendarUnit), st.integers(1, 40), DATES, st.integers(0, 86_399), st.sampled_from(MonthEnd), DATES
)
@example(CalendarUnit.MONTHS, 1, date(2026, 1, 31), 9_000, MonthEnd.SKIP, date(2026, 1, 1))
@example(CalendarUnit.MONTHS, 1, date(2026, 1, 31), 9_000, MonthEnd.CLAMP, date(2026, 1, 1))
@example(CalendarUnit.YEARS, 1, date(2000, 2, 29), 0, MonthEnd.SKIP, date(2001, 1, 1))
@example(CalendarUnit.YEARS, 4, date(2096, 2, 29), 0, MonthEnd.CLAMP, date(2095, 1, 1))
def test_the_dates_of_a_calendar_interval(
    unit: CalendarUnit, every: int, start: date, time: int, month_end: MonthEnd, around: date
) -> None:
    schedule = CalendarSchedule(CalendarReadings(unit, every, start, time, month_end), "UTC")
    after = datetime(around.year, around.month, around.day, 11, tzinfo=UTC)
    upto = after + timedelta(days=2_500)
    due = [
        datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=time)
        for day in dates_of(unit, every, start, month_end, upto.date())
    ]
    assert_all_questions_agree(schedule, after, upto, [tick for tick in due if after < tick <= upto])


@settings(exact, max_examples=60)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(GapRule),
    st.sampled_from(OverlapRule),
    st.integers(0, 5 * 3600),
    st.dates(date(2006, 1, 1), date(2012, 1, 1)),
)
def test_a_calendar_time_meets_changed_clocks_as_the_same_cron_time_does(
    zone: str, gap: GapRule, overlap: OverlapRule, time: int, start: date
) -> None:
    readings = CalendarReadings(CalendarUnit.DAYS, 1, start, time)
    minute, second = divmod(time, 60)
    cron = CronExpression.parse(f"{second} {minute % 60} {minute // 60} * * ?")
    after = datetime(start.year, start.month, start.day, tzinfo=UTC) + 3 * DAY
    ticks = list(CronSchedule(cron, zone, gap, overlap).between(after, after + 400 * DAY))
    assert_all_questions_agree(CalendarSchedule(readings, zone, gap, overlap), after, after + 400 * DAY, ticks)


def test_a_calendar_that_begins_in_a_repeated_hour_has_its_first_showing_before_its_second() -> None:
    readings = CalendarReadings(CalendarUnit.DAYS, 1, date(2029, 10, 28), 2 * 3600 + 59)
    schedule = CalendarSchedule(readings, "Europe/Berlin", GapRule.SHIFT, OverlapRule.BOTH)
    first = datetime(2029, 10, 28, 0, 0, 59, tzinfo=UTC)
    after, second = datetime(2029, 1, 1, tzinfo=UTC), first + timedelta(hours=1)
    assert_all_questions_agree(schedule, after, second, [first, second])
    assert schedule.previous_before(first) is None
    only_second = CalendarSchedule(readings, "Europe/Berlin", GapRule.SHIFT, OverlapRule.SECOND)
    assert_all_questions_agree(only_second, after, second, [second])


INNER: list[Schedule] = [
    CronSchedule(CronExpression.parse("*/20 * * * *"), "Europe/Berlin"),
    CronSchedule(CronExpression.parse("1 0,12,23 * * *"), "America/St_Johns"),
    EverySchedule(timedelta(minutes=47, milliseconds=300)),
]


@settings(exact, max_examples=70)
@given(
    st.sampled_from(INNER),
    st.sampled_from(ZONES),
    st.integers(0, 126),
    st.lists(st.integers(0, 20), max_size=4),
    st.sampled_from([(), ("DE-BE",), ("US", "CA-NL")]),
    st.datetimes(datetime(2006, 1, 1), datetime(2012, 12, 20), timezones=st.just(UTC)),  # noqa: DTZ001  the zone is apart
)
@example(INNER[1], "America/St_Johns", 1, [1], (), datetime(2008, 10, 30, tzinfo=UTC))
@example(INNER[0], "Pacific/Apia", 0, [3], (), datetime(2011, 12, 28, tzinfo=UTC))
def test_no_tick_falls_on_an_excluded_day_and_no_other_is_lost(
    inner: Schedule, zone: str, weekdays: int, offsets: list[int], regions: tuple[str, ...], after: datetime
) -> None:
    upto = after + timedelta(days=20)
    dates = frozenset((after + timedelta(days=offset)).date() for offset in offsets)
    days = ExcludedDays(dates, weekdays, regions)
    ticks = [tick for tick in inner.between(after, upto) if not is_excluded(tick, load_zone(zone), days)]
    assert_all_questions_agree(ExcludedSchedule(inner, zone, days), after, upto, ticks)


def is_excluded(tick: datetime, zone: ZoneInfo, days: ExcludedDays) -> bool:
    from sexton.public_holidays import is_holiday

    on = tick.astimezone(zone).date()
    by_weekday = days.weekdays >> on.isoweekday() % 7 & 1
    return bool(by_weekday) or on in days.dates or any(is_holiday(region, on) for region in days.regions)


def test_a_schedule_whose_every_tick_is_excluded_ends_its_search() -> None:
    minutely = CronSchedule(CronExpression.parse("* * * * *"), "Europe/Berlin")
    never = ExcludedSchedule(minutely, "Europe/Berlin", ExcludedDays(weekdays=0b1111111))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert never.next_after(now) is None
    assert never.previous_before(now) is None
    assert never.count_between(now, now + 30 * DAY) == 0
