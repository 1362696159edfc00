"""Alerts on PostgreSQL: each change is one statement, conditional on the row (`store.protocol.alerts`)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sexton.alerts import DAMPED, LONGEST_ERROR, AlertKind, AlertView, Condition, DueAlert, Signs
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.protocol.alerts import FRESH, Turn
from sexton.store.read_alerts import owner_of, read_listed, read_signs

_TURN = """
WITH was AS (
  SELECT id, looked_at FROM alert_watch WHERE id = 1 AND (looked_at IS NULL
    OR looked_at NOT BETWEEN clock_timestamp() - %(every)s AND clock_timestamp() + %(every)s)
  FOR UPDATE SKIP LOCKED)
UPDATE alert_watch w SET looked_at = clock_timestamp() FROM was WHERE w.id = was.id
RETURNING w.looked_at, was.looked_at
"""
_IS_FRESH = "clock_timestamp() < %(looked_at)s + %(fresh)s"
# What waits untried to be told, as this will, has been put off already.
_NOT_BEFORE = """CASE WHEN a.job_id = 0 THEN NULL
  WHEN a.recovery_told_at IS NOT NULL THEN a.recovery_told_at + %(damped)s WHEN a.attempts = 0 THEN a.next_try_at END"""
_RAISE = f"""
INSERT INTO alerts AS a (kind, job_id, since, tick, sentence, changed_at, next_try_at)
SELECT %(kind)s, %(job_id)s, %(since)s, %(tick)s::timestamptz, %(sentence)s, %(looked_at)s, clock_timestamp()
WHERE {_IS_FRESH}
ON CONFLICT (kind, job_id) DO UPDATE SET episode = a.episode + 1, since = excluded.since, tick = excluded.tick,
  sentence = excluded.sentence, changed_at = excluded.changed_at, next_try_at = greatest(excluded.next_try_at,
  least(excluded.next_try_at + %(damped)s, coalesce({_NOT_BEFORE}, excluded.next_try_at))),
  recovered_at = NULL, told_at = NULL, recovery_told_at = NULL, attempts = 0, error = ''
WHERE a.recovered_at IS NOT NULL AND a.changed_at < excluded.changed_at
"""
_IS_OPEN = f"""
kind = %(kind)s AND job_id = %(job_id)s AND recovered_at IS NULL AND changed_at < %(looked_at)s AND {_IS_FRESH}
"""
_REWORD = f"UPDATE alerts SET sentence = %(sentence)s WHERE {_IS_OPEN}"  # noqa: S608 - so
# A delivery that is under way, or put off, is not overtaken by the news of the recovery.
_RECOVER = f"""
UPDATE alerts SET recovered_at = %(looked_at)s, changed_at = %(looked_at)s,
  next_try_at = CASE WHEN told_at IS NULL THEN next_try_at ELSE clock_timestamp() END
WHERE {_IS_OPEN}
"""  # noqa: S608 - so
_TAKE = """
WITH due AS (
  SELECT kind, job_id FROM alerts WHERE next_try_at <= clock_timestamp()
    AND (recovered_at IS NULL OR recovered_at > clock_timestamp() - interval '1 day')
  ORDER BY next_try_at LIMIT 1 FOR UPDATE SKIP LOCKED),
 taken AS (
  UPDATE alerts a SET next_try_at = clock_timestamp() + %(lease)s, attempts = a.attempts + 1
  FROM due WHERE a.kind = due.kind AND a.job_id = due.job_id RETURNING a.*)
SELECT t.kind, t.job_id, t.episode, t.attempts, t.since, t.tick, t.sentence, t.recovered_at, j.name, r.definition,
  c.cluster_id
FROM taken t JOIN cluster c ON c.id = 1 LEFT JOIN jobs j ON j.job_id = t.job_id
LEFT JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision
"""
_IS_TAKEN = "kind = %(kind)s AND job_id = %(job_id)s AND episode = %(episode)s AND attempts = %(attempt)s"
_SETTLE = f"""
UPDATE alerts SET error = '', told_at = coalesce(told_at, clock_timestamp()),
  recovery_told_at = CASE WHEN %(is_recovery)s THEN clock_timestamp() END,
  next_try_at = CASE WHEN NOT %(is_recovery)s AND recovered_at IS NOT NULL THEN clock_timestamp() END
WHERE {_IS_TAKEN}
"""  # noqa: S608 - so
_POSTPONE = f"UPDATE alerts SET error = %(error)s, next_try_at = clock_timestamp() + %(again_in)s WHERE {_IS_TAKEN}"  # noqa: S608 - so


class PostgresAlerts:
    """Implements ``AlertStore``."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def take_turn(self, every: timedelta) -> Turn | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_TURN, {"every": every}).fetchone()
        return None if row is None else Turn(*row)

    def signs(self, turn: Turn) -> Signs:
        with self._connection.reading() as reading:
            return read_signs(reading, turn.looked_at, turn.before)

    def raise_alert(self, condition: Condition, turn: Turn) -> bool:
        values = {
            "kind": condition.kind.value,
            "job_id": condition.job_id,
            "since": condition.since,
            "tick": condition.tick,
            "sentence": condition.sentence,
        }
        return self._change(_RAISE, **values, looked_at=turn.looked_at, fresh=FRESH, damped=DAMPED)

    def reword(self, condition: Condition, turn: Turn) -> bool:
        values = {"kind": condition.kind.value, "job_id": condition.job_id, "sentence": condition.sentence}
        return self._change(_REWORD, **values, looked_at=turn.looked_at, fresh=FRESH)

    def recover(self, kind: AlertKind, job_id: int, turn: Turn) -> bool:
        return self._change(_RECOVER, kind=kind.value, job_id=job_id, looked_at=turn.looked_at, fresh=FRESH)

    def take_delivery(self, lease: timedelta) -> DueAlert | None:
        with self._connection.autocommit() as connection:
            row = connection.execute(_TAKE, {"lease": lease}).fetchone()
        if row is None:
            return None
        kind, job_id, episode, attempt, since, tick, sentence, recovered_at, job, definition, cluster_id = row
        owner = owner_of(definition)
        return DueAlert(
            AlertKind(kind), job_id, episode, attempt, since, tick, sentence, recovered_at, job, owner, cluster_id
        )

    def settle(self, due: DueAlert) -> bool:
        return self._change(_SETTLE, **_taken(due), is_recovery=due.recovered_at is not None)

    def postpone(self, due: DueAlert, error: str, again_in: timedelta) -> bool:
        return self._change(_POSTPONE, **_taken(due), error=error[:LONGEST_ERROR], again_in=again_in)

    def listed(self, limit: int = 50, *, only_open: bool = False) -> tuple[AlertView, ...]:
        with self._connection.reading() as reading:
            return read_listed(reading, limit, only_open=only_open)

    def _change(self, statement: str, **values: datetime | timedelta | str | int | None) -> bool:
        with self._connection.autocommit() as connection:
            return connection.execute(statement, values).rowcount == 1


def _taken(due: DueAlert) -> dict[str, str | int]:
    return {"kind": due.kind.value, "job_id": due.job_id, "episode": due.episode, "attempt": due.attempt}
