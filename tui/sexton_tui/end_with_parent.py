"""``python -m sexton_tui.end_with_parent PID ARGUMENT...``: a ``sexton`` command that ends when its parent does.

The kernel sends SIGTERM when the thread that started this process ends; a parent that was
gone before that was arranged is noticed by its pid.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from sexton_tui.cli.main import run

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    parent, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 0
    return run(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
