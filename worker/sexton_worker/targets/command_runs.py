"""The ``command`` and ``shell`` targets: all command runs of a worker, over its zygote, watched by one thread.

    waiting ──sent, or sent ahead──▶ the zygote's ──told of──▶ ended
       ▲                                │  └──the zygote was lost, and it had begun──▶ what is left is ended ──▶ ended,
       └─ taken back; it had not begun ─┘                                                                  fate unknown

What is sent begins in a slot that was free. What is sent *ahead* (``zygote/ahead.py``) has none yet: it gets that of
the next run of the zygote's that ends, without a word of this side's, and can be taken back until then. So it is taken
back when an urgent run comes, when a slot of another kind becomes free, and when it is to be stopped or recalled.

The zygote starts the commands, drains them, and keeps their time (``sexton_worker/zygote``). Everything here happens
under the execution's lock, except waiting for it and ending what a lost one left.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping

import structlog

from sexton.clock import Clock
from sexton_worker.core.runs import EndedRun, Spooled, StopReason
from sexton_worker.core.turns import enter
from sexton_worker.execution import RunOrder
from sexton_worker.spool_room import SpoolRoom
from sexton_worker.targets.command import Programs, ended_command, order_for, unsayable
from sexton_worker.targets.ending import machine_fault, not_started, stopped_before
from sexton_worker.targets.environment import clean_environment
from sexton_worker.targets.outputs import discard
from sexton_worker.targets.process_group import end_of
from sexton_worker.targets.slots import Slots
from sexton_worker.targets.zygote_keeper import PING_SECONDS, ROUSE_SECONDS, ZygoteKeeper
from sexton_worker.targets.zygote_link import ZygoteLink
from sexton_worker.targets.zygote_loss import Lost, end_lost
from sexton_worker.zygote import frames
from sexton_worker.zygote.ahead import MOST_BYTES
from sexton_worker.zygote.frames import Seen
from sexton_worker.zygote.spool_file import STDERR, STDOUT

MOST_TRIES = 3  # zygotes that were lost before they began the run
CLOSE_SECONDS = 15.0
LEASE_SECONDS = 1.0
MOST_AHEAD = 32  # orders: what the shortest runs take while this process waits for a processor


class _Waiting:
    __slots__ = ("arrival", "is_large", "order", "tries")

    def __init__(self, order: RunOrder, arrival: int) -> None:
        self.order = order
        self.arrival = arrival
        self.tries = 0
        self.is_large = False  # too large to be sent ahead


class _Sent:
    __slots__ = ("is_urgent", "place", "reason", "spool", "waiting")

    def __init__(self, waiting: _Waiting, place: int, spool: bytes | None) -> None:
        self.waiting = waiting
        self.place = place
        self.spool = spool
        self.reason: StopReason | None = None
        self.is_urgent = False


class CommandRuns:
    """``tell`` takes each end; ``freed`` is called when slots have become free. Both under ``lock``. ``leases``: until
    when the runs may go on that must not outlive theirs, by token and the elapsed clock; ``room``: where their outputs
    are written down whole; ``seen`` takes the answers to ``look``, under ``lock``."""

    def __init__(
        self,
        clock: Clock,
        worker_environment: Mapping[str, str],
        lock: threading.Lock,
        slots: Slots,
        tell: Callable[[EndedRun], None],
        freed: Callable[[], None],
        leases: Callable[[], Mapping[int, float]],
        room: SpoolRoom | None = None,
        seen: Callable[[Seen], None] = lambda seen: None,
    ) -> None:
        self._clock = clock
        self._programs = Programs(clean_environment(worker_environment))
        self._lock = lock
        self._slots = slots
        self._tell = tell
        self._freed = freed
        self._leases = leases
        self._room = room
        self._note_seen = seen
        self._waiting: deque[_Waiting] = deque()
        self._sent: dict[int, _Sent] = {}  # by token, as below
        self._lent = 0  # slots that the zygote has; what more was sent was sent ahead, or has ended unheard
        self._last_ahead = float("-inf")  # the last turn that was sent ahead
        self._vanishing: set[int] = set()  # whose zygote was lost
        places = slots.all + MOST_AHEAD
        self._places = list(range(places))
        self._asked_at = 0.0
        self._is_closed = False
        self._log = structlog.get_logger("sexton.worker.execution")
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.zygote = ZygoteKeeper(clock, places)
        self._thread = threading.Thread(target=self._serve, name="sexton commands", daemon=True)
        self._thread.start()

    # --- what the execution asks ------------------------------------------------------------------------------------

    def add(self, order: RunOrder, arrival: int) -> None:
        """One more that waits; ``next_arrival`` and ``begin_next`` give it a slot in its turn."""
        enter(self._waiting, _Waiting(order, arrival))

    def give_way(self, arrival: int) -> None:
        """One comes in this turn: what was sent ahead of it, and is not before it, waits again."""
        if arrival < self._last_ahead:
            self._take_back()

    def __len__(self) -> int:
        """How many are in its hands."""
        return len(self._waiting) + len(self._sent)

    @property
    def first_waiting(self) -> int | None:
        """When the first came that was not sent; None: there is none."""
        return self._waiting[0].arrival if self._waiting else None

    def next_arrival(self) -> int | None:
        """When the first that waits came; None: there is none."""
        if self._slots.free > 0 and len(self._sent) > self._lent:
            self._take_back(1)
        return self.first_waiting

    def begin_next(self) -> None:
        """Use one free slot for the first that waits; it goes out with ``flush``."""
        waiting = self._waiting.popleft()
        had_none = self.zygote.present is None
        if (sent := self._frame_of(waiting)) is None:
            return
        link, frame = sent
        link.post(frame)
        self._lent += 1
        self._slots.free -= 1
        if had_none:
            self._ring()

    def send_ahead(self, before: int | None) -> None:
        """Let the zygote have some of those that came before this arrival, if it has runs that will end."""
        while self._lent and self._waiting and len(self._sent) - self._lent < MOST_AHEAD:
            waiting = self._waiting[0]
            if waiting.is_large or (before is not None and before < waiting.arrival):
                return
            self._waiting.popleft()
            if (sent := self._frame_of(waiting)) is None:
                continue
            link, frame = sent
            if not link.send_ahead(frame):
                waiting.is_large = len(frame) > MOST_BYTES
                self._unsend(waiting.order.token)
                return
            self._last_ahead = waiting.arrival

    def _frame_of(self, waiting: _Waiting) -> tuple[ZygoteLink, bytes] | None:
        """The zygote, and what it is to be sent, which counts as sent; None: it ends without that."""
        order, now = waiting.order, self._clock.elapsed()
        if now >= order.begin_by:
            self._tell(stopped_before(order, now, StopReason.LEASE_LOST))
            return None
        place = self._places[-1]
        spool, limit = (None, 0) if self._room is None else (self._room.path(), self._room.limit)
        try:
            frame = frames.run_frame(order_for(order, place, self._programs, spool, limit))
            link = self.zygote.link()
        except (ValueError, struct.error, frames.FrameTooLarge) as error:
            self._tell(not_started(order, now, unsayable(order, error)))
            return None
        except OSError as error:
            self._tell(machine_fault(order, now, str(error)))
            return None
        self._places.pop()
        self._sent[order.token] = _Sent(waiting, place, spool)
        link.note_lease(place, order.begin_by if order.ends_with_lease else float("inf"))
        return link, frame

    def _unsend(self, token: int) -> None:
        """It has certainly not begun: it waits again, as the first."""
        sent = self._sent.pop(token)
        self._places.append(sent.place)
        self._waiting.appendleft(sent.waiting)

    def _take_back(self, most: int = MOST_AHEAD) -> None:
        """The first of what was sent ahead and has not begun waits again."""
        link = self.zygote.present
        tokens: list[int] = []
        while link is not None and len(tokens) < most and (frame := link.take_ahead()) is not None:
            tokens.append(frames.token_in_frame(frame))
        for token in reversed(tokens):
            self._unsend(token)

    def flush(self) -> None:
        """Send what ``begin_next`` has made ready."""
        link = self.zygote.present
        if link is not None and link.has_mail:
            link.flush()
            if link.has_mail:
                self._ring()

    def take_waiting(self) -> list[int]:
        """Forget what has not begun; its tokens."""
        self._take_back()
        tokens = [waiting.order.token for waiting in self._waiting]
        self._waiting.clear()
        return tokens

    def stop(self, token: int, reason: StopReason) -> bool:
        """Stop the run with this token; false if it is not here."""
        if token in self._sent and len(self._sent) > self._lent:
            self._take_back()
        if (sent := self._sent.get(token)) is not None:
            self._stop_sent(token, sent, reason)
        elif (waiting := next((one for one in self._waiting if one.order.token == token), None)) is not None:
            self._waiting.remove(waiting)
            self._tell(stopped_before(waiting.order, self._clock.elapsed(), reason))
        else:
            return token in self._vanishing
        self._freed()
        return True

    def look(self, token: int) -> bool:
        """Ask what this run has written so far, which ``seen`` will be told; false if it is not the zygote's."""
        if token not in self._sent or self.zygote.present is None:
            return False
        self.zygote.present.post(frames.look_frame(token))
        self.flush()
        return True

    def _stop_sent(self, token: int, sent: _Sent, reason: StopReason) -> None:
        """The first reason stands, but a worker that ends makes haste."""
        is_urgent = reason is StopReason.GIVEN_BACK
        if sent.reason is not None and (sent.is_urgent or not is_urgent):
            return
        sent.reason = sent.reason or reason
        sent.is_urgent = is_urgent
        if self.zygote.present is not None:
            self.zygote.present.post(frames.stop_frame(token, is_urgent=is_urgent))
            self.flush()

    def close(self) -> None:
        """End the thread and the zygote; runs must have ended before. Without the lock."""
        with self._lock:
            self._is_closed = True
            self._ring()
        self._thread.join(CLOSE_SECONDS)
        with self._lock:
            self.zygote.close(CLOSE_SECONDS)
            os.close(self._bell)

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._is_closed:
            try:
                with self._lock:
                    patience = min(PING_SECONDS, ROUSE_SECONDS if self.zygote.present else PING_SECONDS)
                    seconds = min(self.zygote.keep() or patience, patience, self._note_leases())
                    poll, link = select.poll(), self.zygote.present
                    poll.register(self._bell, select.POLLIN)
                    if link is not None:
                        poll.register(link.fileno(), select.POLLIN | (select.POLLOUT if link.has_mail else 0))
                        poll.register(link.exit_fileno(), select.POLLIN)
                ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
                with self._lock:
                    self._attend(ready, link)
            except Exception:
                self._log.exception("commands.fault")  # whatever it was about, the others go on
                self._clock.wait(self._clock.wakeup(), 0.1)

    def _attend(self, ready: set[int], link: ZygoteLink | None) -> None:
        if self._bell in ready:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        if link is None or link is not self.zygote.present:
            return
        is_gone = link.exit_fileno() in ready
        if link.fileno() in ready or is_gone:
            while self._hear(link) and is_gone:
                pass  # all that it has left
            self.flush()
        if is_gone:
            self._note_loss()
        elif not ready:
            self.zygote.rouse()
            if self._sent:
                self._ask()
        self._freed()

    def _note_leases(self) -> float:
        """Let the zygote see what has been renewed; the seconds until there may be more of that."""
        link = self.zygote.present
        leased = [sent for sent in self._sent.values() if sent.waiting.order.ends_with_lease]
        if link is None or not leased:
            return PING_SECONDS
        leases = self._leases()
        for sent in leased:
            if (lease := leases.get(sent.waiting.order.token)) is not None:
                link.note_lease(sent.place, lease)
        return LEASE_SECONDS

    def _ask(self) -> None:
        """If it is time to."""
        now = self._clock.elapsed()
        if now - self._asked_at >= PING_SECONDS:
            self._asked_at = now
            self.zygote.ask()

    def _hear(self, link: ZygoteLink) -> bool:
        """Whether it said something."""
        said = link.receive()
        for kind, body in said:
            if kind == frames.SEEN:
                self._note_seen(frames.seen_in(body))
            if kind != frames.ENDED:
                continue
            end = frames.end_in(body)
            if (sent := self._sent.pop(end.token, None)) is not None:
                self._places.append(sent.place)
                if not end.is_passed_on:
                    self._lent -= 1
                    self._slots.free += 1
                self._tell(ended_command(sent.waiting.order, end, sent.reason, self._programs.clean, sent.spool))
        return bool(said)

    def _note_loss(self) -> None:
        """The zygote is gone: its runs are ended, or begin again if they had not begun."""
        link = self.zygote.lose()
        begun_by = {token: link.begun(sent.place, token) for token, sent in self._sent.items()}
        why = f"the process that starts this worker's commands was lost ({end_of(link.end())})"
        self._log.error("zygote.lost", pid=link.pid, error=why, runs=len(self._sent))
        lost, sent_back = [], []
        for token, sent in self._sent.items():
            self._places.append(sent.place)
            begun = begun_by[token]
            discard(None if sent.spool is None else Spooled(sent.spool + STDOUT, sent.spool + STDERR, 0, 0))
            if begun is None:
                sent_back.append(sent)
            else:
                is_suspect = not link.is_given_up or begun[0] != 0  # else its start hung, as a file system does
                lost.append(Lost(sent.waiting.order, *begun, is_suspect))
        # Below zero, if one had ended that was not told of and the next had begun in its slot.
        self._slots.free += self._lent - len(lost)
        self._lent = 0
        self._sent.clear()
        for sent in reversed(sent_back):
            self._again(sent, why)
        if lost:
            self._vanishing.update(one.order.token for one in lost)
            self._see_off(lost, why)

    def _again(self, sent: _Sent, why: str) -> None:
        waiting, now = sent.waiting, self._clock.elapsed()
        waiting.tries += 1
        if sent.reason is not None:
            self._tell(stopped_before(waiting.order, now, sent.reason))
        elif waiting.tries >= MOST_TRIES:
            self._tell(machine_fault(waiting.order, now, why))
        else:
            self._waiting.appendleft(waiting)

    def _see_off(self, lost: list[Lost], why: str) -> None:
        def run() -> None:
            end_lost(lost, why, self._clock, self._note_over)

        try:
            threading.Thread(target=run, name="sexton lost commands", daemon=True).start()
        except RuntimeError:  # no more threads: the others wait as long
            self._lock.release()
            try:
                run()
            finally:
                self._lock.acquire()

    def _note_over(self, ended: EndedRun) -> None:
        with self._lock:
            self._vanishing.discard(ended.token)
            self._slots.free += 1
            self._tell(ended)
            self._freed()
