"""What a restored or promoted database needs: cursors set by hand, and numbers that never go back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.cursor_moves import CursorStand, CursorStep
    from sexton.inputs import Inputs


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


@dataclass(frozen=True, slots=True)
class InputsJob:
    """A job that is not retired, with its present revision's schedule and since when that is in force."""

    job_id: int
    name: str
    revision: int
    schedule: str
    since: datetime


@dataclass(frozen=True, slots=True)
class InputsStand:
    """The cluster's inputs: since when and by whom (both None where the ledger does not tell), and its jobs."""

    now: datetime
    inputs_id: str  # empty: no node has started yet
    accepted_at: datetime | None
    accepted_by: str | None
    jobs: tuple[InputsJob, ...]  # by name


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

    def inputs(self) -> InputsStand:
        """The cluster's inputs, and the jobs whose ticks are computed with them."""
        ...

    def zone_data(self, version: str) -> bytes | None:
        """The zone data of that version as ``zone_files`` packs it; None: the ledger does not hold it."""
        ...

    def keep_zone_data(self, version: str, packed: bytes) -> None:
        """Keep it; what is kept already stays."""
        ...

    def accept_inputs(self, stand: InputsStand, accepted: Inputs, changed: Collection[int], actor: str) -> None:
        """Make ``accepted`` the cluster's inputs, in one transaction with an edit of the jobs in ``changed``.

        Each of these gets a new revision, alike but for its inputs, from its E on; of the others the present revision
        counts as computed with ``accepted``, for its ticks are the same. The term is raised and nobody leads, so that
        no node of other inputs writes any more (invariants 3 and 8). Raises ``MovedOn`` where the inputs or a job are
        not any more as in ``stand``. Recorded, as ``inputs.accepted``.
        """
        ...

    def step_cursors(self, steps: Sequence[CursorStep], actor: str, why: str) -> frozenset[int]:
        """Carry out steps; the jobs whose cursor moved.

        Of the others nothing was written: their cursor had moved, they were edited, or what a step back would take
        away was granted, held or resolved meanwhile (invariant 2). A claim that is deleted was never granted, and a
        forward step lies not ahead of now. Each is an event, ``cursor.set``, with ``why``.
        """
        ...
