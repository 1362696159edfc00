"""What the leader's heartbeat says of an outage of the database."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from structlog.testing import capture_logs

from sexton.errors import DatabaseUnreachable
from sexton.terms import Confirmation
from sexton_scheduler.heartbeat import HeartbeatLoop
from sexton_scheduler.node_state import Leading, NodeState
from tests.support.virtual_nodes import VirtualClock


class _Terms:
    """A database that is away while told so."""

    is_away = False
    is_current = True

    def beat(self, term: int, confirmation: Confirmation) -> bool:
        if self.is_away:
            raise DatabaseUnreachable("no answer")
        return self.is_current


def _loop() -> tuple[_Terms, VirtualClock, NodeState, HeartbeatLoop]:
    terms, clock = _Terms(), VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    state = NodeState(clock.wakeup(), clock.wakeup())
    state.lead(Leading(7, Confirmation.CONFIRMED))
    return terms, clock, state, HeartbeatLoop(cast(Any, SimpleNamespace(terms=terms)), clock, state)


def _beat(loop: HeartbeatLoop, clock: VirtualClock, times: int) -> None:
    for _ in range(times):
        clock.seconds += loop.step()


def test_an_outage_is_said_once_when_it_begins_and_once_when_it_is_over() -> None:
    terms, clock, _, loop = _loop()
    with capture_logs() as told:
        for _ in range(2):
            _beat(loop, clock, 3)
            terms.is_away = True
            _beat(loop, clock, 33)
            terms.is_away = False
        _beat(loop, clock, 3)
    assert [entry["event"] for entry in told] == ["heartbeat.missed", "heartbeat.answered"] * 2
    assert (told[1]["missed"], told[1]["after_seconds"]) == (33, 33.0)


def test_an_outage_that_cost_the_term_is_over_with_the_refused_beat() -> None:
    terms, clock, state, loop = _loop()
    terms.is_away = True
    with capture_logs() as told:
        _beat(loop, clock, 2)
        terms.is_away, terms.is_current = False, False
        _beat(loop, clock, 1)
    assert [entry["event"] for entry in told] == ["heartbeat.missed", "heartbeat.answered"]
    assert state.superseded_term == 7
