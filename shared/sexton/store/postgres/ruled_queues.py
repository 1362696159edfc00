"""Queues with a rule (`sexton.queue_rules`): how many of a queue's claims run at once, how many are granted a second.

The pull of all queues leaves them out, by a look at their rules in its own snapshot: from the moment a rule is
committed, no pull that begins takes a claim past it. They are pulled here, in a second transaction, and only where
claims of them are due and the rule allows one:

    gate    the rows of their rules, FOR UPDATE SKIP LOCKED: tried, never waited for, held until the commit. Who holds
            it before has committed by then, and no operator changes the rule meanwhile
    count   how many of each queue run, in a statement that began after the gate: the count is right
    pull    queue by queue, as much as room and rule allow; paced claims pass the gate of their class, too
    spend   what was granted, off the rate

A worker whose gate was taken looks again soon. A freed slot is pulled for by the step that frees it, or by whom that
step wakes; what only the rate holds back is come for in time (`QueueStanding.look_at`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from sexton.queue_rules import QueueRule, QueueStanding, next_after
from sexton.store.postgres.pull import LIVE, PACED, READY, Pulled, grants_of, pull, pull_paced, together
from sexton.store.protocol import Channel, RunResult, StepRequest
from sexton.store.pull_turns import PRIORITIES, Turn

if TYPE_CHECKING:
    from sexton.store.postgres.connection import PostgresConnection

_DUE = "available_at <= statement_timestamp() AND (start_by IS NULL OR start_by > statement_timestamp())"
_LATER = "available_at > statement_timestamp()"


def _probe(columns: str, origins: str, when: str) -> str:
    return f"""(SELECT {columns} FROM claims WHERE {READY} AND {origins} AND queue = q.name AND priority = p.priority
    AND {when} ORDER BY available_at LIMIT 1)"""  # noqa: S608 - built from constants


# Per rule, priority and class two probes of an index; what runs is counted only where it decides something.
_STANDINGS = f"""WITH waiting AS MATERIALIZED (
  SELECT q.name, max(p.priority) FILTER (WHERE live.due) AS top, coalesce(bool_or(paced.due), false) AS paced,
   least(min(live_later.at), min(paced_later.at)) AS ahead
  FROM queues q CROSS JOIN generate_series(-2, 2) p(priority)
   LEFT JOIN LATERAL {_probe("true AS due", LIVE, _DUE)} live ON true
   LEFT JOIN LATERAL {_probe("true AS due", PACED, _DUE)} paced ON true
   LEFT JOIN LATERAL {_probe("available_at AS at", LIVE, _LATER)} live_later ON true
   LEFT JOIN LATERAL {_probe("available_at AS at", PACED, _LATER)} paced_later ON true
  WHERE q.name = ANY (%s::text[]) GROUP BY q.name)
SELECT statement_timestamp(), q.name, q.slots, q.rate, q.next_at,
  CASE WHEN q.slots IS NOT NULL AND (w.top IS NOT NULL OR w.paced)
   THEN (SELECT count(*) FROM claims WHERE state = 1 AND queue = q.name) ELSE 0 END, w.top, w.paced, w.ahead
 FROM queues q JOIN waiting w ON w.name = q.name""".encode()  # noqa: S608 - built from constants

# A row lock has a transaction id, by which housekeeping knows a backend that may keep others waiting.
_GATE = b"SELECT name FROM queues WHERE name = ANY (%s::text[]) FOR UPDATE SKIP LOCKED"
_COUNT = b"""SELECT statement_timestamp(), name, slots, rate, next_at,
  CASE WHEN slots IS NULL THEN 0 ELSE (SELECT count(*) FROM claims WHERE state = 1 AND queue = name) END
 FROM queues WHERE name = ANY (%s::text[])"""
_SPEND = b"UPDATE queues SET next_at = %s WHERE name = %s"
_WAKE_FOR_FREED = f"""SELECT pg_notify('{Channel.WORK.value}', '') WHERE EXISTS (
  SELECT 1 FROM unnest(%s::bigint[], %s::timestamptz[]) d(job_id, scheduled_at)
  JOIN claims c ON c.job_id = d.job_id AND c.scheduled_at = d.scheduled_at WHERE c.queue = ANY (%s::text[]))""".encode()  # noqa: S608 - built from constants


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Claims that their rules allow and this worker had no room for, of the step before."""

    top: int | None = None
    admits: int = 0


@dataclass(slots=True)
class _Pass:
    """The pulls of one transaction that holds the gates of ``standings``; they are how the queues stand then."""

    request: StepRequest
    room: int
    first: int  # the priority that leads
    standings: dict[str, QueueStanding] = field(default_factory=dict)
    pulled: Pulled = field(default_factory=lambda: Pulled((), 0))
    spent: dict[str, datetime] = field(default_factory=dict)  # next_at of the queues that were granted from, by name
    is_shut: bool = False  # a gate was taken by another

    def pull(self, connection: psycopg.Connection[Any], name: str, *, is_paced: bool) -> None:
        """Pull one class of one queue."""
        standing = self.standings[name]
        room = standing.room(self.room - len(self.pulled.grants))
        if is_paced:
            room = min(room, self.request.room_for_paced(self.pulled.grants))
        if room <= 0 or not (standing.is_paced_due if is_paced else standing.top is not None):
            return
        worker, lease, limit = self.request.worker_id, self.request.lease, self.request.catch_up_concurrency
        if is_paced:
            pulled = pull_paced(connection, worker, lease, room, limit, (name,), self.first, is_ruled=True)
        else:
            pulled = grants_of(pull(connection, worker, lease, room, (name,), self.first, is_ruled=True))
        granted = len(pulled.grants)
        standing = replace(standing, running=standing.running + granted)
        if pulled.picked < room:  # nothing more is due, or its class is shut
            standing = replace(standing, **{"is_paced_due": False} if is_paced else {"top": None})
        if standing.rule.rate is not None and granted:
            self.spent[name] = next_after(standing.rule.rate, standing.next_at, standing.seen_at, granted)
            standing = replace(standing, next_at=self.spent[name])
        self.standings[name] = standing
        self.pulled = together(self.pulled, pulled)


