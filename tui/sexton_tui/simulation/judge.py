"""The verdict over a finished simulation, read from its ledger after a quiet time with everything running.

* `sexton audit`: every due tick has exactly one decision, and none is overdue (invariant 2).
* No claim waits or runs for ever: what was due before the quiet time has ended, and nothing is parked beside a free
  slot.
* While one leader led undisturbed, every claim was written before its tick (invariant 5).
* A run that may happen at most once physically began at most once.
* Every takeover is on record and its pass was finished; no halt and no force is left.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sexton.audit import AuditReport
from sexton.audit_findings import Difference, Verdict
from sexton.claims import ENDED_BY_RUN, Origin, State
from sexton.settings import parse_duration
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.sqlite.store import SqliteStore
from sexton.store.tables import from_micros, to_micros
from sexton_tui.simulation.watch import Finding, Watch

# A leader writes what the horizon asks for within this, however slow its calls are in good weather.
WRITING_SLACK = timedelta(seconds=15)
# Without a horizon, what falls due takes a moment to be decided, even where its grace is none.
DECIDING = timedelta(seconds=10)
# What fell due within this before the end may still be under way: paced starts, retries, the longest run.
UNDER_WAY = timedelta(minutes=15)
_LEDGER = {
    "claims": "SELECT job_id, scheduled_at, revision, origin, state, attempt, retries, losses, token, term, written_at,"
    " available_at, finished_at FROM claims ORDER BY job_id, scheduled_at",
    "skips": 'SELECT job_id, after, upto, "count", reason, term, decided_at FROM skips ORDER BY job_id, after',
    "runs": "SELECT token, job_id, scheduled_at, outcome, started_at, finished_at FROM runs ORDER BY token",
    "takeovers": "SELECT term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from, gap_until"
    " FROM takeovers ORDER BY term",
    "decisions": "SELECT * FROM decisions ORDER BY job_id, after, term, cause",
}


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """``[since, until]`` in which one leader led and nothing was in its way."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judge looked at, beside its findings."""

    audit: AuditReport
    findings: tuple[Finding, ...]
    claims: int
    runs: int
    written_ahead: int  # claims whose timely writing was checked
    ledger_digest: str


def judge(
    watch: Watch,
    begin: datetime,
    horizon: timedelta,
    undisturbed: Sequence[Undisturbed],
) -> Judged:
    """Judge the ledger behind the watch; ``undisturbed`` in order of time."""
    store, now = watch.store, watch.world.now()
    report = audit_ledger(store, begin, now - DECIDING)
    findings = [_finding(difference) for difference in report.differences if difference.verdict.fails]
    findings += _unended(store, now)
    findings += _parked_beside_free_slots(store, now)
    checked, late = _written_late(store, horizon, undisturbed)
    findings += late
    findings += _begun_twice(watch)
    findings += _accepted_twice(store)
    findings += _unfinished_takeovers(store, watch)
    findings += _left_standing(store)
    (claims,) = _rows(store, "SELECT count(*) FROM claims")[0]
    return Judged(report, tuple(findings), claims, len(watch.runs), checked, ledger_digest(store))


def lasting(watch: Watch, begin: datetime) -> list[Finding]:
    """What no quiet time would mend, as of now: ticks missing or double, claims ended twice."""
    report = audit_ledger(watch.store, begin, watch.world.now() - DECIDING)
    lost = [one for one in report.differences if one.verdict in (Verdict.MISSING, Verdict.DOUBLE)]
    return [*(_finding(difference) for difference in lost), *_accepted_twice(watch.store)]


def shortest_horizon(store: SqliteStore) -> timedelta:
    """The shortest that was ever set: so far ahead every claim must have been written."""
    changes = [
        json.loads(detail) for (detail,) in _rows(store, "SELECT detail FROM events WHERE action = 'setting.changed'")
    ]
    texts = [change["to"] for change in changes if change["key"] == "horizon"]
    return min((parse_duration(text) for text in texts), default=store.edits.settings().horizon)


def ledger_digest(store: SqliteStore) -> str:
    """A sha256 over the rows of the ledger."""
    digest = hashlib.sha256()
    for name, statement in _LEDGER.items():
        digest.update(name.encode())
        for row in _rows(store, statement):
            digest.update(repr(row).encode())
    return digest.hexdigest()


def _finding(difference: Difference) -> Finding:
    return Finding(difference.verdict.value, f"{difference.job} {difference.at.isoformat()} {difference.detail}")


