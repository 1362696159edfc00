"""The ``python`` target: all Python runs of a worker, over its warm children, watched by one thread.

    waiting ──given──▶ in a child's hand ──begun──▶ running ──answered──▶ ended
       ▲                     │                         ├──stopped, too long──▶ seen off by a thread of its own ─▶ ended
       └──── taken back ─────┘                         └──its process died───▶ ended

* A child with runs in its hand holds one slot, and so does one that is coming up for a waiting run.
* Runs behind one that takes long are taken back after ``STALL_SECONDS``, and go elsewhere.
* A child that a job spoiled, or that died, is replaced; what it had not begun waits again, in front.
* Output is read as it comes. The child tells when a run is over that wrote something, and goes on when it was read.

Everything here happens under the execution's lock, except starting children and seeing them off.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from sexton.clock import Clock
from sexton.jobs import PythonTarget
from sexton_worker.core.chunks import (
    LARGEST_HAND,
    STALL_SECONDS,
    Durations,
    share,
)
from sexton_worker.core.machine_faults import is_machine_fault
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.ending import machine_fault, not_started, stopped_before
from sexton_worker.targets.environment import INHERITED_BY_PYTHON, WORKER_PID, clean_environment
from sexton_worker.targets.launching import KilledAtStart
from sexton_worker.targets.python_ending import died, ended_run, see_off
from sexton_worker.targets.python_process import PythonChild, Task
from sexton_worker.targets.python_requests import PythonRequests
from sexton_worker.targets.supervision import ENDINGS

BOOT_SECONDS = 60.0
PARTING_SECONDS = 2.0
MOST_TRIES = 3  # processes that ended without beginning the run
LARGEST_LIST = 1 << 16  # characters
STAYS_AWAKE = 0.5  # after runs were given out: so that not each of them must wake the thread
LONGEST_SLEEP = 60.0  # the kernel's own timer stands still while the machine sleeps
_NEVER = float("inf")


class Slots:
    """How many runs may still begin now."""

    def __init__(self, free: int) -> None:
        self.free = free


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
    ) -> None:
        self._clock = clock
        own = clean_environment(worker_environment, INHERITED_BY_PYTHON)
        self._environment = {**own, WORKER_PID: str(os.getpid())}
        self._lock = lock
        self._slots = slots
        self._tell = tell
        self._freed = freed
        self._requests = PythonRequests()
        self._durations = Durations()
        self._waiting: deque[Task] = deque()
        self._children: list[PythonChild] = []
        self._idle: list[PythonChild] = []  # the one used last is taken first, so that few stay warm
        self._coming = 0  # children on their way, for as many of the first that wait
        self._to_launch = 0
        self._seen_off: dict[int, PythonChild] = {}
        self._watched: dict[int, PythonChild] = {}
        self._is_closed = False
        self._sleeps_until = _NEVER  # as of elapsed seconds, like all times here
        self._given_at = -_NEVER
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._bell, select.EPOLLIN)
        self._log = structlog.get_logger("sexton.worker.execution")
        self._thread = threading.Thread(target=self._supervise, name="sexton python", daemon=True)
        self._thread.start()

    # --- what the execution asks ------------------------------------------------------------------------------------

    def add(self, order: RunOrder, target: PythonTarget, arrival: int) -> None:
        """One more that waits; ``next_arrival`` and ``begin_next`` give it a slot in its turn."""
        try:
            line = self._requests.line(order, target)
        except (TypeError, ValueError) as error:
            why = f"args and kwargs must be JSON values: {error}"
            self._tell(not_started(order, self._clock.elapsed(), why))
            return
        self._waiting.append(Task(order, line, target.reference, arrival, is_alone=order.grant.at_most_once))

    def next_arrival(self) -> int | None:
        """When the first run came that needs a slot to begin; None: there is none."""
        self._forget_expired()
        if self._idle:
            return self._waiting[0].arrival if self._waiting else None
        if len(self._waiting) <= self._coming or (self._most(self._waiting[0]) > 1 and self._with_room() is not None):
            return None
        return self._waiting[self._coming].arrival

    def begin_next(self) -> None:
        """Use one free slot for what ``next_arrival`` told of."""
        while self._idle:
            child = self._idle.pop()
            if self._is_fit(child):
                self._slots.free -= 1
                child.has_slot = True
                self._give(child)
                return
        self._slots.free -= 1
        self._coming += 1
        self._to_launch += 1
        self._ring()

    def top_up(self, before: int | None) -> None:
        """Let children that have only quick runs in hand have more of them; of those that came ``before``, if set."""
        self._forget_expired()
        while self._waiting and (before is None or self._waiting[0].arrival < before):
            child = self._with_room() if self._most(self._waiting[0]) > 1 else None
            if child is None:
                return
            self._give(child)

    def take_waiting(self) -> list[int]:
        """Forget what waits; its tokens."""
        tokens = [task.token for task in self._waiting]
        self._waiting.clear()
        return tokens

    def collect(self) -> None:
        """Take what the children have to say."""
        now = self._clock.elapsed()
        for child in tuple(self._children):
            if child.hand or not child.is_ready or child.is_recalling:
                self._listen_to(child, now)

    def stop(self, token: int, reason: StopReason) -> None:
        """Stop the run with this token and no other; nothing if it is not here."""
        if (leaving := self._seen_off.get(token)) is not None:
            leaving.stop.stop(reason)
            return
        now = self._clock.elapsed()
        for task in self._waiting:
            if task.token == token:
                self._waiting.remove(task)
                self._tell(stopped_before(task.order, now, reason))
                return
        for child in self._children:
            if any(task.token == token for task in child.hand):
                self._stop_in(child, token, reason, now)
                return

    def close(self) -> None:
        """End the thread and the children; runs must have ended before. Without the lock."""
        with self._lock:
            self._is_closed = True
            self._ring()
        self._thread.join()
        for child in self._children:
            child.part()
        for child in self._children:
            child.end(PARTING_SECONDS)
        self._epoll.close()
        os.close(self._bell)

    def _forget_expired(self) -> None:
        """What waited so long that its lease may be over must not begin."""
        while self._waiting and (now := self._clock.elapsed()) >= self._waiting[0].order.begin_by:
            self._tell(stopped_before(self._waiting.popleft().order, now, StopReason.LEASE_LOST))

    # --- giving -----------------------------------------------------------------------------------------------------

    def _most(self, task: Task) -> int:
        return 1 if task.is_alone else self._durations.most_together(task.function)

    def _with_room(self) -> PythonChild | None:
        """The child with the least in hand, if it will be through with it in a moment."""
        found, least = None, LARGEST_HAND
        for child in self._children:
            count = len(child.hand)
            if 0 < count < least and child.is_quick and not child.is_recalling and not child.outbox:
                found, least = child, count
        if found is None:
            return None
        most = min(self._most(task) for task in (found.hand[0], found.hand[-1]))
        return found if 2 * least <= most else None

    def _give(self, child: PythonChild) -> None:
        """As many of the first that wait as may go together."""
        now = self._clock.elapsed()
        most = self._most(self._waiting[0])
        held = len(child.hand)
        evenly = share(len(self._waiting), 1 + min(len(self._idle), self._slots.free), most)
        limit = max(1, min(most - held, evenly))
        tasks = [self._waiting.popleft()]
        size = len(tasks[0].line)
        while self._waiting and len(tasks) < limit and size < LARGEST_LIST:
            following = self._waiting[0]
            if self._most(following) <= held + len(tasks) or now >= following.order.begin_by:
                break
            size += len(following.line)
            tasks.append(self._waiting.popleft())
        child.is_quick = most > 1 and size < LARGEST_LIST
        child.give(tasks, now)
        self._await_flush(child)
        self._note_time(child)

    def _await_flush(self, child: PythonChild) -> None:
        if child.outbox and child.fileno() not in self._watched:
            self._watch(child, child.fileno(), select.EPOLLOUT)

    def _note_time(self, child: PythonChild) -> None:
        """The thread must be awake when time alone may change something in this child's hand."""
        now = child.moved_at
        self._given_at = self._clock.elapsed()
        until = child.head_since + child.hand[0].order.rules.max_runtime.total_seconds()
        if len(child.hand) > 1:
            until = min(until, now + STALL_SECONDS)
        if until < self._sleeps_until:
            self._ring()

    def _ring(self) -> None:
        self._sleeps_until = 0.0
        os.eventfd_write(self._bell, 1)

    def _is_fit(self, child: PythonChild) -> bool:
        """Whether it can take another run: alive, its outputs open. What was written meanwhile is nobody's."""
        if child.has_news():
            if child.group.has_exited():
                return False  # its end is on the way to the thread
            child.board.note_taking()
            child.outputs.drain()
            child.outputs.fresh_tails()
            if child.has_lost_an_output():
                self._drop(child)
                child.end()
                return False
            for descriptor in child.muted:
                self._epoll.modify(descriptor, select.EPOLLIN)
            child.muted.clear()
        return True

    def _wait_again(self, tasks: list[Task]) -> None:
        self._waiting.extendleft(reversed(tasks))

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _listen_to(self, child: PythonChild, now: float) -> None:
        was_ready = child.is_ready
        for task, started, ended, letter in child.ends(now):
            self._note_end(child, task, started, ended, letter)
        if child.is_late:
            child.is_late = False
            self._wait_again(child.take_back(len(child.hand), must_answer=True))
        if child.is_ready and not was_ready:
            self._coming -= 1
            self._forget_expired()
            if self._waiting:
                self._give(child)
        if child.is_ready and not child.hand:
            self._rest(child)

    def _note_end(
        self, child: PythonChild, task: Task, started: float, ended: float, letter: dict[str, Any] | None
    ) -> None:
        self._durations.note(task.function, ended - started)
        if letter is None:
            self._tell(EndedRun(task.token, Ending.EXITED, started, ended, 0))
            return
        if letter["said"]:
            child.outputs.drain()
        self._tell(ended_run(task.token, started, ended, letter["end"], child.outputs))
        if letter["said"]:
            child.outputs.fresh_tails()
            child.send(b'"go on"\n')
            self._await_flush(child)

    def _rest(self, child: PythonChild) -> None:
        """It has nothing in hand: give its slot back, and keep it for more if it can be."""
        if child.has_slot:
            child.has_slot = False
            self._slots.free += 1
        if not child.is_recalling and child not in self._idle:
            self._idle.append(child)

    def _hear_output(self, child: PythonChild, descriptor: int) -> None:
        if child.hand or not child.is_ready:
            child.board.note_taking()
            if not child.outputs.read(descriptor):
                self._watched.pop(descriptor, None)
        elif child.has_lost_an_output():
            self._drop(child)
            child.end()
        else:
            # Somebody that a run left behind writes on: it is not listened to until there is a run again.
            self._epoll.modify(descriptor, 0)
            child.muted.add(descriptor)

    # --- ends that are no answers -----------------------------------------------------------------------------------

    def _stop_in(self, child: PythonChild, token: int, reason: StopReason, now: float) -> None:
        taken = child.take_back(len(child.hand))
        self._listen_to(child, now)  # it may have ended: with nothing else in hand, no other can have begun since
        for task in taken:
            if task.token == token:
                taken.remove(task)
                self._tell(stopped_before(task.order, now, reason))
                break
        else:
            if child.hand:
                child.stop.stop(reason)
                self._see_off(child, ENDINGS[reason])
        self._wait_again(taken)
        self._freed()

    def _see_off(self, child: PythonChild, ending: Ending) -> None:
        """Stop the run that the child is in, which must be all that it has, on a thread of its own."""
        started = child.started_at() or child.head_since
        self._drop(child)
        task = child.hand.popleft()
        self._seen_off[task.token] = child

        def run() -> None:
            ended = see_off(child, task.order, ending, started, self._clock)
            with self._lock:
                del self._seen_off[task.token]
                self._slots.free += 1
                self._tell(ended)
                self._freed()

        threading.Thread(target=run, name=f"sexton ends run {task.token}", daemon=True).start()

    def _note_death(self, child: PythonChild, now: float) -> None:
        self._listen_to(child, now)
        self._drop(child)
        child.outputs.drain()
        if not child.is_ready:
            self._fail_to_come(child.why_it_died(child.end()), is_fault=False)
            return
        began_before = child.has_begun
        never_began = child.take_back(len(child.hand))
        started = child.started_at() or child.head_since
        code = child.end()
        for task in child.hand:  # one at most
            self._tell(died(task.order, code, child.outputs, started, now))
        if never_began and not child.hand and not began_before:
            never_began[0].tries += 1
            if never_began[0].tries >= MOST_TRIES:
                order = never_began.pop(0).order
                self._tell(not_started(order, now, "the Python processes of this worker end before they begin it"))
        self._wait_again(never_began)
        if child.has_slot:
            self._slots.free += 1

    def _fail_to_come(self, why: str, *, is_fault: bool) -> None:
        """No child for the first that waits, which pays for it."""
        self._coming -= 1
        self._slots.free += 1
        if self._waiting:
            order, now = self._waiting.popleft().order, self._clock.elapsed()
            self._tell(machine_fault(order, now, why) if is_fault else not_started(order, now, why))

    def _drop(self, child: PythonChild) -> None:
        """Neither watch nor use the child any more."""
        self._children.remove(child)
        if child in self._idle:
            self._idle.remove(child)
        for descriptor in [one for one, whose in self._watched.items() if whose is child]:
            del self._watched[descriptor]
            with contextlib.suppress(OSError):
                self._epoll.unregister(descriptor)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while not self._is_closed:
            try:
                self._launch_wanted()
                with self._lock:
                    seconds = self._look_after(self._clock.elapsed())
                ready = self._epoll.poll(seconds)
                with self._lock:
                    for descriptor, _ in ready:
                        self._attend(descriptor)
                    self._freed()
            except Exception:
                self._log.exception("python.fault")  # whatever it was about, the others go on

    def _attend(self, descriptor: int) -> None:
        if descriptor == self._bell:
            os.eventfd_read(self._bell)
            self.collect()
        elif (child := self._watched.get(descriptor)) is None:
            pass  # dropped a moment ago
        elif descriptor == child.group.fileno():
            self._note_death(child, self._clock.elapsed())
        elif descriptor == child.fileno():
            child.flush()
            if not child.outbox:
                del self._watched[descriptor]
                self._epoll.unregister(descriptor)
        else:
            self._hear_output(child, descriptor)

    def _launch_wanted(self) -> None:
        while True:
            with self._lock:
                if not self._to_launch or self._is_closed:
                    return
                self._to_launch -= 1
            try:
                child = PythonChild(self._environment, self._bell, self._clock.elapsed())
            except (OSError, KilledAtStart) as error:
                is_fault = isinstance(error, KilledAtStart) or is_machine_fault(error)
                why = str(error) if is_fault else f"cannot start a Python process: {error}"
                with self._lock:
                    self._fail_to_come(why, is_fault=is_fault)
                    self._freed()
                continue
            with self._lock:
                child.has_slot = True
                self._children.append(child)
                for descriptor in (*child.outputs.descriptors(), child.group.fileno()):
                    self._watch(child, descriptor, select.EPOLLIN)

    def _watch(self, child: PythonChild, descriptor: int, events: int) -> None:
        self._watched[descriptor] = child
        self._epoll.register(descriptor, events)

    def _look_after(self, now: float) -> float:
        """Do what time alone makes due; seconds until there is more of that, -1 for never."""
        looks = [self._time_of(child, now) for child in tuple(self._children)]
        if self._to_launch:
            return 0.0
        until = min((look for look in looks if look is not None), default=_NEVER)
        if now - self._given_at < STAYS_AWAKE:
            until = min(until, now + STALL_SECONDS)
        self._sleeps_until = until
        return -1.0 if until == _NEVER else min(LONGEST_SLEEP, max(0.001, until - now))

    def _time_of(self, child: PythonChild, now: float) -> float | None:
        """See to one child; when to look at it again, None: not before it says something."""
        if not child.is_ready:
            if now >= child.moved_at + BOOT_SECONDS:
                self._drop(child)
                child.end()
                self._fail_to_come(f"a Python process did not start within {BOOT_SECONDS:g} s", is_fault=False)
                self._freed()
                return None
            return child.moved_at + BOOT_SECONDS
        if not child.hand:
            return None
        if len(child.hand) > 1 and now >= child.moved_at + STALL_SECONDS:
            self._look_at_stalled(child, now)
        if not child.hand:
            return None
        longest = child.hand[0].order.rules.max_runtime.total_seconds()
        if now >= child.head_since + longest:
            child.head_since = max(child.head_since, child.started_at() or 0.0)
            if now >= child.head_since + longest:
                self._time_out(child, now)
                return None
        until = child.head_since + longest
        return min(until, child.moved_at + STALL_SECONDS) if len(child.hand) > 1 else until

    def _look_at_stalled(self, child: PythonChild, now: float) -> None:
        self._listen_to(child, now)
        child.moved_at = max(child.moved_at, child.started_at() or 0.0)
        if len(child.hand) < 2 or now < child.moved_at + STALL_SECONDS:
            return
        self._durations.note(child.hand[0].function, now - child.moved_at)
        self._wait_again(child.take_back(len(child.hand) - 1))
        self._freed()

    def _time_out(self, child: PythonChild, now: float) -> None:
        taken = child.take_back(len(child.hand))
        is_deaf = not child.hand  # it did not even begin
        self._listen_to(child, now)
        if child.hand:
            self._see_off(child, Ending.TIMED_OUT)
        elif is_deaf:
            self._drop(child)
            child.end()
        self._wait_again(taken)
        self._freed()
