"""Commands of claims that have been lost before: each has a zygote of its own.

A command can kill the process that started it. Which one did cannot be told from those beside it: all that ran are
suspects then. So a claim that has a loss runs alone the next time, and only the culprit loses that zygote too. One
that is not to blame has at most one loss by its neighbours; the third ends a claim (``core/completion.py``).

All methods but ``close`` belong to who holds the execution's lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sexton.clock import Clock
from sexton_worker.core.runs import EndedRun, StopReason
from sexton_worker.core.turns import enter
from sexton_worker.execution import RunOrder
from sexton_worker.targets.command_runs import CommandRuns
from sexton_worker.targets.ending import machine_fault, stopped_before


class _Waiting(NamedTuple):
    order: RunOrder
    arrival: int


class Quarantine:
    """``cell`` makes what runs one command, given who takes its end; ``tell`` takes each end."""

    def __init__(
        self,
        clock: Clock,
        tell: Callable[[EndedRun], None],
        cell: Callable[[Callable[[EndedRun], None]], CommandRuns],
    ) -> None:
        self._clock = clock
        self._tell = tell
        self._cell = cell
        self._waiting: deque[_Waiting] = deque()
        self._cells: dict[int, CommandRuns] = {}  # by token
        self._unclosed: list[CommandRuns] = []  # for want of a thread

    def add(self, order: RunOrder, arrival: int) -> None:
        """One more that waits; ``next_arrival`` and ``begin_next`` give it a slot in its turn."""
        enter(self._waiting, _Waiting(order, arrival))

    def next_arrival(self) -> int | None:
        """When the first that waits came; None: there is none."""
        if (cell := self._sent_back()) is not None:
            return cell.next_arrival()
        return self._waiting[0].arrival if self._waiting else None

    def begin_next(self) -> None:
        """Use one free slot for the first that waits."""
        if (cell := self._sent_back()) is not None:
            cell.begin_next()
            cell.flush()
            return
        order, arrival = self._waiting.popleft()
        try:
            cell = self._cell(self._over)
        except (OSError, RuntimeError) as error:  # no descriptors, no thread
            self._tell(machine_fault(order, self._clock.elapsed(), str(error)))
            return
        self._cells[order.token] = cell
        cell.add(order, arrival)
        cell.begin_next()
        cell.flush()

    def take_waiting(self) -> list[int]:
        """Forget what has not begun; its tokens."""
        tokens = [waiting.order.token for waiting in self._waiting]
        self._waiting.clear()
        for token, cell in tuple(self._cells.items()):
            if cell.take_waiting():
                tokens.append(token)
                self._part(self._cells.pop(token))
        return tokens

    def stop(self, token: int, reason: StopReason) -> bool:
        """Stop the run with this token; false if it is not here."""
        if (cell := self._cells.get(token)) is not None:
            return cell.stop(token, reason)
        for waiting in self._waiting:
            if waiting.order.token == token:
                self._waiting.remove(waiting)
                self._tell(stopped_before(waiting.order, self._clock.elapsed(), reason))
                return True
        return False

    def look(self, token: int) -> bool:
        """As ``CommandRuns.look``."""
        cell = self._cells.get(token)
        return cell is not None and cell.look(token)

    def close(self) -> None:
        """End all threads and zygotes; runs must have ended before. Without the lock."""
        for cell in (*self._cells.values(), *self._unclosed):
            cell.close()

    def _sent_back(self) -> CommandRuns | None:
        """One whose zygote was lost before it began the run."""
        return next((cell for cell in self._cells.values() if cell.next_arrival() is not None), None)

    def _over(self, ended: EndedRun) -> None:
        self._tell(ended)
        if (cell := self._cells.pop(ended.token, None)) is not None:
            self._part(cell)

    def _part(self, cell: CommandRuns) -> None:
        try:  # not here: its own thread may be the one that tells
            threading.Thread(target=cell.close, name="sexton leaves quarantine", daemon=True).start()
        except RuntimeError:
            self._unclosed.append(cell)
