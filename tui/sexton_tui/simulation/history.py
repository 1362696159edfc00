"""What happened in a simulated cluster, line by line, and its digest: the same seed gives the same digest."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime

_LAST_LINES = 400


class History:
    """Lines of ``time who what``. Only the last ones are kept; ``also`` is given every one."""

    def __init__(self, also: Callable[[str], None] | None = None) -> None:
        self.lines = 0
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        self.counts: Counter[str] = Counter()
        self._hash = hashlib.sha256()
        self._also = also

    def note(self, at: datetime, who: str, what: str) -> None:
        line = f"{at.isoformat()} {who} {what}"
        self.lines += 1
        self.last.append(line)
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._also is not None:
            self._also(line)

    def count(self, kind: str) -> None:
        """One more fault (or deed) of this kind."""
        self.counts[kind] += 1

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
