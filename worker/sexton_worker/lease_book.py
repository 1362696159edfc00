"""Which tokens a worker holds and until when, by its own elapsed clock.

The loop adds and removes tokens, the heartbeat renews them from another thread;
so every method is atomic. A lease's end is counted from *before* the grant or
renewal was sent: it can only lie earlier than the database's.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class Holding(NamedTuple):
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

    def hold(self, tokens: Mapping[int, bool], *, sent: float, lease: float) -> None:
        """These were granted with the answer to what was sent at ``sent``; the values are ``ends_with_lease``, as far
        as a grant tells of it."""
        until = sent + lease
        with self._lock:
            for token, ends_with_lease in tokens.items():
                self._held[token] = Holding(token, until, sent, ends_with_lease)

    def bind(self, tokens: Iterable[int]) -> None:
        """The runs of these are about to begin, and must not outlive their leases."""
        with self._lock:
            for token in tokens:
                if token in self._held:
                    self._held[token] = self._held[token]._replace(ends_with_lease=True)

    def release(self, *tokens: int) -> None:
        """The claims are out of this worker's hands: their results were answered, or they were dropped."""
        with self._lock:
            for token in tokens:
                self._held.pop(token, None)

    def renewed(self, tokens: Collection[int], *, sent: float, lease: float) -> None:
        """The leases of these tokens were renewed by what was sent at ``sent``."""
        with self._lock:
            for token in tokens:
                if token in self._held:
                    self._held[token] = self._held[token]._replace(until=sent + lease, renewed=sent)

    def holdings(self) -> tuple[Holding, ...]:
        """All tokens held now."""
        with self._lock:
            return tuple(self._held.values())

    def live(self, now: float) -> dict[int, float]:
        """The tokens whose leases have not run out by this worker's clock, and when they will."""
        with self._lock:
            return {token: holding.until for token, holding in self._held.items() if now < holding.until}

    def binding(self) -> dict[int, float]:
        """The tokens whose runs must not outlive their leases, and when those run out."""
        return {one.token: one.until for one in self.holdings() if one.ends_with_lease}

    def lapsed(self, now: float) -> tuple[int, ...]:
        """The tokens whose runs must not outlive their leases, which have run out by this worker's clock."""
        return tuple(token for token, until in self.binding().items() if now >= until)

    def count(self) -> int:
        with self._lock:
            return len(self._held)
