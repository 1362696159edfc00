"""Secrets of commands and Python jobs, in real processes: each gets those that it names, and nobody else learns any."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sexton.targets import CommandTarget, PythonTarget, ShellTarget
from sexton_worker.core.runs import Ending
from tests.support.runs import Runs

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