def _unended(store: SqliteStore, now: datetime) -> list[Finding]:
    stuck = _rows(
        store,
        "SELECT job_id, scheduled_at, state, available_at, lease_expires_at, attempt FROM claims"
        " WHERE state IN (0, 1, 2) AND available_at < ? AND NOT (state = 1 AND lease_expires_at > ?)",
        to_micros(now - UNDER_WAY),
        to_micros(now),
    )
    return [
        Finding(
            "never ended",
            f"job {job_id} {from_micros(tick).isoformat()} is {State(state).word} since"
            f" {from_micros(available).isoformat()} (attempt {attempt})",
        )
        for job_id, tick, state, available, _, attempt in stuck
    ]


def _parked_beside_free_slots(store: SqliteStore, now: datetime) -> list[Finding]:
    rows = _rows(
        store,
        "SELECT DISTINCT p.slot FROM claims p JOIN slots s ON s.slot = p.slot AND s.token IS NULL WHERE p.state = 2"
        " AND NOT EXISTS (SELECT 1 FROM claims r WHERE r.slot = p.slot AND r.state = 0 AND r.available_at <= ?)",
        to_micros(now),
    )
    return [Finding("parked for ever", f"slot {slot} is free, and claims are parked for it") for (slot,) in rows]


def _written_late(
    store: SqliteStore,
    horizon: timedelta,
    undisturbed: Sequence[Undisturbed],
) -> tuple[int, list[Finding]]:
    """Claims whose whole time of writing one leader was undisturbed, and those among them written after their tick."""
    if not horizon:
        return 0, []
    edits: dict[int, list[datetime]] = defaultdict(list)
    for job_id, at in _rows(store, "SELECT job_id, at FROM events WHERE job_id IS NOT NULL ORDER BY at"):
        edits[job_id].append(from_micros(at))
    starts = [stretch.since for stretch in undisturbed]
    checked, findings = 0, []
    for job_id, scheduled, written in _rows(
        store, "SELECT job_id, scheduled_at, written_at FROM claims WHERE origin = ?", int(Origin.SCHEDULE)
    ):
        tick, written_at = from_micros(scheduled), from_micros(written)
        due = tick - horizon
        at = bisect_right(starts, due - WRITING_SLACK) - 1
        if at < 0 or undisturbed[at].until < due + WRITING_SLACK:
            continue
        of_job = edits.get(job_id, [])
        if bisect_left(of_job, due - WRITING_SLACK) != bisect_right(of_job, tick):
            continue
        checked += 1
        if written_at > due + WRITING_SLACK or written_at >= tick:
            detail = f"job {job_id} {tick.isoformat()} was written at {written_at.isoformat()}"
            findings.append(Finding("written late", f"{detail} though a leader led undisturbed"))
    return checked, findings


def _begun_twice(watch: Watch) -> list[Finding]:
    begun = Counter((run.job_id, run.scheduled_at) for run in watch.runs if run.at_most_once and not run.retries)
    return [
        Finding("ran more than once", f"job {job_id} {tick.isoformat()}, at most once, began {count} times")
        for (job_id, tick), count in begun.items()
        if count > 1
    ]


def _accepted_twice(store: SqliteStore) -> list[Finding]:
    """More than one run of a claim that ended it: nothing in a simulation asks for a rerun."""
    ended = ", ".join(str(int(state)) for state in sorted(ENDED_BY_RUN))
    rows = _rows(
        store,
        f"SELECT job_id, scheduled_at, count(*) FROM runs WHERE outcome IN ({ended})"  # noqa: S608 - numbers
        " GROUP BY job_id, scheduled_at HAVING count(*) > 1",
    )
    return [
        Finding("ended twice", f"job {job_id} {from_micros(tick).isoformat()} was ended by {count} runs")
        for job_id, tick, count in rows
    ]


def _unfinished_takeovers(store: SqliteStore, watch: Watch) -> list[Finding]:
    recorded = dict(_rows(store, "SELECT term, gap_until FROM takeovers"))
    findings = [
        Finding("takeover not recorded", f"term {term.number} of {term.process.name}")
        for term in watch.terms
        if term.number not in recorded
    ]
    findings += [
        Finding("takeover not finished", f"term {term} has no end of its gap")
        for term, gap_until in recorded.items()
        if gap_until is None
    ]
    return findings


def _left_standing(store: SqliteStore) -> list[Finding]:
    ((halted, forced_to),) = _rows(store, "SELECT halted, forced_to FROM cluster")
    left = (("halt", bool(halted)), (f"force to {forced_to}", forced_to is not None))
    return [Finding("left standing", f"the {what} is not over") for what, stands in left if stands]


def _rows(store: SqliteStore, statement: str, *values: object) -> list[Any]:
    with store.connection.snapshot() as connection:
        return connection.execute(statement, values).fetchall()
