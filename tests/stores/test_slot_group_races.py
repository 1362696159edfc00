"""Sixteen workers race for claims of all kinds of overlap and of keys whose limits change meanwhile, on PostgreSQL.

Counted are the runs that overlap, as the workers see it themselves and by the rows of `runs`. Some grants are
abandoned, as by a worker that died. What the races must find is planted in tests/stores/test_slot_faults.py, where it
is found every time.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sexton.claims import Origin, Overlap, State
from sexton.job_rules import ConcurrencyKey
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, Grant, JobChange, RunResult, StepRequest, Store, StoreOptions
from tests.support.claim_rows import MINUTE, START, ClaimRows, claim_values, now
from tests.support.leader_scene import create, definition, rows
from tests.support.racing import UNENDED, Work, race

WORKERS = 16
LEASE = timedelta(minutes=10)
CLAIMS_EACH = 30
MOST = 4  # the highest limit of the key whose limit changes
OVERLAPS = (Overlap.QUEUE, Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE)

Key = tuple[int, datetime]


def keyed(name: str, key: str, limit: int, overlap: Overlap) -> JobDefinition:
    return definition(name, overlap=overlap, concurrency_key=ConcurrencyKey(key, limit), queue_limit=1000)


@dataclass
class GroupRace:
    """What the threads share. ``limits``: how many runs each slot may have at most, while an edit is on its way."""

    url: str
    rows: ClaimRows
    warehouse: list[int]
    mover: int
    limits: dict[int, int]
    allowed: frozenset[int]
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    held: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))  # slot: token: its step's bound
    most: Counter[int] = field(default_factory=Counter)
    overlaps: list[str] = field(default_factory=list)
    accepted: Counter[Key] = field(default_factory=Counter)
    abandoned: set[int] = field(default_factory=set)
    requeued: Counter[int] = field(default_factory=Counter)
    edits: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Let them race until every claim has ended."""
        works: list[tuple[Work, int]] = [(self._work, number) for number in range(1, WORKERS + 1)]
        works += [(self._keep_house, 0), (self._edit, 0)]
        self.errors = race(self.url, self.rows, works, self.over)

    # --- workers ------------------------------------------------------------------------------------

    def _work(self, store: Store, number: int) -> None:
        draw = random.Random(number)
        room = (1, 4, 20)[number % 3]
        results: tuple[RunResult, ...] = ()
        while not self.over.is_set():
            with self.lock:
                before = dict(self.limits)
            step = store.grants.step(StepRequest(number, ("default",), room, LEASE, 1000, results))
            with self.lock:
                self.accepted.update((one.job_id, one.scheduled_at) for one in results if is_end(one, step.accepted))
                bounds = {slot: max(before[slot], limit) for slot, limit in self.limits.items()}
                for grant in step.grants:
                    self._take(grant, bounds)
            started = now()
            if step.grants:
                self.over.wait(draw.uniform(0, 0.01))  # the runs take their time
            asked = store.grants.stop_requests(number).cancel if step.grants else frozenset()
            results = tuple(self._ended(grant, draw, started, asked) for grant in step.grants)
            results = tuple(one for one in results if one.token not in self.abandoned)
            if not step.picked and not results:
                self.over.wait(0.005)

    def _take(self, grant: Grant, bounds: dict[int, int]) -> None:
        if grant.job_id in self.allowed:
            return
        held = self.held[grant.slot]
        held[grant.token] = bounds[grant.slot]
        self.most[grant.slot] = max(self.most[grant.slot], len(held))
        # Whoever was granted last, so has the highest token, was granted beside all the others.
        if len(held) > held[max(held)]:
            self.overlaps.append(f"{len(held)} runs on slot {grant.slot}, where {held[max(held)]} may be")

    def _ended(self, grant: Grant, draw: random.Random, started: datetime, asked: frozenset[int]) -> RunResult:
        """Released before the store may know: what overlaps here did overlap there."""
        with self.lock:
            finished = now()
            self.held[grant.slot].pop(grant.token, None)
            if draw.random() < 0.02:
                self.abandoned.add(grant.token)
        outcome = State.READY if draw.random() < 0.02 else State.SUCCEEDED
        outcome = State.CANCELLED if grant.token in asked else outcome
        key = (grant.job_id, grant.scheduled_at, grant.token, grant.attempt)
        return RunResult(*key, outcome, finished, started_at=started)

    # --- beside them --------------------------------------------------------------------------------

    def _keep_house(self, store: Store, _: int) -> None:
        while not self.over.wait(0.05):
            with self.lock:
                lost = [token for token in self.abandoned if token not in self.requeued]
            self.rows.expire_leases(lost)
            requeued = store.grants.requeue_expired()
            with self.lock:
                self.requeued.update(one.token for one in requeued)
            store.grants.sweep()

    def _edit(self, store: Store, _: int) -> None:
        """Raise and lower the limit of one key, and have one job get and lose it."""
        draw = random.Random(0)
        (group,) = {slot for slot, limit in self.limits.items() if limit == MOST}
        while not self.over.wait(0.03):
            limit, stays = draw.randint(1, MOST), draw.random() < 0.5
            with self.lock:
                self.limits[group] = max(self.limits[group], limit)
            changes = [
                JobChange(ChangeKind.REVISE, job_id, keyed(f"w{job_id}", "warehouse", limit, OVERLAPS[number]))
                for number, job_id in enumerate(self.warehouse)
            ]
            own = definition("mover", overlap=Overlap.QUEUE)
            moved = keyed("mover", "warehouse", limit, Overlap.QUEUE) if stays else own
            store.edits.edit([*changes, JobChange(ChangeKind.REVISE, self.mover, moved)], "alice")
            with self.lock:
                self.limits[group] = limit
                self.edits += 1


