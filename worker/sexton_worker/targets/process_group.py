"""A process that leads a session and group of its own, and the end of the whole group.

The leader stays unreaped until ``reap``: so its id, which is the group's, cannot
pass to a stranger while signals are sent to it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sexton_worker.targets.environment import TOKEN, WORKER_PID

_TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds; the kernel counts from boot, as the elapsed clock does


class ProcessGroup:
    """Around a process started with ``start_new_session=True``. ``fileno()`` is readable once the leader exited."""

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self._pidfd = os.pidfd_open(leader.pid)
        self.code: int | None = None

    @property
    def pid(self) -> int:
        return self._leader.pid

    def fileno(self) -> int:
        return self._pidfd

    def signal(self, number: signal.Signals) -> None:
        """Signal every member; nothing once the leader was reaped."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def others(self) -> list[int]:
        """The living members besides the leader. Reads all of /proc: for the end of a run that was stopped."""
        return [pid for pid, group, _ in _processes() if group == self.pid and pid != self.pid]

    def has_exited(self) -> bool:
        """Whether the leader has."""
        return self.code is not None or self._exits_within(0)

    def end(self, patience: float) -> int:
        """Kill the group unless its leader exits within ``patience`` seconds; exit code as of ``reap``."""
        if self.code is None and not (patience and self._exits_within(patience)):
            self.signal(signal.SIGKILL)
        return self.reap()

    def _exits_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def reap(self) -> int:
        """Wait for the leader and give its id back; exit code, 128 + signal if a signal ended it."""
        if self.code is None:
            code = self._leader.wait()
            os.close(self._pidfd)
            self.code = code if code >= 0 else 128 - code
        return self.code


def end_of(code: int) -> str:
    """A non-zero exit code in words."""
    if code > 128:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(code - 128).name}"
    return f"exited with code {code}"


def survivors(token: int, since: float) -> list[int]:
    """Processes that this worker's run with this token, begun at ``since`` (elapsed seconds), left behind.

    The worker's pid and the time keep apart what other clusters on this machine run under the same token.
    """
    marks = {f"{TOKEN}={token}".encode(), f"{WORKER_PID}={os.getpid()}".encode()}
    found: list[int] = []
    for pid, _, started in _processes():
        with contextlib.suppress(OSError):
            if started >= since - _TICK and marks <= set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                found.append(pid)
    return found


def _processes() -> Iterator[tuple[int, int, float]]:
    """Process id, group id and start (elapsed seconds) of all processes that are not zombies."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name in parentheses, which may hold anything: state, parent, group, ..., start.
                fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    yield int(entry.name), int(fields[2]), int(fields[19]) * _TICK
