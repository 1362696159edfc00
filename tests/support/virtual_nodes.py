"""Nodes on virtual time over one ledger in memory, stepped by hand: no threads, no waiting."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sexton.clock import Clock, Wakeup
from sexton.inputs import own_inputs
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, Channel, JobChange, Store, StoreOptions
from sexton.store.tables import from_micros
from sexton.targets import CommandTarget
from sexton_scheduler.election.candidate import Candidate, NodeIdentity
from sexton_scheduler.election.database import DatabaseCandidate
from sexton_scheduler.heartbeat import HeartbeatLoop
from sexton_scheduler.housekeeping import DUTIES, Housekeeper, perform
from sexton_scheduler.loop import LoopOptions, NodeLoop
from sexton_scheduler.node import enroll
from sexton_scheduler.node_state import NodeState
from tests.support.virtual_worker import VirtualWorker


class Flag:
    """A wake-up for one thread."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set


class VirtualClock:
    """Moves only when told to."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.seconds = 1000.0
        self.database_ahead = timedelta(0)  # what a jump of the database's clock adds

    def elapsed(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds - 1000.0)

    def database_now(self) -> datetime:
        return self.wall() + self.database_ahead

    def wakeup(self) -> Wakeup:
        return Flag()

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        raise AssertionError("virtual nodes are stepped, they do not wait")


@dataclass
class VirtualNode:
    """One node: its loop, its heartbeat and its duties, each due at a virtual second; dead ones are not stepped."""

    name: str
    store: Store
    clock: VirtualClock
    state: NodeState
    loop: NodeLoop
    heartbeat: HeartbeatLoop
    keeper: Housekeeper
    is_alive: bool = True
    loop_due: float = 0.0
    beat_due: float = 0.0
    duty_due: dict[str, float] = field(default_factory=dict)

    @property
    def term(self) -> int | None:
        return None if self.state.leading is None else self.state.leading.term

    def step(self) -> None:
        """Do what is due at this virtual second."""
        if not self.is_alive:
            return
        while not self.loop.is_done and (self.state.wakeup.is_set() or self.loop_due <= self.clock.seconds):
            self.loop_due = self.clock.seconds + self.loop.step()
        if self.state.beat_now.is_set() or self.beat_due <= self.clock.seconds:
            self.beat_due = self.clock.seconds + self.heartbeat.step()
        for duty in DUTIES:
            if self.duty_due.get(duty.name, 0.0) <= self.clock.seconds:
                self.duty_due[duty.name] = self.clock.seconds + duty.every
                perform(duty, self.keeper)


class VirtualCluster:
    """Nodes over one ledger at ``sqlite://`` in memory."""

    def __init__(self, start: datetime, url: str = "sqlite:///:memory:") -> None:
        self.clock = VirtualClock(start)
        self.url = url
        self.store = self.open()
        self.nodes: list[VirtualNode] = []
        self.workers: list[VirtualWorker] = []

    def open(self) -> Store:
        return open_store(StoreOptions(self.url, clock=self.clock.database_now))

    def node(
        self, name: str, candidate: Candidate | None = None, lease_patience: timedelta | None = None
    ) -> VirtualNode:
        """A further node; with ``candidate`` its coordinator is that, and the leader lease stands beside it."""
        clock: Clock = self.clock
        store = self.open()
        enroll(store, "database:" if candidate is None else "zookeeper://test")
        settings = store.edits.settings()
        state = NodeState(clock.wakeup(), clock.wakeup())
        state.settings = settings
        lease = None
        if candidate is not None:
            lease = DatabaseCandidate(store, clock, settings.failover_database_after, empty_seat_at_once=False)
        inputs_id = own_inputs().inputs_id
        loop = NodeLoop(
            store,
            clock,
            state,
            candidate or DatabaseCandidate(store, clock, settings.session),
            lease,
            LoopOptions(name, inputs_id),
        )
        identity = NodeIdentity(name, "here", "0", 1)
        keeper = Housekeeper(store, clock, state, identity, inputs_id)
        made = VirtualNode(name, store, self.clock, state, loop, HeartbeatLoop(store, clock, state), keeper)
        store.listen([Channel.JOBS], state.wakeup)
        self.nodes.append(made)
        return made

    def run(self, seconds: float, step: float = 0.25) -> None:
        """Let virtual time pass, stepping every living node, and the workers."""
        end = self.clock.seconds + seconds
        while self.clock.seconds < end:
            self._step()
            self.clock.seconds = min(end, self.clock.seconds + step)
        self._step()

    def _step(self) -> None:
        for node in self.nodes:
            node.step()
        for worker in self.workers:
            worker.step()

    def run_until(self, instant: datetime) -> None:
        """Let virtual time pass up to this instant."""
        self.run((instant - self.clock.wall()).total_seconds())

    def apply(self, *definitions: JobDefinition) -> list[int]:
        """Create jobs; their ids."""
        changes = [JobChange(ChangeKind.CREATE, definition=one) for one in definitions]
        return [done.job_id for done in self.store.edits.edit(changes, "tests")]

    def set(self, **settings: str) -> None:
        """Settings of the cluster; ``__`` stands for the dot."""
        for key, value in settings.items():
            self.store.edits.set_setting(key.replace("__", "."), value, "tests")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement on the ledger, instants as SQLite keeps them."""
        with self.store.connection.transaction() as connection:  # type: ignore[attr-defined]  # it is SQLite's
            return list(connection.execute(statement).fetchall())

    def claims(self, job_id: int) -> list[datetime]:
        """The ticks of the job that have a claim, in order."""
        found = self.rows(f"SELECT scheduled_at FROM claims WHERE job_id = {job_id} ORDER BY 1")
        return [from_micros(one) for (one,) in found]

    def skips(self, job_id: int) -> list[tuple[str, int]]:
        """Reason and count of the job's skip records, in order."""
        return self.rows(f"SELECT reason, count FROM skips WHERE job_id = {job_id} ORDER BY after")

    def close(self) -> None:
        for node in self.nodes:
            node.store.close()
        self.store.close()


def cron_job(
    name: str, cron: str, policy: str = "latest", grace: timedelta = timedelta(seconds=60), **missed: object
) -> JobDefinition:
    """A job that runs ``true``."""
    rules = MissedRules(policy=MissedPolicy(policy), grace=grace, **missed)  # type: ignore[arg-type]  # tests know
    return JobDefinition(name, ({"cron": cron},), CommandTarget(("true",)), missed=rules)


TWO = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
