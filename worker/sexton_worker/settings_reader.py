"""The cluster's settings, read again now and then."""

from __future__ import annotations

from sexton.clock import Clock
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store

READ_AGAIN_SECONDS = 30.0


class SettingsReader:
    """The settings as one thread sees them: at most ``READ_AGAIN_SECONDS`` old while the database answers."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known = ClusterSettings()
        self._read_at: float | None = None

    @property
    def known(self) -> ClusterSettings:
        """The settings last read; the defaults before that. Asks nobody."""
        return self._known

    def refresh(self) -> ClusterSettings:
        """The settings, read if they are due to be. Raises ``DatabaseUnreachable``."""
        now = self._clock.elapsed()
        if self._read_at is None or now - self._read_at >= READ_AGAIN_SECONDS:
            self._known = self._store.edits.settings()
            self._read_at = now
        return self._known
