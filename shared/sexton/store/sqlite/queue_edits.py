"""What operators say about queues, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping

from sexton.job_formats import POOL_FORMAT
from sexton.queue_rules import QueueRule, RuleChange, with_limits
from sexton.store.protocol import Channel
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.formats import require_format
from sexton.store.sqlite.listening import notify
from sexton.store.sqlite.terms import record_event

_READ = "SELECT slots, rate FROM queues WHERE name = ?"
_KEEP = """INSERT INTO queues (name, slots, rate, next_at) VALUES (?, ?, ?, ?)
 ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, rate = excluded.rate,
  next_at = CASE WHEN queues.rate IS excluded.rate THEN queues.next_at ELSE excluded.next_at END"""


def set_queue_rule(store: SqliteConnection, name: str, limits: Mapping[str, str], actor: str) -> RuleChange:
    """``EditStore.set_queue_rule``."""
    with store.transaction() as connection:
        row = connection.execute(_READ, (name,)).fetchone()
        before = QueueRule() if row is None else QueueRule(*row)
        after = with_limits(before, limits)
        if after != before:
            now = store.now_micros()
            if after:
                require_format(connection, now, POOL_FORMAT, f"a rule for queue {name}")
                connection.execute(_KEEP, (name, after.slots, after.rate, now))
            else:
                connection.execute("DELETE FROM queues WHERE name = ?", (name,))
            detail: dict[str, object] = {"queue": name, "from": str(before), "to": str(after)}
            record_event(connection, now, actor, "queue.changed", detail)
            notify(store, connection, Channel.WORK)  # a wider rule may let claims start
    return RuleChange(before, after)
