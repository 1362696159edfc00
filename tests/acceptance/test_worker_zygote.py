"""The zygote at work: it keeps time for a worker that is frozen, ends all for one that is dead, and may die itself."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sexton.claims import OnLeaseLost, OnWorkerLost, State
from sexton.targets import CommandTarget, HttpTarget, PythonTarget, ShellTarget
from sexton_worker.core.runs import Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets import command_runs
from sexton_worker.targets.zygote_link import ZygoteLink
from sexton_worker.zygote.process import MOST_HELD
from tests.support import freezing, reaper
from tests.support.blows import children_of
from tests.support.processes import ProcessGroup
from tests.support.runs import DEADLINE, Runs, a_grant, is_alive, rules_for, zygote_of
from tests.support.waiting import eventually
from tests.support.worker_trial import LONG, TRUE, WorkerTrial

NAP = "tests.support.work_module:wait_for_ever"
WAIT = "tests.support.work_module:wait_for_file"


@pytest.fixture
def trial(processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    with contextlib.closing(WorkerTrial(processes, f"sqlite:///{tmp_path}/ledger.db")) as trial:
        yield trial


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Runs() as runs:
        yield runs


def pid_in(path: Path) -> int:
    return int(str(eventually(lambda: path.exists() and path.read_text().strip(), LONG, f"{path}")))


def gone(*pids: int) -> None:
    eventually(lambda: not any(map(is_alive, pids)), LONG, f"{pids} are gone")


def endless(note: Path, on_term: str = "") -> str:
    """A script that notes its process, and goes on until it is ended, or for ever."""
    return f"trap '{on_term}' TERM; echo $$ > {note}; while :; do sleep 0.1; done"


def waits(note: Path, gate: str) -> str:
    """A script that notes its process, and ends once there is a file of that name."""
    return f"echo $$ > {note}; while [ ! -e {gate} ]; do sleep 0.1; done"


# --- the worker is frozen or dead -------------------------------------------------------------------------------------


def test_the_runs_of_a_frozen_worker_end_at_their_deadlines(trial: WorkerTrial, tmp_path: Path) -> None:
    """Politely and then not, by SIGTERM and SIGKILL; and when it wakes up it says so."""
    notes = [tmp_path / name for name in ("command", "stubborn", "python")]
    times: dict[str, Any] = {"max_runtime": timedelta(seconds=10), "kill_after": timedelta(seconds=1)}
    command = trial.job(endless(notes[0], f"touch {tmp_path}/polite; exit 3"), **times)
    stubborn = trial.job(endless(notes[1]), **times)
    python = trial.job(PythonTarget(NAP, (str(notes[2]),)), **times)
    worker = trial.start_worker(slots=3)
    pids = [pid_in(note) for note in notes]
    worker.freeze()
    gone(*pids)
    assert (tmp_path / "polite").exists()
    worker.thaw()
    for job, code in ((command, 3), (stubborn, 137), (python, 143)):
        trial.await_states(job, State.TIMED_OUT)
        (run,) = trial.runs(job)
        assert run.exit_code == code
        assert run.error.startswith("ran longer than max_runtime 10s; ended by SIG")
    assert trial.runs(python)[0].error.endswith("while the worker was frozen")
    after = trial.job(TRUE)
    trial.await_states(after, State.SUCCEEDED)


def test_what_must_not_outlive_its_lease_does_not_though_the_worker_is_frozen(
    trial: WorkerTrial, tmp_path: Path
) -> None:
    """At most once, and `on_lease_lost: kill`: when the claim is another's, nothing of it runs. Others go on."""
    trial.set(lease="6s", heartbeat="1s")
    once: dict[str, Any] = {"on_worker_lost": OnWorkerLost.FAIL, "columns": {"at_most_once": True}}
    kill: dict[str, Any] = {"on_lease_lost": OnLeaseLost.KILL, "kill_after": timedelta(seconds=1)}
    notes = [tmp_path / name for name in ("once", "kill", "python-once", "python-kill", "other", "python-other")]
    gate = str(tmp_path / "gate")
    jobs = [
        trial.job(endless(notes[0], "exit"), **once),
        trial.job(waits(notes[1], gate), **kill),
        trial.job(PythonTarget(NAP, (str(notes[2]),)), **once),
        trial.job(PythonTarget(WAIT, (str(notes[3]), gate)), **kill),
        trial.job(waits(notes[4], gate)),
        trial.job(PythonTarget(WAIT, (str(notes[5]), gate))),
    ]
    worker = trial.start_worker(slots=6)
    pids = [pid_in(note) for note in notes]
    first = [trial.lease_of(job) for job in jobs]
    eventually(
        lambda: all((trial.lease_of(job) - was).total_seconds() > 6 for job, was in zip(jobs, first, strict=True)),
        LONG,
        "the leases are renewed for longer",
    )
    assert all(map(is_alive, pids))
    worker.freeze()
    gone(*pids[:4])
    assert all(map(is_alive, pids[4:]))
    (tmp_path / "gate").touch()
    worker.thaw()
    for job in (jobs[0], jobs[2]):
        trial.await_states(job, State.LOST)
    for job in (jobs[1], jobs[3]):
        trial.await_states(job, State.SUCCEEDED)
        assert [run.outcome for run in trial.runs(job)] == [State.READY, State.SUCCEEDED]
    for job in jobs[4:]:
        trial.await_states(job, State.SUCCEEDED)
        assert len(trial.runs(job)) == 1
    for job in jobs[:4]:
        assert trial.runs(job)[0].error.startswith("stopped: the worker lost the claim's lease; ended by SIGTERM")
    assert trial.runs(jobs[3])[0].error.endswith("while the worker was frozen")


