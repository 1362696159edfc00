"""A clock of a process's own that a test sets while it runs: libfaketime, from Debian's package `faketime`.

Only the wall clock is faked. Timeouts and sleeps go by the monotonic clock, which stays the machine's.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.support.missing import MissingServerError

PACKAGE = "faketime"
LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")


def find_library() -> Path:
    """Return libfaketime, for programs of one thread."""
    found = [path for pattern in LIBRARIES for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    if not found:
        raise MissingServerError(
            f"libfaketime.so.1 not found under /usr/lib; install Debian's package {PACKAGE}: apt-get install {PACKAGE}"
        )
    return found[0]


# libfaketime refuses the kind of sleep that Python asks for (clock_nanosleep to an instant, EINVAL).
SEXTON_UNDER_IT = """
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
from sexton_tui.cli.main import main
main()
"""
"""What to give to `python -c`, with a command's arguments, for a process of Sexton's with a faked clock."""


class FakedClock:
    """The wall clock of the processes that are started with `environment()`: the machine's plus an offset."""

    def __init__(self, file: Path, *, threads: bool = False) -> None:
        """``threads``: for programs that have some, as all of Sexton's."""
        self._library = find_library()
        if threads:
            self._library = self._library.with_name("libfaketimeMT.so.1")
        self._file = file
        self.set(timedelta())

    def set(self, offset: timedelta) -> None:
        """Have the processes read this much more (or less) than the machine's clock, from their next look on."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset.total_seconds():+.6f}\n")
        fresh.chmod(0o644)
        fresh.replace(self._file)  # at once: a half-written offset would be another one

    def environment(self) -> dict[str, str]:
        """Return what a process must be started with."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
