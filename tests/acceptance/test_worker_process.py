"""Real worker processes on real databases: work, drain, giving back, outages, freezes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.claims import OnWorkerLost, Overlap, State
from sexton.job_rules import RetryRules
from sexton.targets import PythonTarget
from tests.support import reaper
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.runs import is_alive
from tests.support.waiting import eventually, stays
from tests.support.worker_trial import LONG, TRUE, WorkerTrial

READY, RUNNING, SUCCEEDED, FAILED = State.READY, State.RUNNING, State.SUCCEEDED, State.FAILED


@pytest.fixture(params=["sqlite", "postgresql"])
def trial(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[WorkerTrial]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if is_sqlite else str(request.getfixturevalue("postgres_ledger"))
    with contextlib.closing(WorkerTrial(processes, url)) as trial:
        yield trial


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file; ``waiting_for`` makes scripts that go on once it exists."""
    return tmp_path / "gate"


def waiting_for(gate: Path) -> str:
    return f"echo $$ > {gate}.pid; while [ ! -e {gate} ]; do sleep 0.05; done; echo through"


def pid_behind(gate: Path) -> int:
    """The process of the run that waits for the gate."""
    note = Path(f"{gate}.pid")
    return int(str(eventually(lambda: note.exists() and note.read_text().strip(), LONG, "the run waits")))


def end(worker: RunningProcess) -> None:
    worker.signal(signal.SIGTERM)
    assert worker.wait(within=LONG) == 0, worker.report()


def test_a_worker_runs_what_is_due_writes_what_became_of_it_and_leaves(trial: WorkerTrial) -> None:
    command = trial.job("echo out; echo err >&2", claimed=3, overlap=Overlap.QUEUE)
    python = trial.job(PythonTarget("tests.support.work_module:write_both", ("hello",)), overlap=Overlap.ALLOW)
    wrong = trial.job("exit 9")
    missing = trial.job(PythonTarget("no_such_module:f"))
    worker = trial.start_worker()
    trial.await_states(command, SUCCEEDED, SUCCEEDED, SUCCEEDED)
    trial.await_states(python, SUCCEEDED)
    trial.await_states(wrong, FAILED)
    trial.await_states(missing, FAILED)
    assert trial.output(command) == (b"out\n", b"err\n")
    assert trial.output(python)[0] == b"hello by print\nhello by descriptor\n"
    assert [(run.exit_code, run.error) for run in trial.runs(wrong)[-1:]] == [(9, "exited with code 9")]
    assert (
        "No module named 'no_such_module'" in trial.runs(missing)[-1].error
    )  # on a busy machine it was given back before
    for run in [run for run in trial.runs(command) if run.outcome != READY]:
        assert run.started_at <= run.finished_at
        assert run.lateness_ms > 0
    trial.rows.assert_slots_are_held_rightly()
    end(worker)
    (row,) = trial.workers()
    assert (row.name, row.pid, row.slots) == ("w1", worker.pid, 2)
    assert row.stopped_at is not None


def test_an_error_that_no_database_takes_is_stored_and_keeps_up_no_other_result(trial: WorkerTrial) -> None:
    odd = trial.job(PythonTarget("tests.support.work_module:raise_unstorable"))
    other = trial.job("true")
    worker = trial.start_worker()
    trial.await_states(odd, FAILED)
    trial.await_states(other, SUCCEEDED)
    assert trial.runs(odd)[0].error == "ValueError: ? and \N{REPLACEMENT CHARACTER}"
    end(worker)


def test_a_failed_run_is_tried_again_until_it_succeeds(trial: WorkerTrial, tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -ge 3 ]"
    retries = RetryRules(max=5, delay=RetryRules().delay / 200, jitter=False)
    job = trial.job(script, retries=retries)
    worker = trial.start_worker()
    trial.await_states(job, SUCCEEDED)
    assert [run.outcome for run in trial.runs(job)] == [READY, READY, SUCCEEDED]
    assert [run.attempt for run in trial.runs(job)] == [1, 2, 3]
    end(worker)


def test_sigterm_drains_the_runs_end_and_nothing_new_begins(trial: WorkerTrial, gate: Path) -> None:
    """C04, W01: the lease is renewed until the last run has ended, and the signal reaches the worker alone."""
    trial.set(lease="6s", heartbeat="1s")
    job = trial.job(waiting_for(gate))
    worker = trial.start_worker()
    pid_behind(gate)
    worker.signal(signal.SIGTERM)
    eventually(lambda: "worker.draining" in worker.stdout() + worker.stderr(), LONG, "the worker drains")
    later = trial.job(TRUE)
    first = trial.lease_of(job)
    eventually(lambda: (trial.lease_of(job) - first).total_seconds() > 6, LONG, "the lease is renewed for longer")
    assert worker.is_running()
    assert trial.workers()[0].draining
    gate.touch()
    assert worker.wait(within=LONG) == 0, worker.report()
    assert trial.states(job) == [SUCCEEDED]
    assert trial.output(job) == (b"through\n", b"")
    assert trial.states(later) == [READY]


def test_a_second_sigterm_gives_the_claims_back(trial: WorkerTrial, gate: Path) -> None:
    job = trial.job(waiting_for(gate), retries=RetryRules(max=1))
    once = trial.job(
        waiting_for(Path(f"{gate}-once")), on_worker_lost=OnWorkerLost.FAIL, columns={"at_most_once": True}
    )
    worker = trial.start_worker()
    pids = [pid_behind(gate), pid_behind(Path(f"{gate}-once"))]
    worker.signal(signal.SIGTERM)
    eventually(lambda: "worker.draining" in worker.stdout() + worker.stderr(), LONG, "the worker drains")
    worker.signal(signal.SIGTERM)
    assert worker.wait(within=LONG) == 0, worker.report()
    assert trial.states(job) == [READY]
    assert trial.states(once) == [State.LOST]
    (run,) = trial.runs(job)
    assert run.error.startswith("given back")
    with trial.rows.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT retries FROM claims ORDER BY job_id").scalars().all() == [0, 0]
    assert not any(is_alive(pid) for pid in pids)
    gate.touch()
    another = trial.start_worker("w2")
    trial.await_states(job, SUCCEEDED)
    end(another)


