"""A copy of a process that has loaded Sexton is what a fresh one is, to itself and to who started it."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.warm_start import CopiedProcess, can_be_copied

TELL = """
import json, os, pathlib, random, signal, sys, threading, time
where = {key: value for key, value in os.environ.items() if key not in ("LC_CTYPE",)}
print(json.dumps([
    sys.argv[1:], where, os.getcwd(), os.getsid(0) == os.getpid(), sorted(os.listdir("/proc/self/fd")),
    [str(signal.getsignal(number)) for number in signal.valid_signals()], [*signal.pthread_sigmask(0, ())],
    sys.path, time.tzname, threading.active_count(), sys.stdin.read(), sys.stdout.encoding,
]))
print(random.random(), file=sys.stderr)
sys.exit(7)
"""


def test_a_copy_is_told_what_a_fresh_process_is_told(processes: ProcessGroup) -> None:
    env = {"SEXTON_NAME": "one", "TZ": "Asia/Tokyo", "PYTHONPATH": "/nowhere:/else"}
    started = [
        processes.start([sys.executable, "-c", TELL, "a", "b c"], env=env, fresh=fresh)
        for fresh in (False, False, True)
    ]
    assert [process.wait(60) for process in started] == [7, 7, 7]
    copy, other, fresh = started
    assert isinstance(copy._process, CopiedProcess)
    assert not isinstance(fresh._process, CopiedProcess)
    assert copy.stdout() == fresh.stdout() != ""
    assert copy.stderr() != other.stderr()  # each draws its own lots


def test_a_copy_takes_signals_and_tells_what_ended_it(processes: ProcessGroup) -> None:
    wait = "import time\nprint('here')\ntry:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    exit(3)"
    for number, code in ((signal.SIGINT, 3), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        process = processes.start([sys.executable, "-c", wait])
        eventually(process.stdout, 60, "it is there")
        assert process.is_running()
        process.signal(number)
        assert process.wait(60) == code
        process.signal(number)  # to nobody, and to no other who has its number since


def test_the_command_of_a_copy_is_the_installed_one(processes: ProcessGroup) -> None:
    copy = processes.run("nonsense")
    fresh = processes.sexton("nonsense", fresh=True)
    assert (fresh.wait(60), fresh.stdout(), fresh.stderr()) == (copy.returncode, copy.stdout, copy.stderr)
    assert copy.returncode == 2


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LC_ALL", "PYTHONUTF8", "PYTHONWARNINGS"])
def test_what_an_interpreter_reads_at_its_start_takes_a_fresh_one(name: str) -> None:
    assert can_be_copied({"PYTHONPATH": "/x", "HOME": "/y"})
    assert not can_be_copied({name: "x"})
