"""A term's leader that wrote nothing for a while and leads on: when that is told as a gap, on virtual nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.store.protocol import ChangeKind, JobChange
from sexton.store.tables import from_micros
from sexton.views import GapView
from sexton_tui.cli.main import run
from tests.support.ledgers import make_ledger
from tests.support.virtual_nodes import TWO, VirtualCluster, cron_job

SECOND = timedelta(seconds=1)
START = TWO - timedelta(minutes=10)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(START)
    yield made
    made.close()


def gaps(cluster: VirtualCluster) -> list[GapView]:
    return [gap for takeover in cluster.store.reads.takeovers() for gap in takeover.gaps]


def test_a_leader_frozen_for_longer_than_the_horizon_leads_on_and_its_gap_is_told(cluster: VirtualCluster) -> None:
    cluster.apply(cron_job("sync", "* * * * *"), cron_job("export", "55 1 * * *", "hold"))
    leader = cluster.node("one")
    cluster.run(10)
    leader.is_alive = False
    cluster.run(30)
    leader.is_alive = True  # in time: what was written ahead had not run out
    cluster.run(5)
    assert gaps(cluster) == []
    leader.is_alive = False
    cluster.run(720)
    leader.is_alive = True
    cluster.run(5)
    (gap,) = gaps(cluster)
    assert (leader.term, gap.term, gap.node) == (1, 1, "one")
    assert timedelta(seconds=720) <= gap.gap <= timedelta(seconds=722)
    assert START + 44 * SECOND <= gap.gap_from <= START + 45 * SECOND
    totals = gap.totals
    assert (totals.jobs, totals.missed, totals.fired, totals.merged, totals.held) == (2, 12, 1, 10, 1)
    (takeover,) = cluster.store.reads.takeovers()
    assert takeover.totals.missed == 0
    opened = cluster.store.reads.takeover(1, gap_until=gap.gap_until)
    assert [decision.job for decision in opened.decisions] == ["export", "sync"]


def test_the_command_line_tells_a_gap_between_the_terms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    cluster = VirtualCluster(START, url)
    cluster.apply(cron_job("sync", "* * * * *"))
    leader = cluster.node("one")
    cluster.run(10)
    leader.is_alive = False
    cluster.run(720)
    leader.is_alive = True
    cluster.run(5)
    cluster.close()

    def said(*command: str) -> str:
        assert run(["takeovers", *command, "--database", url]) == 0
        return capsys.readouterr().out

    capsys.readouterr()  # what the node logged
    header, gap, term = said().splitlines()
    assert gap.split()[:2] == term.split()[:2] == ["1", "one"]
    columns = [header.index(name) for name in ("taken_at", "ended_by", "gap ")]
    assert [gap[column:].split("  ")[0] for column in columns] == ["2026-03-02T01:50:10Z", "same leader", "12m"]
    ((told,),) = [record["gaps"] for record in json.loads(said("--output", "json"))]
    assert (told["node"], told["gap"], told["missed"], told["merged"]) == ("one", 720.0, 11, 10)
    assert "later, a gap of 12m00s from" in said("1")
    assert run(["explain", "sync", "2026-03-02T01:55:00Z", "--database", url]) == 0
    told = capsys.readouterr().out
    assert "one wrote no claims from 2026-03-02T01:50:10Z until 2026-03-02T02:02:10Z, for 12m" in " ".join(told.split())


def test_a_job_that_comes_late_by_itself_is_no_gap(cluster: VirtualCluster) -> None:
    (sync,) = cluster.apply(cron_job("sync", "* * * * *"))
    leader = cluster.node("one")
    cluster.run(5)
    assert leader.term is not None
    assert cluster.store.ticks.quarantine(leader.term, sync, "too slow")
    cluster.run(300)
    cluster.store.edits.edit([JobChange(ChangeKind.RESUME, job_id=sync)], "ops")
    cluster.run(5)
    assert gaps(cluster) == []
    (takeover,) = cluster.store.reads.takeovers()
    assert takeover.totals.missed > 0


def test_a_race_that_stood_still_tells_its_gap_from_its_last_sign_of_life(cluster: VirtualCluster) -> None:
    cluster.set(strategy="race")
    cluster.apply(cron_job("sync", "* * * * *"))
    first = cluster.node("one")
    cluster.run(30)
    assert gaps(cluster) == []
    ((last_beat,),) = cluster.rows("SELECT at FROM heartbeat")
    first.is_alive = False
    cluster.run(600)
    cluster.node("two")  # started anew, it had written nothing
    cluster.run(5)
    (gap,) = gaps(cluster)
    assert (gap.node, gap.gap_from) == ("the race", from_micros(last_beat))
    assert timedelta(minutes=10) <= gap.gap <= timedelta(minutes=10, seconds=5)
    assert gap.totals.missed > 5