@dataclass(frozen=True, slots=True)
class RuledPull:
    """``look_at``: when to look again without being told."""

    pulled: Pulled
    look_at: datetime | None


class RuledQueues:
    """The queues with a rule among those of one worker, over its connection."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._left: dict[str, datetime] = {}  # the next_at that this worker's last grant left behind
        self._waiting = _Waiting()

    def reserve(self, turn: Turn, room: int) -> int:
        """How much of its room the step shall leave by what waited before it; the step then looks for itself."""
        if room <= 0:
            return 0
        waiting, self._waiting = self._waiting, _Waiting()
        return min(room, waiting.admits) if turn.begins_with_ruled(waiting.top) else 0

    def pull(self, request: StepRequest, room: int, turn: Turn, *, with_paced: bool) -> RuledPull:
        """Grant what the rules allow, live claims before paced ones; others are woken for what is left to them."""
        with self._connection.autocommit() as connection:
            standings = _standings(connection, turn.queues)
        if not standings:  # the last rule was taken back meanwhile
            return RuledPull(Pulled((), 0), None)
        due = _in_order([one for one in standings if one.is_due and one.room(1)], turn)
        done = _Pass(request, room, turn.first)
        if room > 0 and due:
            shut = _Pass(request, room, turn.first, is_shut=True)
            done = self._connection.unless_contended(
                lambda: self._pass(_Pass(request, room, turn.first), due, with_paced=with_paced), shut
            )
        self._left |= done.spent
        standings = tuple(done.standings.get(one.name, one) for one in standings)
        self._note_waiting(request, standings, room - len(done.pulled.grants))
        looks = [one.look_at(self._left.get(one.name)) for one in standings]
        look_at = min((look for look in looks if look is not None), default=None)
        # What is shut opens soon: the worker is not idle.
        is_shut = done.is_shut or (not with_paced and any(one.is_paced_due for one in due))
        return RuledPull(done.pulled._replace(picked=done.pulled.picked + is_shut), look_at)

    def _pass(self, done: _Pass, due: Sequence[QueueStanding], *, with_paced: bool) -> _Pass:
        names = [one.name for one in due]
        with self._connection.transaction() as connection:
            with connection.pipeline():
                gates = connection.execute(_GATE, (names,), prepare=True)
                counts = connection.execute(_COUNT, (names,), prepare=True)
            opened = {name for (name,) in gates.fetchall()}
            done.is_shut = len(opened) < len(names)
            counted = {row[1]: row for row in counts.fetchall() if row[1] in opened}
            opened_due = [one for one in due if one.name in counted]
            for one in opened_due:
                seen_at, _, slots, rate, next_at, running = counted[one.name]
                done.standings[one.name] = replace(
                    one, rule=QueueRule(slots, rate), next_at=next_at, running=running, seen_at=seen_at
                )
            for is_paced in (False, True) if with_paced else (False,):
                for one in opened_due:
                    done.pull(connection, one.name, is_paced=is_paced)
            for name, next_at in done.spent.items():
                connection.execute(_SPEND, (next_at, name), prepare=True)
        return done

    def _note_waiting(self, request: StepRequest, standings: Sequence[QueueStanding], left: int) -> None:
        """Remember what found no room here, and wake others for slots that this step has freed and not used."""
        if left > 0:
            self._waiting = _Waiting()
            return
        kept = [one for one in standings if one.is_due and one.room(1)]
        tops = [PRIORITIES[-1] if one.top is None else one.top for one in kept]
        self._waiting = _Waiting(max(tops, default=None), sum(one.room(request.room) for one in kept))
        free = [one.name for one in kept if one.rule.slots is not None]
        if free and request.results:
            self._connection.unless_contended(lambda: self._wake_for(request.results, free), None)

    def _wake_for(self, results: Sequence[RunResult], names: list[str]) -> None:
        jobs, ticks = [one.job_id for one in results], [one.scheduled_at for one in results]
        with self._connection.autocommit() as connection:
            connection.execute(_WAKE_FOR_FREED, (jobs, ticks, names))


def _standings(connection: psycopg.Connection[Any], queues: Sequence[str]) -> tuple[QueueStanding, ...]:
    rows = connection.execute(_STANDINGS, (list(queues),), prepare=True).fetchall()
    return tuple(
        QueueStanding(name, QueueRule(slots, rate), next_at, running, seen_at, top, paced, ahead)
        for seen_at, name, slots, rate, next_at, running, top, paced, ahead in rows
    )


def _in_order(standings: Sequence[QueueStanding], turn: Turn) -> list[QueueStanding]:
    """By the turn: its priorities first, then its queues."""
    ranks: Mapping[int | None, int] = {priority: rank for rank, priority in enumerate((*turn.priorities, None))}
    places = {name: place for place, name in enumerate(turn.queues)}
    return sorted(standings, key=lambda one: (ranks[one.top], places[one.name]))
