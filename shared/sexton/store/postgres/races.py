"""The race's pass over missed ticks, on PostgreSQL: one row, and the parts of statements that make them part of it.

The row is locked by whoever fires missed ticks, for the moment of the statement, and passed by where another has it:
racers wait for nobody.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sexton.races import THE_RACE, PassShare, RacePass
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.gaps import GAP_TOLD, HAS_GAP, TELL_GAP
from sexton.terms import gap_told

# In a race term and strategy are read plainly: the cursors' compare-and-set alone decides among racers.
IS_RACE = "SELECT term = %(term)s AND NOT halted AND strategy = 'race' FROM cluster WHERE id = 1"

SHARE = """share AS MATERIALIZED (
  SELECT 1 FROM race_pass WHERE id = 1 AND number = %(pass)s AND is_open AND NOT holds
    AND fired + %(fires)s <= %(hold_above)s FOR UPDATE SKIP LOCKED)"""
IS_WITHIN = "EXISTS (SELECT 1 FROM share)"

_NEWEST = """
SELECT p.number, p.is_open, p.fired, p.holds, EXISTS (
  SELECT 1 FROM takeovers t JOIN cluster c ON c.id = 1 AND c.term = t.term AND c.strategy = 'race'
  WHERE t.gap_until IS NULL)
FROM race_pass p WHERE p.id = 1
"""

# What a leader's unfinished pass has fired counts: whoever goes on with it, goes on with its count.
_OPEN = f"""
WITH before AS MATERIALIZED (
  SELECT coalesce(sum(d.fired), 0)::bigint AS fired FROM decisions d JOIN takeovers t USING (term)
  WHERE t.gap_until IS NULL AND d.cause = 'takeover'),
 opened AS (
  UPDATE race_pass p SET number = p.number + 1, is_open = true, fired = before.fired, term = %(term)s,
    holds = before.fired + %(found)s > %(hold_above)s, opened_at = clock_timestamp()
  FROM before WHERE p.id = 1 AND p.number = %(after)s AND NOT p.is_open AND ({IS_RACE})
  RETURNING p.number, p.is_open, p.fired, p.holds, p.opened_at),
 told AS (
  {TELL_GAP} SELECT o.opened_at, '{THE_RACE}', {GAP_TOLD} FROM opened o WHERE {HAS_GAP})
SELECT number, is_open, fired, holds FROM opened
"""  # noqa: S608 - the parts are constants

_END = f"""
WITH ended AS (
  UPDATE race_pass SET is_open = false WHERE id = 1 AND number = %(number)s AND is_open AND ({IS_RACE}) RETURNING 1),
 closed AS (
  UPDATE takeovers SET gap_until = clock_timestamp() WHERE term <= %(term)s AND gap_until IS NULL
    AND EXISTS (SELECT 1 FROM ended))
SELECT 1 FROM ended
"""  # noqa: S608 - the parts are constants


def share_values(share: PassShare) -> dict[str, Any]:
    """The parameters of ``SHARE``."""
    return {"pass": share.number, "fires": share.fires, "hold_above": share.hold_above}


class PostgresRaces:
    """Implements ``RaceStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def newest_pass(self) -> RacePass:
        with self._connection.autocommit() as connection:
            row = connection.execute(_NEWEST).fetchone()
        return RacePass(*row or (0, False, 0, False))

    def open_pass(
        self, term: int, after: int, found: int, hold_above: int, gap_from: datetime | None = None
    ) -> RacePass | None:
        told = None if gap_from is None else gap_told(gap_from)
        values = {"term": term, "after": after, "found": found, "hold_above": hold_above, "gap_from": told}
        with self._connection.autocommit() as connection:
            row = connection.execute(_OPEN, values).fetchone()
        return None if row is None else RacePass(*row)

    def end_pass(self, term: int, number: int) -> bool:
        with self._connection.autocommit() as connection:
            return connection.execute(_END, {"term": term, "number": number}).rowcount == 1
