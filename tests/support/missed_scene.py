"""What becomes of missed ticks, told in steps: a cluster on virtual time over a real ledger, and that ledger as lines.

A scene begins at 02:00:30 on 2 March 2026 with one node, one worker and ``horizon: 0s``, so that each tick is decided
when it falls due. Times in steps are the clock's (``02:06:30``), of another day with its date (``03-03 02:06:30``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any
from unittest.mock import patch

from sexton.bulk_ticks import micros_of
from sexton.claims import Origin, State
from sexton.decisions import CommitResult, TickBatch
from sexton.errors import DatabaseUnreachable
from sexton.holds import ALL, Part
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.jobfiles.writing import JobEntry, job_file_text
from sexton.settings import parse_duration
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import ChangeKind, EditConditions, HoldAnswer, JobChange
from sexton.store.sqlite.ticks import SqliteTicks
from sexton.store.tables import from_micros
from tests.support.held_scene import approval
from tests.support.virtual_nodes import TWO, VirtualCluster
from tests.support.virtual_worker import VirtualWorker

Jobs = Mapping[str, Mapping[str, Any]]
BEGIN = TWO + timedelta(seconds=30)
_UNRUN = (State.SKIPPED, State.MERGED, State.EXPIRED, State.HELD)
_WATCHED = timedelta(seconds=7)  # a successor watches the leader's heartbeat for one session of 6 s


class MissedScene:
    """The cluster of a scene."""

    def __init__(self, jobs: Jobs) -> None:
        self.cluster = VirtualCluster(BEGIN)
        self.cluster.set(horizon="0s")
        self.takes: dict[int, timedelta] = {}
        self.worker = VirtualWorker(self.cluster.open(), self.takes)
        self.cluster.workers.append(self.worker)
        self.apply(jobs)
        self.cluster.node("node-1")

    def apply(self, jobs: Jobs) -> None:
        """Make the cluster's jobs these, as `sexton apply --prune` does."""
        entries = [JobEntry(name, {"command": ["true"], **keys}) for name, keys in jobs.items()]
        store = self.cluster.store
        loaded = load_job_text(job_file_text(entries))
        plan = plan_changes(loaded, store.edits.current_jobs(), prune=True, prune_limit=99)
        store.edits.edit(plan.changes, "team", EditConditions(plan.unchanged_at))

    def until(self, when: str, step: float = 0.5) -> None:
        """Let time pass; steps fall on whole multiples of a step, where ticks fall due."""
        clock = self.cluster.clock
        self.cluster.run(-clock.wall().timestamp() % step)
        self.cluster.run((instant(when) - clock.wall()).total_seconds(), step)

    def jump(self, to: datetime) -> None:
        """Nobody does anything until then."""
        self.cluster.clock.seconds += (to - self.cluster.clock.wall()).total_seconds()

    def change(self, kind: ChangeKind, job: str) -> None:
        self.cluster.store.edits.edit([JobChange(kind, job_id=self.job_id(job))], "ana")

    def job_id(self, name: str) -> int:
        return self.cluster.store.edits.find_job(name).job_id

    def close(self) -> None:
        self.worker.store.close()
        self.cluster.close()

    # --- the ledger as lines ---------------------------------------------------------------------------------

    def ledger(self) -> dict[str, list[str]]:
        """By job its claims up to now, skip records and proposals. Neighbouring claims of one origin and state are one
        line."""
        jobs = self.cluster.rows("SELECT job_id, name FROM jobs ORDER BY job_id")
        return {name: [*self._ticks(job_id), *self._proposals(job_id)] for job_id, name in jobs}

    def _ticks(self, job_id: int) -> list[str]:
        of_job = f"WHERE job_id = {job_id}"
        ((newest,),) = self.cluster.rows(f"SELECT max(revision) FROM revisions {of_job}")
        skips = self.cluster.rows(f"SELECT after, upto, count, reason, resolved_at, revision FROM skips {of_job}")
        lines = [
            (upto, f"({_told(after)}, {_told(upto)}]: record of {count} {reason}" + _under(revision, newest, resolved))
            for after, upto, count, reason, resolved, revision in skips
        ]
        claims = self.cluster.rows(f"SELECT scheduled_at, origin, state, revision FROM claims {of_job} ORDER BY 1")
        now = micros_of(self.cluster.clock.wall())
        ends = sorted(upto for upto, _ in lines)
        told = (
            (at, (bisect_left(ends, at), _claim(Origin(origin), State(state)) + _under(revision, newest)))
            for at, origin, state, revision in claims
            if at <= now
        )
        for (_, words), group in groupby(told, key=itemgetter(1)):  # a skip record between them parts neighbours
            ticks = [at for at, _ in group]
            stretch = _told(ticks[0]) if len(ticks) == 1 else f"{_told(ticks[0])} .. {_told(ticks[-1])}"
            lines.append((ticks[-1], f"{stretch}: {len(ticks)} {words}"))
        return [line for _, line in sorted(lines)]

    def _proposals(self, job_id: int) -> Iterator[str]:
        chosen = f"FROM proposals WHERE job_id = {job_id} ORDER BY proposal_id"
        for count, state, by, approved in self.cluster.rows(f"SELECT count, state, answered_by, approved {chosen}"):
            whose = "" if by is None else f" by {by}"
            yield f"proposal of {count}: {state}{whose}" + (f", {approved} run" if approved else "")

    def assert_clean(self) -> None:
        """Invariant 2, over all that was ever due."""
        report = audit_ledger(self.cluster.store, BEGIN - timedelta(days=1))
        assert report.is_clean, report.differences
        assert report.due == report.decided > 0


