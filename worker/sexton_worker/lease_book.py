"""Which tokens a worker holds and until when, by its own elapsed clock.

The loop adds and removes tokens, the heartbeat renews them from another thread;
so every method is atomic. A lease's end is counted from *before* the grant or
renewal was sent: it can only lie earlier than the database's.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Holding:
    """``until`` and ``renewed`` are elapsed seconds. ``ends_with_lease``: the run must not outlive the lease."""

    token: int
    until: float
    renewed: float
    ends_with_lease: bool


class LeaseBook:
    """The tokens of one worker; ``worker_id`` is None until it is registered."""

    def __init__(self) -> None:
        self.worker_id: int | None = None
        self.is_draining = False
        self._lock = threading.Lock()
        self._held: dict[int, Holding] = {}

    def hold(self, token: int, *, sent: float, lease: float, ends_with_lease: bool) -> None:
        """A grant came with the answer to what was sent at ``sent``."""
        with self._lock:
            self._held[token] = Holding(token, sent + lease, sent, ends_with_lease)

    def release(self, token: int) -> None:
        """The claim is out of this worker's hands: its result was answered, or it was dropped."""
        with self._lock:
            self._held.pop(token, None)

    def renewed(self, tokens: Collection[int], *, sent: float, lease: float) -> None:
        """The leases of these tokens were renewed by what was sent at ``sent``."""
        with self._lock:
            for token in tokens:
                if token in self._held:
                    self._held[token] = replace(self._held[token], until=sent + lease, renewed=sent)

    def holdings(self) -> tuple[Holding, ...]:
        """All tokens held now."""
        with self._lock:
            return tuple(self._held.values())

    def is_live(self, token: int, now: float) -> bool:
        """Whether the token is held and its lease has not run out by this worker's clock."""
        with self._lock:
            holding = self._held.get(token)
        return holding is not None and now < holding.until

    def count(self) -> int:
        with self._lock:
            return len(self._held)
