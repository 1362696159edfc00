"""The ``python`` target: all Python runs of a worker, over its warm children, watched by one thread.

    waiting ──given──▶ in a child's hand ──begun──▶ running ──answered──▶ ended
       ▲                     │                         ├──stopped, too long──▶ seen off by a thread of its own ─▶ ended
       └──── taken back ─────┘                         └──its process died───▶ ended

* A child with runs in its hand holds one slot, and so does one that is coming up for a waiting run.
* Runs behind one that takes long are taken back after ``STALL_SECONDS``, and go elsewhere.
* A child that begins nothing of what it has for ``DEAF_SECONDS``, or does not answer, is replaced too.
* A child that a job spoiled, or that died, is replaced; what it had not begun waits again, in front.
* Output is read as it comes. The child tells when a run is over that wrote something, and goes on when it was read.

Everything here happens under the execution's lock, except starting children and seeing them off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from sexton.clock import Clock
from sexton.targets import PythonTarget
from sexton_worker.core.chunks import STALL_SECONDS
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.core.wear import WearLimits
from sexton_worker.execution import RunOrder
from sexton_worker.targets.child_watch import NEVER
from sexton_worker.targets.ending import machine_fault, not_started, stopped_before
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.python_children import ChildFailed, PythonChildren
from sexton_worker.targets.python_ending import Leaving, cut, died, ended_run
from sexton_worker.targets.python_process import PythonChild, Task
from sexton_worker.targets.python_queue import PythonQueue
from sexton_worker.targets.slots import Slots
from sexton_worker.targets.supervision import ENDINGS
from sexton_worker.targets.zygote_keeper import ZygoteKeeper

BOOT_SECONDS = 60.0
MOST_TRIES = 3  # processes that ended without beginning the run


class PythonRuns:
    """``tell`` takes each end; ``freed`` is called when a slot may have become free. Both under ``lock``."""

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
    ) -> None:
        self._clock = clock
        self._lock = lock
        self._slots = slots
        self._tell = tell
        self._freed = freed
        self._waiting = PythonQueue()
        self._children = PythonChildren(clock, worker_environment, lock, zygote, wear)
        self._leaving = Leaving(clock, lock, self._note_over)
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
        self._forget_expired()
        if self._children.resting():
            return self._waiting.arrival()
        returning = self._children.returning(self._clock.elapsed())
        if self._waiting.is_quick() and (returning or self._children.with_room(self._waiting.most_with) is not None):
            return None  # one of those will take it, and more of them
        return self._waiting.arrival(self._children.coming + returning)

    def begin_next(self) -> None:
        """Use one free slot for what ``next_arrival`` told of."""
        self._slots.free -= 1
        child = self._children.take_resting()
        if child is None:
            self._children.send_for()
        else:
            child.has_slot = True
            self._give(child)

    def top_up(self, before: int | None) -> None:
        """Let children that have only quick runs in hand have more of them; of those that came ``before``, if set."""
        self._forget_expired()
        while (arrival := self._waiting.arrival()) is not None and (before is None or arrival < before):
            child = self._children.with_room(self._waiting.most_with) if self._waiting.is_quick() else None
            if child is None:
                return
            self._give(child)

    def take_waiting(self) -> list[int]:
        """Forget what waits; its tokens."""
        return self._waiting.clear()

    def collect(self) -> None:
        """Take what the children have to say."""
        now = self._clock.elapsed()
        for child in self._children:
            if child.hand or not child.is_ready or child.is_recalling:
                self._listen_to(child, now)

    def stop(self, token: int, reason: StopReason) -> None:
        """Stop the run with this token and no other; nothing if it is not here."""
        if self._leaving.stop(token, reason):
            return
        now = self._clock.elapsed()
        if (task := self._waiting.remove(token)) is not None:
            self._tell(stopped_before(task.order, now, reason))
            return
        for child in self._children:
            if any(held.token == token for held in child.hand):
                self._stop_in(child, token, reason, now)
                return

    def close(self) -> None:
        """End the thread and the children; runs must have ended before. Without the lock."""
        with self._lock:
            self._is_closed = True
            self._watch.ring()
        self._thread.join()
        self._children.close()

    def _forget_expired(self) -> None:
        """What waited so long that its lease may be over must not begin."""
        now = self._clock.elapsed()
        while (task := self._waiting.pop_expired(now)) is not None:
            self._tell(stopped_before(task.order, now, StopReason.LEASE_LOST))

    # --- giving -----------------------------------------------------------------------------------------------------

    def _give(self, child: PythonChild) -> None:
        """As many of the first that wait as may go together."""
        now = self._clock.elapsed()
        processes = 1 + min(self._children.resting(), self._slots.free)
        tasks, child.is_quick = self._waiting.pop_together(len(child.hand), processes, now)
        child.give(tasks, now)
        self._watch.flush(child)
        self._watch.wake_by(child.look_at())

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _listen_to(self, child: PythonChild, now: float) -> None:
        was_ready = child.is_ready
        for task, started, ended, letter in self._children.ends(child, now):
            self._note_end(child, task, started, ended, letter)
        if child.is_late:
            child.is_late = False
            self._waiting.again(child.take_back(len(child.hand), must_answer=True))
        if child.is_ready and not was_ready:
            self._children.welcome(child)
            self._forget_expired()
            if self._waiting and child.has_slot:
                self._give(child)
        if child.is_ready and not child.hand:
            self._rest(child)

    def _note_end(
        self, child: PythonChild, task: Task, started: float, ended: float, letter: dict[str, Any] | None
    ) -> None:
        self._waiting.note(task.function, ended - started)
        is_cut = child.board.cut() == task.token  # it outlived the end that the zygote put to it
        if letter is None and not is_cut:
            self._tell(EndedRun(task.token, Ending.EXITED, started, ended, 0))
            return
        said, end = (letter["said"], letter["end"]) if letter else (False, None)
        if said:
            child.outputs.drain()
        told = ended_run(task.token, started, ended, end, child.outputs)
        self._tell(cut(task.order, told) if is_cut else told)
        if said:
            child.outputs.fresh_tails()
            child.let_go_on()
            self._watch.flush(child)

    def _rest(self, child: PythonChild) -> None:
        """It has nothing in hand: give its slot back, and keep it for more if it can be."""
        if child.has_slot:
            child.has_slot = False
            child.moved_at = self._clock.elapsed()
            self._slots.free += 1
        if child.is_recalling:
            self._watch.wake_by(child.deaf_at())
        self._children.rest(child)

    def _hear_output(self, child: PythonChild, descriptor: int) -> None:
        if child.hand or not child.is_ready:
            if child.has_output(descriptor) and not child.read_output(descriptor):
                self._watch.forget(descriptor)
        elif child.has_lost_an_output():
            self._children.end(child)
        else:
            # Somebody that a run left behind writes on: it is not listened to until there is a run again.
            self._watch.mute(child, descriptor)

    # --- ends that are no answers -----------------------------------------------------------------------------------

    def _stop_in(self, child: PythonChild, token: int, reason: StopReason, now: float) -> None:
        taken = child.take_back(len(child.hand))
        self._listen_to(child, now)  # it may have ended, and another have begun
        for task in taken:
            if task.token == token:
                taken.remove(task)
                self._tell(stopped_before(task.order, now, reason))
                break
        else:
            if child.hand and child.hand[0].token == token:
                child.stop.stop(reason)
                self._see_off(child, ENDINGS[reason])
        self._waiting.again(taken)
        self._freed()

    def _see_off(self, child: PythonChild, ending: Ending) -> None:
        """Stop the run that the child is in, which must be all that it has."""
        started = child.started_at() or child.head_since
        child.board.note_parting()
        self._children.drop(child)
        self._leaving.see_off(child, child.hand.popleft(), ending, started)

    def _note_over(self, ended: EndedRun) -> None:
        self._slots.free += 1
        self._tell(ended)
        self._freed()

    def _note_death(self, child: PythonChild, now: float) -> None:
        self._listen_to(child, now)
        self._children.drop(child)
        child.outputs.drain()
        if not child.is_ready:
            self._note_no_show(child, child.why_it_died(child.end()))
            return
        began_before = child.has_begun
        never_began = child.take_back(len(child.hand))
        started = child.started_at() or child.head_since
        cut_token = child.board.cut()
        code = child.end()
        for task in child.hand:  # one at most
            ended = died(task.order, code, child.outputs, started, now)
            self._tell(cut(task.order, ended) if task.token == cut_token else ended)
        if never_began and not child.hand and not began_before:
            self._try_again(never_began, end_of(code))
        else:
            self._waiting.again(never_began)
        if child.has_slot:
            self._slots.free += 1

    def _try_again(self, tasks: list[Task], became: str) -> None:
        """These wait again, for a process that began none of them; the first not for ever."""
        if tasks:
            tasks[0].tries += 1
            if tasks[0].tries >= MOST_TRIES:
                why = f"{MOST_TRIES} Python processes did not come to begin it; the last {became}"
                self._tell(machine_fault(tasks.pop(0).order, self._clock.elapsed(), why))
        self._waiting.again(tasks)

    def _note_no_show(self, child: PythonChild | None, why: str) -> None:
        """A child will not come: the first that waits must wait for another, unless (None) none could be started."""
        if child is not None and not child.has_slot:
            return  # a spare
        self._children.coming -= 1
        self._slots.free += 1
        task = self._waiting.pop()
        if task is not None and child is None:
            self._tell(machine_fault(task.order, self._clock.elapsed(), why))
        elif task is not None:
            self._try_again([task], why)

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
            self._note_death(child, self._clock.elapsed())
        elif descriptor == child.fileno():
            self._watch.flush(child)
        else:
            self._hear_output(child, descriptor)

    def _start_children(self) -> None:
        more = not self._is_closed
        while more:
            try:
                more = self._children.start_next()
            except ChildFailed as why:
                with self._lock:
                    self._note_no_show(None, str(why))
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
                self._note_no_show(child, f"did not start within {BOOT_SECONDS:g} s")
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
        return child.look_at() if child.hand else None

    def _look_at_deaf(self, child: PythonChild, now: float) -> None:
        self._listen_to(child, now)
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
        self._try_again(taken, "did not begin it in time")
        self._freed()

    def _look_at_stalled(self, child: PythonChild, now: float) -> None:
        self._listen_to(child, now)
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
        self._listen_to(child, now)
        if child.hand and child.hand[0] is head:  # and did not end in this moment
            self._see_off(child, Ending.TIMED_OUT)
        elif child.hand:
            self._watch.wake_by(child.look_at())
        self._waiting.again(taken)
        self._freed()
