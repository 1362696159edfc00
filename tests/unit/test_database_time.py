"""Database time from a local clock: what slow answers, drift and jumps do to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given as examples
from hypothesis import strategies as st

from sexton.clock import DatabaseTime, Wakeup

START = datetime(2027, 1, 1, tzinfo=UTC)


class HandClock:
    """A clock that stands where the test puts it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def elapsed(self) -> float:
        return self.at

    def wall(self) -> datetime:
        raise AssertionError("database time never asks for the wall clock")

    def wakeup(self) -> Wakeup:
        raise AssertionError("nobody waits here")

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        raise AssertionError("nobody waits here")


def read(time: DatabaseTime, clock: HandClock, truth: datetime, there: float, back: float) -> None:
    """One reading whose way there and back take that long; ``truth`` is the database's clock when it is asked."""
    asked = clock.at
    clock.at += there + back
    time.observe(truth + timedelta(seconds=there), asked, clock.at)


def error_of(time: DatabaseTime, clock: HandClock) -> float:
    """How far database time is from the truth, which began at START when the clock stood at 1000."""
    return (time.now() - START - timedelta(seconds=clock.at - 1000)).total_seconds()


def truth(clock: HandClock) -> datetime:
    return START + timedelta(seconds=clock.at - 1000)


def test_a_slow_answer_neither_moves_the_clock_nor_makes_a_good_one_after_it_a_jump() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    read(time, clock, truth(clock), 0.001, 0.001)
    read(time, clock, truth(clock), 0.001, 7.0)
    assert time.is_trusted
    assert abs(error_of(time, clock)) < 0.01
    read(time, clock, truth(clock), 0.001, 0.001)
    assert time.is_trusted


def test_a_first_answer_that_was_slow_is_mended_by_the_next() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    read(time, clock, truth(clock), 0.001, 9.0)
    assert abs(error_of(time, clock)) > 4
    read(time, clock, truth(clock), 0.001, 0.001)
    assert time.is_trusted
    assert abs(error_of(time, clock)) < 0.01


def test_drift_is_followed_and_a_jump_is_not() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    for drift in range(20):
        read(time, clock, truth(clock) + timedelta(seconds=drift), 0.001, 0.001)
    assert time.is_trusted
    assert abs(error_of(time, clock) - 19) < 0.01
    read(time, clock, truth(clock) + timedelta(seconds=22), 0.001, 0.001)
    assert not time.is_trusted
    assert time.jump is not None
    assert abs(time.jump.total_seconds() - 3) < 0.01
    time.accept(truth(clock) + timedelta(seconds=22), clock.at, clock.at)
    assert time.is_trusted
    assert abs(error_of(time, clock) - 22) < 0.01


def test_time_never_steps_back_while_it_is_trusted() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    read(time, clock, truth(clock), 0.001, 0.009)  # 4 ms ahead
    given = [time.now()]
    for _ in range(20):
        read(time, clock, truth(clock), 0.0005, 0.0005)
        given.append(time.now())
    assert given == sorted(given)
    assert abs(error_of(time, clock)) < 0.002
    read(time, clock, truth(clock) - timedelta(seconds=1), 0.0005, 0.0005)
    assert time.is_trusted
    assert time.now() >= given[-1]
    clock.at += 3
    assert abs(error_of(time, clock) + 1) < 0.002


def test_an_instant_of_the_past_keeps_the_time_that_held_then() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    read(time, clock, truth(clock), 0.001, 0.009)
    clock.at += 1
    then, was = clock.at, time.now()
    read(time, clock, truth(clock), 0.0005, 0.0005)
    clock.at += 600
    assert time.at(then) == was
    assert time.at(then + 0.0001) > was


@examples(
    st.lists(
        st.tuples(st.floats(0, 5), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(-1.9, 1.9)), min_size=1, max_size=30
    )
)
def test_whatever_the_readings_a_later_instant_is_never_an_earlier_one(
    readings: list[tuple[float, float, float, float]],
) -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    given: list[datetime] = []
    moments: list[float] = []
    for pause, there, back, error in readings:
        read(time, clock, truth(clock) + timedelta(seconds=error), there, back)
        for _ in range(2):
            given.append(time.now())
            moments.append(clock.at)
            clock.at += pause / 2
    assert given == sorted(given)
    again = [time.at(moment) for moment in moments]
    assert again == sorted(again)
