"""`sexton halt`, `leader force` and `clock`: what they say, what they change, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy

from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.terms import Confirmation, ElectedBy, NodeReport
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually

LIMIT = 60.0
NODE = NodeReport("n1", "here", "0.2.0", 7, "leader", None, "", 0, 0, 0, None, "2026b/1")


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A cluster that n1 leads, where `sexton` looks for it; n2 follows, n3 has other inputs, n4 is silent."""
    url = f"sqlite:///{tmp_path}/.sexton/sexton.db"
    make_ledger(url)
    opened = open_store(StoreOptions(url))
    opened.terms.enroll("database:", "2026b/1", "2026b", 1)
    for name in ("n1", "n2", "n4"):
        opened.terms.report(replace(NODE, name=name))
    opened.terms.report(replace(NODE, name="n3", inputs_id="1999a/1"))
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE nodes SET seen_at = seen_at - 60000000 WHERE name = 'n4'"))
    engine.dispose()
    assert opened.terms.take(0, "n1", ElectedBy.DATABASE) is not None
    yield opened
    opened.close()


def test_halt_is_said_once_and_then_who_did_it(store: Store, command: CommandLine) -> None:
    first = command.run("halt", "--reason", "the disk is full")
    assert (first.returncode, first.stdout[:21]) == (0, "the cluster is halted")
    again = command.run("halt")
    assert again.returncode == 0
    assert "halted already, since 20" in again.stdout
    assert "@" in again.stdout
    assert ": the disk is full; " in again.stdout
    assert store.terms.cluster().halted
    status = command.run("status")
    assert status.returncode == 1
    assert "HALTED" in status.stdout


def test_a_lifted_halt_says_what_stood_and_lifting_none_says_so(store: Store, command: CommandLine) -> None:
    assert command.run("halt", "--lift").stdout == "the cluster is not halted; nothing was changed\n"
    command.run("halt", "--reason", "x")
    lifted = command.run("halt", "--lift")
    assert (lifted.returncode, lifted.stdout[:37]) == (0, "the halt is lifted (it stood since 20")
    assert not store.terms.cluster().halted


def test_halt_as_json(store: Store, command: CommandLine) -> None:
    first = json.loads(command.run("halt", "--reason", "x", "-o", "json").stdout)
    again = json.loads(command.run("halt", "-o", "json").stdout)
    assert (first["is_halted"], first["changed"], first["halt"]["reason"]) == (True, True, "x")
    assert (again["changed"], again["halt"]) == (False, first["halt"])
    lifted = json.loads(command.run("halt", "--lift", "-o", "json").stdout)
    assert (lifted["is_halted"], lifted["changed"]) == (False, True)


def test_halt_is_used_rightly(store: Store, command: CommandLine) -> None:
    assert command.run("halt", "--lift", "--reason", "x").returncode == 2
    assert command.run("halt", "--reason", "a\x1b[31m").returncode == 1
    assert command.run("halt", "--reason", "x" * 1001).returncode == 2
    assert not store.terms.cluster().halted


def test_a_trigger_in_a_halted_cluster_says_that_it_waits(store: Store, command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs:\n  bell: {schedule: '0 5 * * *', command: [echo, ding]}\n")
    assert command.run("apply", "jobs.yaml", "--yes").returncode == 0
    command.run("halt")
    done = command.run("trigger", "bell")
    assert (done.returncode, done.stdout[:14]) == (0, "bell triggered")
    assert "the cluster is halted: this runs once" in done.stderr
    command.run("halt", "--lift")
    assert "halted" not in command.run("trigger", "bell").stderr


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("n9", "no node n9 was heard of"),
        ("n4", "node n4 was last heard of 6"),
        ("n3", "node n3 may not lead: its inputs are 1999a/1, the cluster's are 2026b/1"),
    ],
)
def test_a_node_that_could_not_lead_is_refused_with_those_that_could(
    store: Store, command: CommandLine, node: str, said: str
) -> None:
    done = command.run("leader", "force", node)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "these could lead: n1, n2" in done.stderr
    assert store.terms.cluster().forced_to is None


