"""Runs as real processes, as many at once as there are slots, in their turns: by priority, then as they came.

Commands are the zygote's, which a thread listens to (``targets/command_runs.py``). Python runs share warm processes,
over which another thread watches (``targets/python_runs.py``); requests and Celery tasks are calls in those
(``targets/preparation.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sexton.clock import Clock, Wakeup
from sexton.targets import PythonTarget
from sexton_worker.core.allow_list import refusal
from sexton_worker.core.runs import EndedRun, StopReason
from sexton_worker.core.secret_masks import SecretMask
from sexton_worker.core.turns import turn
from sexton_worker.core.wear import NO_WEAR, WearLimits
from sexton_worker.execution import RunOrder
from sexton_worker.spool_room import SpoolRoom
from sexton_worker.targets.command_lanes import CommandLanes
from sexton_worker.targets.command_runs import CommandRuns
from sexton_worker.targets.ending import not_started
from sexton_worker.targets.preparation import Preparation
from sexton_worker.targets.python_runs import PythonRuns
from sexton_worker.targets.quarantine import Quarantine
from sexton_worker.targets.secrets import NoSecret, Secrets
from sexton_worker.targets.slots import Slots
from sexton_worker.whole_output import WholeRun
from sexton_worker.zygote.frames import Seen


class Wholes(Protocol):
    """``room`` is where outputs are written down whole; ``carry`` takes each end, whose files are its own from then on,
    before the end is told."""

    @property
    def room(self) -> SpoolRoom: ...

    def carry(self, ended: EndedRun, run: WholeRun) -> None: ...


class ProcessExecution:
    """An ``Execution``. ``worker_environment``: what jobs may inherit a little of; ``allow``: see ``allow_list``;
    ``secrets``: those that jobs may name, by default that environment's alone; ``leases``: until when the runs may go
    on that must not outlive theirs, by token and the elapsed clock; ``wholes``: where outputs are kept whole."""

    def __init__(
        self,
        clock: Clock,
        wakeup: Wakeup,
        slots: int,
        worker_environment: Mapping[str, str],
        allow: Sequence[str] | None = None,
        wear: WearLimits = NO_WEAR,
        leases: Callable[[], Mapping[int, float]] = dict,
        secrets: Secrets | None = None,
        wholes: Wholes | None = None,
    ) -> None:
        self._clock = clock
        self._wakeup = wakeup
        self._allow = allow
        self._lock = threading.Lock()  # over all that follows
        self._slots = Slots(slots)
        self._arrivals = 0
        self._ended: list[EndedRun] = []
        self._hidden: dict[int, tuple[bytes, ...]] = {}  # what no error may show, by token
        secrets = secrets or Secrets(worker_environment)
        self._preparation = Preparation(secrets, worker_environment, allow)
        shared = (clock, worker_environment, self._lock, self._slots, self._tell, self._begin_waiting)
        room = None if wholes is None else wholes.room
        self._wholes = wholes
        self._whole: dict[int, WholeRun] = {}  # by token; empty if outputs are not kept whole
        self._seen: dict[int, Seen] = {}
        self.seen_wakeup = clock.wakeup()  # set when ``seen`` has news
        spools = () if room is None else (room.files,)
        self._commands = CommandLanes(lambda: CommandRuns(*shared, leases, room, self._note_seen))

        def cell(tell: Callable[[EndedRun], None]) -> CommandRuns:
            return CommandRuns(*shared[:4], tell, self._begin_waiting, leases, room, self._note_seen)

        self._quarantine = Quarantine(clock, self._tell, cell)
        self._python = PythonRuns(*shared, self._commands.zygote, wear, leases, *spools)

    def start(self, *orders: RunOrder) -> None:
        prepared = [self._prepare(order) for order in orders]  # without the lock, for it reads files
        with self._lock:
            for order, call in prepared:
                self._arrivals += 1
                if self._wholes is not None:
                    self._whole[order.token] = WholeRun(order.job, order.grant.scheduled_at, order.token)
                if order.secrets:
                    self._hidden[order.token] = order.secrets
                if isinstance(call, str):
                    self._tell(not_started(order, self._clock.elapsed(), call))
                elif call is not None:
                    self._python.add(order, call, turn(self._arrivals, order.grant.priority))
                elif order.grant.losses:
                    self._quarantine.add(order, turn(self._arrivals, order.grant.priority))
                else:
                    self._commands.add(order, turn(self._arrivals, order.grant.priority))
            self._begin_waiting()

    def _prepare(self, order: RunOrder) -> tuple[RunOrder, PythonTarget | str | None]:
        """The order with its secrets, and the call that it is (None: a process), or why it may not run."""
        if self._allow is not None and (refused := refusal(order.rules.target, self._allow)):
            return order, refused
        try:
            return self._preparation.of(order)
        except NoSecret as error:
            return order, str(error)
        except Exception as error:  # of a job that nobody could foresee; it may hold a secret
            return order, f"its run cannot be prepared: {type(error).__name__}; correct the job"

    def recall(self) -> tuple[int, ...]:
        with self._lock:
            waiting = (self._commands, self._quarantine, self._python)
            recalled = tuple(token for one in waiting for token in one.take_waiting())
            for token in recalled:
                self._hidden.pop(token, None)
                self._whole.pop(token, None)
            return recalled

    def finished(self) -> tuple[EndedRun, ...]:
        with self._lock:
            self._python.collect()
            self._begin_waiting()
            ended, self._ended = self._ended, []
        return tuple(ended)

    def stop(self, token: int, reason: StopReason) -> None:
        with self._lock:
            if not self._commands.stop(token, reason) and not self._quarantine.stop(token, reason):
                self._python.stop(token, reason)

    def look(self, token: int) -> None:
        """Ask what this run has written so far: ``seen`` has it soon, if it goes on here and has begun."""
        with self._lock:
            is_asked = self._commands.look(token) or self._quarantine.look(token)
            if not is_asked and (seen := self._python.look(token)) is not None:
                self._note_seen(seen)

    def seen(self) -> dict[int, Seen]:
        """The answers that have come since the last call."""
        with self._lock:
            seen, self._seen = self._seen, {}
        return seen

    def _note_seen(self, seen: Seen) -> None:
        self._seen[seen.token] = seen
        self.seen_wakeup.set()

    def close(self) -> None:
        """End the threads and all idle processes; runs must have ended before."""
        self._python.close()
        self._quarantine.close()
        self._commands.close()

    def _tell(self, ended: EndedRun) -> None:
        if (hidden := self._hidden.pop(ended.token, None)) and ended.error:
            ended = ended._replace(error=SecretMask(hidden).hide_in_text(ended.error))
        whole = self._whole.pop(ended.token, None)
        if whole is not None and self._wholes is not None:
            self._wholes.carry(ended, whole)
        if not self._ended:
            self._wakeup.set()  # once: whoever is woken takes all there are by then
        self._ended.append(ended)

    def _begin_waiting(self) -> None:
        """Fill the free slots, oldest first; what waits behind commands alone may be sent ahead."""
        while self._slots.free > 0:
            python, command = self._python.next_arrival(), self._commands.next_arrival()
            alone = self._quarantine.next_arrival()
            if alone is not None and alone == _first(alone, _first(python, command)):
                self._quarantine.begin_next()
            elif command is not None and (python is None or command < python):
                self._commands.begin_next()
            elif python is not None:
                self._python.begin_next()
            else:
                break
        alone = self._quarantine.next_arrival()
        self._commands.send_ahead(_first(self._python.next_arrival(), alone))
        self._commands.flush()
        self._python.top_up(_first(self._commands.next_arrival(), alone))


def _first(one: int | None, other: int | None) -> int | None:
    """The sooner of two turns, if there is any."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
