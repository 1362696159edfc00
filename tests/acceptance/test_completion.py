"""A shell completes commands, options and names of jobs: in a real bash, whose own function is called as TAB does."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from sexton.store.known_names import Kind, known_names
from sexton_tui.cli import completing
from sexton_tui.cli.main import run
from tests.support.processes import SEXTON
from tests.support.scene_ledger import scene_file, write_scene

SCRIPT = """
eval "$(_SEXTON_COMPLETE=source_bash sexton)"
tab() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sexton_completion sexton; (IFS=' '; echo "${COMPREPLY[*]}"); }
complete -p sexton
tab sexton tri
tab sexton trigger b
tab sexton runs --job sync
"""


@pytest.fixture
def database(tmp_path: Path) -> str:
    (tmp_path / "ledger.db").write_bytes(scene_file())
    return f"sqlite:///{tmp_path}/ledger.db"


def test_bash_completes_commands_and_names_of_jobs(database: str, tmp_path: Path) -> None:
    environment = {"PATH": f"{SEXTON.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "SEXTON_DATABASE": database}
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o default -F _sexton_completion sexton",
        "trigger",
        "backup-db broken-feed",
        "sync-eu",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_SEXTON_COMPLETE", f"source_{shell}")
    assert run([]) == 0
    assert "_SEXTON_COMPLETE=complete_" + shell in capsys.readouterr().out


def offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: str, words: str = "trigger b"
) -> tuple[str, str]:
    """What a TAB gives after `sexton WORDS`: standard output and standard error."""
    line = f"sexton --database {database} {words}"
    place = str(len(line.split()) - 1)
    for key, value in (("_SEXTON_COMPLETE", "complete_bash"), ("COMP_WORDS", line), ("COMP_CWORD", place)):
        monkeypatch.setenv(key, value)
    assert run([]) == 0
    captured = capsys.readouterr()
    return captured.out.strip(), captured.err


def test_a_database_given_before_is_the_one_that_is_asked(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, database) == ("backup-db\nbroken-feed", "")


@pytest.mark.parametrize(
    "database", ["sqlite:////nowhere/at/all.db", "postgresql://nobody@127.0.0.1:1/none", "nonsense"]
)
def test_a_database_that_is_away_offers_nothing_and_says_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, database) == ("", "")


def test_a_database_that_does_not_answer_is_not_waited_for(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completing, "WITHIN_SECONDS", 0.05)
    monkeypatch.setattr("sexton.store.known_names.known_names", lambda *_: threading.Event().wait(600))
    assert offered(monkeypatch, capsys, database) == ("", "")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("database"))
    write_scene(url := str(request.getfixturevalue("postgres_ledger")))
    return url


def test_names_are_found_by_their_beginning_case_aside(url: str) -> None:
    assert known_names(url, Kind.JOB, "B", 10, 5.0) == ["backup-db", "broken-feed"]
    assert known_names(url, Kind.JOB, "", 2, 5.0) == ["backup-db", "broken-feed"]
    assert known_names(url, Kind.JOB, "%", 10, 5.0) == []
    assert known_names(url, Kind.JOB, "b_", 10, 5.0) == []
    assert known_names(url, Kind.QUEUE, "", 10, 5.0) == ["default", "gpu", "reports"]
    assert known_names(url, Kind.OWNER, "Pay", 10, 5.0) == ["payroll"]
    assert known_names(url, Kind.TAG, "", 10, 5.0) == ["gpu", "infra", "ml", "money"]
    assert known_names(url, Kind.WORKER, "worker-", 10, 5.0) == ["worker-1", "worker-2"]
    assert known_names(url, Kind.NODE, "", 10, 5.0) == ["sched-1", "sched-2", "sched-3"]


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("runs --queue g", ["gpu"]),
        ("jobs --owner p", ["payroll"]),
        ("jobs --tag m", ["ml", "money"]),
        ("jobs --state q", ["quarantined"]),
        ("runs --state t", ["timed_out", "to_retry"]),
        ("ticks gl-export --state h", ["held"]),
        ("workers show w", ["worker-1", "worker-2"]),
        ("queues show r", ["reports"]),
        ("leader force s", ["sched-1", "sched-2", "sched-3"]),
        ("settings show ho", ["horizon"]),
        ("explain sync-eu n", ["next"]),
        ("runs sync-eu --tz Europe/Berl", ["Europe/Berlin"]),
        ("jobs -o j", ["json", "jsonl"]),
    ],
)
def test_names_and_values_of_options_are_completed(
    words: str, offers: list[str], database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, database, words) == ("\n".join(offers), "")


def test_nothing_is_offered_that_a_shell_would_read_as_more_than_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostile = ["b; rm -rf $HOME", "b\n", "b`x`", "b'", "bell"]
    monkeypatch.setattr("sexton.store.known_names.known_names", lambda *_: hostile)
    assert offered(monkeypatch, capsys, f"sqlite:///{tmp_path}/x.db") == ("bell", "")
    assert os.listdir(tmp_path) == []