def instant(when: str) -> datetime:
    """``02:06:30`` of the scene's first day, ``03-03 02:06:30``, ``2027-03-02 02:06:30``; seconds may be left out."""
    date, _, time = when.rpartition(" ")
    full = BEGIN.date().isoformat()
    return datetime.fromisoformat(f"{full[: len(full) - len(date)]}{date}T{time}").replace(tzinfo=UTC)


def _claim(origin: Origin, state: State) -> str:
    """Of a claim that was decided afterwards not to run, its origin tells nothing."""
    return f"claimed, {state.word}" if state in _UNRUN else f"{origin.word} {state.word}"


def _under(revision: int, newest: int, resolved: object = None) -> str:
    told = "" if resolved is None else ", run after all"
    return told if newest == 1 else f"{told} under revision {revision}"


def _told(micros: int) -> str:
    """As short as ``instant`` reads it."""
    told = from_micros(micros)
    time = told.strftime("%H:%M:%S") if told.second else told.strftime("%H:%M")
    if told.date() == BEGIN.date():
        return time
    return f"{told.strftime('%m-%d' if told.year == BEGIN.year else '%Y-%m-%d')} {time}"


# --- steps -------------------------------------------------------------------------------------------------------

Step = Callable[[MissedScene], None]


def until(when: str, every: float = 0.5) -> Step:
    """All goes on until then; nodes and worker are stepped every so many seconds."""
    return lambda scene: scene.until(when, every)


def without_leader(since: str, to: str, *meanwhile: tuple[str, Step]) -> Step:
    """The leader dies, and a successor leads when the gap is over; ``meanwhile`` this happens then."""

    def happens(scene: MissedScene) -> None:
        scene.until(since)
        for node in scene.cluster.nodes:
            node.is_alive = False
        scene.cluster.run(2)
        for when, step in meanwhile:
            scene.jump(instant(when))
            step(scene)
        scene.jump(instant(to) - _WATCHED)
        successor = scene.cluster.node(f"node-{len(scene.cluster.nodes) + 1}")
        scene.until(to)
        assert successor.term is not None

    return happens


def asleep(since: str, to: str) -> Step:
    """Everything stands still, and goes on with the same leader."""

    def happens(scene: MissedScene) -> None:
        scene.until(since)
        scene.jump(instant(to))

    return happens


