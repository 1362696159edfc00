"""The watch over a running simulation: what must hold at every single store call.

* A write of a leader whose term is not current changes nothing (invariant 3).
* A write of a worker whose token is not its claim's does not count (invariant 4).
* A slot has at most one running claim, a key's as many as its limit; a lease that still holds is not taken away.
* In a halted cluster nothing is decided and nothing is granted.
* No decision swallows a claim (invariant 6), no thread of a process dies of an error.

It reads the tables itself, at the moment of the call, and believes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sexton.claims import Overlap, State
from sexton.decisions import CommitResult, LatePlan, TickBatch
from sexton.store.protocol import RunResult, StepRequest, StepResult
from sexton.store.sqlite.store import SqliteStore
from sexton.store.tables import to_micros
from sexton_tui.simulation.history import History
from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.runs import RunStarted
from sexton_tui.simulation.world import World

_MOST_OF_A_KIND = 10

# Which argument of a leader's write is its term.
_TERM_OF: dict[str, Callable[[Sequence[Any]], int]] = {
    "ticks.commit": lambda arguments: arguments[0].term,
    "ticks.decide_late": lambda arguments: arguments[0].term,
    "ticks.quarantine": lambda arguments: arguments[0],
    "terms.leave": lambda arguments: arguments[0],
    "terms.beat": lambda arguments: arguments[0],
}
_DECISIONS = ("ticks.commit", "ticks.decide_late", "ticks.quarantine")
_TOLD = frozenset(
    {
        "ticks.commit",
        "ticks.decide_late",
        "ticks.finish_pass",
        "ticks.quarantine",
        "ticks.reserve_budget",
        "terms.take",
        "terms.leave",
        "grants.step",
        "grants.requeue_expired",
        "grants.mark_started",
        "grants.orphans",
        "grants.register",
        "edits.edit",
        "edits.trigger",
        "terms.end_force",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. ``kind`` is stable, ``detail`` says what, where and when."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Term:
    """A term as it was taken, and by which process."""

    number: int
    process: Process
    taken: int  # microseconds of the world


@dataclass(slots=True)
class Watch:
    """Implements `Watcher`; collects ``findings``."""

    world: World
    history: History
    store: SqliteStore
    findings: list[Finding] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    leader: Term | None = None  # as soon as its heartbeat was seen, until it leaves
    runs: list[RunStarted] = field(default_factory=list)
    calls: int = 0
    refused_writes: int = 0
    refused_results: int = 0
    lost_races: int = 0
    _is_halted: bool | None = None  # None: to be read; only operators' calls change it

    def find(self, kind: str, detail: str) -> None:
        """Note something that must not be."""
        finding = Finding(kind, f"{self.world.now().isoformat()} {detail}")
        self.history.note(self.world.now(), "watch", str(finding))
        if sum(one.kind == kind for one in self.findings) < _MOST_OF_A_KIND:
            self.findings.append(finding)

    def leader_name(self) -> str | None:
        """The process that leads, as the database sees it."""
        return None if self.leader is None else self.leader.process.name

    def is_impeded(self) -> bool:
        """Whether the cluster is halted."""
        if self._is_halted is None:
            self._is_halted = bool(self._one("SELECT halted FROM cluster WHERE id = 1")[0])
        return self._is_halted

    def saw_run(self, run: RunStarted) -> None:
        self.runs.append(run)

    # --- Watcher --------------------------------------------------------------------------------------

    def before(self, process: Process, call: str, arguments: Sequence[Any]) -> object:
        if call in _TERM_OF:
            return self._one("SELECT term, halted FROM cluster WHERE id = 1")
        if call == "grants.step":
            return self._stale(arguments[0]), self.is_impeded()
        if call == "grants.mark_started":
            return {
                grant.token for grant in arguments[0] if self._is_current(grant.job_id, grant.scheduled_at, grant.token)
            }
        if call == "grants.requeue_expired":
            return self._rows("SELECT token FROM claims WHERE state = 1 AND lease_expires_at > ?", self._now())
        return None

    def after(self, process: Process, call: str, arguments: Sequence[Any], result: Any, remembered: Any) -> None:
        self.calls += 1
        if call.startswith("edits."):
            self._is_halted = None
        if call in _TERM_OF:
            self._judge_leader(process, call, arguments, result, remembered)
        elif call == "grants.step":
            self._judge_step(process, arguments[0], result, *remembered)
        elif call == "grants.mark_started":
            if stale := sorted(result - remembered):
                self.find("stale worker", f"{process.name} marked tokens {stale} started, which are not current")
        elif call == "grants.requeue_expired":
            held = {row[0] for row in remembered}
            if taken := [one for one in result if one.token in held]:
                self.find("lease taken", f"{process.name} requeued claims whose lease still holds: {taken}")
        elif call == "terms.take" and result is not None:
            self.terms.append(Term(result.term, process, self.world.micros))
            self.leader = None
            self.history.count("takeovers")
        if call in _TOLD:
            self.history.note(self.world.now(), process.name, f"{call} {_brief(arguments, result)}")

    # --- what must hold -------------------------------------------------------------------------------

    def _judge_leader(
        self, process: Process, call: str, arguments: Sequence[Any], result: Any, current: tuple[int, ...]
    ) -> None:
        term = _TERM_OF[call](arguments)
        is_stale = term != current[0]
        if isinstance(result, CommitResult):
            self.lost_races += len(result.not_moved)
            if result.swallowed:
                self.find("swallowed", f"{process.name} moved cursors over {result.swallowed} existing claims")
        wrote = result.moved > 0 if isinstance(result, CommitResult) else bool(result)
        if call == "terms.leave" and result:
            self.leader = None
        elif call == "terms.beat" and result and self.leader is None and self.terms:
            self.leader = self.terms[-1]
        if current[1] and wrote and call in _DECISIONS:
            self.find("decided while halted", f"{process.name} wrote by {call} under term {term}")
        if is_stale and wrote:
            self.find("stale leader", f"{process.name} wrote by {call} under term {term}; current is {current[0]}")
        if is_stale:
            self.refused_writes += 1

    def _judge_step(
        self, process: Process, request: StepRequest, answer: StepResult, stale: frozenset[int], is_halted: bool
    ) -> None:
        self.refused_results += len(request.results) - len(answer.accepted)
        for result in request.results:
            if result.token in answer.accepted and result.token in stale:
                detail = f"{process.name}'s result under token {result.token} counted; it is not the claim's"
                self.find("stale worker", detail)
        if answer.grants:
            self._judge_slots()
        if answer.grants and is_halted:
            self.find("granted while halted", f"{process.name} was granted {len(answer.grants)} claims")
        for grant in answer.grants:
            if grant.lease_expires_at <= self.world.now():
                self.find("dead lease", f"token {grant.token} was granted with a lease that has run out")

    def _judge_slots(self) -> None:
        twice = self._rows(
            "SELECT slot, count(*) FROM claims WHERE state = 1 AND overlap <> ? GROUP BY slot"
            " HAVING count(*) > coalesce((SELECT size FROM slot_groups WHERE group_id = -slot), 1)",
            int(Overlap.ALLOW),
        )
        for slot, count in twice:
            self.find("slot held twice", f"slot {slot} has {count} running claims")

    # --- the tables -----------------------------------------------------------------------------------

    def _stale(self, request: StepRequest) -> frozenset[int]:
        """Tokens of results that may not count: their claim does not run under them."""
        return frozenset(result.token for result in request.results if not self._is_result_current(result))

    def _is_result_current(self, result: RunResult) -> bool:
        return self._is_current(result.job_id, result.scheduled_at, result.token)

    def _is_current(self, job_id: int, scheduled_at: datetime, token: int) -> bool:
        rows = self._rows(
            "SELECT token, state FROM claims WHERE job_id = ? AND scheduled_at = ?", job_id, to_micros(scheduled_at)
        )
        return bool(rows) and rows[0] == (token, int(State.RUNNING))

    def _now(self) -> int:
        return to_micros(self.world.now())

    def _one(self, statement: str, *values: object) -> tuple[Any, ...]:
        return self._rows(statement, *values)[0]

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self.store.connection.snapshot() as connection:
            return connection.execute(statement, values).fetchall()


def _brief(arguments: Sequence[Any], result: Any) -> str:
    """A call and its answer as the history tells them."""
    given = arguments[0] if arguments else None
    if isinstance(given, TickBatch):
        claims = ",".join(f"{claim.job_id}@{claim.scheduled_at:%d.%H:%M:%S}" for claim in given.claims)
        skips = ",".join(f"{skip.job_id}:{skip.reason.value}{skip.count}" for skip in given.skips)
        return f"term {given.term} claims [{claims}] skips [{skips}] -> {result}"
    if isinstance(given, LatePlan):
        return f"job {given.job_id} {[verdict.becomes for verdict in given.verdicts]} -> {result}"
    if isinstance(given, StepRequest):
        sent = ",".join(f"{one.token}:{one.outcome.word}" for one in given.results)
        granted = ",".join(str(grant.token) for grant in result.grants)
        return f"sent [{sent}] accepted {sorted(result.accepted)} granted [{granted}]"
    return f"-> {result}"
