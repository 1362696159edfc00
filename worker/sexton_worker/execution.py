"""How the loop has its claims run: a small protocol, real processes behind it or the simulator's virtual ones."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from sexton.jobs import RunRules
from sexton.store.protocol import Grant
from sexton_worker.core.runs import EndedRun, StopReason


class RunOrder(NamedTuple):
    """A grant to be run. ``deadline`` (UTC, database time) is what the job is told; ``rules.max_runtime`` counts
    from the start. ``begin_by`` (elapsed seconds): after that the claim's lease may be another's.

    The execution adds, once it has read the job's secrets: ``secrets``, their values, which nothing that leaves the
    worker may show (``core/secret_masks.py``); ``peer``: what tells runs of one target that take as long apart."""

    grant: Grant
    job: str
    rules: RunRules
    deadline: datetime
    begin_by: float = float("inf")
    secrets: tuple[bytes, ...] = ()
    peer: str = ""

    def __repr__(self) -> str:
        """Without what is secret."""
        return f"RunOrder({self.grant!r}, {self.job!r})"

    @property
    def token(self) -> int:
        return self.grant.token

    @property
    def ends_with_lease(self) -> bool:
        """Whether the run must not outlive its claim's lease."""
        return self.rules.ends_with_lease or self.grant.at_most_once


class Execution(Protocol):
    """Runs orders side by side, the rest in turn; wakes the loop, by the wake-up it was made with, at each end.

    Every started order ends exactly once in ``finished``, whatever happens to it; nothing here raises for what a
    job does. ``stop`` may be called from any thread.
    """

    def start(self, *orders: RunOrder) -> None:
        """Begin these runs; returns at once. What cannot start ends as ``NOT_STARTED`` or ``MACHINE_FAULT``, what did
        not begin in time as ``LEASE_LOST``."""
        ...

    def recall(self) -> tuple[int, ...]:
        """Take back what has not begun for want of a free slot; its tokens, which will not end here."""
        ...

    def finished(self) -> tuple[EndedRun, ...]:
        """The runs that have ended since the last call."""
        ...

    def stop(self, token: int, reason: StopReason) -> None:
        """Stop the run with this token, politely first; nothing if it has ended or is unknown."""
        ...
