"""Filters of listings, over the scene in a SQLite file at the host's time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from sexton_tui.cli.main import run
from tests.support import scene
from tests.support.ledgers import make_ledger

List = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> List:
    """What a listing holds, as JSON."""
    make_ledger(url := f"sqlite:///{tmp_path}/ledger.db")
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection, datetime.now(UTC).replace(microsecond=0))
    engine.dispose()

    def call(*arguments: str) -> list[dict[str, Any]]:
        assert run([*arguments, "--database", url, "--output", "json"]) == 0, capsys.readouterr().err
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return rows

    return call


def test_runs_are_found_by_owner_and_tag_of_their_job(listed: List) -> None:
    of_job = {job["job"]: job for job in listed("jobs")}
    for option, key, value in (("--owner", "owner", "data"), ("--tag", "tags", "infra")):
        found = listed("runs", option, value, "--limit", "1000")
        meant = {name for name, job in of_job.items() if value in ([job[key]] if key == "owner" else job[key])}
        assert {one["job"] for one in found} <= meant
        everything = [one for one in listed("runs", "--limit", "1000") if one["job"] in meant]
        assert len(found) == len(everything) > 0


def test_what_runs_now_counts_for_the_limit(listed: List) -> None:
    assert len(listed("runs", "--limit", "1")) == 1
    assert [one["state"] for one in listed("runs", "--limit", "4")].count("running") == 3


def test_queues_are_found_by_name_and_by_who_serves_them(listed: List) -> None:
    every = listed("queues")
    assert [one["name"] for one in listed("queues", "--state", "unserved")] == ["gpu"]
    served = listed("queues", "--state", "served")
    assert {one["name"] for one in served} == {one["name"] for one in every if one["workers"]}
    assert [one["name"] for one in listed("queues", "list", "--queue", "gpu")] == ["gpu"]


def test_workers_are_found_by_queue_and_state(listed: List) -> None:
    assert {one["state"] for one in listed("workers", "--state", "serves")} == {"serves"}
    assert all("default" in one["queues"] for one in listed("workers", "--queue", "default"))
    assert listed("workers", "--queue", "gpu") == []


@pytest.mark.parametrize("listing", ["queues", "workers", "jobs"])
def test_a_state_that_there_is_not_is_named_with_those_that_there_are(
    listing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([listing, "--state", "tired"]) == 2
    assert "sexton: --state: 'tired' is no state of a" in capsys.readouterr().err
