"""What a draining side runs: nothing, but the first call of each process is written down, for the clock starts there.

Only the standard library: each peer imports it in an environment of its own.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

_has_begun = False


def note_first() -> None:
    """Append the time of this process's first call to the file that BENCH_STARTS names."""
    global _has_begun
    if not _has_begun:
        _has_begun = True
        with open(os.environ["BENCH_STARTS"], "a") as starts:
            starts.write(f"{datetime.now(UTC).timestamp():.6f}\n")


def told() -> tuple[str, int]:
    """The database's address, and how many jobs the queue is to be filled with."""
    return os.environ["BENCH_DATABASE"], int(os.environ["BENCH_JOBS"])
