"""The faults of the edit routine that docs/architecture.md names, each to be found by the stress."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sexton.store.postgres.edit_routine import CUT, LOCK_CURSORS, EditRoutine


class WithoutStep3(EditRoutine):
    """The ready claims are not locked: a worker takes one between steps 4 and 5."""

    def lock_claims(self, cut: datetime) -> None:
        """Nothing: the fault."""


class AsOneStatement(EditRoutine):
    """Locks, E and the withdrawal in one statement: its snapshot is older than its locks."""

    _ALL = """
    WITH locked AS MATERIALIZED (
      SELECT job_id FROM cursors WHERE job_id = ANY (%(job_ids)s::bigint[]) ORDER BY job_id FOR UPDATE),
     held AS MATERIALIZED (
      SELECT c.job_id, c.scheduled_at FROM claims c JOIN locked l USING (job_id)
      WHERE c.scheduled_at > %(cut)s AND c.origin = 0 AND c.state = 0
      ORDER BY c.scheduled_at, c.job_id FOR UPDATE OF c),
     effective AS MATERIALIZED (
      SELECT l.job_id, greatest(%(cut)s::timestamptz,
        (SELECT max(c.scheduled_at) FROM claims c WHERE c.job_id = l.job_id AND c.scheduled_at > %(cut)s
           AND c.origin = 0 AND (c.state <> 0 OR c.attempt > 0)),
        (SELECT s.upto FROM skips s WHERE s.job_id = l.job_id ORDER BY s.after DESC LIMIT 1)) AS at
      FROM locked l WHERE (SELECT count(*) FROM held) >= 0),
     gone AS (
      DELETE FROM claims c USING effective e
      WHERE c.job_id = e.job_id AND c.scheduled_at > e.at AND c.origin = 0 AND c.state = 0 AND c.attempt = 0),
     stepped AS (
      UPDATE cursors c SET at = least(c.at, e.at), seq = c.seq + 1 FROM effective e WHERE c.job_id = e.job_id)
    SELECT job_id, at FROM effective
    """

    def lock_cursors(self) -> None:
        """Nothing: part of the one statement."""

    def lock_claims(self, cut: datetime) -> None:
        """Nothing: part of the one statement."""

    def effective_at(self, cut: datetime) -> dict[int, datetime]:
        return dict(self.connection.execute(self._ALL, {"job_ids": self.job_ids, "cut": cut}).fetchall())

    def withdraw(self, effective_at: Mapping[int, datetime]) -> dict[int, int]:
        return {}


class DeleteFirst(EditRoutine):
    """The claims ahead are deleted before the locks are had: a commit in flight leaves some of the old revision."""

    _DELETE = """
    DELETE FROM claims WHERE job_id = ANY (%(job_ids)s::bigint[]) AND scheduled_at > %(cut)s AND origin = 0
      AND state = 0 AND attempt = 0
    """
    _STEP_BACK = """
    UPDATE cursors c SET at = least(c.at, e.at), seq = c.seq + 1
    FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) e(job_id, at) WHERE c.job_id = e.job_id
    """

    def lock_cursors(self) -> None:
        (cut,) = self.connection.execute(CUT).fetchone() or (None,)
        self.connection.execute(self._DELETE, {"job_ids": self.job_ids, "cut": cut})
        self.connection.execute(LOCK_CURSORS, {"job_ids": self.job_ids})

    def withdraw(self, effective_at: Mapping[int, datetime]) -> dict[int, int]:
        values = {"job_ids": list(effective_at), "effective": list(effective_at.values())}
        self.connection.execute(self._STEP_BACK, values)
        return {}


class KeepingWithdrawnRows(EditRoutine):
    """Withdrawn claims are marked instead of deleted: they stand in the way of the new revision's."""

    _MARK = """
    WITH effective AS (SELECT * FROM unnest(%(job_ids)s::bigint[], %(effective)s::timestamptz[]) e(job_id, at)),
     marked AS (
      UPDATE claims c SET state = 7 FROM effective e
      WHERE c.job_id = e.job_id AND c.scheduled_at > e.at AND c.origin = 0 AND c.state = 0 AND c.attempt = 0)
    UPDATE cursors c SET at = least(c.at, e.at), seq = c.seq + 1 FROM effective e WHERE c.job_id = e.job_id
    """

    def withdraw(self, effective_at: Mapping[int, datetime]) -> dict[int, int]:
        values = {"job_ids": list(effective_at), "effective": list(effective_at.values())}
        self.connection.execute(self._MARK, values)
        return {}


FAULTS: dict[str, type[EditRoutine]] = {
    "without step 3": WithoutStep3,
    "as one statement": AsOneStatement,
    "delete first": DeleteFirst,
    "keeping withdrawn rows": KeepingWithdrawnRows,
}
