"""Commands that behave as badly as they can: the worker stays alive and on time, and nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.job_rules import Limits
from sexton.targets import CommandTarget, ShellTarget
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.runs import Ending, StopReason
from tests.support.runs import Runs, is_alive, open_in, zygote_of
from tests.support.waiting import eventually

LONG = 60.0


@pytest.fixture
def runs() -> Iterator[Runs]:
    """With proof, at the end, that the zygote has nothing left of any run: no descriptor, no child, no corpse."""
    with Runs() as runs:
        runs.run(CommandTarget(("true",)))
        zygote = zygote_of(os.getpid())
        before = open_in(zygote)
        yield runs
        assert runs.run(CommandTarget(("true",))).exit_code == 0
        assert zygote_of(os.getpid()) == zygote
        eventually(lambda: not children_of(zygote), LONG, "all that the runs started is gone")
        assert open_in(zygote) == before


def children_of(pid: int) -> list[str]:
    """Living and dead."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            stat = Path("/proc", name, "stat").read_text(errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(name)
    return found


def python(text: str) -> CommandTarget:
    return CommandTarget((sys.executable, "-I", "-S", "-c", text))


def test_memory_that_is_eaten_is_the_runs_own_fault(runs: Runs) -> None:
    limits = Limits(memory=256 << 20)
    ended = runs.run(python("x = b'x' * (1 << 30)"), limits=limits)
    said = "exited with code 1, perhaps because of its limit memory 256MiB"
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 1, said)
    assert b"MemoryError" in ended.stderr
    assert runs.run(python("x = b'x' * (1 << 20)"), limits=limits).exit_code == 0


def test_processor_time_that_is_used_up_ends_the_run_and_says_so(runs: Runs) -> None:
    ended = runs.run(ShellTarget("while :; do :; done"), limits=Limits(cpu_time=timedelta(milliseconds=500)))
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 128 + signal.SIGXCPU)
    assert ended.error == "ended by SIGXCPU, for it used more processor time than its limit cpu_time 500ms"


def test_who_ignores_the_end_of_its_processor_time_is_killed(runs: Runs) -> None:
    ended = runs.run(ShellTarget("trap '' XCPU; while :; do :; done"), limits=Limits(cpu_time=timedelta(seconds=1)))
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 128 + signal.SIGKILL)


def test_open_files_are_limited_and_what_no_limit_names_is_not(runs: Runs) -> None:
    script = "ulimit -n; ulimit -v; ulimit -t"
    plain = runs.run(ShellTarget(script)).stdout.split()
    assert runs.run(ShellTarget(script), limits=Limits(open_files=64)).stdout.split() == [b"64", *plain[1:]]
    assert runs.run(ShellTarget(script), limits=Limits(memory=1 << 30)).stdout.split() == [
        plain[0],
        b"1048576",
        plain[2],
    ]
    assert runs.run(ShellTarget(script), limits=Limits(cpu_time=timedelta(minutes=1))).stdout.split()[2] == b"60"


def test_limits_under_which_nothing_can_start_are_no_fault_of_the_machine(runs: Runs) -> None:
    ended = runs.run(CommandTarget(("true",)), limits=Limits(memory=4096))
    assert ended.ending in (Ending.NOT_STARTED, Ending.EXITED)
    assert ended.exit_code != 0


def test_a_tree_of_processes_goes_with_its_run(runs: Runs, tmp_path: Path) -> None:
    """Three levels, groups and sessions of their own, parents that are gone, ears closed to SIGTERM."""
    script = (
        "trap '' TERM; "
        "note() { sh -c 'echo $PPID' >> " + f"{tmp_path}/pids; }}; "
        "leaf() { note; while :; do sleep 0.2; done; }; "
        "branch() { note; for i in 1 2 3; do leaf & done; wait; }; "
        "for i in 1 2 3; do branch & done; "
        f"setsid sh -c '(trap \"\" TERM; echo $$ >> {tmp_path}/pids; while :; do sleep 0.2; done) & exit' & "
        f"setsid sh -c 'trap \"\" TERM; echo $$ >> {tmp_path}/pids; setsid sleep 1000' & "
        "wait"
    )
    token = runs.start(ShellTarget(script), kill_after=0.5)
    note = tmp_path / "pids"
    eventually(lambda: note.exists() and len(note.read_text().split()) >= 14, LONG, "all are there")
    runs.execution.stop(token, StopReason.CANCELLED)
    ended = runs.end_of(token)
    assert (ended.ending, ended.exit_code) == (Ending.CANCELLED, 137)
    assert "live on" not in ended.error
    assert not [pid for pid in note.read_text().split() if is_alive(int(pid))]


