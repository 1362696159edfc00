"""Cron schedules against brute force: random expressions, zones, and starts around the changes of their clocks."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import EverySchedule, Schedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.wall_clock_ticks import GapRule, OverlapRule
from sexton.zone_clock import clock_of
from sexton.zones import load_zone, zone_names
from tests.support.cron_oracle import SECOND, Oracle

FIRST, LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
ODD_ZONES = [
    "Africa/Cairo",  # midnight
    "Africa/Casablanca",  # four changes a year
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "Antarctica/Troll",  # two hours
    "Asia/Pyongyang",
    "Australia/Lord_Howe",  # half an hour
    "Europe/Berlin",
    "Europe/Dublin",  # negative summer time
    "Pacific/Apia",  # a day that never was
    "Pacific/Kiritimati",
]
around = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much], derandomize=True)


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    step = st.integers(1, high - low + 1)
    ends = st.tuples(value, value).map(sorted)
    term = st.one_of(
        value.map(str),
        ends.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.builds("{0[0]}-{0[1]}/{1}".format, ends, step),
        st.builds("{}/{}".format, value, step),
    )
    every = st.one_of(st.just("*"), step.map(lambda n: f"*/{n}"))
    return st.one_of(every, term, st.lists(st.one_of(term, every), min_size=2, max_size=3).map(",".join))


DATES = st.one_of(
    st.sampled_from(["*", "*", "*", "?", "L", "LW", "1W", "15W,L", "31W", "*/2"]),
    st.integers(1, 30).map(lambda n: f"L-{n}"),
    numbers(1, 31),
)
MONTHS = st.one_of(st.sampled_from(["*", "*", "*", "JAN-mar,Oct", "2"]), numbers(1, 12))
WEEKDAY_TERMS = st.one_of(
    st.integers(0, 7).map(str),
    st.sampled_from(["MON-FRI", "sat", "1-7/2", "0-7/3", "5-7"]),
    st.builds("{}#{}".format, st.sampled_from(["MON", "0", "7", "3"]), st.integers(1, 5)),
    st.integers(0, 7).map(lambda n: f"{n}L"),
)
WEEKDAYS = st.one_of(
    st.sampled_from(["*", "*", "*", "?", "*/2", "*/3"]), st.lists(WEEKDAY_TERMS, min_size=1, max_size=2).map(",".join)
)
FIVE_FIELDS = st.tuples(numbers(0, 59), numbers(0, 23), DATES, MONTHS, WEEKDAYS).filter(
    lambda fields: (fields[2], fields[4]) != ("?", "?")
)
EXPRESSIONS = FIVE_FIELDS.map(" ".join)
OFTEN = st.one_of(EXPRESSIONS, st.tuples(numbers(0, 59), numbers(0, 23)).map(lambda two: f"{two[0]} {two[1]} * * *"))
ZONES = st.one_of(st.sampled_from(ODD_ZONES), st.sampled_from(sorted(zone_names())))


@st.composite
def windows(draw: st.DrawFn, hours: int = 30) -> tuple[str, datetime, datetime]:
    """(zone, after, upto) around one of the zone's changes from 1990 to 2040."""
    zone = draw(ZONES)
    changes = clock_of(zone).changes_between(int(FIRST.timestamp()), int(LAST.timestamp()))
    middle = (
        datetime.fromtimestamp(draw(st.sampled_from(changes))[0], UTC) if changes else datetime(2026, 3, 1, tzinfo=UTC)
    )
    ends = st.timedeltas(timedelta(0), timedelta(hours=hours))
    return zone, middle - draw(ends), middle + draw(ends)


def refusal_of(text: str) -> str | None:
    try:
        CronExpression.parse(text)
    except InvalidSchedule as refusal:
        return str(refusal)
    return None


def schedule_of(text: str, zone: str) -> CronSchedule:
    assume(refusal_of(text) is None)
    return CronSchedule(CronExpression.parse(text), zone)


