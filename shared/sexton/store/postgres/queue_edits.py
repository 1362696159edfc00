"""What operators say about queues, on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sexton.job_formats import POOL_FORMAT
from sexton.queue_rules import QueueRule, RuleChange, with_limits
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import LIMITS
from sexton.store.postgres.formats import require_format

_READ = "SELECT slots, rate FROM queues WHERE name = %s FOR UPDATE"
_KEEP = """
INSERT INTO queues (name, slots, rate, next_at) VALUES (%(name)s, %(slots)s, %(rate)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, rate = excluded.rate,
  next_at = CASE WHEN queues.rate IS NOT DISTINCT FROM excluded.rate THEN queues.next_at ELSE excluded.next_at END
"""
_DROP = "DELETE FROM queues WHERE name = %s"
_EVENT = """
INSERT INTO events (at, actor, action, detail) VALUES (clock_timestamp(), %s, 'queue.changed', %s)
"""


def set_queue_rule(store: PostgresConnection, name: str, limits: Mapping[str, str], actor: str) -> RuleChange:
    """``EditStore.set_queue_rule``."""

    def attempt() -> RuleChange:
        with store.transaction(LIMITS) as connection:
            # One at a time: two operators that make the first rule of a queue would both find none.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('sexton.queues', 0))")
            row = connection.execute(_READ, (name,)).fetchone()
            before = QueueRule() if row is None else QueueRule(*row)
            after = with_limits(before, limits)
            if after == before:
                return RuleChange(before, after)
            if after:
                require_format(connection, POOL_FORMAT, f"a rule for queue {name}")
                connection.execute(_KEEP, {"name": name, "slots": after.slots, "rate": after.rate})
            else:
                connection.execute(_DROP, (name,))
            detail = {"queue": name, "from": str(before), "to": str(after)}
            connection.execute(_EVENT, (actor, json.dumps(detail)))
            connection.execute("SELECT pg_notify('sexton_work', '')")  # a wider rule may let claims start
        return RuleChange(before, after)

    return store.retrying(attempt, f"setting the rule of queue {name}")
