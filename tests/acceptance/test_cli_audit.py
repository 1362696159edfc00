"""`sexton audit`: its sentence, its differences by job, its exit code, and its bar on a terminal."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from sexton.store import ledger_snapshot, open_store
from sexton.store.protocol import StoreOptions
from sexton_tui.cli.main import run
from sexton_tui.cli.progress import Bar
from tests.support.leader_scene import SECOND, batch, create, definition, lead, read, set_columns
from tests.support.ledgers import make_ledger


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Two jobs of every ten seconds since two minutes: all ticks of `whole` are claimed, none of `Asleep`."""
    make_ledger(made := f"sqlite:///{tmp_path}/ledger.db")
    store = open_store(StoreOptions(made))
    term = lead(store)
    new = create(store, definition("whole", 10 * SECOND), definition("Asleep", 10 * SECOND))
    since = (new[0].at - timedelta(minutes=2)).replace(microsecond=0)
    set_columns(made, "cursors", {}, at=since)
    set_columns(made, "revisions", {}, in_force_since=since, inputs_id="")
    whole = read(store, new[0].job_id)
    first = since + (10 - since.second % 10) * SECOND
    ticks = [first + number * 10 * SECOND for number in range(18)]
    assert store.ticks.commit(batch(store, term, [(whole, ticks)])).moved == 1
    store.close()
    return made


def test_differences_are_listed_by_job_and_the_exit_code_says_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--database", url]) == 1
    out, err = capsys.readouterr()
    assert "of 2 jobs fell due up to" in out.splitlines()[0]
    assert "0 missing, 0 double, 6 overdue" in out.splitlines()[0] or "7 overdue" in out.splitlines()[0]
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [["Asleep", "overdue"]]
    assert err == ""
    assert run(["audit", "--database", url, "--output", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["clean"] is False
    assert {one["verdict"] for one in report["differences"]} == {"overdue", "pending"}
    assert report["counts"]["missing"] == 0


def test_a_terminal_sees_how_far_it_is(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_snapshot, "_JOBS", 1)
    monkeypatch.setattr(Bar, "__call__", telling := mock.Mock())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    run(["audit", "--database", url])
    assert telling.call_args_list[0].args[:2] == (1, 2)
    assert telling.call_args_list[0].args[2].startswith("1 of 2 jobs, 1")
