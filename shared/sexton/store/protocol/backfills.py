"""Ticks decided once and run after all: what ``backfill`` and ``resume --run-missed`` write."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.resolutions import JobStretch, Resolution, Resolved


class BackfillStore(Protocol):
    """Each write is one transaction under the lock of the job's cursor: nothing of the job is decided meanwhile."""

    def stretch(self, job_id: int, after: datetime, upto: datetime, limit: int) -> JobStretch:
        """What is recorded of the job in ``(after, upto]``, at most ``limit`` claims and as many skip records.

        Raises ``NotFound`` for an unknown job, and ``InvalidSchedule`` where a revision cannot be read here.
        """
        ...

    def pause_of(self, job_id: int) -> datetime | None:
        """Since when the job is paused; None where it is not."""
        ...

    def backfill(self, resolution: Resolution, actor: str, note: str) -> Resolved | None:
        """Write the claims, open the ended ones again, resolve the skip records: at the pace of the catch-up budget,
        blocked where the job is paused. None, and nothing is written, where the ledger is not any more what the
        resolution was made from: read it again.
        """
        ...
