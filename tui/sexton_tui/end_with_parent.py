"""``python -m sexton_tui.end_with_parent PID ARGUMENT...``: a ``sexton`` command that ends when its parent does.

The kernel sends SIGTERM when the thread that started this process ends; a parent that was
gone before that was arranged is noticed by its pid.
"""

from __future__ import annotations

import sys

from sexton_tui.cli.main import run
from sexton_tui.parent import end_with


def main(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    parent, *command = arguments
    return run(command) if end_with(int(parent)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
