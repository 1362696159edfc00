"""The leader's commit on SQLite: the decisions of the PostgreSQL statement, in one BEGIN IMMEDIATE transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from sexton.claims import OnWorkerLost
from sexton.decisions import CommitResult, JobDecision, NewClaim, NewProposal, NewSkip, TickBatch
from sexton.races import PassShare
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.races import count_fired, drawn_shift, is_within
from sexton.store.tables import to_micros

FRESH_FOR = timedelta(seconds=5)
SOON = timedelta(seconds=5)
_MILLISECOND = timedelta(milliseconds=1)

_FENCE = "SELECT term = ?, halted FROM cluster WHERE id = 1"
_MOVE = "UPDATE cursors SET at = ? WHERE job_id = ? AND seq = ? AND at = ? AND at < ?"
_PAUSED = "SELECT job_id FROM pauses WHERE until IS NULL"
_GROUPED = "SELECT job_id, slot FROM jobs WHERE slot IS NOT NULL"
_CLAIM = """
INSERT INTO claims (job_id, scheduled_at, revision, origin, queue, priority, overlap, slot, available_at, start_by,
  blocked, at_most_once, jitter_ms, term, written_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_SKIP = """
INSERT INTO skips (job_id, after, upto, count, reason, detail, revision, term, decided_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, after) DO UPDATE SET upto = excluded.upto, count = excluded.count, reason = excluded.reason,
  detail = excluded.detail, revision = excluded.revision, term = excluded.term, decided_at = excluded.decided_at
"""
PROPOSE = """
INSERT INTO proposals (job_id, revision, after, upto, count, within_from, lapses_at, made_at, term, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, after) DO UPDATE SET upto = excluded.upto, count = excluded.count
"""
EXPLAIN = """
INSERT INTO decisions (job_id, revision, cause, after, upto, policy, missed, fired, merged, skipped, expired, held,
  reason, term, decided_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, after, term, cause) DO UPDATE SET upto = excluded.upto, missed = excluded.missed,
  fired = excluded.fired, merged = excluded.merged, skipped = excluded.skipped, expired = excluded.expired,
  held = excluded.held, reason = excluded.reason, decided_at = excluded.decided_at
"""
_COUNT = """
INSERT INTO counters (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value
"""


def fence(connection: sqlite3.Connection, term: int) -> tuple[bool, bool]:
    """Whether the term is current, and whether it may write (it may not in a halted cluster)."""
    is_current, is_halted = connection.execute(_FENCE, [term]).fetchone()
    return bool(is_current), bool(is_current and not is_halted)


def commit(store: SqliteConnection, batch: TickBatch) -> CommitResult:
    """``TickStore.commit``."""
    with store.transaction() as connection:
        is_current, may_write = fence(connection, batch.term)
        now = store.now()
        is_fresh = now < batch.planned_at + FRESH_FOR
        fits = batch.share is None or is_within(connection, batch.share)
        moved = {
            move.job_id
            for move in batch.moves
            if may_write and is_fresh and fits
            for upto in (to_micros(move.upto),)
            if connection.execute(_MOVE, [upto, move.job_id, move.seq, to_micros(move.was), upto]).rowcount == 1
        }
        claims = [claim for claim in batch.claims if claim.job_id in moved]
        if batch.share is not None and moved:
            claims = _in_pass(connection, batch, batch.share, claims, moved, to_micros(now))
        inserted = _insert_claims(connection, claims, batch.term, to_micros(now))
        _insert_skips(connection, (skip for skip in batch.skips if skip.job_id in moved), batch.term, to_micros(now))
        for proposal in batch.proposals:
            if proposal.job_id in moved:
                connection.execute(PROPOSE, proposal_values(proposal, batch.term, to_micros(now)))
        for decision in batch.decisions:
            if decision.job_id in moved:
                connection.execute(EXPLAIN, decision_values(decision, batch.term, to_micros(now)))
        swallowed = len(claims) - inserted
        if swallowed:
            connection.execute(_COUNT, ["swallowed", swallowed])
        if not is_current:
            connection.execute(_COUNT, ["stale_commits", 1])
        if any(claim.available_at < now + SOON for claim in claims):
            notify(store, connection, Channel.WORK)
    not_moved = tuple(sorted(move.job_id for move in batch.moves if move.job_id not in moved))
    return CommitResult(is_current, is_fresh, len(moved), swallowed, not_moved, fits)


def _in_pass(
    connection: sqlite3.Connection,
    batch: TickBatch,
    share: PassShare,
    claims: list[NewClaim],
    moved: set[int],
    now: int,
) -> list[NewClaim]:
    """The claims with their starts drawn from the catch-up budget; what fires is counted in the race's pass."""
    count_fired(connection, share, sum(one.fired for one in batch.decisions if one.job_id in moved))
    if not share.paced:
        return claims
    shift = timedelta(microseconds=drawn_shift(connection, share, now, to_micros(batch.planned_at)))
    return [
        replace(
            claim,
            available_at=claim.available_at + shift,
            start_by=None if claim.start_by is None else claim.start_by + shift,
        )
        if (claim.job_id, claim.scheduled_at) in share.paced
        else claim
        for claim in claims
    ]


def _insert_claims(connection: sqlite3.Connection, claims: list[NewClaim], term: int, now: int) -> int:
    """How many of the claims were new."""
    if not claims:
        return 0
    paused = {job_id for (job_id,) in connection.execute(_PAUSED)}
    slot_of = dict(connection.execute(_GROUPED).fetchall())
    rows = [
        (
            claim.job_id,
            to_micros(claim.scheduled_at),
            claim.revision,
            int(claim.origin),
            claim.firing.queue,
            claim.firing.priority,
            int(claim.firing.overlap),
            slot_of.get(claim.job_id, claim.job_id),
            to_micros(claim.available_at),
            None if claim.start_by is None else to_micros(claim.start_by),
            claim.job_id in paused,
            claim.firing.on_worker_lost is OnWorkerLost.FAIL,
            claim.jitter // _MILLISECOND,
            term,
            now,
        )
        for claim in claims
    ]
    return connection.executemany(_CLAIM, rows).rowcount


def _insert_skips(connection: sqlite3.Connection, skips: Iterable[NewSkip], term: int, now: int) -> None:
    rows = [
        (
            skip.job_id,
            to_micros(skip.after),
            to_micros(skip.upto),
            skip.count,
            skip.reason.value,
            skip.detail,
            skip.revision,
            term,
            now,
        )
        for skip in skips
    ]
    connection.executemany(_SKIP, rows)


def proposal_values(proposal: NewProposal, term: int, now: int) -> tuple[int | str, ...]:
    """The parameters of ``PROPOSE``."""
    return (
        proposal.job_id,
        proposal.revision,
        to_micros(proposal.after),
        to_micros(proposal.upto),
        proposal.count,
        to_micros(proposal.within_from),
        to_micros(proposal.lapses_at),
        now,
        term,
        proposal.reason,
    )


def decision_values(decision: JobDecision, term: int, now: int) -> tuple[int | str, ...]:
    """The parameters of ``EXPLAIN``."""
    return (
        decision.job_id,
        decision.revision,
        decision.cause.value,
        to_micros(decision.after),
        to_micros(decision.upto),
        decision.policy,
        decision.missed,
        decision.fired,
        decision.merged,
        decision.skipped,
        decision.expired,
        decision.held,
        decision.reason,
        term,
        now,
    )
