"""Freezing processes: SIGSTOP, and waiting until it has come to every thread.

A signal is under way when `kill` returns: on a loaded machine a server answers for a while after it was stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial
from pathlib import Path

from tests.support import reaper
from tests.support.waiting import eventually

WITHIN = 60.0


def freeze(pid: int) -> None:
    """Stop one process; returns when none of its threads runs."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: is_frozen(pid), within=WITHIN, what=f"process {pid} is stopped")


def freeze_tree(pid: int) -> None:
    """Stop a process and all its descendants; returns when none of their threads runs."""
    reaper.signal_tree(pid, signal.SIGSTOP)
    for one in (pid, *reaper.descendants(pid)):
        eventually(partial(is_frozen, one), within=WITHIN, what=f"process {one} is stopped")


def thaw_tree(pid: int) -> None:
    """Let a process and all its descendants go on, children first."""
    for one in (*reversed(reaper.descendants(pid)), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGCONT)


def is_frozen(pid: int) -> bool:
    """Whether every thread of the process is stopped, or has ended."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = (thread / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            if state not in "TtZX":
                return False
    return True
