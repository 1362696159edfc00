"""What goes into the hands of the Python children and comes out of them: runs given, ends heard, deaths, stops.

    waiting ──give──▶ in a child's hand ──its end is heard──▶ told
       ▲                     ├──stopped, too long──▶ seen off by a thread of its own ─▶ told
       └──── taken back ─────┴──its process died───▶ told; what it had not begun waits again, in front

Output is read as it comes. The child tells when a run is over that wrote something, and goes on when it was read.
All of it belongs to who holds the execution's lock. Who does what when is in ``python_runs``.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any

from sexton.clock import Clock
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.targets.ending import machine_fault, not_started, stopped_before
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.python_children import PythonChildren
from sexton_worker.targets.python_ending import Leaving, cut, died, ended_run
from sexton_worker.targets.python_limits import set_limits, why_limited
from sexton_worker.targets.python_process import PythonChild, Task
from sexton_worker.targets.python_queue import PythonQueue
from sexton_worker.targets.slots import Slots
from sexton_worker.targets.supervision import ENDINGS
from sexton_worker.zygote.frames import Seen

KILLED = 128 + signal.SIGKILL
MOST_TRIES = 3  # processes that ended without beginning the run
_LAID_HANDS = (
    "what became of it is unknown: a job of its process wrote to files of Sexton's, or read them; its code must \
leave alone what it did not open"
)


class PythonHands:
    """``tell`` takes each end; ``freed`` is called when a slot may have become free."""

    def __init__(
        self,
        clock: Clock,
        lock: threading.Lock,
        slots: Slots,
        tell: Callable[[EndedRun], None],
        freed: Callable[[], None],
        waiting: PythonQueue,
        children: PythonChildren,
    ) -> None:
        self._clock = clock
        self._slots = slots
        self._tell = tell
        self._freed = freed
        self._waiting = waiting
        self._children = children
        self._watch = children.watch
        self._leaving = Leaving(clock, lock, self._note_over)
        self._intended: dict[int, Task] = {}  # by token, those for whom a process of their own is coming up

    # --- giving -----------------------------------------------------------------------------------------------------

    def give(self, child: PythonChild) -> None:
        """As many of the first that wait as may go together."""
        now = self._clock.elapsed()
        processes = 1 + min(self._children.resting(), self._slots.free)
        tasks, child.is_quick = self._waiting.pop_together(len(child.hand), processes, now)
        child.give(tasks, now)
        self._watch.flush(child)
        self._watch.wake_by(child.look_at())

    def send_for_own(self) -> None:
        """Have a process come for the first that waits with limits. It is not shared: a limit cannot be taken off, and
        processor time counts from a process's start."""
        task = self._waiting.pop_limited()
        self._intended[task.token] = task
        self._children.send_for(task)

    def _give_own(self, child: PythonChild, intended: Task, now: float) -> None:
        """To this process, which is ready, the run that it is for; unless that was stopped meanwhile."""
        task = self._intended.pop(intended.token, None)
        if task is not None and now >= task.order.begin_by:
            self._tell(stopped_before(task.order, now, StopReason.LEASE_LOST))
        elif task is not None:
            with contextlib.suppress(OSError):  # it is dead, as the watch will say
                set_limits(child.group.pid, task.order.rules.limits)
            child.give([task], now)
            self._watch.flush(child)
            self._watch.wake_by(child.look_at())

    # --- hearing ----------------------------------------------------------------------------------------------------

    def forget_expired(self) -> None:
        """What waited so long that its lease may be over must not begin."""
        now = self._clock.elapsed()
        while (task := self._waiting.pop_expired(now)) is not None:
            self._tell(stopped_before(task.order, now, StopReason.LEASE_LOST))

    def listen_to(self, child: PythonChild, now: float) -> None:
        """Take what it has to say. One whose socket a job laid hands on begins nothing more, and is ended at once if
        an answer was lost."""
        self._hear(child, now)
        if child.has_lost_mail:
            self._end_odd(child, now)
        elif child.is_odd and not child.is_replaced:
            self._waiting.again(child.take_back(len(child.hand)))
            self._children.retire(child)
            self._freed()

    def _end_odd(self, child: PythonChild, now: float) -> None:
        taken = child.take_back(len(child.hand))
        self._children.drop(child)
        child.outputs.drain()
        started = child.started_at() or child.head_since
        code = child.end()
        while child.hand:  # one at most
            ended = died(child.hand.popleft().order, code, child.outputs, started, now)
            self._tell(ended._replace(error=_LAID_HANDS))
        self._slots.free += child.has_slot
        child.has_slot = False
        self._waiting.again(taken)
        self._freed()

    def _hear(self, child: PythonChild, now: float) -> None:
        was_ready = child.is_ready
        for task, started, ended, letter in self._children.ends(child, now):
            self._note_end(child, task, started, ended, letter)
        if child.is_late:
            child.is_late = False
            self._waiting.again(child.take_back(len(child.hand), must_answer=True))
        if child.is_ready and not was_ready:
            self._children.welcome(child)
            self.forget_expired()
            if child.intended is not None:
                self._give_own(child, child.intended, now)
            elif self._waiting and child.has_slot:
                self.give(child)
        if child.is_ready and not child.hand:
            self._rest(child)

    def _note_end(
        self, child: PythonChild, task: Task, started: float, ended: float, letter: dict[str, Any] | None
    ) -> None:
        self._waiting.note(task.function, ended - started)
        why_cut = child.board.cut(task.token)  # it may have outlived the end that the zygote put to it
        if letter is None and why_cut is None:
            self._tell(EndedRun(task.token, Ending.EXITED, started, ended, 0))
            return
        said, end = (letter["said"], letter["end"]) if letter else (False, None)
        if said:
            child.outputs.drain()
        told = why_limited(task.order, ended_run(task.token, started, ended, end, child.outputs))
        self._tell(told if why_cut is None else cut(task.order, told, why_cut))
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

    def hear_output(self, child: PythonChild, descriptor: int) -> None:
        if child.hand or not child.is_ready:
            if child.has_output(descriptor) and not child.read_output(descriptor):
                self._watch.forget(descriptor)
        elif child.has_lost_an_output():
            self._children.end(child)
        else:
            # Somebody that a run left behind writes on: it is not listened to until there is a run again.
            self._watch.mute(child, descriptor)

    # --- ends that are no answers -----------------------------------------------------------------------------------

    def stop(self, token: int, reason: StopReason) -> None:
        """Stop the run with this token and no other; nothing if it is in no child's hand."""
        if self._leaving.stop(token, reason):
            return
        if (task := self._intended.pop(token, None)) is not None:
            self._tell(stopped_before(task.order, self._clock.elapsed(), reason))
            return
        for child in self._children:
            if any(held.token == token for held in child.hand):
                self._stop_in(child, token, reason, self._clock.elapsed())
                return

    def _stop_in(self, child: PythonChild, token: int, reason: StopReason, now: float) -> None:
        taken = child.take_back(len(child.hand))
        self.listen_to(child, now)  # it may have ended, and another have begun
        for task in taken:
            if task.token == token:
                taken.remove(task)
                self._tell(stopped_before(task.order, now, reason))
                break
        else:
            if child.hand and child.hand[0].token == token:
                child.stop.stop(reason)
                self.see_off(child, ENDINGS[reason])
        self._waiting.again(taken)
        self._freed()

    def look(self, token: int) -> Seen | None:
        """What this run has written so far; None if it is in no child's hand."""
        for child in self._children:
            if child.hand and child.hand[0].token == token:
                return None if child.started_at() is None else child.outputs.look(token)
        return self._leaving.look(token)

    def see_off(self, child: PythonChild, ending: Ending) -> None:
        """Stop the run that the child is in, which must be all that it has."""
        started = child.started_at() or child.head_since
        child.board.note_parting()
        self._children.drop(child)
        self._leaving.see_off(child, child.hand.popleft(), ending, started)

    def _note_over(self, ended: EndedRun) -> None:
        self._slots.free += 1
        self._tell(ended)
        self._freed()

    def note_death(self, child: PythonChild, now: float) -> None:
        self._hear(child, now)
        self._children.drop(child)
        child.outputs.drain()
        if not child.is_ready:
            self.note_no_show(child, child.why_it_died(child.end()))
            return
        began_before = child.has_begun
        never_began = child.take_back(len(child.hand))
        started = child.started_at() or child.head_since
        why_cut = child.board.cut(child.hand[0].token) if child.hand else None
        code = child.end()
        for task in child.hand:  # one at most
            ended = why_limited(task.order, died(task.order, code, child.outputs, started, now))
            self._tell(ended if why_cut is None else cut(task.order, ended, why_cut))
        if never_began and child.intended is not None and code != KILLED:
            why = f"a Python process cannot work within its limits ({end_of(code)}); raise the job's limits"
            self._tell(not_started(never_began.pop().order, now, why))
        elif never_began and not child.hand and not began_before:
            self.try_again(never_began, end_of(code))
        else:
            self._waiting.again(never_began)
        if child.has_slot:
            self._slots.free += 1

    def try_again(self, tasks: list[Task], became: str) -> None:
        """These wait again, for a process that began none of them; the first not for ever."""
        if tasks:
            tasks[0].tries += 1
            if tasks[0].tries >= MOST_TRIES:
                why = f"{MOST_TRIES} Python processes did not come to begin it; the last {became}"
                self._tell(machine_fault(tasks.pop(0).order, self._clock.elapsed(), why))
        self._waiting.again(tasks)

    def note_no_show(self, child: PythonChild | None, why: str, intended: Task | None = None) -> None:
        """A child will not come: who it was ``intended`` for, or the first that waits, must wait for another, unless
        (None) none could be started."""
        if child is not None and not child.has_slot:
            return  # a spare
        intended = intended if child is None else child.intended
        self._children.coming -= intended is None
        self._slots.free += 1
        task = self._waiting.pop() if intended is None else self._intended.pop(intended.token, None)
        if task is not None and child is None:
            self._tell(machine_fault(task.order, self._clock.elapsed(), why))
        elif task is not None:
            self.try_again([task], why)
