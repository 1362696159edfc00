"""What a change means in time: ticks that appear, vanish, move or stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sexton.job_rules import FiringRules
from sexton.jobfiles.plan_ticks import LISTED_AT_MOST, NOTHING, Firing, TickChange, change_of_ticks
from sexton.schedule_specs import schedule_from_spec

SINCE = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)  # a Sunday
WEEK = timedelta(days=7)
EPOCH = "1970-01-01T00:00:00Z"


def firing(*parts: str | dict[str, Any], zone: str = "UTC", jitter: int = 0, seed: str = "a", **spec: Any) -> Firing:
    whole = {"parts": [{"cron": part} if isinstance(part, str) else part for part in parts], "timezone": zone, **spec}
    return Firing(schedule_from_spec(whole), zone, FiringRules(jitter=timedelta(seconds=jitter), jitter_seed=seed))


def change(before: Firing, after: Firing, window: timedelta = WEEK, **more: Any) -> TickChange:
    return change_of_ticks(before, after, SINCE, SINCE + window, **more)


def numbers(change: TickChange) -> tuple[int, int, int, int]:
    return change.appear, change.vanish, change.move, change.keep


def at(day: int, hour: int, minute: int = 0, month: int = 12) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_a_new_job_s_ticks_appear_and_a_retired_job_s_vanish() -> None:
    daily = firing("0 2 * * *")
    come = change(NOTHING, daily)
    assert (numbers(come), come.appearing[0]) == ((7, 0, 0, 0), at(30, 2, month=11))
    gone = change(daily, NOTHING)
    assert (numbers(gone), gone.vanishing[-1]) == ((0, 7, 0, 0), at(2, 2))


def test_no_tick_of_the_past_and_none_at_the_very_start_is_in_it() -> None:
    at_noon = firing("0 12 * * *")
    assert change(NOTHING, at_noon).appearing[0] == SINCE + timedelta(days=1)
    assert change(NOTHING, at_noon).appear == 7  # the last at the window's end


def test_the_same_ticks_in_other_words_are_no_change() -> None:
    same = change(firing("*/15 * * * *"), firing({"every_ms": 900_000, "anchor": EPOCH}))
    assert same.is_none
    assert numbers(same) == (0, 0, 0, 672)


def test_another_time_of_day_moves_every_tick_and_loses_none_at_the_window_s_end() -> None:
    later = change(firing("0 2 * * *"), firing("30 3 * * *"))
    assert numbers(later) == (0, 0, 7, 0)
    assert [(pair.old, pair.new) for pair in later.moves][:1] == [(at(30, 2, month=11), at(30, 3, 30, 11))]
    assert later.shifts == (timedelta(minutes=90), timedelta(minutes=90))


def test_a_time_still_to_come_today_appears_because_today_s_tick_has_fired_already() -> None:
    later = change(firing("0 2 * * *"), firing("0 23 * * *"))
    assert (later.appear, later.appearing) == (1, (at(29, 23, month=11),))
    assert (later.vanish, later.move) == (0, 7)


def test_another_zone_moves_each_tick_on_its_own_local_date() -> None:
    moved = change(firing("0 2 * * *", zone="Europe/Berlin"), firing("0 2 * * *", zone="Asia/Tokyo"))
    assert (moved.move, moved.shifts) == (7, (timedelta(hours=-8), timedelta(hours=-8)))
    assert (moved.moves[0].old, moved.moves[0].new) == (at(30, 1, month=11), at(29, 17, month=11))


def test_a_zone_change_over_a_changed_clock_moves_by_two_lengths() -> None:
    since = datetime(2027, 3, 26, 12, tzinfo=UTC)
    moved = change_of_ticks(
        firing("0 5 * * *", zone="UTC"), firing("0 5 * * *", zone="Europe/Berlin"), since, since + WEEK
    )
    assert (moved.move, moved.shifts) == (7, (timedelta(hours=-2), timedelta(hours=-1)))


def test_rarer_ticks_move_where_they_stand_for_one_and_vanish_elsewhere() -> None:
    rarer = change(firing("0 2 * * *"), firing("0 3 * * 1"))
    assert numbers(rarer) == (0, 6, 1, 0)
    assert (rarer.moves[0].old, rarer.moves[0].new) == (at(30, 2, month=11), at(30, 3, month=11))


def test_another_weekday_moves_a_weekly_tick() -> None:
    moved = change(firing("0 2 * * 1"), firing("0 2 * * 3"))
    assert (numbers(moved), moved.shifts) == ((0, 0, 1, 0), (timedelta(days=2), timedelta(days=2)))


def test_ticks_more_than_half_a_period_apart_do_not_stand_for_each_other() -> None:
    moved = change(firing("0 2 1 * *"), firing("0 2 20 * *"), timedelta(days=25))
    assert numbers(moved) == (1, 1, 0, 0)


def test_the_nearest_old_tick_may_be_a_later_one() -> None:
    moved = change(firing("0 2 * * MON"), firing("0 2 * * FRI"))
    assert (numbers(moved), moved.shifts) == ((0, 1, 1, 0), (timedelta(days=-3), timedelta(days=-3)))


def test_two_a_day_become_one_and_the_nearest_moves() -> None:
    fewer = change(firing("0 0,12 * * *"), firing("0 1 * * *"))
    assert (fewer.move, fewer.vanish, fewer.appear) == (7, 7, 0)
    assert fewer.shifts == (timedelta(hours=1), timedelta(hours=1))


def test_a_single_instant_may_move_any_distance() -> None:
    old, new = firing({"at": ["2026-11-30T10:00:00Z"]}), firing({"at": ["2026-12-04T09:00:00Z"]})
    assert numbers(change(old, new)) == (0, 0, 1, 0)


def test_more_often_keeps_what_stays_and_adds_the_rest() -> None:
    assert numbers(change(firing("0 * * * *"), firing("0,30 * * * *"))) == (168, 0, 0, 168)


def test_an_excluded_day_vanishes() -> None:
    exclude = {"dates": ["2026-12-01"], "weekdays": [], "holidays": []}
    fewer = change(firing("0 2 * * *"), firing("0 2 * * *", exclude=exclude))
    assert (numbers(fewer), fewer.vanishing) == ((0, 1, 0, 6), (at(1, 2),))


class TestCounted:
    def test_a_minutely_job_is_counted_and_its_first_changes_named(self) -> None:
        rarer = change(firing("* * * * *"), firing("*/2 * * * *"))
        assert (numbers(rarer), rarer.pairs_sought) == ((0, 5040, 0, 5040), False)
        assert rarer.vanishing == (at(29, 12, 1, 11), at(29, 12, 3, 11), at(29, 12, 5, 11))
        assert not rarer.appearing

    def test_the_first_change_is_named_however_far_ahead_it_is(self) -> None:
        without_sundays = firing("* * * * *", exclude={"dates": [], "weekdays": [0], "holidays": []})
        more = change_of_ticks(without_sundays, firing("* * * * *"), at(30, 0, month=11), at(7, 0))
        assert (numbers(more), more.appearing[:2]) == ((1440, 0, 0, 8640), (at(6, 0), at(6, 0, 1)))

    def test_seconds_over_a_year_are_counted_by_arithmetic(self) -> None:
        year = timedelta(days=365)
        often = change(firing("* * * * * *"), firing("*/2 * * * * *"), year)
        assert often.before == 365 * 86_400
        assert numbers(often) == (0, 365 * 43_200, 0, 365 * 43_200)

    def test_a_minutely_job_in_another_zone_has_the_same_ticks(self) -> None:
        same = change(firing("* * * * *"), firing("* * * * *", zone="Asia/Tokyo"))
        assert numbers(same) == (0, 0, 0, 10_080)

    def test_where_comparing_is_too_much_an_earlier_end_is_told(self) -> None:
        days = {"dates": [], "weekdays": [0], "holidays": []}
        fewer = change(firing("* * * * * *"), firing("* * * * * *", exclude=days), timedelta(days=30))
        assert SINCE < fewer.until < SINCE + timedelta(days=30)
        assert fewer.before == fewer.keep + fewer.vanish

    def test_a_new_minutely_job_names_its_first_ticks(self) -> None:
        come = change(NOTHING, firing("* * * * *"))
        assert (come.appear, len(come.appearing)) == (10_080, 3)
        assert come.before == 0
        assert change(firing("* * * * *"), NOTHING).vanish == 10_080
        assert come.appear > LISTED_AT_MOST


class TestJitter:
    def test_a_tick_stays_and_is_available_later(self) -> None:
        after = firing("0 2 * * *", jitter=300)
        later = change(firing("0 2 * * *"), after)
        assert (numbers(later), later.has_other_jitter, later.is_none) == ((0, 0, 0, 7), True, False)
        assert [one.tick for one in later.delays] == [at(30, 2, month=11), at(1, 2), at(2, 2)]
        assert all(one.before == timedelta(0) for one in later.delays)
        assert [one.after for one in later.delays] == [after.rules.jitter_of(one.tick) for one in later.delays]

    def test_another_seed_gives_other_delays_only_where_there_is_jitter(self) -> None:
        assert change(firing("0 2 * * *", seed="a"), firing("0 2 * * *", seed="b")).is_none
        assert change(
            firing("0 2 * * *", jitter=60, seed="a"), firing("0 2 * * *", jitter=60, seed="b")
        ).has_other_jitter


@pytest.mark.parametrize("shown", [0, 1, 100])
def test_as_many_ticks_are_named_as_are_asked_for(shown: int) -> None:
    some = change(NOTHING, firing("0 2 * * *"), shown=shown)
    assert (some.appear, len(some.appearing)) == (7, min(shown, 7))
