"""Leave nothing behind: a small process that outlives the test session and cleans up after it.

It reads lines from its standard input: `process PID`, `mark MARK`, `folder PATH`, `file PATH`, and the same with
`forget ` before.
When the input ends, however the test session ended (also by SIGKILL), it kills the processes that were not forgotten,
with all descendants, and those that carry a mark in their environment, and removes folders and files. It imports the
standard library only and runs as a script.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

MARK = "TESTS_PROCESS_MARK"  # the environment variable that holds a mark

# ------------------------------------------------------------------------------------------- in the test session

_reaper: subprocess.Popen[str] | None = None
_lock = threading.Lock()  # servers are started from several threads at once


def watch(kind: str, value: object) -> None:
    """Have a `process`, `mark`, `folder` or `file` cleaned up when this session ends."""
    _tell(f"{kind} {value}")


def forget(kind: str, value: object) -> None:
    """Take back a `watch`: it ended or was removed in order."""
    _tell(f"forget {kind} {value}")


def _tell(line: str) -> None:
    global _reaper
    with _lock:
        if _reaper is None or _reaper.poll() is not None:
            # A session of its own: Ctrl-C in the terminal must not reach it before it has done its work.
            _reaper = subprocess.Popen(
                [sys.executable, "-I", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
            )
            atexit.register(_end, _reaper)
        assert _reaper.stdin is not None
        _reaper.stdin.write(line + "\n")
        _reaper.stdin.flush()


def _end(reaper: subprocess.Popen[str]) -> None:
    assert reaper.stdin is not None
    reaper.stdin.close()
    reaper.wait()


# -------------------------------------------------------------------------------------------- processes by /proc


def descendants(pid: int) -> list[int]:
    """Return the process ids of all living children, grandchildren, ... of `pid`, parents before children."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name in parentheses, which may hold anything: the state, then the parent.
                fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] != "Z":
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def signal_tree(pid: int, number: signal.Signals) -> None:
    """Send a signal to `pid` and all its descendants, until no new one appears. Those already gone are fine."""
    sent: set[int] = set()
    while True:
        fresh = [one for one in (pid, *descendants(pid)) if one not in sent]
        if not fresh:
            return
        for one in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)
        sent.update(fresh)


def kill_tree(pid: int) -> None:
    """Kill `pid` and all its descendants; stopped first, so that none forks away meanwhile."""
    signal_tree(pid, signal.SIGSTOP)
    for one in (*reversed(descendants(pid)), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    _remove_faketime_memory(pid)


def _remove_faketime_memory(pid: int) -> None:
    """Remove what libfaketime shares with the children of a process that it could not remove itself."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        with contextlib.suppress(OSError):
            os.unlink(f"/dev/shm/{name}")  # noqa: S108 - where the C library puts shared memory by name


def marked(mark: str) -> list[int]:
    """Return the process ids of all living processes that were started with this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> None:
    """Kill all processes with this mark, until there are none."""
    while alive := marked(mark):
        for one in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


# ------------------------------------------------------------------------------------------------------- folders


def remove_folder(folder: Path) -> None:
    """Remove a folder, and the few bytes of shared memory that a killed PostgreSQL with its data there left behind."""
    with contextlib.suppress(OSError, IndexError):
        # Line 7 of postmaster.pid is "key id" of the segment; a server that ended in order removed file and segment.
        segment = (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
        subprocess.run(["ipcrm", "-m", segment], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)


# --------------------------------------------------------------------------------------------- the process itself


def main() -> None:
    """Read what to watch until the input ends, then clean up."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    watched: dict[str, None] = {}
    for line in sys.stdin:
        words = line.rstrip("\n")
        if words.startswith("forget "):
            watched.pop(words.removeprefix("forget "), None)
        else:
            watched[words] = None
    for words in watched:
        kind, _, value = words.partition(" ")
        if kind == "process":
            kill_tree(int(value))
        elif kind == "mark":
            kill_marked(value)
    for words in watched:
        kind, _, value = words.partition(" ")
        if kind == "folder":
            remove_folder(Path(value))
        elif kind == "file":
            Path(value).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
