"""What a plan says of ticks, against both schedules listed whole: nothing is lost, and nothing told twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sexton.jobfiles import plan_ticks
from sexton.jobfiles.plan_ticks import Firing, TickChange, change_of_ticks
from sexton.schedule_specs import schedule_from_spec

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia")
minutes = st.sampled_from(["0", "30", "*/20", "5,35", "59"])
hours = st.sampled_from(["*", "2", "*/6", "0,12", "23", "1-3"])
days = st.sampled_from(["* * *", "* * 1", "1 * *", "* * 1-5", "L * *", "* * SUN#2"])
EPOCH = "1970-01-01T00:00:00Z"


@st.composite
def firings(draw: st.DrawFn) -> Firing:
    zone = draw(st.sampled_from(ZONES))
    if draw(st.integers(0, 9)) == 0:
        return Firing(None, zone)
    if draw(st.integers(0, 4)) == 0:
        parts: list[dict[str, object]] = [{"every_ms": draw(st.integers(10, 5_000)) * 60_000, "anchor": EPOCH}]
    else:
        parts = [{"cron": f"{draw(minutes)} {draw(hours)} {draw(days)}"} for _ in range(draw(st.integers(1, 2)))]
    return Firing(schedule_from_spec({"parts": parts, "timezone": zone}), zone)


starts = st.integers(0, 6 * 366 * 24 * 60).map(
    lambda minutes: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)
windows = st.integers(1, 14 * 24).map(lambda hours: timedelta(hours=hours))


def listed(firing: Firing, since: datetime, until: datetime) -> set[datetime]:
    return set() if firing.schedule is None else set(firing.schedule.between(since, until))


@given(firings(), firings(), starts, windows)
def test_old_ticks_vanish_or_move_and_new_ones_appear_or_are_moved_to(
    before: Firing, after: Firing, since: datetime, window: timedelta
) -> None:
    until = since + window
    change = change_of_ticks(before, after, since, until, shown=10_000)
    old, new = listed(before, since, until), listed(after, since, until)
    assert (change.before, change.after, change.keep) == (len(old), len(new), len(old & new))
    assert change.until == until
    if not change.pairs_sought:
        assert (change.appear, change.vanish, change.move) == (len(new - old), len(old - new), 0)
        return
    moved_from = [pair.old for pair in change.moves]
    moved_to = [pair.new for pair in change.moves]
    gone = [*change.vanishing, *(tick for tick in moved_from if tick <= until)]
    come = [*change.appearing, *(tick for tick in moved_to if tick <= until)]
    assert sorted(gone) == sorted(old - new)
    assert sorted(come) == sorted(new - old)
    assert (len(change.appearing), len(change.vanishing), len(change.moves)) == (
        change.appear,
        change.vanish,
        change.move,
    )
    assert all(min(pair.old, pair.new) <= until and since < min(pair.old, pair.new) for pair in change.moves)


@given(firings(), firings(), starts, windows)
def test_counting_says_what_listing_says(before: Firing, after: Firing, since: datetime, window: timedelta) -> None:
    counted = _counted(before, after, since, since + window)
    old, new = listed(before, since, since + window), listed(after, since, since + window)
    assert (counted.appear, counted.vanish, counted.keep) == (len(new - old), len(old - new), len(old & new))
    assert set(counted.appearing) <= new - old
    assert set(counted.vanishing) <= old - new


def _counted(before: Firing, after: Firing, since: datetime, until: datetime) -> TickChange:
    return plan_ticks.counted(before.schedule, after.schedule, since, until, 3)
