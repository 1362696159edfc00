"""When a clock that jumped is taken for the truth."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sexton_scheduler.core.clock_trust import ACCEPT_ALONE_AFTER, ClockTrust, Reading

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
OWN = Reading(HOUR, HOUR)
ZERO = Reading(timedelta(0))


def doubting(accepts: int = 5) -> ClockTrust:
    """A doubt that began at 100 s; ``accepts``: the number that came with the last reading before it."""
    trust = ClockTrust()
    assert not trust.saw(True, 99.0, accepts)
    assert trust.saw(False, 100.0, accepts)
    return trust


@pytest.mark.parametrize(
    ("elapsed", "accepts", "others", "reason"),
    [
        (101.0, 5, [], None),
        (101.0, 5, [Reading(HOUR + 2 * SECOND)], "a second node agrees"),
        (101.0, 5, [Reading(HOUR + 3 * SECOND), ZERO], None),
        (101.0, 5, [Reading(90 * SECOND, HOUR + 2 * SECOND)], "a second node agrees"),  # its host's clock is wrong
        (101.0, 5, [Reading(90 * SECOND, HOUR - 3 * SECOND)], None),
        (100.0 + ACCEPT_ALONE_AFTER, 5, [], "a lone node for 60 s"),
        (9999.0, 5, [ZERO], None),  # somebody disagrees: time alone settles nothing
        (101.0, 6, [ZERO], "an operator accepted it"),
        (101.0, 6, [], "an operator accepted it"),
    ],
)
def test_each_doubt_has_its_end(elapsed: float, accepts: int, others: list[Reading], reason: str | None) -> None:
    assert doubting().reason_to_accept(elapsed, accepts, OWN, others) == reason


def test_an_acceptance_before_the_doubt_ends_none() -> None:
    trust = doubting(accepts=5)
    assert trust.reason_to_accept(101.0, 5, OWN, [ZERO]) is None


def test_an_acceptance_between_the_jump_and_the_node_that_notices_it_late_counts() -> None:
    trust = ClockTrust()
    trust.saw(True, 99.0, 5)
    assert trust.saw(False, 100.0, 6)
    assert trust.reason_to_accept(100.0, 6, OWN, [ZERO]) == "an operator accepted it"


def test_a_clock_that_jumps_back_by_itself_is_doubted_no_more() -> None:
    trust = doubting()
    assert not trust.saw(True, 101.0, 5)
    assert not trust.is_in_doubt
    assert trust.reason_to_accept(9999.0, 9, OWN, []) is None
