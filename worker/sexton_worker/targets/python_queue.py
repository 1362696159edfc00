"""The Python runs that wait, and which of them go to a process together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sexton.job_rules import NO_LIMITS
from sexton.targets import PythonTarget
from sexton_worker.core.chunks import TOGETHER_SECONDS, Durations, share
from sexton_worker.core.turns import enter
from sexton_worker.execution import RunOrder
from sexton_worker.targets.python_process import Task
from sexton_worker.targets.python_requests import PythonRequests

LARGEST_LIST = 1 << 16  # characters


class PythonQueue:
    """In their turns; what was taken back from a process is in front. For one thread at a time."""

    def __init__(self) -> None:
        self._requests = PythonRequests()
        self._durations = Durations()
        self._waiting: deque[Task] = deque()
        self._limited: deque[Task] = deque()  # each for a process of its own

    def __len__(self) -> int:
        """Of those that go to whoever is free."""
        return len(self._waiting)

    def add(self, order: RunOrder, target: PythonTarget, arrival: int) -> None:
        """Raises TypeError or ValueError for arguments that are no JSON."""
        line = self._requests.line(order, target)
        once, limits = order.grant.at_most_once, order.rules.limits
        alike = f"{target.reference} {order.peer}" if order.peer else target.reference
        is_limited = limits is not NO_LIMITS and limits != NO_LIMITS  # the first is so of most, and costs nothing
        task = Task(order, line, alike, arrival, once, 0, order.ends_with_lease, is_limited)
        enter(self._limited if task.is_limited else self._waiting, task)

    def again(self, tasks: Sequence[Task]) -> None:
        """These come next."""
        for task in reversed(tasks):
            (self._limited if task.is_limited else self._waiting).appendleft(task)

    def remove(self, token: int) -> Task | None:
        """The run with this token, which waits no longer."""
        for waiting in (self._waiting, self._limited):
            for task in waiting:
                if task.token == token:
                    waiting.remove(task)
                    return task
        return None

    def pop(self) -> Task | None:
        """The first."""
        return self._waiting.popleft() if self._waiting else None

    def pop_expired(self, now: float) -> Task | None:
        """The first, if it waited so long that its lease may be over: it must not begin."""
        for waiting in (self._waiting, self._limited):
            if waiting and now >= waiting[0].order.begin_by:
                return waiting.popleft()
        return None

    def clear(self) -> list[int]:
        """Forget all; their tokens."""
        tokens = [task.token for task in (*self._waiting, *self._limited)]
        self._waiting.clear()
        self._limited.clear()
        return tokens

    def limited_arrival(self) -> int | None:
        """When the first run with limits came; None: there is none."""
        return self._limited[0].arrival if self._limited else None

    def pop_limited(self) -> Task:
        """The first with limits."""
        return self._limited.popleft()

    def arrival(self, place: int = 0) -> int | None:
        """When the run at this place came, of those without limits; None: there is none."""
        return self._waiting[place].arrival if place < len(self._waiting) else None

    # --- together ---------------------------------------------------------------------------------------------------

    def note(self, function: str, seconds: float) -> None:
        """A run of this function took, or already takes, so long."""
        self._durations.note(function, seconds)

    def most_with(self, task: Task) -> int:
        """How many runs may lie in the hand that this one lies in."""
        return 1 if task.is_alone else self._durations.most_together(task.function)

    def is_quick(self) -> bool:
        """Whether the first may lie in a hand with others."""
        return bool(self._waiting) and self.most_with(self._waiting[0]) > 1

    def pop_together(self, held: int, processes: int, now: float) -> tuple[list[Task], bool]:
        """The first and what may go along to a process that holds so many, one of so many that are free; whether the
        process will be through with them in a moment."""
        first = self._waiting.popleft()
        most = self.most_with(first)
        seconds = self._durations.of(first.function) or TOGETHER_SECONDS
        limit = max(1, min(most - held, share(len(self._waiting) + 1, processes, most, seconds)))
        tasks, size = [first], len(first.line)
        while self._waiting and len(tasks) < limit and size < LARGEST_LIST:
            following = self._waiting[0]
            if self.most_with(following) <= held + len(tasks) or now >= following.order.begin_by:
                break
            size += len(following.line)
            tasks.append(self._waiting.popleft())
        return tasks, most > 1 and size < LARGEST_LIST
