"""A cluster of real processes for a trial: nodes and workers that are killed and frozen, and what they left behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import func, select

from sexton.errors import DatabaseUnreachable
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.store.tables import counters, runs, takeovers
from sexton.terms import ElectedBy, EndedBy
from tests.support.ledgers import make_ledger
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.waiting import eventually

LONG = 90.0
"""Seconds within which a healthy cluster does anything, on a machine however loaded: a limit, no expectation."""

TWENTY_JOBS = Path(__file__).with_name("twenty_jobs.yaml").read_text()
ROLES = ("leader", "follower", "racer")
SETTINGS = {"session": "2s", "heartbeat": "1s", "lease": "3s"}
"""What a trial waits for is a session or a lease: short ones, of which a trial can see several."""


T = TypeVar("T")


def wait_until(predicate: Callable[[], T], what: str) -> T:
    """`eventually`, asking seldom: what asks a ledger must not keep busy the machine that its cluster runs on."""
    return eventually(predicate, within=LONG, what=what, every=0.1)


@dataclass(frozen=True, slots=True)
class Takeover:
    """A term's beginning. The gap is closed (``gap_until``) once the pass over what was missed is done."""

    term: int
    node: str
    elected_by: ElectedBy
    taken_at: datetime
    predecessor: str | None
    predecessor_ended: EndedBy
    gap_from: datetime | None
    gap_until: datetime | None
    blockers_terminated: int