def test_who_has_left_the_session_lost_its_parent_and_cleaned_its_environment_after_a_look_is_still_known(
    runs: Runs, tmp_path: Path
) -> None:
    """The first look is at SIGTERM; who is seen then does not get away by what it does after."""
    note = tmp_path / "pid"
    escaping = (
        f'trap "" TERM; echo $$ > {note}; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exec env -i sleep 1000'
    )
    script = f"setsid sh -c '{escaping}' & trap 'touch {tmp_path}/go; exit' TERM; while :; do sleep 0.1; done"
    token = runs.start(ShellTarget(script), kill_after=1)
    eventually(note.exists, LONG, "the other has left")
    runs.execution.stop(token, StopReason.CANCELLED)
    assert "live on" not in runs.end_of(token).error
    assert not is_alive(int(note.read_text()))


def test_a_gigabyte_of_output_is_counted_and_not_kept_and_delays_no_other(runs: Runs) -> None:
    loud = runs.start(ShellTarget("head -c 1000000000 /dev/zero"))
    for _ in range(5):
        assert runs.run(CommandTarget(("true",))).exit_code == 0
    ended = runs.end_of(loud)
    assert (ended.exit_code, ended.stdout_bytes) == (0, 1_000_000_000)
    assert len(ended.stdout) <= KEPT_BYTES


def test_work_in_the_background_of_a_run_that_ended_lives_on_and_leaves_no_corpse(runs: Runs, tmp_path: Path) -> None:
    """W06: as long as it likes; at its end the zygote is its parent."""
    note = tmp_path / "pid"
    script = f"(while [ ! -e {tmp_path}/go ]; do sleep 0.05; done) & echo $! > {note}"
    assert runs.run(ShellTarget(script)).exit_code == 0
    left = int(note.read_text())
    assert is_alive(left)
    (tmp_path / "go").touch()
    eventually(lambda: not Path(f"/proc/{left}").exists(), LONG, "it has been reaped")


def test_a_command_that_stops_itself_for_ever_is_ended(runs: Runs) -> None:
    ended = runs.run(ShellTarget("kill -STOP $$"), max_runtime=1, kill_after=0.5)
    assert ended.ending is Ending.TIMED_OUT


def test_runs_side_by_side_are_told_apart(tmp_path: Path) -> None:
    """The stop of one, with all that descends from the zygote to be looked through, touches no other."""
    with Runs(slots=8) as runs:
        tokens = [runs.start(ShellTarget(f"setsid sleep 1000 & echo up > {tmp_path}/{n}; wait")) for n in range(8)]
        for number in range(8):
            eventually((tmp_path / str(number)).exists, LONG, "all are up")
        for left in range(8, 0, -1):
            token = tokens[left - 1]
            runs.execution.stop(token, StopReason.CANCELLED)
            assert runs.end_of(token).ending is Ending.CANCELLED
            assert set(runs.ended) == set(tokens[left - 1 :])
            assert len(sleepers(zygote_of(os.getpid()))) == left - 1


def sleepers(zygote: int) -> list[str]:
    """The living `sleep` processes whose session is not the zygote's own."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "cmdline").read_bytes()
            marks = Path("/proc", name, "environ").read_bytes()
            if words.startswith(b"sleep\x001000") and f"SEXTON_WORKER_PID={os.getpid()}".encode() in marks:
                found.append(name)
    return found
