"""What can never fire is refused where it is asked for, in bounded work; what is merely sparse is not."""

from functools import partial
from typing import Any

import pytest

from sexton.errors import InvalidSchedule
from sexton.schedule_specs import firing_schedule_from_spec, schedule_from_spec
from sexton.schedules import Schedule
from tests.support.effort import with_lines_run

BERLIN = "Europe/Berlin"
LONG = 1_000_000  # lines of Python run; a search through the minutes of a hundred years would run a thousand times that


def spec(*parts: dict[str, Any] | str, zone: str = BERLIN, gap: str = "shift", **keys: Any) -> dict[str, Any]:
    named = [{"cron": part} if isinstance(part, str) else part for part in parts]
    exclude = {
        "dates": keys.pop("dates", []),
        "weekdays": keys.pop("weekdays", []),
        "holidays": keys.pop("holidays", []),
    }
    dst = {"gap": gap, "overlap": "first"}
    return {"parts": named, "timezone": zone, **({} if gap == "shift" else {"dst": dst}), "exclude": exclude, **keys}


def calendar(unit: str, every: int, start: str, at: str = "02:30:00", month_end: str = "clamp") -> dict[str, Any]:
    return {"calendar": {unit: every}, "at": at, "start": start, "month_end": month_end}


A_WEEK = {"every_ms": 7 * 86_400_000, "anchor": "1970-01-01T00:00:00Z"}  # Thursdays
NEVER = {
    "the last Sunday's gap": (spec("30 2 * 3 0L", gap="skip"), "dst skips those"),
    "a gap that came with a law": (spec("30 2 * 3 SUN#2", zone="America/New_York", gap="skip"), "dst skips those"),
    "all weekdays": (spec("* * * * *", weekdays=[0, 1, 2, 3, 4, 5, 6]), "exclude names"),
    "its own weekday": (spec("0 12 * * MON", weekdays=[1]), "exclude names"),
    "weekly in UTC": (spec(A_WEEK, zone="UTC", weekdays=[4]), "exclude names"),
    "weekly by the calendar": (spec(calendar("weeks", 1, "2024-02-29"), weekdays=[4]), "exclude names"),
    "Christmas": (spec("0 12 25 12 *", holidays=["DE"]), "exclude names"),
    "an instant on an excluded date": (spec({"at": ["2026-12-24T18:00:00Z"]}, dates=["2026-12-24"]), "exclude names"),
    "a leap day in a common year": (
        spec("0 12 29 2 *", start="2026-01-01T00:00:00Z", end="2028-01-01T00:00:00Z"),
        "between its start 2026-01-01T00:00:00Z and its end",
    ),
    "before a calendar begins": (spec(calendar("days", 1, "2026-05-01"), end="2026-05-01T00:00:00Z"), "its end"),
    "after the last instant": (spec({"at": ["2026-12-24T18:00:00Z"]}, start="2027-01-01T00:00:00Z"), "from its start"),
    "the end cuts off what exclude leaves": (
        spec("0 12 * * MON,TUE", weekdays=[1], start="2026-06-01T00:00:00Z", end="2026-06-02T00:00:00Z"),
        "exclude names",
    ),
}
SPARSE = {
    "a leap day on a Monday": spec("0 12 29 2 *", weekdays=[0, 2, 3, 4, 5, 6]),
    "the fifth Monday of a February": spec("0 0 * 2 MON#5"),
    "a Saturday that the clock moves into Sunday": spec("30 23 * * SAT", zone="America/Scoresbysund", weekdays=[6]),
    "a Sunday night outside the gap": spec("30 2 * 3 SUN", gap="skip"),
    "weekly, which summer time moves into the next day": spec(
        A_WEEK | {"anchor": "1970-01-01T22:30:00Z"}, weekdays=[4]
    ),
    "weekly less a minute, which leaves its day after years": spec(
        {"every_ms": 7 * 86_400_000 - 60_000, "anchor": "2026-01-01T23:59:00Z"}, zone="UTC", weekdays=[4]
    ),
    "Boxing Day and Christmas": spec("0 12 24,25 12 *", holidays=["DE"]),
    "what is over": spec("0 12 * * *", end="2021-01-01T00:00:00Z"),
    "instants that are over": spec({"at": ["2021-12-24T18:00:00Z"]}),
    "a leap day by the calendar, skipped elsewhere": spec(
        calendar("years", 1, "2024-02-29", month_end="skip"), weekdays=[0, 1, 2, 3, 4, 5]
    ),
    "one part that can": spec("0 12 * * MON", "0 12 * * TUE", weekdays=[1]),
}


def asked(given: dict[str, Any]) -> Schedule | str:
    try:
        return firing_schedule_from_spec(given)
    except InvalidSchedule as refusal:
        return str(refusal)


@pytest.mark.parametrize("name", NEVER)
def test_what_can_never_fire_is_refused_with_the_key_that_is_to_blame(name: str) -> None:
    given, says = NEVER[name]
    answer, lines = with_lines_run(partial(asked, given))
    assert isinstance(answer, str)
    assert says in answer
    assert "has no tick" in answer
    assert ";" in answer, "and what to do"
    assert lines < LONG


@pytest.mark.parametrize("name", SPARSE)
def test_what_fires_seldom_is_not_refused(name: str) -> None:
    answer, lines = with_lines_run(partial(asked, SPARSE[name]))
    assert not isinstance(answer, str), answer
    assert lines < LONG


def test_what_is_stored_is_read_whether_or_not_it_will_fire() -> None:
    for given, _ in NEVER.values():
        schedule_from_spec(given)
