"""Edits and pauses against commits in flight and workers that grant early, on PostgreSQL; then the ledger is judged.

    .venv/bin/python -m tests.stores.edit_stress --seconds 60 --seed 1 [--fault NAME]

One leader writes claims a few seconds ahead, three workers take claims up to two seconds early and end or give back
what they took, editors revise, pause and resume jobs two at a time. At the end every tick up to the last edit must
have exactly one decision by the revision and the pauses that were in force (invariant 2), with an arithmetic of this
file's own. The faults that docs/architecture.md names can be planted in the edit routine: each must be found.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

from sexton.claims import Origin
from sexton.decisions import CursorMove, NewClaim, NewSkip, SkipReason, TickBatch
from sexton.job_rules import FiringRules
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import EditRoutine
from sexton.store.postgres.store import PostgresStore
from sexton.store.protocol import ChangeKind, JobChange, JobRow, StoreOptions
from tests.stores.edit_faults import FAULTS
from tests.support.leader_scene import create, definition, lead

JOBS = 30
WORKERS = 3
EDITORS = 2
HORIZON = timedelta(seconds=3)
EARLY = timedelta(seconds=2)
PERIODS = tuple(timedelta(milliseconds=period) for period in (100, 150, 200, 300, 400))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRING = FiringRules()

_GRANT = """
WITH pick AS MATERIALIZED (
  SELECT ctid AS tid FROM claims WHERE state = 0 AND NOT blocked AND scheduled_at < clock_timestamp() + %s
  ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED)
