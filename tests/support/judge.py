"""What a trial's cluster must have left behind, whatever was done to it: read from the ledger, and from the runs' log.

A judge takes note of each takeover right after it: whatever a term before it wrote was committed then (its commits hold
the row that the takeover must change), so whatever it has written beyond that later is a stale write (invariant 3).
"""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, select

from sexton.audit import AuditReport
from sexton.claims import Origin, State
from sexton.decisions import Cause
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.tables import claims, decisions, jobs, proposals, runs, skips, takeovers
from tests.support.trial import Takeover, Trial

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """All that the terms before this one had written when it began."""

    term: int
    written: frozenset[Key]


class Judge:
    """Judges one trial. `note` every takeover as soon as it is there, `check` as often as you like."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._notes: list[Note] = []

    def takeover_after(self, term: int) -> Takeover:
        """The next takeover, taken note of; its pass may not be done yet."""
        taken = self.trial.takeover_after(term)
        self.keep(self.note(taken.term))
        return taken

    def note(self, term: int) -> Note:
        """What the terms before this one have written by now."""
        with self.trial.store.reads.snapshot() as connection:
            return Note(term, _written_before(connection, term))

    def keep(self, note: Note) -> None:
        """Judge by it: its term had begun, or began right after it."""
        self._notes.append(note)

    def check(self) -> AuditReport:
        """All of it; the audit's report."""
        report = audit_ledger(self.trial.store, _BEGINNING)
        assert report.is_clean, report.differences
        with self.trial.store.reads.snapshot() as connection:
            for note in self._notes:
                stale = _written_before(connection, note.term) - note.written
                assert not stale, f"written for an older term than {note.term} after it began: {sorted(stale, key=str)}"
            late = [*connection.execute(_LATE_CLAIMS).all(), *connection.execute(_LATE_DECISIONS).all()]
            assert not late, f"written for a term after the next one began: {late}"
            _check_runs(connection.execute(_RUNS).all())
        assert self.trial.counter("swallowed") == 0  # invariant 6: a claim that a cursor had not stepped over
        self._check_log()
        return report

    def check_written_ahead(self, taken: Takeover) -> None:
        """Invariant 5: the claims of the gap were there before their ticks, by a leader before this one.

        Of its first 50 seconds: that is as far as 60 s of horizon surely reach, and a loaded machine may take longer.
        """
        assert taken.gap_from is not None
        assert taken.gap_until is not None
        until = min(taken.gap_until, taken.gap_from + timedelta(seconds=50))
        in_gap = select(claims).where(claims.c.scheduled_at > taken.gap_from, claims.c.scheduled_at <= until)
        with self.trial.store.reads.snapshot() as connection:
            found = connection.execute(in_gap.where(claims.c.origin == Origin.SCHEDULE)).all()
        assert len(found) >= EVERY_SECOND * ((until - taken.gap_from) // timedelta(seconds=1))
        assert all(claim.written_at < claim.scheduled_at and claim.term < taken.term for claim in found)

    def check_listing(self, taken: Takeover) -> int:
        """`sexton takeovers TERM` tells whom it followed and what it decided, as the ledger has it; how many ticks.

        Of its pass alone, which is done: what else its term decides, of claims that nobody starts, may go on.
        """
        listed: dict[str, Any] = json.loads(self.trial.sexton("takeovers", str(taken.term), "--output", "json"))
        assert (listed["node"], listed["predecessor"]) == (taken.node, taken.predecessor)
        assert listed["predecessor_ended"] == taken.predecessor_ended
        with self.trial.store.reads.snapshot() as connection:
            recorded = connection.execute(_decided(taken.term)).all()
        told = [one for one in listed["decisions"] if one["cause"] == Cause.TAKEOVER]
        assert sorted((one["job"], one["missed"], one["fired"], one["reason"]) for one in told) == sorted(
            (row.name, row.missed, row.fired, row.reason) for row in recorded
        )
        for row in recorded:
            assert row.missed == row.fired + row.merged + row.skipped + row.expired + row.held, row
            assert str(row.missed) in row.reason, row
        return sum(row.missed for row in recorded)

    def _check_log(self) -> None:
        """At most once is at most once, and what counts as succeeded did run: by the runs' own log."""
        lines = self.trial.log()
        once = collections.Counter((job, tick) for job, tick, _ in lines if job in ONCE)
        assert not {key: count for key, count in once.items() if count > 1}
        with self.trial.store.reads.snapshot() as connection:
            accepted = connection.execute(_SUCCEEDED).all()
        ran = {(job, token) for job, _, token in self.trial.log()}
        assert {(row.name, row.token) for row in accepted} <= ran


_BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
EVERY_SECOND = 9  # jobs of the trial that are due every second
ONCE = ("paid-once", "long-hymn-once")
_LOGGED = (*ONCE, "every-stroke-in-order", "long-hymn")
_SUCCEEDED = (
    select(jobs.c.name, runs.c.token)
    .join(jobs, jobs.c.job_id == runs.c.job_id)
    .where(jobs.c.name.in_(_LOGGED), runs.c.outcome == State.SUCCEEDED)
)
_RUNS = select(runs.c.job_id, runs.c.scheduled_at, runs.c.token, runs.c.attempt, runs.c.outcome).order_by(
    runs.c.job_id, runs.c.scheduled_at, runs.c.token
)
_NEXT = takeovers.alias("next_takeover")
_LATE_CLAIMS = (
    select(claims.c.job_id, claims.c.scheduled_at, claims.c.term, claims.c.written_at, _NEXT.c.term, _NEXT.c.taken_at)
    .join(_NEXT, _NEXT.c.term > claims.c.term)
    .where(claims.c.written_at > _NEXT.c.taken_at, claims.c.origin != Origin.MANUAL)
)
_LATE_DECISIONS = (
    select(decisions.c.job_id, decisions.c.after, decisions.c.term, decisions.c.decided_at, _NEXT.c.taken_at)
    .join(_NEXT, _NEXT.c.term > decisions.c.term)
    .where(decisions.c.decided_at > _NEXT.c.taken_at)
)


def _decided(term: int) -> Select[Any]:
    of_pass = (decisions.c.term == term, decisions.c.cause == Cause.TAKEOVER)
    return select(decisions, jobs.c.name).join(jobs, jobs.c.job_id == decisions.c.job_id).where(*of_pass)


def _written_before(connection: Connection, term: int) -> frozenset[Key]:
    """Every row that a term before this one wrote, with what it says."""
    wanted = {
        "claim": select(claims.c.term, claims.c.job_id, claims.c.scheduled_at),
        "skip": select(skips.c.term, skips.c.job_id, skips.c.after, skips.c.upto, skips.c.count),
        "decision": select(decisions.c.term, decisions.c.job_id, decisions.c.after, decisions.c.upto),
        "proposal": select(proposals.c.term, proposals.c.job_id, proposals.c.after),
    }
    found: set[Key] = set()
    for kind, statement in wanted.items():
        found |= {(kind, *row) for row in connection.execute(statement) if row.term < term}
    return frozenset(found)


def _check_runs(rows: Iterable[Any]) -> None:
    """Of the runs of a claim at most one counts, the last; each has a higher token than the one before."""
    by_claim: dict[Key, list[Any]] = collections.defaultdict(list)
    for row in rows:
        by_claim[row.job_id, row.scheduled_at].append(row)
    for key, tries in by_claim.items():
        assert [one.attempt for one in tries] == sorted({one.attempt for one in tries}), key
        assert all(one.outcome == State.READY for one in tries[:-1]), key
