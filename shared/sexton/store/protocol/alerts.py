"""Alerts in the database: ``open → recovered``, each told once, whichever node looks and whichever tells.

Raising, recovering, taking a delivery and settling it are one statement each, conditional on the row: of two nodes one
wins, and the other's call changes nothing. A delivery is taken under a lease (``next_try_at``); who dies between
telling and settling leaves it to the next one, who tells it again: at least once after a crash, else once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.alerts import AlertKind, AlertView, Condition, DueAlert, Signs

FRESH = timedelta(seconds=15)
"""What was found by a look older than this changes nothing."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One look at the ledger, by the database's clock; ``before``: the look that this one follows."""

    looked_at: datetime
    before: datetime | None


class AlertStore(Protocol):
    """What is wrong, and who was told."""

    def take_turn(self, every: timedelta) -> Turn | None:
        """The turn to look, if nobody has had it for so long: one node's, and if that dies the next one's."""
        ...

    def signs(self, turn: Turn) -> Signs:
        """All that alerts are made of, as of now."""
        ...

    def raise_alert(self, condition: Condition, turn: Turn) -> bool:
        """Open it, unless it is open, or the look is no longer fresh, or older than the alert's last change.

        A job's whose end was told within ``DAMPED`` is not told before that has passed."""
        ...

    def reword(self, condition: Condition, turn: Turn) -> bool:
        """Have what is told from now on say this, if it is open and the look is fresh and younger than its last
        change."""
        ...

    def recover(self, kind: AlertKind, job_id: int, turn: Turn) -> bool:
        """Close it, if it is open and the look is fresh and younger than its last change."""
        ...

    def take_delivery(self, lease: timedelta) -> DueAlert | None:
        """The alert that has waited longest to be told; nobody else is given it within the lease. One whose episode
        ended before it was told is told as recovered; not any more a day after its end."""
        ...

    def settle(self, due: DueAlert) -> bool:
        """It was told; whether the delivery was still this caller's."""
        ...

    def postpone(self, due: DueAlert, error: str, again_in: timedelta) -> bool:
        """It could not be told; whether the delivery was still this caller's."""
        ...

    def listed(self, limit: int = 50, *, only_open: bool = False) -> tuple[AlertView, ...]:
        """Open alerts, the oldest first; then those that recovered, the newest first."""
        ...