UPDATE claims c SET state = 1, attempt = attempt + 1, token = nextval('tokens') FROM pick WHERE c.ctid = pick.tid
RETURNING c.job_id, c.scheduled_at, c.attempt
"""
_RELEASE = "UPDATE claims SET state = %s WHERE job_id = %s AND scheduled_at = %s AND state = 1"


# --- arithmetic of this file's own -------------------------------------------------------------------


def ticks_between(period: timedelta, after: datetime, upto: datetime) -> list[datetime]:
    """The multiples of the period since the epoch in (after, upto]."""
    first = (after - _EPOCH) // period + 1
    return [_EPOCH + number * period for number in range(first, (upto - _EPOCH) // period + 1)]


def period_of(schedule: str) -> timedelta:
    (part,) = json.loads(schedule)["parts"]
    return timedelta(milliseconds=part["every_ms"])


def is_within(at: datetime, intervals: Sequence[tuple[datetime, datetime | None]]) -> bool:
    return any(since < at and (until is None or at <= until) for since, until in intervals)


# --- the leader --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Plan:
    move: CursorMove
    claims: list[NewClaim]
    skips: list[NewSkip]


def plan(job: JobRow, now: datetime) -> Plan | None:
    """Claims for what is not paused, one growing skip record for what is; None where nothing is to be decided."""
    pauses = [(pause.since, pause.until) for pause in job.pauses]
    upto = now if any(until is None and since <= now for since, until in pauses) else now + HORIZON
    upto = min([upto, *(since for since, until in pauses if until is None and since > now)])
    if upto <= job.at:
        return None
    decided = Plan(CursorMove(job.job_id, job.seq, job.at, upto), [], [])
    for revision in job.revisions:
        begin, end = max(job.at, revision.since), min(upto, revision.until or upto)
        for at in ticks_between(period_of(revision.schedule), begin, end):
            if not is_within(at, pauses):
                decided.claims.append(
                    NewClaim(job.job_id, at, revision.revision, Origin.SCHEDULE, at, at + EARLY, timedelta(0), _FIRING)
                )
    for since, until in pauses:
        begin, end = max(job.at, since), min(upto, until or upto)
        if begin >= end:
            continue
        after, count = begin, 0
        if job.growing is not None and begin == job.at:
            after, count = job.growing.after, job.growing.count
        for revision in job.revisions:
            low, high = max(begin, revision.since), min(end, revision.until or end)
            count += len(ticks_between(period_of(revision.schedule), low, high))
        decided.skips.append(NewSkip(job.job_id, after, end, count, SkipReason.PAUSED, job.pause_detail, 1))
    return decided


def run_leader(stress: Stress) -> None:
    """Write ahead until told to stop; read again what an edit moved."""
    store = stress.open("leader")
    term = store.terms.cluster().term
    loaded = store.ticks.load_jobs()
    jobs, mark = {job.job_id: job for job in loaded.jobs}, loaded.mark
    while not stress.stop_leader.is_set():
        changed = store.ticks.load_jobs(mark)
        jobs |= {job.job_id: job for job in changed.jobs}
        mark = changed.mark
        now = store.now()
        plans = [one for one in (plan(job, now) for job in jobs.values()) if one is not None]
        result = store.ticks.commit(
            TickBatch(
                term,
                now,
                tuple(one.move for one in plans),
                tuple(claim for one in plans for claim in one.claims),
                tuple(skip for one in plans for skip in one.skips),
            )
        )
        assert result.is_current
        stress.counts["commits"] += 1
        stress.counts["not moved"] += len(result.not_moved)
        stress.counts["swallowed"] += result.swallowed
        jobs |= {job.job_id: job for job in store.ticks.read_jobs(list(jobs))}
        stress.decided_upto = min(job.at for job in jobs.values())


# --- workers and editors -----------------------------------------------------------------------------


def run_worker(stress: Stress, seed: int) -> None:
    """Take claims before they are due; end most, give some back."""
    choice = random.Random(seed)
    store = stress.open("worker")
    while not stress.stop_leader.is_set():
        with store.connection.autocommit() as connection:
            granted = connection.execute(_GRANT, [EARLY * choice.random()]).fetchall()
        stress.counts["grants"] += len(granted)
        stress.granted.extend((job_id, at) for job_id, at, attempt in granted if attempt == 1)
        for job_id, at, _ in granted:
            with store.connection.autocommit() as connection:
                connection.execute(_RELEASE, [0 if choice.random() < 0.1 else 3, job_id, at])


def run_editor(stress: Stress, names: Mapping[int, str], seed: int) -> None:
    """Revise, pause and resume, two jobs at a time."""
    choice = random.Random(seed)
    store = stress.open("editor")
    if stress.routine is not None:
        store.edits.routine = stress.routine
    paused: set[int] = set()
    while not stress.stop_editors.is_set():
        changes = []
        for job_id in choice.sample(sorted(names), 2):
            if choice.random() < 0.2:
                kind = ChangeKind.RESUME if job_id in paused else ChangeKind.PAUSE
                changes.append(JobChange(kind, job_id))
            else:
                new = definition(names[job_id], choice.choice(PERIODS))
                changes.append(JobChange(ChangeKind.REVISE, job_id, new))
        done = store.edits.edit(changes, "stress")
        paused -= {one.job_id for one in done if one.kind is ChangeKind.RESUME}
        paused |= {one.job_id for one in done if one.kind is ChangeKind.PAUSE}
        stress.counts["edits"] += len(done)
        stress.counts["withdrawn"] += sum(one.withdrawn for one in done)


@dataclass(slots=True)
class Stress:
    """One run: its database, its threads' flags, what they counted."""

    url: str
    routine: type[EditRoutine] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    granted: list[tuple[int, datetime]] = field(default_factory=list)
    stop_editors: threading.Event = field(default_factory=threading.Event)
    stop_leader: threading.Event = field(default_factory=threading.Event)
    decided_upto: datetime = _EPOCH
    failures: list[BaseException] = field(default_factory=list)
    stores: list[PostgresStore] = field(default_factory=list)

    def open(self, name: str) -> PostgresStore:
        store = PostgresStore(PostgresConnection(StoreOptions(self.url, application=f"sexton {name}")))
        self.stores.append(store)
        return store

    def start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        def run() -> None:
            try:
                target(self, *arguments)
            except BaseException as error:
                self.failures.append(error)
                self.stop_editors.set()
                self.stop_leader.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread


def run(url: str, seconds: float, seed: int, routine: type[EditRoutine] | None = None) -> tuple[Stress, Counter[str]]:
    """Stress the ledger at ``url``; the run, and what the judge found wrong with it."""
    stress = Stress(url, routine)
    store = stress.open("control")
    lead(store)
    choice = random.Random(seed)
    jobs = create(store, *(definition(f"job {number}", choice.choice(PERIODS)) for number in range(JOBS)))
    halves = [{job.job_id: job.name for job in jobs[number::EDITORS]} for number in range(EDITORS)]
    try:
        editors = [partial(run_editor, names=half, seed=seed * 100 + 50 + number) for number, half in enumerate(halves)]
        end = work_through(stress, store, seconds, seed, editors)
        return stress, judge(store, end, stress)
    finally:
        for opened in stress.stores:
            opened.close()


