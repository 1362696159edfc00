"""For how long a node has reached the database without a break.

Who requeues expired leases must have reached the database itself for one lease:
else the end of an outage, in which no worker could renew, would rerun the fleet.
"""

from __future__ import annotations


class Reach:
    """Successes and failures, by the elapsed clock. Silence longer than ``longest_break`` seconds is a break too."""

    def __init__(self, longest_break: float) -> None:
        self._longest_break = longest_break
        self._from: float | None = None
        self._last = 0.0

    def succeeded(self, elapsed: float) -> None:
        if self._from is None or elapsed - self._last > self._longest_break:
            self._from = elapsed
        self._last = elapsed

    def failed(self) -> None:
        self._from = None

    def unbroken_for(self) -> float:
        """Seconds up to the last success."""
        return 0.0 if self._from is None else self._last - self._from
