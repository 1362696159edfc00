"""The command and shell targets against real processes; W04 to W12 are cases of how schedulers have failed here."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.targets import CommandTarget, PythonTarget, ShellTarget, Target
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.runs import Ending, StopReason
from sexton_worker.targets.launching import KilledAtStart, launch
from tests.support.runs import Runs, is_alive, limit_that_leaves, open_in, zygote_of
from tests.support.waiting import eventually, stays


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Runs(environment={"LANG": "C.UTF-8", "HOME": "/", "WORKER_SECRET": "hunter2"}) as runs:
        yield runs


def pid_in(path: Path) -> int:
    """The process id that a run writes into a file, once it is there whole."""
    text = eventually(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), 30, f"{path}")
    return int(str(text))


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_command_runs_without_a_shell_and_its_outputs_are_kept_apart(runs: Runs) -> None:
    ended = runs.run(CommandTarget(("printf", "%s|", "a b", "$HOME", ";")))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 0, "")
    assert (ended.stdout, ended.stdout_bytes, ended.stderr) == (b"a b|$HOME|;|", 12, b"")
    ended = runs.run(ShellTarget("echo out; echo err >&2; exit 3"))
    assert (ended.exit_code, ended.error) == (3, "exited with code 3")
    assert (ended.stdout, ended.stderr, ended.stderr_bytes) == (b"out\n", b"err\n", 4)
    assert ended.started is not None
    assert ended.started <= ended.ended


def test_a_run_sees_a_clean_environment_and_who_it_is(runs: Runs, tmp_path: Path) -> None:
    env = {"COLOUR": "blue", "SEXTON_TOKEN": "forged"}
    ended = runs.run(CommandTarget(("env",)), env=env)
    seen = dict(line.split("=", 1) for line in ended.stdout.decode().splitlines())
    assert seen == {
        "PATH": os.environ["PATH"],
        "HOME": "/",
        "LANG": "C.UTF-8",
        "COLOUR": "blue",
        "SEXTON_JOB": "nightly",
        "SEXTON_TICK": "2026-03-29T01:00:00Z",
        "SEXTON_ATTEMPT": "3",
        "SEXTON_TOKEN": str(ended.token),
        "SEXTON_DEADLINE": "2026-03-30T01:00:00Z",
        "SEXTON_WORKER_PID": str(os.getpid()),
    }
    ended = runs.run(ShellTarget("pwd; cat"), cwd=str(tmp_path), stdin="line\n" * 100_000)
    assert ended.stdout_bytes == len(str(tmp_path)) + 1 + 500_000
    assert ended.stdout.startswith(str(tmp_path).encode())


@pytest.mark.parametrize(
    ("argv", "keys", "code", "says"),
    [
        (("no-such-command",), {}, 127, "command 'no-such-command' was not found in this worker's PATH"),
        (("/no/such/command",), {}, 127, "there is no '/no/such/command'"),
        (("/etc/passwd",), {}, 126, "'/etc/passwd' may not be executed"),
        (("true",), {"cwd": "/no/such/folder"}, None, "cannot work in '/no/such/folder'"),
        (("true", "a\0b"), {}, None, "cannot start 'true'"),
        (("true", "x" * 10_000_000), {}, None, "cannot start 'true'"),
        (("true",), {"env": {"A=B": "c"}}, None, "cannot start 'true'"),
    ],
)
def test_what_cannot_start_is_a_failed_run_that_says_why(
    runs: Runs, argv: tuple[str, ...], keys: dict[str, object], code: int | None, says: str
) -> None:
    ended = runs.run(CommandTarget(argv), **keys)
    assert (ended.ending, ended.exit_code, ended.started) == (Ending.NOT_STARTED, code, None)
    assert says in ended.error
    assert runs.run(CommandTarget(("true",))).exit_code == 0


def test_a_signal_is_told_as_shells_do(runs: Runs) -> None:
    ended = runs.run(ShellTarget("kill -9 $$"))
    assert (ended.ending, ended.exit_code, ended.error) == (Ending.EXITED, 137, "ended by SIGKILL")


def test_a_grandchild_that_holds_the_pipe_does_not_keep_a_timed_out_run_open(runs: Runs, tmp_path: Path) -> None:
    """W04, W07."""
    note = tmp_path / "pid"
    ended = runs.run(ShellTarget(f"sleep 300 & echo $! > {note}; wait"), max_runtime=1)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 143)
    assert ended.error == "ran longer than max_runtime 1s; ended by SIGTERM"
    assert ended.started is not None
    assert ended.ended - ended.started < 30
    assert not is_alive(pid_in(note))


def test_a_run_that_ignores_sigterm_is_killed_with_its_group(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {note}; while :; do sleep 1; done' & wait; wait"
    ended = runs.run(ShellTarget(script), max_runtime=1, kill_after=0.3)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 137)
    assert ended.error.startswith("ran longer than max_runtime 1s; ended by SIGKILL")
    eventually(lambda: not is_alive(pid_in(note)), 10, "the group is gone")


def test_the_rest_of_a_group_is_ended_although_its_leader_went_at_once(runs: Runs, tmp_path: Path) -> None:
    """The shell dies of SIGTERM, its child ignores it and gets SIGKILL after kill_after."""
    note = tmp_path / "pid"
    script = f"sh -c 'trap \"\" TERM; echo $$ > {note}; while :; do sleep 1; done' & wait"
    ended = runs.run(ShellTarget(script), max_runtime=1, kill_after=0.5)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 143)
    assert "SIGKILL" in ended.error
    eventually(lambda: not is_alive(pid_in(note)), 10, "the group is gone")


def test_the_rest_of_a_group_gets_its_time_too(runs: Runs, tmp_path: Path) -> None:
    ready, clean = tmp_path / "pid", tmp_path / "clean"
    child = f"trap 'sleep 0.5; touch {clean}; exit' TERM; echo $$ > {ready}; while :; do sleep 0.1; done"
    token = runs.start(ShellTarget(f'sh -c "{child.replace("$$", "$PPID")}" & wait'), kill_after=60)
    pid_in(ready)
    runs.execution.stop(token, StopReason.CANCELLED)
    ended = runs.end_of(token)
    assert (ended.exit_code, ended.error) == (143, "cancelled on request; ended by SIGTERM")
    assert clean.exists()


def test_who_left_the_group_is_ended_with_a_run_that_is_stopped(runs: Runs, tmp_path: Path) -> None:
    """W05. Another cluster's process under the same token is none of ours."""
    note = tmp_path / "pid"
    other = subprocess.Popen(["sleep", "300"], env={**os.environ, "SEXTON_TOKEN": "1"})
    script = f"setsid sh -c 'trap \"\" TERM; echo $$ > {note}; while :; do sleep 1; done' & wait"
    ended = runs.run(ShellTarget(script), max_runtime=1, kill_after=0.5)
    assert (ended.ending, ended.exit_code) == (Ending.TIMED_OUT, 143)
    assert ended.error.endswith("ended by SIGTERM, and what it had started by SIGKILL")
    assert not is_alive(pid_in(note))
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_run_is_over_when_its_first_process_is(runs: Runs, tmp_path: Path) -> None:
    """W06: work in the background is not waited for, and not killed; it holds the pipes in vain."""
    note = tmp_path / "pid"
    ended = runs.run(ShellTarget(f"echo started; sleep 300 & echo $! > {note}; exit 0"))
    left = pid_in(note)
    try:
        assert (ended.ending, ended.exit_code, ended.stdout) == (Ending.EXITED, 0, b"started\n")
        assert is_alive(left)
    finally:
        kill(left)


