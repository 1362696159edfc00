"""How far long work is: a bar on the terminal that is gone at its end; short work never shows one.

It is written to standard error and only where that is a terminal; not with ``--output json`` into a file or a pipe.
Who works calls it with how much is done and how much there is, as often as it likes, or never: then it only moves.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from sexton_tui.cli.output import Output

if TYPE_CHECKING:
    from rich.progress import Progress

AFTER_SECONDS = 0.5
_EVERY_SECONDS = 0.1


@contextmanager
def progress(what: str, output: Output = Output.TABLE) -> Iterator[Bar | None]:
    """A bar with the title ``what`` while the block runs; None where nobody would see it."""
    if not _is_seen(output):
        yield None
        return
    bar = Bar(what, sys.stderr)
    try:
        yield bar
    finally:
        bar.end()


def _is_seen(output: Output) -> bool:
    if output is not Output.TABLE and not sys.stdout.isatty():
        return False
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")


class Bar:
    """Begins to show after half a second, from a thread of its own, so that it moves while somebody computes."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._done, self._total = 0.0, 0.0
        self._note = ""
        self._lock = threading.Lock()
        self._is_over = False
        self._shown: Progress | None = None
        self._next = 0.0
        self._timer = threading.Timer(AFTER_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """So much is done, of so much; ``note`` is told behind it."""
        self._done, self._total, self._note = done, total, note
        if self._shown is not None and (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY_SECONDS
            self._tell(self._shown)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(file=self._stream, force_terminal=True, highlight=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[note]}", markup=False),
        )
        shown = Progress(*columns, console=console, transient=True)
        shown.add_task(self._what, total=None, note="")
        with self._lock:
            if self._is_over:
                return
            shown.start()
            self._tell(shown)
            self._shown = shown

    def _tell(self, shown: Progress) -> None:
        task = shown.task_ids[0]
        shown.update(task, completed=self._done, total=self._total or None, note=self._note)

    def end(self) -> None:
        """Take it off the screen."""
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()
