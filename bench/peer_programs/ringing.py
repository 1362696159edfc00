"""What every side runs, Sexton and its peers alike: it writes down when it was started, in one small write.

Only the standard library: each peer imports it in an environment of its own.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

_descriptor = -1


def ring() -> None:
    """Append the time of this call to the file that BENCH_RINGS names."""
    global _descriptor
    now = datetime.now(UTC).timestamp()
    if _descriptor < 0:
        _descriptor = os.open(os.environ["BENCH_RINGS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_descriptor, b"%.6f\n" % now)


def told() -> tuple[str, int, int]:
    """The database's address, how many jobs, and every how many seconds they fall due."""
    return os.environ["BENCH_DATABASE"], int(os.environ["BENCH_JOBS"]), int(os.environ["BENCH_PERIOD"])
