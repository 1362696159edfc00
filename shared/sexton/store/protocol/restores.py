"""What a restored or promoted database needs: cursors set by hand, and numbers that never go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sexton.cursor_moves import CursorStand, CursorStep


@dataclass(frozen=True, slots=True)
class CursorStands:
    """``now``: the database's. ``pruned_before``: the ledger holds nothing older; None: all there ever was."""

    now: datetime
    pruned_before: datetime | None
    stands: tuple[CursorStand, ...]  # by name


@dataclass(frozen=True, slots=True)
class LedgerMoved:
    """What settling the ledger in its new place did. ``held``: jobs by name, and how many of their claims are held
    since they may have run."""

    was: str
    here: str
    term: int
    token: int
    held: tuple[tuple[str, int], ...]


class RestoreStore(Protocol):
    """Cursors as operators set them, and the ledger found elsewhere than where it was."""

    def settle(self, node: str) -> LedgerMoved | None:
        """Where the ledger was promoted or restored (``ClusterState.is_displaced``): terms and tokens jump by 10^6,
        and what may have run already of jobs that must not run twice is held, each job in a proposal.

        Due claims of all jobs are held where they are more than ``catch_up.hold_above``. Until then no leader writes
        and nothing is granted. Recorded in events. None: another node was first, or nothing has moved. SQLite: None.
        """
        ...

    def cursor_stands(self, to: datetime | None = None, job_ids: Sequence[int] | None = None) -> CursorStands:
        """The cursors of these jobs (None: of all that are not retired, or retired with ticks undecided).

        ``to``: the place that they may be set to; None: only how they stand.
        """
        ...

    def step_cursors(self, steps: Sequence[CursorStep], actor: str, why: str) -> frozenset[int]:
        """Carry out steps; the jobs whose cursor moved.

        Of the others nothing was written: their cursor had moved, they were edited, or what a step back would take
        away was granted, held or resolved meanwhile (invariant 2). A claim that is deleted was never granted, and a
        forward step lies not ahead of now. Each is an event, ``cursor.set``, with ``why``.
        """
        ...
