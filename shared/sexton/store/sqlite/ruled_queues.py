"""Queues with a rule on SQLite: `sexton.store.postgres.ruled_queues` inside one write transaction.

Nobody else writes meanwhile, so there is no gate: what is counted stays true until the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sexton.queue_rules import QueueRule, QueueStanding, next_after
from sexton.store.protocol import Grant, RunResult, StepRequest
from sexton.store.pull_turns import PRIORITIES, Turn
from sexton.store.sqlite.pull import LIVE, PACED, READY, Puller, next_available_at, paced_room, pull
from sexton.store.tables import from_micros, to_micros

_RULE = "SELECT slots, rate, next_at FROM queues WHERE name = ?"
_RUNNING = "SELECT count(*) FROM claims WHERE state = 1 AND queue = ?"
_DUE = """SELECT 1 FROM claims WHERE {ready} AND {origins} AND queue = ? AND priority = ? AND available_at <= ?
 AND (start_by IS NULL OR start_by > ?) LIMIT 1"""
_LIVE_DUE, _PACED_DUE = _DUE.format(ready=READY, origins=LIVE), _DUE.format(ready=READY, origins=PACED)
_SPEND = "UPDATE queues SET next_at = ? WHERE name = ?"
_QUEUE_OF = "SELECT queue FROM claims WHERE job_id = ? AND scheduled_at = ?"


class RuledQueues:
    """The queues with a rule among those of one worker: what it remembers of them between its steps."""

    def __init__(self) -> None:
        self.left: dict[str, datetime] = {}  # the next_at that this worker's last grant left behind
        self.waiting: int | None = None  # the priority of claims that their rules allow, and no room was left for


@dataclass(slots=True)
class StepPulls:
    """The pulls of one step, inside its transaction: ``plain`` queues, and ``ruled`` ones as they stand."""

    connection: sqlite3.Connection
    puller: Puller
    request: StepRequest
    plain: tuple[str, ...]
    ruled: list[QueueStanding]
    grants: list[Grant] = field(default_factory=list)
    picked: int = 0
    parked: set[int] = field(default_factory=set)  # the slots on which ticks were parked

    @property
    def left(self) -> int:
        """The room that is left."""
        return self.request.room - len(self.grants)

    def pull_plain(self, *, is_paced: bool) -> None:
        """Pull one class of the queues without a rule."""
        if self.plain:
            self._pull(self.plain, self.left, is_paced=is_paced)

    def pull_ruled(self, memory: RuledQueues, *, is_paced: bool) -> None:
        """Pull one class of the queues with a rule, as much as each allows."""
        for place, standing in enumerate(self.ruled):
            room = standing.room(self.left)
            if room <= 0 or not (standing.is_paced_due if is_paced else standing.top is not None):
                continue
            granted, picked = self._pull((standing.name,), room, is_paced=is_paced)
            after = replace(standing, running=standing.running + granted)
            if picked < room:  # nothing more is due, or its class is full
                after = replace(after, **{"is_paced_due": False} if is_paced else {"top": None})
            if standing.rule.rate is not None and granted:
                memory.left[standing.name] = next_after(standing.rule.rate, standing.next_at, standing.seen_at, granted)
                after = replace(after, next_at=memory.left[standing.name])
                self.connection.execute(_SPEND, (to_micros(memory.left[standing.name]), standing.name))
            self.ruled[place] = after

    def _pull(self, queues: Sequence[str], room: int, *, is_paced: bool) -> tuple[int, int]:
        if is_paced:
            at_once = paced_room(self.connection, self.request.catch_up_concurrency)
            room = min(room, self.request.room_for_paced(self.grants), at_once)
        pulled = pull(self.connection, self.puller, queues, room, is_paced=is_paced)
        self.grants += pulled.grants
        self.picked += pulled.picked
        self.parked |= pulled.parked
        return len(pulled.grants), pulled.picked

    def look_at(self, memory: RuledQueues) -> datetime | None:
        """When to look again without being told."""
        ahead = next_available_at(self.connection, self.puller.now, self.plain)
        looks = [one.look_at(memory.left.get(one.name)) for one in self.ruled]
        looks += [None if ahead is None else from_micros(ahead)]
        return min((look for look in looks if look is not None), default=None)


def pull_in_turn(pulls: StepPulls, memory: RuledQueues, turn: Turn) -> None:
    """Pull all queues: live claims before paced ones; queues with a rule after the others, unless it is their turn."""
    ranks: Mapping[int | None, int] = {priority: rank for rank, priority in enumerate((*turn.priorities, None))}
    pulls.ruled.sort(key=lambda one: ranks[one.top])
    if turn.begins_with_ruled(memory.waiting):
        pulls.pull_ruled(memory, is_paced=False)
        pulls.pull_plain(is_paced=False)
    else:
        pulls.pull_plain(is_paced=False)
        pulls.pull_ruled(memory, is_paced=False)
    if turn.number % 2:  # what is first may take the whole class
        pulls.pull_plain(is_paced=True)
        pulls.pull_ruled(memory, is_paced=True)
    else:
        pulls.pull_ruled(memory, is_paced=True)
        pulls.pull_plain(is_paced=True)
    kept = [one for one in pulls.ruled if one.is_due and one.room(1)] if pulls.left <= 0 else []
    memory.waiting = max((PRIORITIES[-1] if one.top is None else one.top for one in kept), default=None)


def standings(connection: sqlite3.Connection, now: int, queues: Sequence[str]) -> list[QueueStanding]:
    """Those of the queues that have a rule, in their order."""
    found: list[QueueStanding] = []
    for name in queues:
        row = connection.execute(_RULE, (name,)).fetchone()
        if row is None:
            continue
        slots, rate, next_at = row
        live, paced = (
            [priority for priority in PRIORITIES if connection.execute(due, (name, priority, now, now)).fetchone()]
            for due in (_LIVE_DUE, _PACED_DUE)
        )
        running = connection.execute(_RUNNING, (name,)).fetchone()[0] if slots is not None and (live or paced) else 0
        ahead = next_available_at(connection, now, (name,))
        found.append(
            QueueStanding(
                name=name,
                rule=QueueRule(slots, rate),
                next_at=None if next_at is None else from_micros(next_at),
                running=running,
                seen_at=from_micros(now),
                top=max(live, default=None),
                is_paced_due=bool(paced),
                ahead=None if ahead is None else from_micros(ahead),
            )
        )
    return found


def freed_for_others(pulls: StepPulls, results: Sequence[RunResult]) -> bool:
    """Whether these results freed a slot of a queue that has claims due, and this worker has no room for them."""
    free = {one.name for one in pulls.ruled if one.rule.slots is not None and one.is_due and one.room(1)}
    if not free or pulls.left > 0:
        return False
    keys = [(result.job_id, to_micros(result.scheduled_at)) for result in results]
    return any(queue in free for key in keys for (queue,) in pulls.connection.execute(_QUEUE_OF, key))
