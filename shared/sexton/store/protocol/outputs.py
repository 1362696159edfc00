"""Output that somebody follows while its run goes on, and where whole outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.output_views import LiveOutput


class OutputStore(Protocol):
    """Followers ask for a run's output by a *watch* that ends by itself; its worker writes it down while one is there.

    Nothing here is part of the ledger: who loses it loses a view, and no run.
    """

    def watch(self, token: int, lasting: timedelta, *, remind: bool = False) -> None:
        """Somebody follows this run for so long from now. ``Channel.WATCHES`` is notified if nobody did, or to
        ``remind`` its worker."""
        ...

    def watched(self) -> frozenset[int]:
        """The tokens that are watched now."""
        ...

    def write_live(self, worker_id: int, outputs: Sequence[LiveOutput]) -> frozenset[int]:
        """Write down what these runs have written so far; of which it was taken: they are watched, and still this
        worker's (invariant 4)."""
        ...

    def note_whole(self, token: int, place: str) -> bool:
        """The whole output of this run is kept at ``place``; false if no result of it has counted (yet)."""
        ...

    def clean_live(self) -> int:
        """Delete watches that are over, and what was written down for them; how many rows."""
        ...
