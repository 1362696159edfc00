"""What an exception in a log line tells, and what it must not."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from sexton.process_settings import load_process_settings
from sexton_tui.cli.processes import start_logging
start_logging(load_process_settings({"log": LOG}, environ={}, folders=[]))
def fail(order):
    raise ZeroDivisionError("by zero")
try:
    fail({"PASSWORD": "hunter2"})
except ZeroDivisionError:
    structlog.get_logger("sexton").exception("python.fault")
"""


@pytest.mark.parametrize("log", ["json", "console"])
def test_a_traceback_in_a_log_holds_no_values(log: str) -> None:
    program = PROGRAM.replace("LOG", repr(log))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "ZeroDivisionError" in done.stderr
    assert "python.fault" in done.stderr
    assert "PASSWORD" not in done.stderr
    assert "hunter2" not in done.stderr
