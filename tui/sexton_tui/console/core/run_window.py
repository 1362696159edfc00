"""Where a long list of runs stands: windows by key, from the newest run or from another time on.

Runs are never counted and never skipped over: block N begins where block N - 1 ended. The first block is read again
while it is looked at, as runs end all the time; older ones stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sexton.views import RunKey
from sexton_tui.console.core.windows import BLOCK


@dataclass(frozen=True, slots=True)
class RunWindow:
    """``keys``: the runs before which the blocks 1, 2, ... begin. ``end``: how many rows there are, once that is
    known. ``start``: where block 0 begins; None: at the newest run."""

    start: RunKey | None = None
    keys: tuple[RunKey, ...] = ()
    end: int | None = None

    @property
    def total(self) -> int:
        """The places of the list: a block more than is known, until its end is."""
        return self.end if self.end is not None else (len(self.keys) + 1) * BLOCK

    def before(self, block: int) -> RunKey | None:
        """Before which run this block begins."""
        return self.start if block == 0 else self.keys[block - 1]

    def next_block(self, place: int) -> int:
        """The block of this place, or the first one whose key is not known yet."""
        return min(max(place, 0) // BLOCK, len(self.keys))

    def read(self, block: int, rows: int, older: RunKey | None) -> RunWindow:
        """After a block was read: so many rows, and where the next one begins."""
        if older is None or rows < BLOCK:
            return replace(self, keys=self.keys[:block], end=block * BLOCK + rows)
        if self.keys[block : block + 1] == (older,):
            return self
        return replace(self, keys=(*self.keys[:block], older), end=None)