def work_through(
    stress: Stress, store: PostgresStore, seconds: float, seed: int, editors: Sequence[Callable[[Stress], None]]
) -> datetime:
    """A leader, workers and these editors at work at once for so long; the instant up to which all is decided.

    Raises what one of them raised.
    """
    threads = [stress.start(run_leader)]
    threads += [stress.start(run_worker, seed * 100 + number) for number in range(WORKERS)]
    editing = [stress.start(editor) for editor in editors]
    stress.stop_editors.wait(seconds)
    stress.stop_editors.set()
    for thread in editing:
        thread.join()
    end = store.now()
    while stress.decided_upto < end and not stress.stop_leader.wait(0.05):
        pass
    stress.stop_leader.set()
    for thread in threads:
        thread.join()
    if stress.failures:
        raise stress.failures[0]
    return end


# --- the judge ---------------------------------------------------------------------------------------


def judge(store: PostgresStore, end: datetime, stress: Stress) -> Counter[str]:
    """What is wrong with the ledger; ticks up to ``end`` must all be decided."""
    wrong = Counter({"swallowed": stress.counts["swallowed"]})
    wrong["granted twice"] = len(stress.granted) - len(set(stress.granted))
    with store.connection.autocommit() as connection:
        tables = {
            name: connection.execute(query.encode()).fetchall()
            for name, query in {
                "revisions": "SELECT job_id, revision, schedule, in_force_since, in_force_until FROM revisions "
                "ORDER BY job_id, revision",
                "pauses": "SELECT job_id, since, until FROM pauses ORDER BY job_id, since",
                "claims": "SELECT job_id, scheduled_at, revision FROM claims WHERE origin = 0",
                "skips": "SELECT job_id, after, upto, count FROM skips ORDER BY job_id, after",
                "cursors": "SELECT job_id, at FROM cursors",
            }.items()
        }
    claims = {(job_id, at): revision for job_id, at, revision in tables["claims"]}
    wrong["granted and gone"] = sum(granted not in claims for granted in set(stress.granted))
    for job_id, cursor in tables["cursors"]:
        pauses = [(since, until) for one, since, until in tables["pauses"] if one == job_id]
        expected = dict(expected_ticks([row for row in tables["revisions"] if row[0] == job_id], cursor))
        due = {at: revision for at, revision in expected.items() if not is_within(at, pauses)}
        own = {at: revision for (one, at), revision in claims.items() if one == job_id}
        stress.counts["ticks"] += len(due)
        wrong["missing"] += sum(at not in own for at in due if at <= end)
        wrong["of no revision in force"] += sum(due.get(at) != revision for at, revision in own.items() if at <= cursor)
        wrong["beyond the cursor"] += sum(at > cursor for at in own)
        paused = [at for at in expected if at not in due]
        wrong += judge_skips([row[1:] for row in tables["skips"] if row[0] == job_id], paused, end)
        stress.counts["paused"] += len(paused)
    return Counter({what: number for what, number in wrong.items() if number})


def expected_ticks(
    revisions: Sequence[tuple[int, int, str, datetime, datetime | None]], upto: datetime
) -> Iterator[tuple[datetime, int]]:
    for _, revision, schedule, since, until in revisions:
        for at in ticks_between(period_of(schedule), since, min(upto, until or upto)):
            yield at, revision


def judge_skips(
    skips: Sequence[tuple[datetime, datetime, int]], paused: Sequence[datetime], end: datetime
) -> Counter[str]:
    """Skip records form a chain, count what they step over, and leave out no paused tick."""
    wrong: Counter[str] = Counter()
    for (_, earlier_upto, _), (after, _, _) in pairwise(skips):
        wrong["overlapping skips"] += after < earlier_upto
    for after, upto, count in skips:
        wrong["miscounted skips"] += count != sum(after < at <= upto for at in paused)
    wrong["paused and undecided"] += sum(
        not any(after < at <= upto for after, upto, _ in skips) for at in paused if at <= end
    )
    return wrong


def main() -> None:
    from sexton.store.schema import upgrade
    from tests.support.postgres import PostgresServer

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=FAULTS)
    arguments = parser.parse_args()
    with PostgresServer() as server:
        url = server.create_database()
        upgrade(url)
        stress, wrong = run(url, arguments.seconds, arguments.seed, FAULTS.get(arguments.fault))
    print(dict(stress.counts))  # noqa: T201 - the program's answer
    raise SystemExit(f"wrong: {dict(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
