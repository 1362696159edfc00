"""The race's pass over missed ticks, on SQLite, and the switch of strategies: parts of transactions that run alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.races import THE_RACE, PassShare, RacePass
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.gaps import tell_gap
from sexton.store.sqlite.terms import record_event

_IS_RACE = "EXISTS (SELECT 1 FROM cluster c WHERE c.id = 1 AND c.term = :term AND NOT c.halted AND c.strategy = 'race')"
_SHARE = """
SELECT 1 FROM race_pass WHERE id = 1 AND number = ? AND is_open AND NOT holds AND fired + ? <= ?
"""
_COUNT = "UPDATE race_pass SET fired = fired + ? WHERE id = 1 AND number = ?"
_NEWEST = """
SELECT p.number, p.is_open, p.fired, p.holds, EXISTS (
  SELECT 1 FROM takeovers t JOIN cluster c ON c.id = 1 AND c.term = t.term AND c.strategy = 'race'
  WHERE t.gap_until IS NULL)
FROM race_pass p WHERE p.id = 1
"""
_FIRED_BEFORE = """
SELECT coalesce(sum(d.fired), 0) FROM decisions d JOIN takeovers t USING (term)
WHERE t.gap_until IS NULL AND d.cause = 'takeover'
"""
_OPEN = f"""
UPDATE race_pass SET number = number + 1, is_open = 1, fired = :fired, term = :term,
  holds = :fired + :found > :hold_above, opened_at = :now
WHERE id = 1 AND number = :after AND NOT is_open AND {_IS_RACE}
RETURNING number, is_open, fired, holds
"""  # noqa: S608 - the part is a constant
_END = f"UPDATE race_pass SET is_open = 0 WHERE id = 1 AND number = :number AND is_open AND {_IS_RACE}"  # noqa: S608 - so
_CLOSE = "UPDATE takeovers SET gap_until = :now WHERE term <= :term AND gap_until IS NULL"
_DRAW = "UPDATE budget SET next_at = max(next_at, ?) + ? WHERE id = 1 RETURNING next_at"
_BEFORE_SWITCH = """
SELECT c.term, c.strategy, c.leader, c.predecessor, c.left_at, h.at FROM cluster c, heartbeat h
WHERE c.id = 1 AND h.id = 1 AND c.strategy <> ?
"""
_SWITCH = """
UPDATE cluster SET strategy = ?, term = ?, leader = NULL, leader_since = ?, elected_by = NULL, predecessor = ?,
  left_at = ?, resign_requested = 0, forced_to = NULL
WHERE id = 1
"""
_BEAT = "UPDATE heartbeat SET term = ?, counter = counter + 1, at = ?, confirmation = 'confirmed' WHERE id = 1"
_RECORD = """
INSERT INTO takeovers (term, node, elected_by, taken_at, predecessor, predecessor_ended, gap_from)
VALUES (?, ?, 'race', ?, ?, ?, ?)
"""


class SqliteRaces:
    """Implements ``RaceStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def newest_pass(self) -> RacePass:
        with self._connection.snapshot() as connection:
            return _race_pass(connection.execute(_NEWEST).fetchone())

    def open_pass(
        self, term: int, after: int, found: int, hold_above: int, gap_from: datetime | None = None
    ) -> RacePass | None:
        with self._connection.transaction() as connection:
            (fired,) = connection.execute(_FIRED_BEFORE).fetchone()
            values = {"fired": fired, "term": term, "found": found, "hold_above": hold_above, "after": after}
            now = self._connection.now_micros()
            rows = connection.execute(_OPEN, {**values, "now": now}).fetchall()
            if rows and gap_from is not None:
                tell_gap(connection, now, THE_RACE, term, gap_from)
        return _race_pass(rows[0]) if rows else None

    def end_pass(self, term: int, number: int) -> bool:
        with self._connection.transaction() as connection:
            if connection.execute(_END, {"term": term, "number": number}).rowcount == 0:
                return False
            connection.execute(_CLOSE, {"term": term, "now": self._connection.now_micros()})
        return True


def is_within(connection: sqlite3.Connection, share: PassShare) -> bool:
    """Whether a commit with this share may be written."""
    return connection.execute(_SHARE, [share.number, share.fires, share.hold_above]).fetchone() is not None


def count_fired(connection: sqlite3.Connection, share: PassShare, fired: int) -> None:
    """The pass has fired so many more."""
    connection.execute(_COUNT, [fired, share.number])


def drawn_shift(connection: sqlite3.Connection, share: PassShare, now: int, planned_at: int) -> int:
    """By how many microseconds paced claims start later than planned, their starts drawn from the budget; ``now`` and
    ``planned_at`` in microseconds."""
    span = timedelta(seconds=len(share.paced) / share.rate) // timedelta(microseconds=1)
    ((after,),) = connection.execute(_DRAW, [now, span]).fetchall()
    return int(after) - span - planned_at


def switch_strategy(connection: sqlite3.Connection, value: str, actor: str, now: int) -> bool:
    """Change the strategy, in the transaction open on ``connection``; whether it was another one."""
    before = connection.execute(_BEFORE_SWITCH, [value]).fetchone()
    if before is None:
        return False
    term, strategy, leader, predecessor, left_at, last_beat = before
    who = THE_RACE if strategy == "race" else leader or predecessor
    left_at = last_beat if strategy == "race" or leader is not None else left_at
    connection.execute(_SWITCH, [value, term + 1, now, who, left_at])
    if value == "race":
        connection.execute(_BEAT, [term + 1, now])
        connection.execute(_RECORD, [term + 1, THE_RACE, now, who, "none" if who is None else "resigned", left_at])
    record_event(connection, now, actor, "strategy.changed", {"from": strategy, "to": value, "term": term + 1})
    return True


def _race_pass(row: Sequence[int]) -> RacePass:
    number, is_open, fired, holds, *awaited = row
    return RacePass(number, bool(is_open), fired, bool(holds), any(awaited))
