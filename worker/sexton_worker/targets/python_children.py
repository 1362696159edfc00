"""The warm Python processes of a worker: who is there, who rests, who is on the way.

    sent for ──started──▶ coming up ──"ready"──▶ resting ◀──▶ with runs in hand ──dropped──▶ (gone)

Those that have served long enough go when another has come up in their place (``python_recycling``).

Everything but ``start_next`` belongs to who holds the execution's lock.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from sexton.clock import Clock
from sexton_worker.core.chunks import LARGEST_HAND, STALL_SECONDS
from sexton_worker.core.wear import WearLimits
from sexton_worker.targets.child_watch import ChildWatch
from sexton_worker.targets.environment import INHERITED_BY_PYTHON, WORKER_PID, clean_environment
from sexton_worker.targets.launching import KilledAtStart
from sexton_worker.targets.outputs import Spools
from sexton_worker.targets.python_process import EndOfRun, PythonChild, Task
from sexton_worker.targets.python_recycling import Recycling
from sexton_worker.targets.zygote_keeper import ZygoteKeeper

RETURN_SECONDS = 1.0
PARTING_SECONDS = 2.0  # until those that do not end by themselves are killed


class ChildFailed(Exception):
    """This machine cannot start a child now, the message says why; ``task``: for whom it was to be, None for all."""

    def __init__(self, why: str, task: Task | None) -> None:
        super().__init__(why)
        self.task = task


def returning_by(child: PythonChild) -> float:
    """Until when it is to be expected back at rest, without a run; 0: it is not on its way there."""
    is_returning = child.is_ready and child.is_recalling and not child.hand
    return child.moved_at + RETURN_SECONDS if is_returning else 0.0


class PythonChildren:
    """Iterated over, those that were started and not dropped; dropping one meanwhile does no harm."""

    def __init__(
        self,
        clock: Clock,
        worker_environment: Mapping[str, str],
        lock: threading.Lock,
        zygote: ZygoteKeeper,
        wear: WearLimits,
        spools: Spools = tuple,
    ) -> None:
        self._clock = clock
        own = clean_environment(worker_environment, INHERITED_BY_PYTHON)
        self._environment = {**own, WORKER_PID: str(os.getpid())}
        self._lock = lock
        self._zygote = zygote
        self._all: list[PythonChild] = []
        self._resting: list[PythonChild] = []  # the one used last is taken first, so that few stay warm
        self._sent_for: deque[Task | None] = deque()
        self.coming = 0  # sent for by nobody in particular, and not ready yet
        self.watch = ChildWatch(clock)
        self._recycling = Recycling(wear)
        self._spools = spools

    def __iter__(self) -> Iterator[PythonChild]:
        return iter(tuple(self._all))

    def resting(self) -> int:
        return len(self._resting)

    def returning(self, now: float) -> int:
        """How many are through with what they had, and have yet to say that they forgot what was taken back."""
        return sum(now < returns_by for returns_by in map(returning_by, self._all))

    def send_for(self, task: Task | None = None) -> None:
        """One more is to come, for this run alone or (None) for whoever waits; ``start_next`` sees to it."""
        self.coming += task is None
        self._sent_for.append(task)
        self.watch.ring()

    @property
    def is_wanted(self) -> bool:
        """Whether there is something to do for ``start_next``."""
        return bool(self._sent_for) or self._recycling.is_wanted

    def start_next(self) -> bool:
        """Start one that was sent for, without the lock; false if none was. Raises ``ChildFailed``."""
        with self._lock:
            worn = None if self._sent_for else self._recycling.next_due()
            intended = None
            if self._sent_for:
                intended = self._sent_for.popleft()
            elif worn is None:
                return False
        try:
            child = PythonChild(self._environment, self.watch.bell, self._clock.elapsed())
        except (KilledAtStart, OSError) as error:
            if worn is None:
                raise ChildFailed(str(error), intended) from None
            with self._lock:
                self._recycling.note_failed(worn, self._clock.elapsed())
            return True
        with self._lock:
            child.intended = intended
            if worn is None:
                child.has_slot = True
            else:
                self._recycling.note_started(child, worn)
            self._all.append(child)
            self.watch.add(child)
            self._zygote.watch(child.group.pid, child.group.fileno(), child.memory)
        return True

    def welcome(self, child: PythonChild) -> None:
        """It is ready. What it said while it started is no run's."""
        worn = self._recycling.note_ready(child)
        if worn is None:
            self.coming -= child.intended is None
        elif worn in self._resting:
            self._resting.remove(worn)
            worn.dismiss()
        child.outputs.drain()
        child.outputs.spools = self._spools
        child.outputs.fresh_tails()

    def ends(self, child: PythonChild, now: float) -> list[EndOfRun]:
        """What ``child.ends`` says. May find that it has served long enough."""
        found = child.ends(now)
        if found and child.intended is None and self._recycling.look_at(child, now):
            self.watch.ring()
        return found

    def rest(self, child: PythonChild) -> None:
        """Its hands are empty: keep it for more, once it has answered for what was taken back."""
        if child.is_recalling:
            return
        if child.is_replaced or child.intended is not None:
            child.dismiss()  # it ends by itself, which the watch will say
        elif child not in self._resting:
            self._resting.append(child)

    def retire(self, child: PythonChild) -> None:
        """It gets no more runs, and leaves when its hands are empty."""
        child.is_replaced = True
        if child in self._resting:
            self._resting.remove(child)
            child.dismiss()

    def take_resting(self) -> PythonChild | None:
        """One that can take a run, out of those that rest. What was written meanwhile is nobody's."""
        while self._resting:
            child = self._resting.pop()
            self.watch.unmute(child)
            if not child.has_news():
                return child
            if child.group.has_exited():
                continue  # the watch will say so
            child.board.note_taking()
            child.outputs.drain()
            child.outputs.fresh_tails()
            if child.is_fit():
                return child
            self.end(child)
        return None

    def look_at_idle(self, child: PythonChild, now: float) -> float | None:
        """End a child without a run that owes an answer for too long; when to look again, None: there is no need."""
        if not child.is_recalling:
            return None
        if now >= child.deaf_at():
            self.end(child)
            return None
        back_by = returning_by(child)
        return back_by if now < back_by else child.deaf_at()

    def with_room(self, most_with: Callable[[Task], int]) -> PythonChild | None:
        """The child with the least in hand, if it will be through with it in a moment."""
        found, least = None, LARGEST_HAND
        for child in self._all:
            count = len(child.hand)
            is_busy = child.is_recalling or child.outbox or child.is_replaced
            if 0 < count < least and child.is_quick and not is_busy:
                found, least = child, count
        if found is None or self._clock.elapsed() - found.moved_at >= STALL_SECONDS:
            return None
        most = min(most_with(task) for task in (found.hand[0], found.hand[-1]))
        return found if 2 * least <= most else None

    def drop(self, child: PythonChild) -> None:
        """Neither watch nor use it any more."""
        self._all.remove(child)
        self._zygote.unwatch(child.group.pid)
        self._recycling.forget(child, self._clock.elapsed())
        if child in self._resting:
            self._resting.remove(child)
        self.watch.remove(child)

    def end(self, child: PythonChild) -> None:
        """Drop it, and kill it: it is not fit for another run."""
        self.drop(child)
        child.end()

    def close(self) -> None:
        """End them all, politely first."""
        with self._lock:
            for child in self._all:
                self._zygote.unwatch(child.group.pid)
        for child in self._all:
            child.part()
        for child in self._all:
            child.end(PARTING_SECONDS)
        self.watch.close()