def test_who_leads_already_is_not_forced(store: Store, command: CommandLine) -> None:
    done = command.run("leader", "force", "n1")
    assert (done.returncode, done.stdout) == (0, "n1 leads already, term 1\n")
    assert store.terms.cluster().forced_to is None


def test_a_leader_that_is_not_confirmed_is_not_asked_to_resign(store: Store, command: CommandLine) -> None:
    store.terms.beat(1, Confirmation.UNCONFIRMED)
    done = command.run("leader", "resign")
    assert (done.returncode, done.stdout) == (1, "")
    assert "n1 is not asked to resign: it leads unconfirmed" in done.stderr
    assert "sexton leader force NODE" in done.stderr
    store.terms.beat(1, Confirmation.CONFIRMED)
    assert command.run("leader", "resign").returncode == 0


def test_a_force_is_lifted_while_its_node_lives(store: Store, command: CommandLine) -> None:
    assert command.run("leader", "force", "--lift").stdout == "no force stands; nothing was changed\n"
    store.edits.force_leader("n2", "alice")
    lifted = command.run("leader", "force", "--lift")
    assert (lifted.returncode, lifted.stdout[:29]) == (0, "the force to n2 is lifted: th")
    assert store.terms.cluster().forced_to is None
    assert command.run("leader", "force", "n2", "--lift").returncode == 2
    assert command.run("leader", "force").returncode == 2


def test_a_force_that_is_not_followed_is_exit_1_and_says_what_to_look_at(
    store: Store, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sexton_tui.cli.leader.WAIT_SECONDS", 0.2)
    done = command.run("leader", "force", "n2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "n2 does not lead after" in done.stderr
    assert "n1 leads, term 1, and the force stands" in done.stderr
    assert store.terms.cluster().forced_to == "n2"


def test_the_clock_is_shown_against_each_node_and_is_exit_1_while_one_doubts(
    store: Store, command: CommandLine
) -> None:
    calm = command.run("clock")
    assert calm.returncode == 0
    assert calm.stdout.startswith("database time 20")
    assert "n2" in calm.stdout
    assert "n4" not in calm.stdout
    refused = command.run("clock", "accept")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no node doubts" in refused.stderr
    store.terms.report(replace(NODE, clock_offset_ms=3_600_000, clock_jump_ms=3_600_000))
    doubting = command.run("clock")
    assert doubting.returncode == 1
    assert "in doubt at n1: " in doubting.stdout
    record = json.loads(command.run("clock", "-o", "json").stdout)
    assert record["is_in_doubt"] is True
    assert {node["node"]: node["clock_jump"] for node in record["nodes"]} == {"n1": 3600.0, "n2": None, "n3": None}
    done = command.run("clock", "accept")
    assert (done.returncode, done.stdout[:15]) == (0, "accepted for n1")
    assert store.terms.cluster().clock_accepts == 1


def test_a_node_is_forced_to_lead_and_the_old_leader_follows(tmp_path: Path, processes: ProcessGroup) -> None:
    """Two real nodes."""
    make_ledger(f"sqlite:///{tmp_path}/.sexton/sexton.db")
    store = open_store(StoreOptions(f"sqlite:///{tmp_path}/.sexton/sexton.db"))
    database = ("--database", f"sqlite:///{tmp_path}/.sexton/sexton.db")
    processes.sexton(*database, "scheduler", "--name", "one", name="one")
    eventually(lambda: store.terms.cluster().leader == "one", LIMIT, "one leads")
    processes.sexton(*database, "scheduler", "--name", "two", name="two")
    eventually(lambda: len(store.reads.nodes()) == 2, LIMIT, "both nodes report")

    def is_forced() -> bool:  # on a machine that takes more than the 10 s it waits, asked again
        done = processes.run(*database, "leader", "force", "two")
        return done.returncode == 0 and done.stdout.startswith("two leads")

    eventually(is_forced, LIMIT, "two is forced")
    state = store.terms.cluster()
    assert (state.leader, state.elected_by) == ("two", "forced")
    eventually(lambda: store.terms.cluster().forced_to is None, LIMIT, "the force is over")
    roles = {"one": "follower", "two": "leader"}
    eventually(lambda: {node.name: node.role for node in store.reads.nodes()} == roles, LIMIT, "one follows")
    assert store.terms.cluster().term == state.term
    store.close()