def assert_all_questions_agree(schedule: Schedule, after: datetime, upto: datetime, ticks: list[datetime]) -> None:
    assert list(schedule.between(after, upto)) == ticks
    assert schedule.newest_between(after, upto, len(ticks) + 1) == ticks
    assert schedule.newest_between(after, upto, 2) == ticks[-2:]
    assert schedule.count_between(after, upto) == len(ticks)
    assert schedule.count_between(after, upto, limit=3) == min(len(ticks), 3)
    assert all(schedule.contains(tick) for tick in ticks[:20])
    assert not ticks or ticks[0] == schedule.next_after(after)
    assert not ticks or schedule.previous_before(ticks[-1] + timedelta(microseconds=1)) == ticks[-1]
    following, preceding = schedule.next_after(upto), schedule.previous_before(after)
    assert following is None or following > upto
    assert preceding is None or preceding < after


@settings(around, max_examples=45)
@given(OFTEN, windows())
@example(
    "30 2 * * *", ("Europe/Berlin", datetime(2026, 3, 28, 5, 0, 0, 1, tzinfo=UTC), datetime(2026, 3, 29, 5, tzinfo=UTC))
)
@example(
    "* * * * *", ("Antarctica/Troll", datetime(2025, 10, 25, 5, tzinfo=UTC), datetime(2025, 10, 26, 9, tzinfo=UTC))
)
@example("0 0 30 * *", ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC), datetime(2011, 12, 31, tzinfo=UTC)))
def test_ticks_are_those_of_a_clock_on_the_wall(text: str, window: tuple[str, datetime, datetime]) -> None:
    zone, after, upto = window
    schedule, oracle = schedule_of(text, zone), Oracle(text)
    ticks = oracle.walk(load_zone(zone), after, upto)
    assert oracle.map_readings(load_zone(zone), after, upto) == ticks, "the two oracles must agree before they judge"
    assert_all_questions_agree(schedule, after, upto, ticks)


FIXED_TIMES = st.tuples(st.integers(0, 59), st.sampled_from(["0", "1", "2", "0-3", "23", "0-23"])).map(
    lambda two: f"{two[0]} {two[1]} * * *"
)


@settings(around, max_examples=40)
@given(
    st.one_of(FIXED_TIMES, EXPRESSIONS),
    windows(),
    st.sampled_from(GapRule),
    st.sampled_from(["first", "second", "both"]),
)
@example(
    "30 2 * * *",
    ("Europe/Berlin", datetime(2026, 10, 24, 5, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC)),
    GapRule.SHIFT,
    "second",
)
@example(
    "30 2 * * *",
    ("Europe/Berlin", datetime(2026, 3, 28, 5, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)),
    GapRule.SKIP,
    "both",
)
def test_a_job_s_own_choice_for_changed_clocks_is_kept(
    text: str, window: tuple[str, datetime, datetime], gap: GapRule, overlap: str
) -> None:
    zone, after, upto = window
    cron = schedule_of(text, zone).cron
    assume(not cron.follows_elapsed_time)
    schedule = CronSchedule(cron, zone, gap, OverlapRule(overlap))
    ticks = Oracle(text).walk(load_zone(zone), after, upto, gap=gap, overlap=overlap)
    assert_all_questions_agree(schedule, after, upto, ticks)
    both = UnionSchedule((schedule, CronSchedule(CronExpression.parse("17 * * * *"), zone)))
    hourly = Oracle("17 * * * *").walk(load_zone(zone), after, upto)
    assert_all_questions_agree(both, after, upto, sorted({*ticks, *hourly}))


@settings(around, max_examples=8)
@given(numbers(0, 59), OFTEN, windows(hours=2))
def test_seconds_follow_the_same_rules(second: str, text: str, window: tuple[str, datetime, datetime]) -> None:
    zone, after, upto = window
    text = f"{second} {text}"
    oracle = Oracle(text)
    ticks = oracle.walk(load_zone(zone), after, upto, SECOND)
    assert_all_questions_agree(schedule_of(text, zone), after, upto, ticks)


@settings(around, max_examples=20)
@given(st.lists(OFTEN, min_size=2, max_size=4), windows(hours=12))
def test_several_parts_are_one_set_of_ticks(texts: list[str], window: tuple[str, datetime, datetime]) -> None:
    zone, after, upto = window
    union = UnionSchedule(tuple(schedule_of(text, zone) for text in texts))
    ticks = {tick for text in texts for tick in Oracle(text).map_readings(load_zone(zone), after, upto)}
    assert_all_questions_agree(union, after, upto, sorted(ticks))


