"""Alerts on SQLite: `sexton.store.postgres.alerts` in its dialect; instants and durations in microseconds."""

from __future__ import annotations

from datetime import timedelta

from sexton.alerts import DAMPED, LONGEST_ERROR, AlertKind, AlertView, Condition, DueAlert, Signs
from sexton.store.instants import from_micros, to_micros
from sexton.store.protocol.alerts import FRESH, Turn
from sexton.store.read_alerts import owner_of, read_listed, read_signs
from sexton.store.sqlite.connection import SqliteConnection

_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) // _MICROSECOND

_WATCH = """
SELECT looked_at FROM alert_watch
WHERE id = 1 AND (looked_at IS NULL OR looked_at NOT BETWEEN :now - :every AND :now + :every)
"""
_TURN = "UPDATE alert_watch SET looked_at = :now WHERE id = 1"
_IS_FRESH = ":now < :looked_at + :fresh"
_NOT_BEFORE = """CASE WHEN a.job_id = 0 THEN NULL WHEN a.recovery_told_at IS NOT NULL THEN a.recovery_told_at + :damped
  WHEN a.attempts = 0 THEN a.next_try_at END"""
_RAISE = f"""
INSERT INTO alerts AS a (kind, job_id, since, tick, sentence, changed_at, next_try_at)
SELECT :kind, :job_id, :since, :tick, :sentence, :looked_at, :now WHERE {_IS_FRESH}
ON CONFLICT (kind, job_id) DO UPDATE SET episode = a.episode + 1, since = excluded.since, tick = excluded.tick,
  sentence = excluded.sentence, changed_at = excluded.changed_at,
  next_try_at = max(:now, min(:now + :damped, coalesce({_NOT_BEFORE}, :now))),
  recovered_at = NULL, told_at = NULL, recovery_told_at = NULL, attempts = 0, error = ''
WHERE a.recovered_at IS NOT NULL AND a.changed_at < excluded.changed_at
"""
_IS_OPEN = f"kind = :kind AND job_id = :job_id AND recovered_at IS NULL AND changed_at < :looked_at AND {_IS_FRESH}"
_REWORD = f"UPDATE alerts SET sentence = :sentence WHERE {_IS_OPEN}"  # noqa: S608 - so
_RECOVER = f"""
UPDATE alerts SET recovered_at = :looked_at, changed_at = :looked_at,
  next_try_at = CASE WHEN told_at IS NULL THEN next_try_at ELSE :now END
WHERE {_IS_OPEN}
"""  # noqa: S608 - so
_IS_DUE = """
SELECT kind, job_id FROM alerts WHERE next_try_at <= :now AND (recovered_at IS NULL OR recovered_at > :now - :day)
ORDER BY next_try_at LIMIT 1
"""
_TAKE = f"""
UPDATE alerts SET next_try_at = :now + :lease, attempts = attempts + 1 WHERE (kind, job_id) IN ({_IS_DUE})
RETURNING kind, job_id, episode, attempts, since, tick, sentence, recovered_at
"""  # noqa: S608 - so
_ABOUT = """
SELECT j.name, r.definition, c.cluster_id FROM cluster c LEFT JOIN jobs j ON j.job_id = ?
LEFT JOIN revisions r ON r.job_id = j.job_id AND r.revision = j.revision WHERE c.id = 1
"""
_IS_TAKEN = "kind = :kind AND job_id = :job_id AND episode = :episode AND attempts = :attempt"
_SETTLE = f"""
UPDATE alerts SET error = '', told_at = coalesce(told_at, :now),
  recovery_told_at = CASE WHEN :is_recovery THEN :now END,
  next_try_at = CASE WHEN NOT :is_recovery AND recovered_at IS NOT NULL THEN :now END
WHERE {_IS_TAKEN}
"""  # noqa: S608 - so
_POSTPONE = f"UPDATE alerts SET error = :error, next_try_at = :now + :again_in WHERE {_IS_TAKEN}"  # noqa: S608 - so