def test_endless_output_takes_constant_memory_and_keeps_both_ends(runs: Runs) -> None:
    """W08, W09: a hundred megabytes on one stream, one on the other."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = runs.run(ShellTarget("echo first; yes | head -c 100000000; yes e | head -c 1000000 >&2; echo last"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ended.exit_code == 0
    assert (ended.stdout_bytes, ended.stderr_bytes) == (100_000_000 + 11, 1_000_000)
    assert ended.stdout.startswith(b"first\ny\ny\n")
    assert ended.stdout.endswith(b"y\ny\nlast\n")
    assert b"bytes not kept" in ended.stdout
    assert len(ended.stdout) <= KEPT_BYTES
    assert grown < 20_000  # kB


def test_output_may_be_anything(runs: Runs) -> None:
    ended = runs.run(ShellTarget(r"printf '\377\000\n\376'"))
    assert ended.stdout == b"\xff\x00\n\xfe"


def test_a_run_that_closes_its_outputs_goes_on(runs: Runs) -> None:
    ended = runs.run(ShellTarget("echo before; exec >&- 2>&-; sleep 0.3; exit 4"))
    assert (ended.exit_code, ended.stdout) == (4, b"before\n")


def test_a_hung_run_delays_no_other(runs: Runs) -> None:
    """W07."""
    hung = runs.start(CommandTarget(("sleep", "300")))
    for _ in range(5):
        assert runs.run(CommandTarget(("true",))).exit_code == 0
    runs.execution.stop(hung, StopReason.CANCELLED)
    ended = runs.end_of(hung)
    assert (ended.ending, ended.error) == (Ending.CANCELLED, "cancelled on request; ended by SIGTERM")


def test_a_frozen_run_is_stopped_too(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    token = runs.start(ShellTarget(f"echo $$ > {note}; kill -STOP $$"))
    pid_in(note)
    runs.execution.stop(token, StopReason.LEASE_LOST)
    assert runs.end_of(token).ending is Ending.LEASE_LOST


def test_a_worker_that_ends_does_not_wait_as_long_as_the_job_may_ask(runs: Runs, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    token = runs.start(ShellTarget(f"trap '' TERM; echo $$ > {note}; while :; do sleep 0.1; done"), kill_after=3600)
    pid_in(note)
    runs.execution.stop(token, StopReason.CANCELLED)
    stays(lambda: not runs.execution.finished(), 0.3, "the run may take its time")
    runs.execution.stop(token, StopReason.GIVEN_BACK)
    ended = runs.end_of(token)
    assert (ended.ending, ended.exit_code) == (Ending.CANCELLED, 137)


def test_stopping_what_has_ended_or_never_was_does_nothing(runs: Runs) -> None:
    ended = runs.run(CommandTarget(("true",)))
    runs.execution.stop(ended.token, StopReason.CANCELLED)
    runs.execution.stop(999, StopReason.CANCELLED)
    assert runs.run(CommandTarget(("true",))).exit_code == 0


def test_a_run_stopped_before_it_started_never_runs(tmp_path: Path) -> None:
    with Runs(slots=1) as runs:
        first = runs.start(CommandTarget(("sleep", "300")))
        second = runs.start(CommandTarget(("touch", str(tmp_path / "ran"))))
        runs.execution.stop(second, StopReason.CANCELLED)
        runs.execution.stop(first, StopReason.CANCELLED)
        ended = runs.end_of(second)
        assert (ended.ending, ended.started) == (Ending.CANCELLED, None)
        runs.end_of(first)
    assert not (tmp_path / "ran").exists()


def test_what_the_worker_may_not_run_is_refused(tmp_path: Path) -> None:
    with Runs(allow=("true",)) as runs:
        assert runs.run(CommandTarget(("true",))).exit_code == 0
        ended = runs.run(CommandTarget(("touch", str(tmp_path / "ran"))))
        assert ended.ending is Ending.NOT_STARTED
        assert "'touch' is not among what this worker may run (true)" in ended.error
        assert "shell script" in runs.run(ShellTarget(f"touch {tmp_path}/ran")).error
    assert not (tmp_path / "ran").exists()


def test_nothing_is_left_open_by_many_runs(runs: Runs) -> None:
    runs.run(CommandTarget(("true",)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        runs.run(CommandTarget(("true",)), stdin="x")
        runs.run(CommandTarget(("no-such-command",)), stdin="x")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("free", range(14))
def test_a_python_run_that_finds_no_descriptor_is_the_machines_fault_and_leaves_nothing_open(
    runs: Runs, free: int
) -> None:
    """A Python process takes up to fifteen descriptors; where they end, nothing remains."""
    runs.run(CommandTarget(("true",)))  # all that is imported late has been
    before = sorted(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit_that_leaves(os.getpid(), free), hard))
    try:
        ended = runs.run(PythonTarget("tests.support.work_module:noop"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if ended.ending is not Ending.EXITED or free < 7:
        assert (ended.ending, ended.started) == (Ending.MACHINE_FAULT, None)
        assert "Too many open files" in ended.error
        assert sorted(os.listdir("/proc/self/fd")) == before
    assert runs.run(CommandTarget(("true",))).exit_code == 0


@pytest.mark.parametrize("target", [CommandTarget(("true",)), ShellTarget("true")])
@pytest.mark.parametrize("free", range(6))
def test_a_command_for_which_the_zygote_has_no_descriptor_is_the_machines_fault(
    runs: Runs, target: Target, free: int
) -> None:
    """A command takes four of them, and a fifth for its input."""
    runs.run(CommandTarget(("true",)))
    zygote = zygote_of(os.getpid())
    before = open_in(zygote)
    plenty = resource.prlimit(zygote, resource.RLIMIT_NOFILE)
    resource.prlimit(zygote, resource.RLIMIT_NOFILE, (limit_that_leaves(zygote, free), plenty[1]))
    try:
        ended = runs.run(target, stdin="x")
    finally:
        resource.prlimit(zygote, resource.RLIMIT_NOFILE, plenty)
    if free < 5:
        assert (ended.ending, ended.started) == (Ending.MACHINE_FAULT, None)
        assert "Too many open files" in ended.error
    else:
        assert ended.ending is Ending.EXITED
    assert open_in(zygote) == before
    assert runs.run(target).exit_code == 0


def test_a_process_that_began_but_cannot_be_watched_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []

    def no_descriptor(pid: int, flags: int = 0) -> int:
        pids.append(pid)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", no_descriptor)
    with pytest.raises(KilledAtStart, match="Too many open files"):
        launch(["sleep", "300"], {"PATH": os.environ["PATH"]})
    assert not is_alive(pids[0])


def test_what_waits_for_a_slot_can_be_recalled_and_never_runs(tmp_path: Path) -> None:
    with Runs(slots=1) as runs:
        note = tmp_path / "pid"
        first = runs.start(ShellTarget(f"echo $$ > {note}; sleep 300"))
        pid_in(note)
        waiting = {runs.start(CommandTarget(("touch", str(tmp_path / "ran")))) for _ in range(3)}
        assert set(runs.execution.recall()) == waiting
        assert runs.execution.recall() == ()
        runs.execution.stop(first, StopReason.CANCELLED)
        runs.end_of(first)
        assert runs.run(CommandTarget(("true",))).exit_code == 0
    assert not (tmp_path / "ran").exists()