def test_a_request_that_must_not_outlive_its_lease_does_not_though_the_worker_is_frozen(trial: WorkerTrial) -> None:
    trial.set(lease="6s", heartbeat="1s")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = HttpTarget(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=timedelta(minutes=10))
        job = trial.job(target, on_worker_lost=OnWorkerLost.FAIL, columns={"at_most_once": True})
        worker = trial.start_worker()
        silent.settimeout(LONG)
        connection, _ = silent.accept()
        with connection:
            (pid,) = children_of(worker.pid, "python_child")
            worker.freeze()
            gone(pid)
            worker.thaw()
            trial.await_states(job, State.LOST)


def test_nothing_of_a_dead_worker_lives_on(trial: WorkerTrial, tmp_path: Path) -> None:
    notes = [tmp_path / name for name in ("command", "stubborn", "python", "resting")]
    trial.job(endless(notes[0], f"touch {tmp_path}/polite; exit"))
    trial.job(endless(notes[1]), kill_after=timedelta(seconds=1))
    trial.job(PythonTarget(NAP, (str(notes[2]),)))
    worker = trial.start_worker(slots=3)
    pids = [pid_in(note) for note in notes[:3]]
    everybody = [zygote_of(worker.pid), *reaper.descendants(worker.pid)]
    worker.kill()
    gone(*pids, *everybody)
    assert (tmp_path / "polite").exists()


# --- the zygote is dead or frozen -------------------------------------------------------------------------------------


def test_the_runs_of_a_lost_zygote_are_ended_and_their_fate_is_said_to_be_unknown(runs: Runs, tmp_path: Path) -> None:
    """Also who left the group; before another run of the claim can begin."""
    note, escaped = tmp_path / "pid", tmp_path / "escaped"
    script = f"setsid sh -c 'echo $$ > {escaped}; exec sleep 300' & {endless(note)}"
    with capture_logs() as logs:
        token = runs.start(ShellTarget(script), kill_after=0.3)
        pids = pid_in(note), pid_in(escaped)
        zygote = zygote_of(os.getpid())
        os.kill(zygote, signal.SIGKILL)
        ended = runs.end_of(token)
    assert not any(map(is_alive, pids))
    assert ended.ending is Ending.VANISHED
    assert ended.started is not None
    assert "was lost (ended by SIGKILL); what became of the run is unknown" in ended.error
    assert [entry["runs"] for entry in logs if entry["event"] == "zygote.lost"] == [1]
    assert runs.run(CommandTarget(("true",))).exit_code == 0
    assert zygote_of(os.getpid()) != zygote


def test_a_zygote_that_does_not_answer_is_replaced(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runs, "PING_SECONDS", 0.2)
    monkeypatch.setattr(ZygoteLink, "is_stopped", lambda link: False)  # it stays so whatever is done for it
    note = tmp_path / "pid"
    token = runs.start(ShellTarget(endless(note, "exit")))
    pid = pid_in(note)
    zygote = zygote_of(os.getpid())
    freezing.freeze(zygote)
    ended = runs.end_of(token)
    assert ended.ending is Ending.VANISHED
    gone(pid, zygote)
    assert runs.run(CommandTarget(("true",))).exit_code == 0