class SqliteAlerts:
    """Implements ``AlertStore``."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def take_turn(self, every: timedelta) -> Turn | None:
        span = every // _MICROSECOND
        with self._connection.snapshot() as connection:  # most calls find nothing, and need no write lock for it
            is_due = connection.execute(_WATCH, {"now": self._connection.now_micros(), "every": span}).fetchone()
        if is_due is None:
            return None
        with self._connection.transaction() as connection:
            now = self._connection.now_micros()
            row = connection.execute(_WATCH, {"now": now, "every": span}).fetchone()
            if row is None:
                return None
            connection.execute(_TURN, {"now": now})
        return Turn(from_micros(now), None if row[0] is None else from_micros(row[0]))

    def signs(self, turn: Turn) -> Signs:
        with self._connection.reading() as reading:
            return read_signs(reading, turn.looked_at, turn.before)

    def raise_alert(self, condition: Condition, turn: Turn) -> bool:
        values = {
            "kind": condition.kind.value,
            "job_id": condition.job_id,
            "since": to_micros(condition.since),
            "tick": None if condition.tick is None else to_micros(condition.tick),
            "sentence": condition.sentence,
        }
        return self._change(_RAISE, **values, **_look(turn), damped=DAMPED // _MICROSECOND)

    def reword(self, condition: Condition, turn: Turn) -> bool:
        values = {"kind": condition.kind.value, "job_id": condition.job_id, "sentence": condition.sentence}
        return self._change(_REWORD, **values, **_look(turn))

    def recover(self, kind: AlertKind, job_id: int, turn: Turn) -> bool:
        return self._change(_RECOVER, kind=kind.value, job_id=job_id, **_look(turn))

    def take_delivery(self, lease: timedelta) -> DueAlert | None:
        with self._connection.snapshot() as connection:  # as above
            is_due = connection.execute(_IS_DUE, {"now": self._connection.now_micros(), "day": _DAY}).fetchone()
        if is_due is None:
            return None
        with self._connection.transaction() as connection:
            values = {"now": self._connection.now_micros(), "lease": lease // _MICROSECOND, "day": _DAY}
            rows = connection.execute(_TAKE, values).fetchall()
            if not rows:
                return None
            ((kind, job_id, episode, attempt, since, tick, sentence, recovered_at),) = rows
            name, definition, cluster_id = connection.execute(_ABOUT, [job_id]).fetchone()
        return DueAlert(
            AlertKind(kind),
            job_id,
            episode,
            attempt,
            from_micros(since),
            None if tick is None else from_micros(tick),
            sentence,
            None if recovered_at is None else from_micros(recovered_at),
            name,
            owner_of(definition),
            cluster_id,
        )

    def settle(self, due: DueAlert) -> bool:
        return self._change(_SETTLE, **_taken(due), is_recovery=due.recovered_at is not None)

    def postpone(self, due: DueAlert, error: str, again_in: timedelta) -> bool:
        return self._change(_POSTPONE, **_taken(due), error=error[:LONGEST_ERROR], again_in=again_in // _MICROSECOND)

    def listed(self, limit: int = 50, *, only_open: bool = False) -> tuple[AlertView, ...]:
        with self._connection.reading() as reading:
            return read_listed(reading, limit, only_open=only_open)

    def _change(self, statement: str, **values: str | int | None) -> bool:
        with self._connection.transaction() as connection:
            return connection.execute(statement, {**values, "now": self._connection.now_micros()}).rowcount == 1


def _look(turn: Turn) -> dict[str, int]:
    return {"looked_at": to_micros(turn.looked_at), "fresh": FRESH // _MICROSECOND}


def _taken(due: DueAlert) -> dict[str, str | int]:
    return {"kind": due.kind.value, "job_id": due.job_id, "episode": due.episode, "attempt": due.attempt}
