"""Listings of very many jobs, and of none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from sexton_tui.cli.main import run
from tests.support.leader_scene import create, definition
from tests.support.ledgers import make_ledger


def test_machines_get_all_jobs_and_a_table_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/many.db"
    make_ledger(url)
    store = open_store(StoreOptions(url))
    names = [f"job-{number:04}" for number in range(1_203)]
    create(store, *(definition(name=name) for name in names))
    store.close()
    assert run(["jobs", "-o", "jsonl", "--database", url]) == 0
    out, err = capsys.readouterr()
    assert ([json.loads(line)["job"] for line in out.splitlines()], err) == (names, "")
    assert run(["jobs", "-o", "json", "--limit", "700", "--database", url]) == 0
    assert [row["job"] for row in json.loads(capsys.readouterr().out)] == names[:700]
    assert run(["jobs", "--database", url]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + 1_000
    assert err == "showing 1000 of 1203; --limit 1203 shows all\n"
    assert run(["jobs", "--limit", "1203", "--database", url]) == 0
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (1 + 1_203, "")


def test_an_empty_cluster_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    make_ledger(url)
    assert run(["jobs", "--database", url]) == 0
    assert "sexton apply" in capsys.readouterr().err
    assert run(["status", "--database", url]) == 1
    assert "NO LEADER" in capsys.readouterr().out
