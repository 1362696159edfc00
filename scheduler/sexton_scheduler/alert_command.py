"""Runs a node's alert command: what it starts ends with it, at its limit, and with the node, however that ends.

A program of its own, ``alert_command.py SECONDS COMMAND ARGUMENT...``, which the node starts for each message. The
message is the first line of its standard input; the end of that input is the end of the node. On its standard output
it says why the command failed, and nothing where it exited with 0. On Linux it adopts what the command leaves behind,
so that also a process with a session of its own is ended; elsewhere those in the command's own session are.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main(seconds: float, command: list[str]) -> str:
    """Run the command and end what is left of it; why it failed, or nothing."""
    message = sys.stdin.buffer.readline()
    _adopt()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"the command cannot be started ({error.strerror})"
    threading.Thread(target=_end_with_node, args=(process.pid,), daemon=True).start()
    try:
        process.communicate(message, timeout=seconds)
    except subprocess.TimeoutExpired:
        _end_all(process.pid)
        return f"the command was ended after {seconds:g} s"
    _end_all(process.pid)
    return "" if process.returncode == 0 else f"the command exited with code {process.returncode}"


def _adopt() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_with_node(pid: int) -> None:
    while os.read(0, 4096):
        pass
    _end_all(pid)


def _end_all(pid: int) -> None:
    """Kill the command's session and every child; whose parents die become children, until there are none."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    while children := _children():
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    """Of all threads of this process; none where the system does not say."""
    found: list[int] = []
    for place in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, place.read_text().split())
    return found


if __name__ == "__main__":
    said = main(float(sys.argv[1]), sys.argv[2:])
    os.write(1, said.encode())
    os._exit(0)  # a thread still waits for the node's end
