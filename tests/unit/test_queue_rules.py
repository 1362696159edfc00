"""What a rule of a queue says, and what a rate admits: values in, values out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.errors import InvalidSetting
from sexton.queue_rules import (
    LEAST_RATE,
    OTHERS_WAIT,
    QueueRule,
    QueueStanding,
    admitted,
    next_after,
    rate_of,
    rate_text,
    slots_of,
    with_limits,
)

NOW = datetime(2026, 3, 29, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RATES = st.sampled_from([LEAST_RATE, 1 / 3600, 0.5, 1.0, 1.5, 3.0, 7.0, 10.0, 999.0, 100_000.0])


@pytest.mark.parametrize(
    ("text", "rate", "said"),
    [
        ("10/s", 10.0, "10/s"),
        ("10", 10.0, "10/s"),
        ("600/m", 10.0, "10/s"),
        ("20/m", 1 / 3, "20/m"),
        ("2.5/s", 2.5, "150/m"),
        ("30/h", 30 / 3600, "30/h"),
        ("1/d", LEAST_RATE, "1/d"),
    ],
)
def test_a_rate_is_said_in_the_smallest_unit_that_makes_it_whole(text: str, rate: float, said: str) -> None:
    assert rate_of(text) == pytest.approx(rate)
    assert rate_text(rate) == said
    assert rate_of(said) == pytest.approx(rate)


@given(st.floats(LEAST_RATE, 100_000))
def test_a_rate_that_was_said_is_read_back(rate: float) -> None:
    assert rate_of(rate_text(rate)) == pytest.approx(rate, rel=1e-5)


@pytest.mark.parametrize(
    "text", ["", "0", "0/s", "-1/s", "ten", "10/x", "1e9", "0.1/d", "200000/s", "nan", "inf", "10 /s"]
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="rate"):
        rate_of(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "x", "100001", "9" * 30, "None"])
def test_what_is_no_number_of_slots_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="slots"):
        slots_of(text)


def test_what_is_not_named_stays_and_a_rule_without_limits_is_none() -> None:
    both = with_limits(QueueRule(3), {"rate": "10/s"})
    assert both == QueueRule(3, 10.0)
    assert with_limits(both, {"slots": "none"}) == QueueRule(None, 10.0)
    assert not with_limits(both, {"slots": "none", "rate": "none"})


@given(RATES, st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 500)), min_size=1, max_size=60))
def test_no_stretch_holds_more_grants_than_the_rate_and_one_bucket(rate: float, looks: list[tuple[int, int]]) -> None:
    """Whenever workers look, and however many grants they ask for."""
    now, next_at = NOW, None
    grants: list[tuple[datetime, int]] = []
    for pause, asked in looks:
        now += timedelta(microseconds=pause)
        granted = min(asked, admitted(rate, next_at, now))
        if granted:
            next_at = next_after(rate, next_at, now, granted)
            grants.append((now, granted))
    bucket = max(rate, 1.0)
    for place, (began, _) in enumerate(grants):
        total = 0
        for at, granted in grants[place:]:
            total += granted
            assert total <= rate * (at - began).total_seconds() + bucket + 0.02 * len(grants) + 0.001 * rate


@given(RATES)
def test_an_idle_queue_holds_one_second_of_its_rate_and_at_least_one_grant(rate: float) -> None:
    long_ago = NOW - timedelta(days=1)
    assert admitted(rate, long_ago, NOW) == admitted(rate, None, NOW) == max(1, int(rate))
    assert next_after(rate, long_ago, NOW, max(1, int(rate))) > NOW
    assert admitted(rate, next_after(rate, long_ago, NOW, max(1, int(rate))), NOW) == 0


@given(RATES)
def test_grants_at_their_instants_lose_nothing_of_the_rate(rate: float) -> None:
    next_at = NOW
    for number in range(20):
        assert admitted(rate, next_at, next_at) == 1
        next_at = next_after(rate, next_at, next_at, 1)
        assert abs(next_at - NOW - (number + 1) / rate * SECOND) <= timedelta(microseconds=21), "rounded each time"


@given(RATES, st.integers(2, 10**6))
def test_a_clock_that_jumps_back_stops_no_queue_for_longer_than_one_grant_takes(rate: float, jump: int) -> None:
    next_at = next_after(rate, None, NOW, 1)
    after = NOW - timedelta(seconds=jump)
    if not admitted(rate, next_at, after):
        assert next_at - after <= SECOND / rate + SECOND
        return
    assert admitted(rate, next_at, after) == 1, "one grant, no bucket"
    gone_on = next_after(rate, next_at, after, 1)
    assert abs(gone_on - after - SECOND / rate) <= timedelta(microseconds=1)
    assert admitted(rate, gone_on, after) == 0


def test_a_clock_that_jumps_ahead_fills_one_bucket() -> None:
    next_at = next_after(10.0, None, NOW, 10)
    assert admitted(10.0, next_at, NOW + timedelta(days=400)) == 10


def standing(**columns: object) -> QueueStanding:
    values: dict[str, object] = {"name": "gpu", "rule": QueueRule(), "next_at": None, "running": 0, "seen_at": NOW}
    return QueueStanding(**(values | columns))  # type: ignore[arg-type]  # columns of one dataclass


def test_a_standing_admits_what_both_limits_leave() -> None:
    rule = QueueRule(5, 10.0)
    assert standing(rule=rule, running=2).admits == 3
    assert standing(rule=rule, running=7).admits == 0, "a limit lowered while runs are in flight"
    assert standing(rule=rule, next_at=NOW).admits == 1
    assert standing().admits is None
    assert standing().room(7) == 7


def test_a_worker_looks_again_when_the_rate_opens_and_another_one_a_moment_later() -> None:
    opens = NOW + SECOND / 2
    waiting = standing(rule=QueueRule(None, 1.0), next_at=opens, top=0)
    assert waiting.look_at(opens) == opens
    assert waiting.look_at(None) == opens + OTHERS_WAIT
    assert replace(waiting, seen_at=opens).look_at(None) is None, "it is open: who has room pulls"


def test_a_worker_is_told_of_slots_and_looks_for_what_becomes_available() -> None:
    full = standing(rule=QueueRule(1), running=1, top=0)
    assert full.look_at(None) is None
    later = standing(rule=QueueRule(None, 0.1), next_at=NOW + 5 * SECOND, ahead=NOW + SECOND)
    assert later.look_at(None) == NOW + 5 * SECOND
