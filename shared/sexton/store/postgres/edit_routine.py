"""The edit routine on PostgreSQL: six steps, READ COMMITTED, each a statement of its own.

1. lock the cursor rows, in the order of their ids: no tick of these jobs is decided from here on;
2. cut := the database's clock;
3. lock the ready claims of origin `schedule` after the cut: no worker takes one of them from here on;
4. in a new statement, which sees what was committed before the locks were had: E := the cut, or the newest claim
   after it that a worker has or had, or the end of a skip record that was decided a moment ahead of the cut;
5. delete the claims after E that nobody ever had, and the skip records of ticks that were named ahead; step the
   cursors back to E, raise their `seq`;
6. the old revision's interval ends at E, the new one's begins there.

Why so many: with fewer, ticks are lost or doubled. Without step 3 a worker takes a claim between 4 and 5, and its tick
is decided again. As one statement, or with the delete first, the snapshot is older than the locks, and claims of the
old revision survive. Keeping withdrawn rows lets them swallow the claims of the new revision. The stress in
tests/stores/edit_stress.py has each of these as a planted fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg

LIMITS = "SET LOCAL lock_timeout = '1s'; SET LOCAL idle_in_transaction_session_timeout = '2s'"

LOCK_CURSORS = """
SELECT count(*) FROM (
  SELECT 1 FROM cursors WHERE job_id = ANY (%(job_ids)s::bigint[]) ORDER BY job_id FOR UPDATE) locked
"""
CUT = "SELECT clock_timestamp()"
LOCK_CLAIMS = """
SELECT count(*) FROM (
  SELECT 1 FROM claims
  WHERE job_id = ANY (%(job_ids)s::bigint[]) AND scheduled_at > %(cut)s AND origin = 0 AND state = 0
  ORDER BY scheduled_at, job_id FOR UPDATE) locked
"""
EFFECTIVE_AT = """
SELECT j.job_id, greatest(%(cut)s::timestamptz,
  (SELECT max(c.scheduled_at) FROM claims c WHERE c.job_id = j.job_id AND c.scheduled_at > %(cut)s AND c.origin = 0
     AND (c.state <> 0 OR c.attempt > 0)),
  (SELECT s.upto FROM skips s WHERE s.job_id = j.job_id AND s.named_by IS NULL ORDER BY s.after DESC LIMIT 1))
FROM unnest(%(job_ids)s::bigint[]) j(job_id)
"""
WITHDRAW = """
WITH effective AS (SELECT * FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) e(job_id, at)),
 gone AS (
  DELETE FROM claims c USING effective e
  WHERE c.job_id = e.job_id AND c.scheduled_at > e.at AND c.origin = 0 AND c.state = 0 AND c.attempt = 0
  RETURNING c.job_id),
 unnamed AS (
  DELETE FROM skips s USING effective e WHERE s.job_id = e.job_id AND s.named_by IS NOT NULL AND s.upto > e.at),
 stepped AS (
  UPDATE cursors c SET at = least(c.at, e.at), seq = c.seq + 1 FROM effective e WHERE c.job_id = e.job_id)
SELECT job_id, count(*) FROM gone GROUP BY job_id
"""


class EditRoutine:
    """Steps 1 to 5 over the jobs that exist; step 6 is the caller's, in the same transaction."""

    def __init__(self, connection: psycopg.Connection[Any], job_ids: Sequence[int]) -> None:
        self.connection = connection
        self.job_ids = list(job_ids)

    def lock_cursors(self) -> None:
        """Step 1."""
        self.connection.execute(LOCK_CURSORS, {"job_ids": self.job_ids})

    def cut(self) -> datetime:
        """Step 2."""
        (now,) = self.connection.execute(CUT).fetchone() or (None,)
        assert isinstance(now, datetime)  # noqa: S101 - a SELECT without FROM returns one row
        return now

    def lock_claims(self, cut: datetime) -> None:
        """Step 3."""
        self.connection.execute(LOCK_CLAIMS, {"job_ids": self.job_ids, "cut": cut})

    def effective_at(self, cut: datetime) -> dict[int, datetime]:
        """Step 4: E of each job."""
        return dict(self.connection.execute(EFFECTIVE_AT, {"job_ids": self.job_ids, "cut": cut}).fetchall())

    def withdraw(self, effective_at: Mapping[int, datetime]) -> dict[int, int]:
        """Step 5: how many claims of each job were deleted; jobs without any are left out."""
        values = {"job_ids": list(effective_at), "effective": list(effective_at.values())}
        return dict(self.connection.execute(WITHDRAW, values).fetchall())
