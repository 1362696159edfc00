"""News of work, remembered until it was heeded: a wake-up alone does not say what it was for."""

from __future__ import annotations

from sexton.clock import Wakeup


class Notice:
    """A ``Wakeup`` that passes on to another. ``set`` may be called from any thread, the rest belongs to one."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup
        self._is_new = False
        self._was_new = False

    def set(self) -> None:
        self._is_new = True
        self._wakeup.set()

    def clear(self) -> None:
        self._is_new = False

    def is_set(self) -> bool:
        return self._is_new

    def is_rare(self) -> bool:
        """Whether it is set and was not when this was asked before: many news in a row are no news."""
        was_new, self._was_new = self._was_new, self._is_new and not self._was_new
        return self._is_new and not was_new