def test_a_drain_that_takes_too_long_gives_the_claims_back(trial: WorkerTrial, gate: Path) -> None:
    job = trial.job(waiting_for(gate))
    worker = trial.start_worker(drain=0.5)
    pid_behind(gate)
    end(worker)
    assert trial.states(job) == [READY]


def test_a_frozen_workers_late_result_is_refused(trial: WorkerTrial, gate: Path) -> None:
    """Invariant 4, C03: it thaws and goes on beside the new owner, and nothing of it counts."""
    job = trial.job(waiting_for(gate))
    frozen = trial.start_worker("frozen")
    pid_behind(gate)
    frozen.freeze()
    trial.expire_lease(job)
    (requeued,) = trial.store.grants.requeue_expired()
    assert requeued.state is READY
    gate.touch()
    second = trial.start_worker("second")
    trial.await_states(job, SUCCEEDED)
    accepted = trial.runs(job)
    frozen.thaw()
    eventually(lambda: trial.rows.counter("stale_results") == 1, LONG, "the frozen worker's result is refused")
    assert trial.runs(job) == accepted
    assert [run.outcome for run in accepted] == [READY, SUCCEEDED]
    assert accepted[0].token < accepted[1].token
    assert trial.states(job) == [SUCCEEDED]
    end(frozen)
    end(second)


def test_an_at_most_once_run_is_killed_when_its_lease_is_lost(trial: WorkerTrial, gate: Path) -> None:
    trial.set(lease="6s", heartbeat="1s")
    job = trial.job(waiting_for(gate), on_worker_lost=OnWorkerLost.FAIL, columns={"at_most_once": True})
    worker = trial.start_worker()
    pid = pid_behind(gate)
    worker.freeze()
    trial.expire_lease(job)
    (requeued,) = trial.store.grants.requeue_expired()
    assert requeued.state is State.LOST
    worker.thaw()
    eventually(lambda: not is_alive(pid), LONG, "the run is killed")
    end(worker)
    assert trial.states(job) == [State.LOST]


def test_a_killed_worker_takes_its_python_processes_with_it(trial: WorkerTrial) -> None:
    job = trial.job(PythonTarget("tests.support.work_module:noop"))
    worker = trial.start_worker()
    trial.await_states(job, SUCCEEDED)
    children = reaper.descendants(worker.pid)
    assert children != []
    worker.kill()
    eventually(lambda: not any(is_alive(child) for child in children), LONG, "the idle children end")


def test_a_worker_without_its_tables_says_which_command_makes_them(processes: ProcessGroup, tmp_path: Path) -> None:
    worker = processes.sexton("worker", env={"SEXTON_DATABASE": f"sqlite:///{tmp_path}/empty.db"})
    assert worker.wait(within=LONG) == 1
    assert "run `sexton db upgrade`" in worker.stderr()


def test_a_worker_does_not_start_with_leases_that_it_could_not_keep(trial: WorkerTrial) -> None:
    """What `settings set` refuses may stand in a ledger that was written by hand, or restored."""
    trial.set(lease="6s", heartbeat="3s")
    worker = trial.processes.sexton("worker", env={"SEXTON_DATABASE": trial.url})
    assert worker.wait(within=LONG) == 1
    assert "heartbeat 3s × 3 is longer than lease 6s" in worker.stderr()


def test_a_worker_outlasts_its_database(
    own_postgres_server: PostgresServer, processes: ProcessGroup, gate: Path
) -> None:
    """Started before it, through an outage in mid-run, and with the result written after it."""
    url = own_postgres_server.create_database()
    trial = WorkerTrial(processes, url)
    job = trial.job(waiting_for(gate))
    own_postgres_server.stop()
    worker = trial.start_worker()
    eventually(lambda: "worker.database_unreachable" in worker.stdout() + worker.stderr(), LONG, "it says so")
    own_postgres_server.start()
    pid = pid_behind(gate)
    own_postgres_server.stop()
    gate.touch()
    eventually(lambda: not is_alive(pid), LONG, "the run ends without a database")
    stays(worker.is_running, 2, "the worker lives")
    own_postgres_server.start()
    trial.rows.engine.dispose()  # the trial's own connections did not outlast it
    trial.await_states(job, SUCCEEDED)
    assert trial.output(job) == (b"through\n", b"")
    after = trial.job(TRUE)
    trial.await_states(after, SUCCEEDED)
    end(worker)
    trial.close()


def test_a_frozen_database_neither_ends_a_worker_nor_its_signals(
    own_postgres_server: PostgresServer, processes: ProcessGroup, gate: Path
) -> None:
    trial = WorkerTrial(processes, own_postgres_server.create_database())
    job = trial.job(waiting_for(gate))
    worker = trial.start_worker()
    pid_behind(gate)
    own_postgres_server.freeze()
    gate.touch()
    worker.signal(signal.SIGTERM)
    eventually(lambda: "database_unreachable" in worker.stdout() + worker.stderr(), LONG, "it notices")
    assert worker.is_running()
    own_postgres_server.thaw()
    assert worker.wait(within=LONG) == 0, worker.report()
    trial.await_states(job, SUCCEEDED)
    trial.close()
