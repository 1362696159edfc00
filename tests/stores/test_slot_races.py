"""Sixteen workers race for the claims of a few slots on PostgreSQL, with real connections.

They never hold two claims of one slot, each claim is accepted once, and nothing stays parked. Some grants are
abandoned, as by a worker that died; housekeepers requeue them. What they must find is planted in
tests/stores/test_slot_faults.py.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from sexton.claims import Origin, Overlap, State
from sexton.store.postgres import pull
from sexton.store.protocol import Grant, RunResult, StepRequest, Store
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.postgres import PostgresServer
from tests.support.racing import UNENDED, Work, race

WORKERS = 16
LEASE = timedelta(minutes=10)
ROUNDS = 12


@pytest.fixture
def ledgers(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """Fresh ledgers, up to ``ROUNDS``: a race finds a planted fault in most rounds, not in all."""

    def fresh() -> Iterator[str]:
        for _ in range(ROUNDS):
            url = postgres_server.create_database(template=migrated_template)
            yield url
            postgres_server.drop_database(url)

    return fresh()


@dataclass
class Race:
    """What the workers of a race share: who holds what, as they see it themselves."""

    url: str
    rows: ClaimRows
    catch_up_concurrency: int = 1000
    abandon: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    held: dict[int, Grant] = field(default_factory=dict)  # by slot: grants of claims that may not overlap
    paced: set[int] = field(default_factory=set)
    most_paced: int = 0
    overlaps: list[tuple[Grant, Grant]] = field(default_factory=list)
    accepted: Counter[tuple[int, object]] = field(default_factory=Counter)
    tokens: dict[tuple[int, object], list[int]] = field(default_factory=lambda: defaultdict(list))
    abandoned: list[int] = field(default_factory=list)
    requeued: Counter[int] = field(default_factory=Counter)
    errors: list[BaseException] = field(default_factory=list)
    allowed: frozenset[int] = frozenset()  # jobs whose runs may overlap
    rooms: tuple[int, ...] = (1, 10, 50)
    start: threading.Barrier = field(default_factory=lambda: threading.Barrier(WORKERS))

    def run(self) -> None:
        """Let the workers and two housekeepers race until every claim has ended."""
        works: list[tuple[Work, int]] = [(self._work, number) for number in range(WORKERS)]
        works += [(self._keep_house, number) for number in range(2)]
        self.errors = race(self.url, self.rows, works, self.over)

    def _work(self, store: Store, number: int) -> None:
        draw = random.Random(number)
        room = self.rooms[number % len(self.rooms)]
        results: tuple[RunResult, ...] = ()
        store.now()  # connected
        self.start.wait(60)
        while not self.over.is_set():
            request = StepRequest(number, ("default",), room, LEASE, self.catch_up_concurrency, results)
            step = store.grants.step(request)
            with self.lock:
                for result in results:
                    if result.token in step.accepted and result.outcome != State.READY:
                        self.accepted[result.job_id, result.scheduled_at] += 1
                for grant in step.grants:
                    self._take(grant)
            finished = [grant for grant in step.grants if draw.random() >= self.abandon]
            if step.grants:
                self.over.wait(draw.uniform(0, 0.01))  # the runs take their time
            with self.lock:  # released before the store may know: what overlaps here did overlap there
                for grant in step.grants:
                    self._release(grant)
                self.abandoned += [grant.token for grant in step.grants if grant not in finished]
            results = tuple(self._result(grant, draw) for grant in finished)
            if not step.picked and not results:
                self.over.wait(0.002)

    def _take(self, grant: Grant) -> None:
        self.tokens[grant.job_id, grant.scheduled_at].append(grant.token)
        if grant.origin != Origin.SCHEDULE:
            self.paced.add(grant.token)
            self.most_paced = max(self.most_paced, len(self.paced))
        if grant.job_id in self.allowed:
            return
        if grant.slot in self.held:
            self.overlaps.append((self.held[grant.slot], grant))
        self.held[grant.slot] = grant

    def _release(self, grant: Grant) -> None:
        self.paced.discard(grant.token)
        if self.held.get(grant.slot) == grant:
            del self.held[grant.slot]

    def _result(self, grant: Grant, draw: random.Random) -> RunResult:
        outcome = State.READY if draw.random() < 0.02 else State.SUCCEEDED
        return RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, outcome, now())

    def _keep_house(self, store: Store, _: int) -> None:
        while not self.over.wait(0.05):
            with self.lock:
                lost = [token for token in self.abandoned if token not in self.requeued]
            self.rows.expire_leases(lost)
            requeued = store.grants.requeue_expired()
            with self.lock:
                self.requeued.update(one.token for one in requeued)
            store.grants.sweep()


def slot_race(url: str, jobs: int, claims_each: int, abandon: float = 0.0) -> Race:
    """A race over ready claims of jobs that skip, queue and allow."""
    rows = ClaimRows(url)
    rows.guard_arrows()
    rows.add_many(
        claim_values(
            job,
            START + number * MINUTE,
            overlap=int((Overlap.QUEUE, Overlap.SKIP, Overlap.QUEUE, Overlap.ALLOW)[job % 4]),
            origin=int(Origin.MANUAL if job % 8 == 1 else Origin.SCHEDULE),
        )
        for number in range(claims_each)
        for job in range(1, jobs + 1)
    )
    allowed = frozenset(job for job in range(1, jobs + 1) if job % 4 == 3)
    return Race(url, rows, abandon=abandon, allowed=allowed)


def test_sixteen_workers_never_hold_two_claims_of_one_slot(postgres_ledger: str) -> None:
    """Invariant 4, and every claim is accepted once."""
    race = slot_race(postgres_ledger, jobs=40, claims_each=40, abandon=0.015)
    race.run()
    assert race.errors == []
    assert race.overlaps == []
    states = race.rows.states()
    assert not UNENDED & set(states), f"left behind: {states}"
    assert states[State.SUCCEEDED] == len(race.accepted)
    assert set(race.accepted.values()) == {1}
    assert states[State.SUCCEEDED] + states.get(State.SKIPPED, 0) + states.get(State.LOST, 0) == 1600
    race.rows.assert_slots_are_held_rightly()
    assert race.abandoned, "some grants were abandoned"
    assert set(race.requeued) == set(race.abandoned), "each was requeued"
    assert set(race.requeued.values()) == {1}, "once"
    for tokens in race.tokens.values():
        assert tokens == sorted(set(tokens)), "each grant has a higher token than the one before"
    race.rows.close()


# --- the paced class ----------------------------------------------------------------------------------


def paced_race(url: str) -> Race:
    rows = ClaimRows(url)
    rows.guard_arrows()
    origins = (Origin.CATCH_UP, Origin.HELD, Origin.BACKFILL)
    rows.add_many(
        claim_values(job, START + number * MINUTE, origin=int(origins[job % 3]), overlap=int(Overlap.ALLOW))
        for number in range(5)
        for job in range(1, 31)
    )
    return Race(url, rows, catch_up_concurrency=3, allowed=frozenset(range(1, 31)))


def test_no_more_paced_claims_run_than_the_cluster_allows(postgres_ledger: str) -> None:
    race = paced_race(postgres_ledger)
    race.run()
    assert race.errors == []
    assert race.most_paced == 3
    assert race.rows.states() == {State.SUCCEEDED: 150}
    race.rows.close()


def test_the_race_finds_a_class_without_its_gate(ledgers: Iterator[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull, "_TRY_GATE", b"SELECT true OR %s = %s")
    assert any(most_paced_in_race(url) > 3 for url in ledgers)


def most_paced_in_race(url: str) -> int:
    race = paced_race(url)
    race.run()
    race.rows.close()
    return race.most_paced
