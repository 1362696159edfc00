"""Secrets of commands and Python jobs, in real processes: each gets those that it names, and nobody else learns any."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from sexton.claims import State
from sexton.targets import CommandTarget, HttpTarget, PythonTarget, ShellTarget
from sexton_worker.core.runs import Ending
from tests.support.odd_server import odd_server
from tests.support.processes import ProcessGroup
from tests.support.runs import Runs
from tests.support.worker_trial import WorkerTrial

ENVIRONMENT = {"SEXTON_SECRET_DB": "hunter-2-hunter", "SEXTON_SECRET_OTHER": "never-named", "SEXTON_SECRETS": "/none"}
PRINT_ALL = CommandTarget((sys.executable, "-c", "import os; print(sorted(os.environ.items()))"))


def test_a_job_gets_the_secrets_that_it_names_and_no_others() -> None:
    with Runs(environment=ENVIRONMENT) as runs:
        python = PythonTarget("tests.support.odd_jobs:tell_environment")
        for target in (PRINT_ALL, python):
            told = runs.run(target, env={"URL": "db://me:${secret:db}@h", "HOME_IS": "${HOME}"}).stdout.decode()
            assert "('URL', 'db://me:***@h')" in told
            assert "('HOME_IS', '${HOME}')" in told
            assert "SEXTON_SECRET" not in told
            assert "never-named" not in told
        length = runs.run(ShellTarget('test "$P" = hunter-2-hunter'), env={"P": "${secret:db}"})
        assert length.exit_code == 0
        again = runs.run(python).stdout.decode()  # in the process that had it
        assert "URL" not in again


def test_a_secret_in_an_error_is_masked() -> None:
    with Runs(environment=ENVIRONMENT) as runs:
        ended = runs.run(PythonTarget("os:chdir", ("/nowhere/hunter-2-hunter",)), env={"P": "${secret:db}"})
    assert "/nowhere/***" in ended.error
    assert b"hunter" not in ended.stderr


@pytest.mark.parametrize("target", [PRINT_ALL, PythonTarget("os:getpid")])
def test_a_run_whose_secret_is_missing_does_not_begin(target: CommandTarget | PythonTarget, tmp_path: Path) -> None:
    with Runs(environment=ENVIRONMENT) as runs:
        ended = runs.run(target, env={"A": "${secret:db}", "B": "${secret:gone}"})
    assert (ended.ending, ended.started) == (Ending.NOT_STARTED, None)
    assert ended.error.startswith("the secret 'gone' is missing: this worker has ")


def test_a_ledger_and_a_worker_s_log_hold_no_secret(processes: ProcessGroup, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "db").write_text("hunter-2-hunter\n")
    ledger = tmp_path / "ledger.db"
    with odd_server() as server, contextlib.closing(WorkerTrial(processes, f"sqlite:///{ledger}")) as trial:
        env = {"P": "${secret:db}"}
        talks = trial.job(ShellTarget('echo "it is $P"; echo "$P" >&2; exit 3'), env=env)
        raises = trial.job(PythonTarget("os:chdir", ("/nowhere/hunter-2-hunter",)), env=env)
        sends = trial.job(HttpTarget(server.url("/echo?${secret:db}"), expect=(500,)))
        lacks = trial.job(ShellTarget("true"), env={"P": "${secret:gone}"})
        worker = trial.start_worker(secrets=str(tmp_path / "secrets"))
        for job in (talks, raises, sends, lacks):
            trial.await_states(job, State.FAILED)
        assert trial.output(talks) == (b"it is ***\n", b"***\n")
        assert "/nowhere/***" in trial.runs(raises)[0].error
        assert b"/echo?***" in trial.output(sends)[0]
        assert server.requests[0]["path"] == "/echo?hunter-2-hunter"
        where = f"neither the variable SEXTON_SECRET_GONE nor the file {tmp_path}/secrets/gone"
        assert where in trial.runs(lacks)[0].error
        files = [file for file in tmp_path.iterdir() if file.name.startswith("ledger.db")]
        kept = b"".join(file.read_bytes() for file in files)
        assert b"secret:db" in kept
        kept = kept.replace(b"/nowhere/hunter-2-hunter", b"")  # which the job's own file had
        assert b"hunter" not in kept
        assert "hunter" not in worker.stdout() + worker.stderr()
