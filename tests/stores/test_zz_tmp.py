"""A claim's states change along the table's arrows only, and both databases decide alike.

Random histories of everything a worker and housekeeping do run on SQLite and on PostgreSQL with the same choices. A
trigger of the test refuses every change that is not an arrow (`tests.support.claim_rows`), and after each step the
two ledgers must agree on every claim.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DatabaseError

from sexton.claims import ARROWS, Origin, Overlap, State
from sexton.store import open_store
from sexton.store.protocol import Grant, RunResult, StepRequest, Store, StoreOptions
from sexton.store.tables import claims, runs
from tests.support.claim_rows import MINUTE, START, ClaimRows, now

LEASE = timedelta(minutes=10)
JOBS = range(1, 5)
GROUP, GROUPED = -1, (3, 4)  # two jobs share the two slots of a concurrency key
ACTIONS = (*("add",) * 5, *("step",) * 4, "lose", "sweep", "pause", "cancel", "start")
OVERLAPS = (Overlap.ALLOW, Overlap.SKIP, Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE, Overlap.REPLACE, Overlap.REPLACE)
ORIGINS = (*(Origin.SCHEDULE,) * 4, *Origin)
OUTCOMES = (State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.READY)

Key = tuple[int, datetime]
CLAIM = 9  # columns of a claim in what is seen


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    yield scene
    scene.close()


@pytest.mark.parametrize("old", State, ids=lambda state: state.word)
def test_the_guard_lets_pass_arrows_and_nothing_else(rows: ClaimRows, old: State) -> None:
    for new in State:
        token = 7 if State.RUNNING in (old, new) else None
        at = rows.add(1, state=int(old), token=7 if old == State.RUNNING else None)
        changes: dict[str, Any] = {"state": int(new), "token": None if new in (State.READY, State.PARKED) else token}
        if new == old or (old, new) in ARROWS:
            rows.change(1, at, **changes)
        else:
            with pytest.raises(DatabaseError, match="is not an arrow"):
                rows.change(1, at, **changes)


class History:
    """One ledger on which a history is played."""

    def __init__(self, url: str) -> None:
        self.rows = ClaimRows(url)
        self.rows.guard_arrows()
        self.rows.add_group(-GROUP, "warehouse", 2)
        self.store: Store = open_store(StoreOptions(url))
        self.held: dict[Key, Grant] = {}

    def close(self) -> None:
        self.store.close()
        self.rows.close()

    def add(self, job_id: int, at: datetime, **columns: Any) -> None:
        self.rows.add(job_id, at, **columns)

    def step(self, room: int, results: dict[Key, tuple[State, bool]], at: datetime) -> None:
        sent = tuple(self._result(key, outcome, later, at) for key, (outcome, later) in results.items())
        result = self.store.grants.step(StepRequest(1, ("default",), room, LEASE, 2, sent))
        assert len(result.grants) <= room
        for grant in result.grants:
            self.held[grant.job_id, grant.scheduled_at] = grant

    def _result(self, key: Key, outcome: State, later: bool, at: datetime) -> RunResult:
        grant = self.held.pop(key)
        retry_at = at if later and outcome == State.READY else None
        return RunResult(*key, grant.token, grant.attempt, outcome, at, retry_at=retry_at, uses_retry=later)

    def lose(self, keys: list[Key]) -> None:
        self.rows.expire_leases([self.held.pop(key).token for key in keys])
        assert len(self.store.grants.requeue_expired()) == len(keys)

    def start(self, key: Key) -> None:
        assert self.store.grants.mark_started([self.held[key]])

    def sweep(self) -> None:
        self.store.grants.sweep()

    def change(self, key: Key, **columns: Any) -> None:
        self.rows.change(*key, **columns)

    def seen(self) -> list[tuple[Any, ...]]:
        """All that both ledgers must agree on: the claims, their runs, and which of them run."""
        self.rows.assert_slots_are_held_rightly()
        c, r = claims.c, runs.c
        with self.rows.engine.begin() as connection:
            of_claims = connection.execute(
                select(
                    *(c.job_id, c.scheduled_at, c.state, c.attempt, c.retries, c.losses),
                    *(c.available_at, c.blocked, c.cancel_requested),
                ).order_by(c.job_id, c.scheduled_at)
            ).all()
            of_runs = connection.execute(
                select(r.job_id, r.scheduled_at, r.attempt, r.outcome, r.worker_id).order_by(
                    r.job_id, r.scheduled_at, r.attempt
                )
            ).all()
        return [*map(tuple, of_claims), *map(tuple, of_runs), ("held", sorted(self.held))]


def play(seed: int, ledgers: tuple[History, ...], steps: int) -> set[State]:
    """The same random history on each ledger; they agree after every step. The states that were seen."""
    reached: set[State] = set()
    draw = random.Random(seed)
    minute = 0
    for number in range(steps):
        held = sorted(ledgers[0].held)
        action = draw.choice(ACTIONS)
        chosen = draw.sample(held, draw.randint(0, min(3, len(held))))
        calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]]
        match action:
            case "add":
                minute += 1
                job = draw.choice(JOBS)
                overlaps = OVERLAPS[1:] if job in GROUPED else OVERLAPS
                columns = {
                    "overlap": int(draw.choice(overlaps)),
                    "slot": GROUP if job in GROUPED else job,
                    "origin": int(draw.choice(ORIGINS)),
                    "priority": draw.randint(-1, 1),
                    "at_most_once": draw.random() < 0.3,
                }
                calls = [("add", (job, START + minute * MINUTE), columns)]
            case "step":
                results = {key: (draw.choice(OUTCOMES), draw.random() < 0.5) for key in chosen}
                at = START + timedelta(days=1, seconds=number)
                calls = [("step", (draw.randint(0, 4), results, at), {})]
            case "lose":
                calls = [("lose", (chosen[:2],), {})]
            case "sweep":
                calls = [("sweep", (), {})]
            case "start":
                calls = [("start", (key,), {}) for key in chosen[:1]]
            case "cancel":
                calls = [("change", (key,), {"cancel_requested": True}) for key in chosen[:1]]
            case _:
                known = [(row[0], row[1]) for row in ledgers[0].seen() if len(row) == CLAIM]
                calls = [("change", (draw.choice(known),), {"blocked": draw.random() < 0.3})] if known else []
        for name, arguments, keywords in calls:
            for ledger in ledgers:
                getattr(ledger, name)(*arguments, **keywords)
        first, *others = [ledger.seen() for ledger in ledgers]
        for other in others:
            assert other == first, f"seed {seed}, step {number}: after {calls}"
        reached |= {State(row[2]) for row in first if len(row) == CLAIM}
    return reached


@pytest.mark.parametrize("seed", range(4, 24))
def test_both_databases_decide_alike_along_the_arrows(sqlite_ledger: str, postgres_ledger: str, seed: int) -> None:
    ledgers = History(sqlite_ledger), History(postgres_ledger)
    try:
        reached = play(seed, ledgers, steps=120)
        pass
    finally:
        for ledger in ledgers:
            ledger.close()


def test_nothing_stays_parked_or_ready_once_workers_drain_the_ledger(ledger_url: str) -> None:
    ledger = History(ledger_url)
    try:
        play(99, (ledger,), steps=150)
        for key in [(row[0], row[1]) for row in ledger.seen() if len(row) == CLAIM]:
            ledger.change(key, blocked=False)
        for _ in range(200):
            ledger.step(50, dict.fromkeys(sorted(ledger.held), (State.SUCCEEDED, False)), now())
            ledger.sweep()
            if not {State.READY, State.PARKED, State.RUNNING} & set(ledger.rows.states()):
                break
        assert not {State.READY, State.PARKED, State.RUNNING} & set(ledger.rows.states())
    finally:
        ledger.close()