def is_end(result: RunResult, accepted: frozenset[int]) -> bool:
    return result.token in accepted and result.outcome != State.READY


def group_race(url: str) -> GroupRace:
    """A race over the claims: four jobs of a key, two of another, one that comes and goes, one of each overlap."""
    store = open_store(StoreOptions(url))
    jobs = create(
        store,
        *(keyed(f"w{number}", "warehouse", MOST, overlap) for number, overlap in enumerate(OVERLAPS)),
        *(keyed(f"m{number}", "mail", 1, Overlap.QUEUE) for number in range(2)),
        definition("mover", overlap=Overlap.QUEUE),
        *(definition(overlap.name, overlap=overlap, queue_limit=1000) for overlap in Overlap),
    )
    store.close()
    ids = [job.job_id for job in jobs]
    slots = {row.job_id: row.slot or row.job_id for row in rows(url, "jobs")}
    overlaps = (*OVERLAPS, *(Overlap.QUEUE,) * 3, *Overlap)
    race_rows = ClaimRows(url)
    race_rows.guard_arrows()
    race_rows.add_many(
        claim_values(
            job_id,
            START + number * MINUTE,
            overlap=int(overlap),
            slot=slots[job_id],
            origin=int(Origin.MANUAL if number % 5 == 0 else Origin.SCHEDULE),
        )
        for number in range(CLAIMS_EACH)
        for job_id, overlap in zip(ids, overlaps, strict=True)
    )
    limits = dict.fromkeys((*slots.values(), *ids), 1) | {slots[ids[0]]: MOST}
    allowed = frozenset(job_id for job_id, overlap in zip(ids, overlaps, strict=True) if overlap is Overlap.ALLOW)
    return GroupRace(url, race_rows, ids[:4], ids[6], limits, allowed)


def most_at_once(runs: list[tuple[datetime, datetime]]) -> int:
    """How many of these stretches lay over one instant at most; one that ends where another begins is over."""
    at_once = most = 0
    for _, change in sorted([(start, 1) for start, _ in runs] + [(end, -1) for _, end in runs]):
        at_once += change
        most = max(most, at_once)
    return most


def test_no_more_runs_hold_a_slot_than_its_limit_while_limits_change(postgres_ledger: str) -> None:
    """Invariant 4, and every claim is accepted once."""
    race = group_race(postgres_ledger)
    race.run()
    assert race.errors == []
    assert race.overlaps == []
    states = race.rows.states()
    assert not UNENDED & set(states), f"left behind: {states}"
    assert sum(states.values()) == 11 * CLAIMS_EACH
    assert set(race.accepted.values()) == {1}
    race.rows.assert_slots_are_held_rightly()
    race.rows.close()
    assert race.edits >= 1
    assert race.abandoned, "some grants were abandoned"
    assert set(race.requeued) == race.abandoned, "each was requeued"
    group = max(race.limits, key=lambda slot: race.most[slot])
    assert race.most[group] > 1, "runs of one key ran side by side"
    ran: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    single = [job_id for job_id in race.limits if job_id > 0 and job_id not in {*race.warehouse, race.mover}]
    for row in rows(postgres_ledger, "runs"):
        if row.started_at is not None and row.job_id not in race.allowed:
            ran[row.job_id].append((row.started_at, row.finished_at))
    assert {most_at_once(ran[job_id]) for job_id in single if job_id in ran} == {1}