class Trial:
    """One cluster: its database is made and its jobs applied by ``apply``; then nodes and workers are started."""

    def __init__(self, processes: ProcessGroup, url: str, coordinator: str = "database:") -> None:
        self.processes = processes
        self.url = url
        self.environment = {"SEXTON_DATABASE": url, "SEXTON_COORDINATOR": coordinator}
        self.nodes: dict[str, RunningProcess] = {}
        self.workers: dict[str, RunningProcess] = {}
        make_ledger(url)
        self.store: Store = open_store(StoreOptions(url, application="sexton trial"))

    # --- setting it up ---------------------------------------------------------------------------

    def apply(self, jobs: str = TWENTY_JOBS, settings: Mapping[str, str] | None = None) -> None:
        """Set cluster settings (on top of SETTINGS), then apply a job file of this text."""
        for key, value in {**SETTINGS, **(settings or {})}.items():
            self.store.edits.set_setting(key, value, "trial")
        path = self.folder / "jobs.yaml"
        path.write_text(jobs.replace("FOLDER", str(self.folder)))
        self.sexton("apply", str(path), "--yes")

    def start(self, nodes: int = 3, workers: int = 2) -> str:
        """Start ``node-1`` ... and ``worker-1`` ...; the leader's name, once all have reported."""
        for number in range(1, workers + 1):
            self.start_worker(f"worker-{number}")
        for number in range(1, nodes + 1):
            self.start_node(f"node-{number}")
        leader = self.wait_for_leader()
        for name in self.nodes:
            self.wait_for_node(name)
        self.wait_for_workers()
        return leader

    def start_node(self, name: str) -> RunningProcess:
        self.nodes[name] = self.processes.sexton("scheduler", "--name", name, env=self.environment, name=name)
        return self.nodes[name]

    def start_worker(self, name: str) -> RunningProcess:
        self.workers[name] = self.processes.sexton("worker", "--name", name, env=self.environment, name=name)
        return self.workers[name]

    # --- asking it -------------------------------------------------------------------------------

    def sexton(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end; its standard output. Another exit code than ``code`` fails the test."""
        done = self.processes.run(*arguments, env=self.environment, within=LONG)
        assert done.returncode == code, f"sexton {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def leader(self) -> str | None:
        return self.store.terms.cluster().leader

    def term(self) -> int:
        return self.store.terms.cluster().term

    def followers(self) -> list[str]:
        """The nodes that do not lead now."""
        leader = self.leader()
        return [name for name in self.nodes if name != leader]

    def takeovers(self) -> list[Takeover]:
        """Every takeover so far, oldest first."""
        with self.store.reads.snapshot() as connection:
            rows = connection.execute(select(takeovers).order_by(takeovers.c.term)).all()
        return [
            Takeover(
                term=row.term,
                node=row.node,
                elected_by=ElectedBy(row.elected_by),
                taken_at=row.taken_at,
                predecessor=row.predecessor,
                predecessor_ended=EndedBy(row.predecessor_ended),
                gap_from=row.gap_from,
                gap_until=row.gap_until,
                blockers_terminated=row.blockers_terminated,
            )
            for row in rows
        ]

    def takeover_after(self, term: int) -> Takeover:
        """The first takeover after this term, once there is one."""

        def found() -> list[Takeover]:
            return [takeover for takeover in self.takeovers() if takeover.term > term]

        return wait_until(found, f"a takeover after term {term}")[0]

    def finished(self, term: int) -> Takeover:
        """A takeover, once its pass over missed ticks is done."""

        def found() -> list[Takeover]:
            return [one for one in self.takeovers() if one.term == term and one.gap_until is not None]

        return wait_until(found, f"the pass of term {term} is done")[0]

    def wait_for_leader(self, other_than: str | None = None) -> str:
        """The leader's name, once there is one of ours (other than the one given)."""
        found = wait_until(
            lambda: [name for name in [self.leader()] if name is not None and name != other_than],
            f"a leader other than {other_than}",
        )
        return found[0]

    def wait_for_node(self, name: str, role: str | None = None) -> None:
        """Return when the node's present process has reported just now, as having this role."""
        now = self.store.now()
        wait_until(lambda: self.role(name, now) in ((role,) if role else ROLES), f"{name} reports as {role or 'any'}")

    def wait_for_follower(self, name: str, term: int) -> None:
        """Return when the node has reported as a follower just now, or another term than this one has begun."""
        now = self.store.now()
        wait_until(lambda: self.role(name, now) == "follower" or self.term() > term, f"{name} follows")

    def role(self, name: str, since: datetime) -> str | None:
        """What the node's present process says it is, if it has said so since then."""
        pid = self.nodes[name].pid
        said = [n.role for n in self.store.reads.nodes() if (n.name, n.pid) == (name, pid) and n.seen_at > since]
        return said[0] if said else None

    def wait_for_workers(self) -> None:
        """Return when every worker's present process has been seen."""
        pids = {process.pid for process in self.workers.values()}
        wait_until(lambda: pids <= {worker.pid for worker in self.store.reads.workers()}, "workers enrol")

    def wait_for_runs(self, count: int, after: datetime | None = None) -> None:
        """Return when ``count`` more runs have ended since ``after``, or from now on."""
        since = after or self.store.now()
        wait_until(lambda: self.ended_runs(since) >= count, f"{count} runs after {since}")

    def ended_runs(self, after: datetime) -> int:
        """How many runs have ended since."""
        statement = select(func.count()).select_from(runs).where(runs.c.finished_at > after)
        with self.store.reads.snapshot() as connection:
            return connection.execute(statement).scalar_one()

    def wait_for_database(self) -> None:
        """Return when it answers this trial again; its old connections are broken."""

        def answers() -> bool:
            try:
                self.store.now()
                self.term()
                self.store.reads.overview()
            except DatabaseUnreachable:
                return False
            return True

        wait_until(answers, "the database answers")

    def log(self) -> list[tuple[str, str, int]]:
        """Job, tick and token of each run of a job that keeps a log, as the run itself wrote them when it began."""
        path = self.folder / "runs.log"
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [(job, tick, int(token)) for job, tick, token in map(str.split, whole.splitlines())]

    def counter(self, name: str) -> int:
        """One of the ledger's counters."""
        with self.store.reads.snapshot() as connection:
            return connection.execute(select(counters.c.value).where(counters.c.name == name)).scalar() or 0

    def audit(self, upto: datetime | None = None) -> dict[str, Any]:
        """The audit's report up to an instant, or now; it must be clean, and exit 0."""
        upto = upto or self.store.now()
        report: dict[str, Any] = json.loads(self.sexton("audit", "--to", upto.isoformat(), "--output", "json"))
        assert report["clean"], report["differences"]
        return report

    def close(self) -> None:
        self.store.close()

    @property
    def folder(self) -> Path:
        return self.processes.folder
