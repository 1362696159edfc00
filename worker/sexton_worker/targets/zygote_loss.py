"""The end of what a dead zygote had begun: its processes are this worker's to find and to end.

What became of such a run is unknown: it may have done its work or half of it. So it is told of as the machine's fault,
once nothing of it runs any more: a new run of the claim must not begin beside it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sexton.clock import Clock
from sexton_worker.core.runs import EndedRun
from sexton_worker.execution import RunOrder
from sexton_worker.targets.ending import vanished
from sexton_worker.targets.environment import TOKEN, WORKER_PID
from sexton_worker.zygote.commands import GIVE_UP_AFTER, LOOK_AGAIN, URGENT_KILL_AFTER
from sexton_worker.zygote.family import Census, Process, send

_NOBODY = -1  # no process has this id


class Lost(NamedTuple):
    """A run of a dead zygote: its order, the process that led it (0: not known), its start (elapsed seconds), and
    whether it may be what ended the zygote."""

    order: RunOrder
    pid: int
    started: float
    is_suspect: bool


def end_lost(lost: Sequence[Lost], why: str, clock: Clock, over: Callable[[EndedRun], None]) -> None:
    """End what is left of these runs, in the calling thread, politely and then not; ``over`` takes each end."""
    began = clock.elapsed()
    left = {one.order.token: one for one in lost}
    known: dict[int, dict[int, float]] = {token: {} for token in left}
    polite = set(left)
    while left:
        census, now = Census(0), clock.elapsed()
        for token, one in tuple(left.items()):
            members = _members(one, census, known[token])
            known[token] = {member.pid: member.born for member in members}
            patience = min(one.order.rules.kill_after.total_seconds(), URGENT_KILL_AFTER)
            if not members or now >= began + patience + GIVE_UP_AFTER:
                del left[token]
                over(vanished(one.order, now, why, one.started, is_suspect=one.is_suspect))
            elif now >= began + patience:
                _signal(members, signal.SIGKILL)
            elif token in polite:
                polite.remove(token)
                _signal(members, signal.SIGTERM, signal.SIGCONT)
        if left:
            time.sleep(LOOK_AGAIN)


def _members(one: Lost, census: Census, known: dict[int, float]) -> list[Process]:
    marks = {f"{TOKEN}={one.order.token}".encode(), f"{WORKER_PID}={os.getpid()}".encode()}
    return census.members(one.pid or _NOBODY, known, marks, one.started)


def _signal(members: Sequence[Process], *numbers: signal.Signals) -> None:
    for member in members:
        for number in numbers:
            send(member, number)
