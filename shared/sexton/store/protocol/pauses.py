"""Pauses beyond ``edits``: of all jobs, what fell due in one, and single ticks that are not to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sexton.cluster_views import PauseOfAll
from sexton.store.protocol.edits import ChangeDone, PauseSeen

if TYPE_CHECKING:
    from sexton.resolutions import Resolution
    from sexton.skip_ahead import AheadPlan


@dataclass(frozen=True, slots=True)
class AllChanged:
    """``pause``: the pause of all that stands now, or that was ended; None where there was none. ``jobs``: those that
    this call paused or resumed."""

    pause: PauseOfAll | None
    jobs: tuple[ChangeDone, ...]


class PauseStore(Protocol):
    """Each is an edit of the jobs, by the edit routine, recorded in ``events`` with its actor."""

    def pause_of_all(self) -> PauseOfAll | None:
        """The pause of all jobs, if it stands."""
        ...

    def paused_with_all(self) -> tuple[int, ...]:
        """The jobs that ``resume_all`` would resume, by id: not those that were paused on their own."""
        ...

    def pause_all(self, actor: str, why: str) -> AllChanged:
        """After it returns every job is paused, and every job that comes to run by an edit of definitions will be,
        until ``resume_all``. Where all are paused already, the first pause stands."""
        ...

    def resume_all(self, actor: str, expected: PauseOfAll | None = None) -> AllChanged:
        """End the pause of all; a job that was paused on its own, before or meanwhile, stays paused. ``expected``: this
        pause and no other; raises ``Refused`` where it does not stand."""
        ...

    def resume_missed(
        self,
        resolution: Resolution,
        actor: str,
        *,
        with_all: bool = False,
        expected: PauseSeen | PauseOfAll | None = None,
    ) -> ChangeDone | None:
        """Resume a job and write what was decided about the ticks that fell due in its pause, in one transaction.

        None, and nothing is written, where the ledger is not any more what the resolution was made from.
        ``with_all``: as a part of ``resume_all``. ``expected``: the job's pause, or that of all; raises ``Refused``
        where it does not stand.
        """
        ...

    def skip_ahead(self, plan: AheadPlan, actor: str, why: str) -> ChangeDone | None:
        """Carry out the naming of a tick, or the taking back of one. None, and nothing is written, where the job was
        edited meanwhile, or a tick of it that fell due is still undecided.

        Raises ``Refused`` where the tick cannot be skipped any more: a worker has it, or had a later one.
        """
        ...