INTERVALS = st.builds(
    lambda interval, anchor: EverySchedule(timedelta(milliseconds=interval), FIRST + timedelta(milliseconds=anchor)),
    st.sampled_from([1_001, 1_250, 1_500, 7_000, 11_500, 60_000, 86_399_000, 90_000_500, 172_800_000])
    | st.integers(1_000, 10_000),
    st.sampled_from([0, 500, 1_000]) | st.integers(-100_000, 100_000),
)


@settings(around, max_examples=30)
@given(
    st.lists(st.sampled_from(["* * * * * *", "*/5 * * * * *", "7 */2 2 * * *", "*/9 * * * *"]), max_size=2),
    st.lists(INTERVALS, min_size=1, max_size=12),
    windows(hours=1),
)
def test_crons_and_intervals_are_counted_as_they_are_listed(
    texts: list[str], intervals: list[EverySchedule], window: tuple[str, datetime, datetime]
) -> None:
    zone, after, upto = window
    parts = (*(schedule_of(text, zone) for text in texts), *intervals)
    upto = min(upto, after + timedelta(hours=4))
    listed = {tick for part in parts for tick in part.between(after, upto)}
    assert UnionSchedule(parts).count_between(after, upto) == len(listed)


@settings(around, max_examples=40)
@given(EXPRESSIONS)
def test_refused_as_never_firing_if_and_only_if_no_day_of_any_year_matches(text: str) -> None:
    refusal = refusal_of(text)
    assert refusal is None or "never fires" in refusal
    assert (refusal is None) == Oracle(text).ever_matches()


@settings(around, max_examples=40)
@given(FIVE_FIELDS, ZONES, st.datetimes(datetime(1930, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  Hypothesis wants them naive
def test_next_and_previous_are_inverse_and_strictly_monotonic_over_decades(
    fields: tuple[str, ...], zone: str, start: datetime
) -> None:
    schedule = schedule_of(" ".join(fields), zone)
    ticks, tick = [], start
    for _ in range(12):
        following = schedule.next_after(tick)
        assert following is not None, "an expression that can match always matches again"
        assert following > tick
        assert following.microsecond == 0
        ticks.append(tick := following)
    assert schedule.count_between(start, tick) == 12
    backward = [tick := before for _ in ticks[1:] if (before := schedule.previous_before(tick)) is not None]
    assert backward[::-1] == ticks[:-1]
    before_start = schedule.previous_before(start)
    assert before_start is None or before_start < start
    assert schedule.count_between(ticks[0], ticks[-1]) == 11


@settings(around, max_examples=22)
@given(FIVE_FIELDS, st.dates(datetime(1950, 1, 1).date(), datetime(2120, 1, 1).date()))  # noqa: DTZ001  a date has no zone
def test_days_are_those_that_a_calendar_shows(fields: tuple[str, ...], start: datetime) -> None:
    text = " ".join(("0", "12", *fields[2:]))
    schedule, oracle = schedule_of(text, "UTC"), Oracle(text)
    noon = datetime(start.year, start.month, start.day, 12, tzinfo=UTC)
    days = [noon + timedelta(days=n) for n in range(1, 800)]
    expected = [day for day in days if oracle.day_matches(day.date())]
    assert_all_questions_agree(schedule, noon, days[-1], expected)


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),  # jumps 44 min 30 s
        ("Europe/Brussels", "1892-05-01T00:00:00Z"),  # repeats 17 min 30 s
        ("America/New_York", "1883-11-18T17:00:00Z"),  # repeats 3 min 58 s
        ("Asia/Singapore", "1905-05-31T17:04:35Z"),  # jumps 4 min 35 s
        ("America/Juneau", "1867-10-19T00:31:13Z"),  # Alaska lived a day twice
    ],
)
@pytest.mark.parametrize("text", ["*/7 * * * *", "*/3 0-23 * * *", "30 */5 0-23 * * *"])
def test_changes_at_odd_seconds_are_exact(zone: str, change: str, text: str) -> None:
    middle = datetime.fromisoformat(change)
    after, upto = middle - timedelta(minutes=50), middle + timedelta(minutes=70)
    ticks = Oracle(text).walk(load_zone(zone), after, upto, SECOND)
    assert_all_questions_agree(CronSchedule(CronExpression.parse(text), zone), after, upto, ticks)