def dying_in_its_pass(gap: Step, decided: int) -> Step:
    """Who ends the gap dies when so many jobs of its pass are decided, and a successor goes on."""

    def happens(scene: MissedScene) -> None:
        commit, nodes = SqliteTicks.commit, scene.cluster.nodes

        def cut_short(ticks: SqliteTicks, batch: TickBatch) -> CommitResult:
            if not batch.decisions:
                return commit(ticks, batch)
            if not any(node.is_alive for node in nodes):
                raise DatabaseUnreachable("this node is dead")
            for node in nodes:
                node.is_alive = False
            rest = tuple(move.job_id for move in batch.moves[decided:])
            return replace(commit(ticks, first_of(batch, decided)), not_moved=rest)

        with patch.object(SqliteTicks, "commit", cut_short):
            gap(scene)
            scene.cluster.run(1)
        assert not any(node.is_alive for node in nodes)
        scene.cluster.node(f"node-{len(nodes) + 1}")
        scene.cluster.run(_WATCHED.total_seconds())

    return happens


def first_of(batch: TickBatch, jobs: int) -> TickBatch:
    """What the batch says of its first so many jobs."""
    kept = {move.job_id for move in batch.moves[:jobs]}
    return replace(
        batch,
        moves=batch.moves[:jobs],
        claims=tuple(one for one in batch.claims if one.job_id in kept),
        skips=tuple(one for one in batch.skips if one.job_id in kept),
        proposals=tuple(one for one in batch.proposals if one.job_id in kept),
        decisions=tuple(one for one in batch.decisions if one.job_id in kept),
    )


def without_worker(since: str, to: str, every: float) -> Step:
    """Ticks are claimed as they fall due, and nobody runs them."""

    def happens(scene: MissedScene) -> None:
        scene.until(since)
        scene.worker.is_there = False
        scene.until(to, every)
        scene.worker.is_there = True

    return happens


def runs_take(duration: str, *jobs: str) -> Step:
    """Runs of these jobs that start from now on take so long."""
    return lambda scene: scene.takes.update({scene.job_id(job): parse_duration(duration) for job in jobs})


def settings(**values: str) -> Step:
    """Settings of the cluster; ``__`` stands for the dot."""
    return lambda scene: scene.cluster.set(**values)


def paced_at(rate: float, origin: Origin = Origin.CATCH_UP) -> Step:
    """Holds: in all the cluster, starts of this origin lie this far apart."""

    def holds(scene: MissedScene) -> None:
        found = scene.cluster.rows(f"SELECT available_at FROM claims WHERE origin = {origin} ORDER BY 1")
        assert found
        assert all(later - earlier >= 1_000_000 / rate - 1 for (earlier,), (later,) in pairwise(found))

    return holds


def apply(jobs: Jobs) -> Step:
    """The job files say this from now on; a job that they no longer name is retired."""
    return lambda scene: scene.apply(jobs)


def pause(job: str) -> Step:
    return lambda scene: scene.change(ChangeKind.PAUSE, job)


def resume(job: str) -> Step:
    return lambda scene: scene.change(ChangeKind.RESUME, job)


def approve(proposal: int = 1, part: Part = ALL, by: str = "ana") -> Step:
    """An operator approves a part of the proposal, as it stands."""

    def happens(scene: MissedScene) -> None:
        store = scene.cluster.store
        assert store.holds.approve(approval(store, proposal, part), by).is_done

    return happens


def reject(proposal: int = 1, by: str = "ana") -> Step:
    def happens(scene: MissedScene) -> None:
        assert scene.cluster.store.holds.reject(proposal, by).is_done

    return happens


def two_approve(first: tuple[str, Part], second: tuple[str, Part], proposal: int = 1) -> Step:
    """Two operators have looked at the proposal before either answers; the second is told of the first."""

    def happens(scene: MissedScene) -> None:
        store = scene.cluster.store
        asked = [(approval(store, proposal, part), by) for by, part in (first, second)]
        won, lost = (store.holds.approve(one, by) for one, by in asked)
        assert _answer(won) == (True, first[0])
        assert _answer(lost) == (False, first[0])

    return happens


def _answer(answer: HoldAnswer) -> tuple[bool, str | None]:
    return answer.is_done, answer.answered_by
