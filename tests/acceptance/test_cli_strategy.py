"""`sexton strategy`: what it says and changes, and what `cluster`, `status` and `leader` say in a race."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sexton.races import RaceCounts
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.terms import ElectedBy, NodeReport, Strategy
from tests.support.command_line import CommandLine
from tests.support.leader_scene import set_columns
from tests.support.ledgers import make_ledger

NODE = NodeReport("n1", "here", "0.2.0", 7, "racer", None, "none: a race", 3, 0, 0, None, "2026b/1")


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A cluster that nobody leads, where `sexton` looks for it; nothing of it runs."""
    url = f"sqlite:///{tmp_path}/.sexton/sexton.db"
    make_ledger(url)
    opened = open_store(StoreOptions(url))
    opened.terms.enroll("database:", "2026b/1", "2026b", 1)
    yield opened
    opened.close()


def test_it_shows_and_switches_and_records_who(store: Store, command: CommandLine, tmp_path: Path) -> None:
    shown = command.run("strategy")
    assert (shown.returncode, shown.stdout) == (
        0,
        "leader, term 0: nobody leads yet: no node lives\n",
    )
    set_columns(f"sqlite:///{tmp_path}/.sexton/sexton.db", "cluster", {"id": 1}, predecessor="n1")
    assert command.run("strategy").stdout == "leader, term 0: nobody leads now, n1 did before: no node lives\n"
    switched = command.run("strategy", "race")
    assert (switched.returncode, switched.stdout) == (0, "race, term 1: 0 nodes race yet, of 0 nodes\n")
    assert store.terms.cluster().strategy is Strategy.RACE
    again = json.loads(command.run("strategy", "race", "--output", "json").stdout)
    assert (again["strategy"], again["term"], again["leader"], again["racers"]) == ("race", 1, None, [])
    (event,) = json.loads(command.run("events", "--action", "strategy", "--output", "json").stdout)
    assert "@" in event["actor"]
    assert event["detail"] == {"from": "leader", "to": "race", "term": 1}
    assert command.run("strategy", "sideways").returncode == 2


def test_settings_switch_it_too(store: Store, command: CommandLine) -> None:
    assert command.run("settings", "set", "strategy", "race").returncode == 0
    assert store.terms.cluster().strategy is Strategy.RACE


def test_a_race_is_shown_with_its_cost_and_without_an_alarm(store: Store, command: CommandLine) -> None:
    store.edits.set_setting("strategy", "race", "alice")
    for number in (1, 2):
        counts = RaceCounts(attempts=6, conflicts=3 * (number - 1), ticks=6 - 3 * (number - 1))
        store.terms.report(replace(NODE, name=f"n{number}", raced=counts))
    told = command.run("strategy")
    assert told.stdout == ("race, term 1: 2 nodes race\n1.3 attempts a tick: 12 attempts, 3 conflicts, 9 ticks\n")
    shown = command.run("cluster")
    assert "racing  2 nodes  term 1" in shown.stdout
    assert "1.3 attempts a tick: 12 attempts, 3 conflicts, 9 ticks" in shown.stdout
    assert [line.split()[:2] for line in shown.stdout.splitlines()[-2:]] == [["n1", "racer"], ["n2", "racer"]]
    record = json.loads(command.run("cluster", "--output", "json").stdout)
    assert record["race"] == {"attempts": 12, "conflicts": 3, "ticks": 9, "attempts_a_tick": 12 / 9}
    assert [(node["attempts"], node["ticks"]) for node in record["nodes"]] == [(6, 6), (6, 3)]
    status = command.run("status")
    assert (status.returncode, "NO LEADER" in status.stdout) == (0, False)


def test_who_leads_is_no_question_in_a_race(store: Store, command: CommandLine) -> None:
    store.terms.report(NODE)
    assert store.terms.take(0, "n1", ElectedBy.DATABASE) is not None
    store.edits.set_setting("strategy", "race", "alice")
    for arguments in (("leader", "resign"), ("leader", "force", "n1")):
        refused = command.run(*arguments)
        assert refused.returncode == 1
        assert "the strategy is race: nobody leads; `sexton strategy leader` has one node lead" in refused.stderr
