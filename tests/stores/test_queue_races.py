"""Sixteen workers race for the claims of a limited queue on PostgreSQL: its slots and its rate hold at every moment."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from sexton.claims import Overlap, State
from sexton.store import open_store
from sexton.store.postgres import pull as pulls
from sexton.store.postgres import ruled_queues
from sexton.store.protocol import Grant, StepRequest, StoreOptions
from sexton.store.tables import claims
from tests.stores.test_slot_races import Race
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.queue_rows import limit

LEASE = timedelta(minutes=10)


@dataclass
class QueueRace(Race):
    """Counts what runs, as the workers see it: each claim from its grant until before the store may know of its end."""

    in_hand: set[int] = field(default_factory=set)
    most: int = 0

    def _take(self, grant: Grant) -> None:
        super()._take(grant)
        self.in_hand.add(grant.token)
        self.most = max(self.most, len(self.in_hand))

    def _release(self, grant: Grant) -> None:
        super()._release(grant)
        self.in_hand.discard(grant.token)


def queue_race(url: str, count: int, **rule: Any) -> QueueRace:
    rows = ClaimRows(url)
    rows.guard_arrows()
    limit(rows, **rule)
    rows.add_many(
        claim_values(job, START + job * MINUTE, overlap=int(Overlap.ALLOW), priority=job % 5 - 2)
        for job in range(1, count + 1)
    )
    return QueueRace(url, rows, allowed=frozenset(range(1, count + 1)))


def test_sixteen_workers_never_run_more_of_a_queue_than_it_has_slots(postgres_ledger: str) -> None:
    race = queue_race(postgres_ledger, 70, slots=3)
    race.abandon = 0.01  # with their leases their slots of the queue are free
    race.run()
    states = race.rows.states()
    race.rows.close()
    assert race.errors == []
    assert race.most == 3
    assert states == {State.SUCCEEDED: 70}


def test_sixteen_workers_grant_no_faster_than_a_queues_rate(postgres_ledger: str) -> None:
    race = queue_race(postgres_ledger, 450, rate=150.0, next_at=now() - MINUTE)
    with race.rows.engine.begin() as connection:
        began = connection.execute(select(func.clock_timestamp())).scalar_one()
    race.run()
    states = race.rows.states()
    with race.rows.engine.begin() as connection:
        ended = connection.execute(select(func.max(claims.c.granted_at))).scalar_one()
    race.rows.close()
    assert race.errors == []
    assert states == {State.SUCCEEDED: 450}
    assert ended - began > timedelta(seconds=1.99), "150 at once, then 150 a second"


Fault = tuple[str, bytes]
NO_FAULT: Fault = ("_GATE", ruled_queues._GATE)
NO_GATE: Fault = ("_GATE", b"SELECT name FROM queues WHERE name = ANY (%s::text[])")


@pytest.mark.parametrize(("fault", "granted"), [(NO_FAULT, 2), (NO_GATE, 4)], ids=["as it is", "without the gate"])
@pytest.mark.parametrize("rule", [{"slots": 2}, {"rate": 2.0, "next_at": START}], ids=["slots", "rate"])
def test_what_one_worker_has_counted_no_other_one_grants_from(
    postgres_ledger: str, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], fault: Fault, granted: int
) -> None:
    """One worker is held between its count and its pull; meanwhile another one takes a whole step."""
    race = queue_race(postgres_ledger, 10, **rule)
    monkeypatch.setattr(ruled_queues, *fault)
    first, second = (open_store(StoreOptions(postgres_ledger, answer_within=60)) for _ in range(2))
    counted, go_on = threading.Event(), threading.Event()
    pull = pulls.pull

    def held(*arguments: Any, **options: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            counted.set()
            assert go_on.wait(60)
        return pull(*arguments, **options)

    monkeypatch.setattr(ruled_queues, "pull", held)
    grants: list[Grant] = []

    def take_held_step() -> None:
        grants.extend(first.grants.step(StepRequest(1, ("default",), 10, LEASE, 10)).grants)

    thread = threading.Thread(target=take_held_step)
    thread.start()
    assert counted.wait(60)
    meanwhile = second.grants.step(StepRequest(2, ("default",), 10, LEASE, 10))
    go_on.set()
    thread.join()
    assert len(grants) + len(meanwhile.grants) == granted
    assert meanwhile.picked, "a worker that found the gate taken looks again soon"
    for opened in (first, second):
        opened.close()
    race.rows.close()
