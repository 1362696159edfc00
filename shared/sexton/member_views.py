"""A worker and a queue, opened: what runs on the one, what waits in the other. Instants are UTC by the database's
clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sexton.cluster_views import QueueView, WorkerView
from sexton.views import ClaimView


@dataclass(frozen=True, slots=True)
class OpenedWorker:
    """The processes of a name, the newest first, and what they run, longest first."""

    workers: tuple[WorkerView, ...]
    claims: tuple[ClaimView, ...]


@dataclass(frozen=True, slots=True)
class PriorityDepth:
    """Claims of one priority; ``oldest``: since when the first of them could start, or will. Counts stop at
    ``COUNT_LIMIT``. ``is_paced``: under the catch-up budget."""

    priority: int
    is_paced: bool
    due: int
    ahead: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class OpenedQueue:
    """A queue with its depths by priority, its workers, and the claims that wait longest in the order of granting."""

    queue: QueueView
    depths: tuple[PriorityDepth, ...]
    workers: tuple[WorkerView, ...]
    waiting: tuple[ClaimView, ...]
