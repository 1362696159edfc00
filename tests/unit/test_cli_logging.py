"""What an exception in a log line tells and what it must not, and logs that cannot be written."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from unittest.mock import patch

import pytest

from sexton_tui.cli import log_stream
from sexton_tui.cli.log_stream import LogStream

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


def test_a_log_without_room_leaves_lines_out_and_says_so_once_there_is() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    stream = LogStream(writer)
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)  # as a worker's stderr is: a plain write would wait for ever
    with patch.object(log_stream, "PATIENCE", 0.01):
        for line in ("one\n", "two\n"):
            assert stream.write(line) == len(line)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.read(reader, 65536)
    stream.write("three\n")
    assert os.read(reader, 65536) == b"2 log lines could not be written\nthree\n"
    os.close(reader)
    stream.write("four\n")  # nobody will ever read it
    os.close(writer)
    stream.write("five\n")


NOT_WRITABLE = """
import logging, os, sys
import structlog
from sexton.process_settings import load_process_settings
from sexton_tui.cli.processes import start_logging
start_logging(load_process_settings({"log": LOG}, environ={}, folders=[]))
structlog.get_logger("sexton").error("zygote.lost")
logging.getLogger("kazoo").error("gone")
try:
    raise ValueError
except ValueError:
    structlog.get_logger("sexton").exception("commands.fault")
print("it goes on")
"""


@pytest.mark.parametrize(("log", "stderr"), [("console", "2>/dev/full"), ("json", "2>&-"), ("json", "2> >(exec true)")])
def test_no_line_of_a_log_raises_where_it_cannot_be_written(log: str, stderr: str) -> None:
    program = NOT_WRITABLE.replace("LOG", repr(log))
    script = f'exec "$0" -c "$1" {stderr}'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, program], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("it goes on\n", 0)