def test_what_a_lost_zygote_had_not_begun_is_begun_by_the_next(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once."""
    monkeypatch.setattr(ZygoteLink, "is_stopped", lambda link: False)
    runs.run(CommandTarget(("true",)))
    zygote = zygote_of(os.getpid())
    freezing.freeze(zygote)
    token = runs.start(ShellTarget(f"echo begun >> {tmp_path}/log"))
    stopped = runs.start(ShellTarget(f"echo stopped >> {tmp_path}/log"))
    runs.execution.stop(stopped, StopReason.CANCELLED)
    os.kill(zygote, signal.SIGKILL)
    assert (runs.end_of(token).ending, runs.end_of(token).exit_code) == (Ending.EXITED, 0)
    assert (runs.end_of(stopped).ending, runs.end_of(stopped).started) == (Ending.CANCELLED, None)
    assert (tmp_path / "log").read_text() == "begun\n"


def test_a_claim_whose_zygote_was_lost_is_run_again_or_lost_as_its_job_says(trial: WorkerTrial, tmp_path: Path) -> None:
    """At most once is at most once."""
    notes = [tmp_path / name for name in ("again", "once")]
    scripts = [f"echo $$ >> {note}; while [ ! -e {tmp_path}/gate ]; do sleep 0.1; done" for note in notes]
    again = trial.job(scripts[0])
    once = trial.job(scripts[1], on_worker_lost=OnWorkerLost.FAIL, columns={"at_most_once": True})
    worker = trial.start_worker()
    for note in notes:
        pid_in(note)
    os.kill(zygote_of(worker.pid), signal.SIGKILL)
    trial.await_states(once, State.LOST)
    (tmp_path / "gate").touch()
    trial.await_states(again, State.SUCCEEDED)
    assert [len(note.read_text().split()) for note in notes] == [2, 1]
    assert [run.outcome for run in trial.runs(again)] == [State.READY, State.SUCCEEDED]


def test_a_zygote_that_was_stopped_goes_on(runs: Runs) -> None:
    """A command that stops it puts off nobody's deadline for long, and costs nobody a run."""
    with capture_logs() as logs:
        ended = runs.run(ShellTarget("kill -STOP $PPID; echo alive"))
    assert (ended.ending, ended.stdout) == (Ending.EXITED, b"alive\n")
    assert "zygote.stopped" in [entry["event"] for entry in logs]


def test_what_kills_its_zygote_is_ended_as_poison_and_costs_its_neighbours_one_run(
    trial: WorkerTrial, tmp_path: Path
) -> None:
    """From then on it has a zygote of its own, as its neighbours have: nobody can tell yet who did it."""
    note, gate = tmp_path / "pids", tmp_path / "gate"
    poison = trial.job(f"while [ ! -s {note} ]; do sleep 0.1; done; kill -9 $PPID; sleep 300")
    beside = trial.job(f"echo $$ >> {note}; while [ ! -e {gate} ]; do sleep 0.1; done")
    trial.start_worker(slots=2)
    trial.await_states(poison, State.LOST)
    gate.touch()
    trial.await_states(beside, State.SUCCEEDED)
    lost = trial.runs(poison)
    assert [run.outcome for run in lost] == [State.READY, State.READY, State.LOST]
    assert "3 losses of its claim, it may be what ends that process" in lost[-1].error
    assert [run.outcome for run in trial.runs(beside)] == [State.READY, State.SUCCEEDED]
    assert len(note.read_text().split()) == 2


def test_a_run_in_quarantine_has_a_zygote_of_its_own_that_ends_with_it(runs: Runs, tmp_path: Path) -> None:
    runs.run(CommandTarget(("true",)))
    shared, gate = zygote_of(os.getpid()), tmp_path / "gate"
    token = runs.start(ShellTarget(f"echo $PPID > {tmp_path}/pid; exec sleep 300"), losses=1, kill_after=0.3)
    own = pid_in(tmp_path / "pid")
    assert own != shared
    other = runs.start(ShellTarget(f"echo out; {waits(tmp_path / 'other', str(gate))}"), losses=1)
    pid_in(tmp_path / "other")
    runs.execution.look(other)
    eventually(lambda: other in runs.execution.seen(), LONG, "its output is seen")
    runs.execution.stop(token, StopReason.CANCELLED)
    assert runs.end_of(token).ending is Ending.CANCELLED
    gone(own)
    gate.touch()
    assert runs.end_of(other).stdout == b"out\n"
    assert is_alive(shared)


def test_the_next_zygote_watches_over_the_python_processes_too(trial: WorkerTrial, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    job = trial.job(PythonTarget(NAP, (str(note),)), max_runtime=timedelta(seconds=5))
    worker = trial.start_worker()
    pid, first = pid_in(note), zygote_of(worker.pid)
    os.kill(first, signal.SIGKILL)
    gone(first)
    assert zygote_of(worker.pid) != first
    worker.freeze()
    gone(pid)
    worker.thaw()
    trial.await_states(job, State.TIMED_OUT)


# --- what others can see ----------------------------------------------------------------------------------------------


def test_the_zygote_shows_no_secret_and_outlives_the_signals_of_a_terminal(tmp_path: Path) -> None:
    with Runs(environment={"WORKER_SECRET": "hunter2", "LANG": "C.UTF-8"}) as runs:
        token = runs.start(
            ShellTarget(endless(tmp_path / "pid", "exit 4")), env={"JOB_SECRET": "hunter3"}, stdin="hunter4"
        )
        pid_in(tmp_path / "pid")
        zygote = zygote_of(os.getpid())
        for name in ("cmdline", "environ"):
            assert b"hunter" not in Path("/proc", str(zygote), name).read_bytes()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(zygote, number)
        runs.execution.stop(token, StopReason.CANCELLED)
        assert runs.end_of(token).exit_code == 4
        assert is_alive(zygote)
    gone(zygote)


# --- orders that are sent ahead ---------------------------------------------------------------------------------------


def own_zygotes() -> list[int]:
    """Of this process; not what those are just starting, which looks like them for a moment."""
    found = []
    for pid in children_of(os.getpid(), "zygote.process"):
        with contextlib.suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            found += [pid] if int(parent) == os.getpid() else []
    return found


def test_what_was_sent_ahead_can_be_recalled_and_then_never_begins(runs: Runs, tmp_path: Path) -> None:
    """Each order ends, or is recalled, and none is both."""
    gate = str(tmp_path / "gate")
    first = runs.start_together(*(ShellTarget(waits(tmp_path / f"first{n}", gate)) for n in range(2)))
    ahead = runs.start_together(*(ShellTarget(f"touch {tmp_path}/ahead{n}") for n in range(60)))
    for number in range(2):
        pid_in(tmp_path / f"first{number}")
    assert set(runs.execution.recall()) == set(ahead)
    assert runs.execution.recall() == ()
    (tmp_path / "gate").touch()
    for token in (*first, runs.start(TRUE)):
        assert runs.end_of(token).exit_code == 0
    assert not list(tmp_path.glob("ahead*"))
    assert not set(ahead) & runs.ended.keys()


def test_a_run_that_was_sent_ahead_is_stopped_and_those_behind_it_go_on(runs: Runs, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    first = runs.start_together(*(ShellTarget(waits(tmp_path / f"first{n}", gate)) for n in range(2)))
    tokens = runs.start_together(*(ShellTarget(f"echo {n} >> {tmp_path}/begun") for n in range(5)))
    runs.execution.stop(tokens[2], StopReason.CANCELLED)
    stopped = runs.end_of(tokens[2])
    assert (stopped.ending, stopped.started) == (Ending.CANCELLED, None)
    (tmp_path / "gate").touch()
    for token in (*first, *tokens[:2], *tokens[3:]):
        assert runs.end_of(token).exit_code == 0
    assert sorted((tmp_path / "begun").read_text().split()) == ["0", "1", "3", "4"]


def test_an_urgent_run_is_before_all_that_was_sent_ahead(tmp_path: Path) -> None:
    with Runs(slots=1) as runs:
        first = runs.start(ShellTarget(waits(tmp_path / "first", f"{tmp_path}/gate")))
        pid_in(tmp_path / "first")
        tokens = runs.start_together(*(ShellTarget(f"echo {n} >> {tmp_path}/begun") for n in range(5)))
        urgent, rules = 99, rules_for(ShellTarget(f"echo urgent >> {tmp_path}/begun"))
        runs.execution.start(RunOrder(a_grant(urgent)._replace(priority=9), "urgent", rules, DEADLINE))
        (tmp_path / "gate").touch()
        for token in (first, *tokens, urgent):
            assert runs.end_of(token).exit_code == 0
    assert (tmp_path / "begun").read_text().split() == ["urgent", "0", "1", "2", "3", "4"]


def test_where_there_is_much_to_start_two_zygotes_do_it_each_run_once(runs: Runs, tmp_path: Path) -> None:
    """No run begins twice, though one of both is killed on the way, and none is forgotten."""
    assert runs.run(TRUE).exit_code == 0
    assert len(own_zygotes()) == 1
    tokens = runs.start_together(*(ShellTarget(f"echo >> {tmp_path}/{n}") for n in range(200)))
    # One look: the next may meet the second between two programs (it begins by exec), when it has no command line.
    one, other = eventually(lambda: found if len(found := own_zygotes()) == 2 else [], LONG, "there is a second zygote")
    os.kill(other, signal.SIGKILL)
    ends = [runs.end_of(token) for token in tokens]
    gone = {Ending.VANISHED, Ending.MACHINE_FAULT}
    assert {end.ending for end in ends} <= {Ending.EXITED, *gone}
    assert sum(end.ending in gone for end in ends) <= 2 + MOST_HELD  # of two slots, or not told of yet
    assert all(path.read_text() in ("", "\n") for path in tmp_path.iterdir())
    assert is_alive(one)
