"""The ``python`` target: all Python runs of a worker, over its warm children, watched by one thread.

    waiting ──given──▶ in a child's hand ──begun──▶ running ──answered──▶ ended
       ▲                     │                         ├──stopped, too long──▶ seen off by a thread of its own ─▶ ended
       └──── taken back ─────┘                         └──its process died───▶ ended

* A child with runs in its hand holds one slot, and so does one that is coming up for a waiting run.
* Runs behind one that takes long are taken back after ``STALL_SECONDS``, and go elsewhere.
* A child that begins nothing of what it has for ``DEAF_SECONDS``, or does not answer, is replaced too.
* A run with limits has a child of its own, which ends with it (``python_limits``).
* A child that a job spoiled, or that died, is replaced; what it had not begun waits again, in front.

Which run goes where and when is decided here; what passes between runs and children is in ``python_hands``.
Everything happens under the execution's lock, except starting children and seeing them off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from sexton.clock import Clock
from sexton.targets import PythonTarget
from sexton_worker.core.chunks import STALL_SECONDS
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.core.wear import WearLimits
from sexton_worker.execution import RunOrder
from sexton_worker.targets.child_watch import NEVER
from sexton_worker.targets.ending import not_started, stopped_before
from sexton_worker.targets.outputs import Spools
from sexton_worker.targets.python_children import ChildFailed, PythonChildren
from sexton_worker.targets.python_hands import PythonHands
from sexton_worker.targets.python_process import PythonChild, Task
from sexton_worker.targets.python_queue import PythonQueue
from sexton_worker.targets.slots import Slots
from sexton_worker.targets.zygote_keeper import ZygoteKeeper
from sexton_worker.zygote.frames import Seen

BOOT_SECONDS = 60.0


class PythonRuns:
    """``tell`` takes each end; ``freed`` is called when a slot may have become free. Both under ``lock``. ``leases``:
    until when the runs may go on that must not outlive theirs, by token and the elapsed clock."""

    def __init__(
        self,
        clock: Clock,
        worker_environment: Mapping[str, str],
        lock: threading.Lock,
        slots: Slots,
        tell: Callable[[EndedRun], None],
        freed: Callable[[], None],
        zygote: ZygoteKeeper,
        wear: WearLimits,
        leases: Callable[[], Mapping[int, float]],
        spools: Spools = tuple,
    ) -> None:
        self._clock = clock
        self._lock = lock
        self._slots = slots
        self._tell = tell
        self._freed = freed
        self._leases = leases
        self._waiting = PythonQueue()
        self._children = PythonChildren(clock, worker_environment, lock, zygote, wear, spools)
        self._hands = PythonHands(clock, lock, slots, tell, freed, self._waiting, self._children)
        self._is_closed = False
        self._watch = self._children.watch
        self._log = structlog.get_logger("sexton.worker.execution")
        self._thread = threading.Thread(target=self._supervise, name="sexton python", daemon=True)
        self._thread.start()

    # --- what the execution asks ------------------------------------------------------------------------------------

    def add(self, order: RunOrder, target: PythonTarget, arrival: int) -> None:
        """One more that waits; ``next_arrival`` and ``begin_next`` give it a slot in its turn."""
        try:
            self._waiting.add(order, target, arrival)
        except (TypeError, ValueError) as error:
            why = f"args and kwargs must be JSON values: {error}"
            self._tell(not_started(order, self._clock.elapsed(), why))

    def next_arrival(self) -> int | None:
        """When the first run came that needs a slot to begin; None: there is none."""
        self._hands.forget_expired()
        shared, limited = self._next_shared(), self._waiting.limited_arrival()
        return shared if limited is None or (shared is not None and shared < limited) else limited

    def _next_shared(self) -> int | None:
        if self._children.resting():
            return self._waiting.arrival()
        returning = self._children.returning(self._clock.elapsed())
        if self._waiting.is_quick() and (returning or self._children.with_room(self._waiting.most_with) is not None):
            return None  # one of those will take it, and more of them
        return self._waiting.arrival(self._children.coming + returning)

    def begin_next(self) -> None:
        """Use one free slot for what ``next_arrival`` told of."""
        limited = self._waiting.limited_arrival()
        is_own = limited is not None and limited == self.next_arrival()
        self._slots.free -= 1
        if is_own:
            self._hands.send_for_own()
            return
        child = self._children.take_resting()
        if child is None:
            self._children.send_for()
        else:
            child.has_slot = True
            self._hands.give(child)

    def top_up(self, before: int | None) -> None:
        """Let children that have only quick runs in hand have more of them; of those that came ``before``, if set."""
        self._hands.forget_expired()
        if (limited := self._waiting.limited_arrival()) is not None:
            before = limited if before is None else min(before, limited)
        while (arrival := self._waiting.arrival()) is not None and (before is None or arrival < before):
            child = self._children.with_room(self._waiting.most_with) if self._waiting.is_quick() else None
            if child is None:
                return
            self._hands.give(child)

    def take_waiting(self) -> list[int]:
        """Forget what waits; its tokens."""
        return self._waiting.clear()

    def collect(self) -> None:
        """Take what the children have to say."""
        now = self._clock.elapsed()
        for child in self._children:
            if child.hand or not child.is_ready or child.is_recalling:
                self._hands.listen_to(child, now)

    def stop(self, token: int, reason: StopReason) -> None:
        """Stop the run with this token and no other; nothing if it is not here."""
        if (task := self._waiting.remove(token)) is not None:
            self._tell(stopped_before(task.order, self._clock.elapsed(), reason))
        else:
            self._hands.stop(token, reason)

    def look(self, token: int) -> Seen | None:
        """What this run has written so far; None if it is not here, or has not begun."""
        return self._hands.look(token)

    def close(self) -> None:
        """End the thread and the children; runs must have ended before. Without the lock."""
        with self._lock:
            self._is_closed = True
            self._watch.ring()
        self._thread.join()
        self._children.close()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while not self._is_closed:
            try:
                self._start_children()
                with self._lock:
                    seconds = self._look_after(self._clock.elapsed())
                ready = self._watch.wait(seconds)
                with self._lock:
                    for descriptor in ready:
                        self._attend(descriptor)
                    self._freed()
            except Exception:
                self._log.exception("python.fault")  # whatever it was about, the others go on

    def _attend(self, descriptor: int) -> None:
        if descriptor == self._watch.bell:
            self._watch.hush()
            self.collect()
            return
        child = self._watch.child_of(descriptor)
        if child is None:
            return
        if descriptor == child.group.fileno():
            self._hands.note_death(child, self._clock.elapsed())
        elif descriptor == child.fileno():
            self._watch.flush(child)
        else:
            self._hands.hear_output(child, descriptor)

    def _start_children(self) -> None:
        more = not self._is_closed
        while more:
            try:
                more = self._children.start_next()
            except ChildFailed as why:
                with self._lock:
                    self._hands.note_no_show(None, str(why), why.task)
                    self._freed()

    def _look_after(self, now: float) -> float:
        """Do what time alone makes due; seconds until there is more of that, -1 for never."""
        looks = [self._time_of(child, now) for child in self._children]
        if self._children.is_wanted:
            return 0.0
        until = min((look for look in looks if look is not None), default=NEVER)
        return self._watch.patience(until, now, STALL_SECONDS)

    def _time_of(self, child: PythonChild, now: float) -> float | None:
        """See to one child; when to look at it again, None: not before it says something."""
        if not child.is_ready:
            if now >= child.moved_at + BOOT_SECONDS:
                self._children.end(child)
                self._hands.note_no_show(child, f"did not start within {BOOT_SECONDS:g} s")
                self._freed()
                return None
            return child.moved_at + BOOT_SECONDS
        if not child.hand:
            return self._children.look_at_idle(child, now)
        if len(child.hand) > 1 and now >= child.moved_at + STALL_SECONDS:
            self._look_at_stalled(child, now)
        if now >= child.deaf_at() and child.started_at() is None:
            self._look_at_deaf(child, now)
        if not child.hand:
            return None
        if now >= child.deadline():
            child.head_since = max(child.head_since, child.started_at() or 0.0)
            if now >= child.deadline():
                self._time_out(child, now)
        if not child.hand:
            return None
        if now >= child.leases_at():
            child.note_leases(now, self._leases())
        return child.look_at()

    def _look_at_deaf(self, child: PythonChild, now: float) -> None:
        self._hands.listen_to(child, now)
        if not child.hand or child.started_at() is not None or now < child.deaf_at():
            return
        taken = child.take_back(len(child.hand))
        if not child.hand:
            self._end_deaf(child, taken)
        else:
            child.moved_at = now  # it began in this moment
            self._waiting.again(taken)
            self._freed()

    def _end_deaf(self, child: PythonChild, taken: list[Task]) -> None:
        self._children.end(child)
        self._slots.free += 1
        self._hands.try_again(taken, "did not begin it in time")
        self._freed()

    def _look_at_stalled(self, child: PythonChild, now: float) -> None:
        self._hands.listen_to(child, now)
        child.moved_at = max(child.moved_at, child.started_at() or 0.0)
        if len(child.hand) < 2 or now < child.moved_at + STALL_SECONDS:
            return
        self._waiting.note(child.hand[0].function, now - child.moved_at)
        self._waiting.again(child.take_back(len(child.hand) - 1))
        self._freed()

    def _time_out(self, child: PythonChild, now: float) -> None:
        head = child.hand[0]
        taken = child.take_back(len(child.hand))
        if not child.hand:
            self._end_deaf(child, taken)
            return
        self._hands.listen_to(child, now)
        if child.hand and child.hand[0] is head:  # and did not end in this moment
            self._hands.see_off(child, Ending.TIMED_OUT)
        elif child.hand:
            self._watch.wake_by(child.look_at())
        self._waiting.again(taken)
        self._freed()
