"""Held ticks as values: which part is approved, how its gap's record is cut, and how long it takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sexton.claims import Overlap
from sexton.errors import Refused
from sexton.holds import ALL, APPROVED_AT_ONCE, HeldTick, HeldTicks, Pace, Part, in_start_order, runs_at_once
from sexton.job_rules import CatchUpOrder, ConcurrencyKey, FiringRules, MissedRules
from sexton.schedules import EverySchedule

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
MINUTELY = EverySchedule(MINUTE, NOON)


def gap(count: int, firing: FiringRules | None = None, said: int | None = None) -> HeldTicks:
    """``count`` minutely ticks from 12:01 on."""
    held = count if said is None else said
    return HeldTicks(firing or FiringRules(), held, NOON, NOON + count * MINUTE, schedule=MINUTELY)


def minutes(ticks: tuple[HeldTick, ...]) -> list[int]:
    return [(tick.scheduled_at - NOON) // MINUTE for tick in ticks]


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        (ALL, [1, 2, 3, 4]),
        (Part(newest=2), [3, 4]),
        (Part(newest=9), [1, 2, 3, 4]),
        (Part(begin=NOON + 2 * MINUTE, end=NOON + 4 * MINUTE), [2, 3]),
        (Part(begin=NOON + 2 * MINUTE + SECOND), [3, 4]),
        (Part(end=NOON + 2 * MINUTE), [1]),
    ],
)
def test_a_part_is_the_newest_or_from_an_instant_on_and_before_another(part: Part, numbers: list[int]) -> None:
    held = gap(4)
    assert minutes(held.chosen(part)) == numbers
    claims = HeldTicks(held.firing, 4, held.after, held.upto, claims=held.oldest(4))
    assert minutes(claims.chosen(part)) == numbers
    assert claims.gap_parts(claims.chosen(part)) == ()


def test_a_gap_s_record_is_cut_so_that_each_part_ends_at_a_tick_and_counts_its_own() -> None:
    held = gap(5)
    middle = held.chosen(Part(begin=NOON + 2 * MINUTE, end=NOON + 4 * MINUTE))
    cut = [((one.after - NOON) // MINUTE, (one.upto - NOON) // MINUTE, one.count) for one in held.gap_parts(middle)]
    assert cut == [(0, 1, 1), (1, 3, 2), (3, 5, 2)]
    assert [one.is_approved for one in held.gap_parts(middle)] == [False, True, False]
    assert len(held.gap_parts(held.chosen(ALL))) == 1


def test_ticks_that_are_not_those_that_were_held_are_refused() -> None:
    """Other zone data, another release."""
    with pytest.raises(Refused, match="7 ticks are held, and here 5 are computed"):
        gap(5, said=7).chosen(ALL)


def test_more_than_one_approval_takes_is_refused_and_a_part_of_it_is_not() -> None:
    held = gap(APPROVED_AT_ONCE + 1)
    with pytest.raises(Refused, match="more than 100,000 ticks at once"):
        held.chosen(ALL)
    assert len(held.chosen(Part(newest=3))) == 3


def test_the_order_of_starts_is_the_job_s() -> None:
    ticks = gap(3).oldest(3)
    assert minutes(in_start_order(ticks, FiringRules())) == [1, 2, 3]
    newest = FiringRules(missed=MissedRules(order=CatchUpOrder.NEWEST))
    assert minutes(in_start_order(ticks, newest)) == [3, 2, 1]


def test_as_many_run_at_once_as_the_job_has_slots_and_the_cluster_room() -> None:
    assert runs_at_once(FiringRules(), 10) == 1
    assert runs_at_once(FiringRules(overlap=Overlap.ALLOW), 10) == 10
    assert runs_at_once(FiringRules(concurrency=ConcurrencyKey("db", 3)), 10) == 3
    assert runs_at_once(FiringRules(concurrency=ConcurrencyKey("db", 30)), 10) == 10


def test_a_drain_is_bounded_by_the_budget_or_by_the_runs() -> None:
    pace = Pace(NOON, NOON, 2.0)
    assert pace.drain(10, 10, SECOND) == 5.5 * SECOND  # the last starts after 4.5 s
    assert pace.drain(10, 1, MINUTE) == 10 * MINUTE
    assert pace.drain(10, 4, MINUTE) == 3 * MINUTE
    assert Pace(NOON, NOON + MINUTE, 2.0).drain(1, 1, SECOND) == MINUTE + SECOND  # others drew on it before
    assert Pace(NOON, NOON - MINUTE, 2.0).drain(1, 1, SECOND) == SECOND
    assert pace.drain(10, 1, None) is None
