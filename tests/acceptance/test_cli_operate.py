"""What an operator does to a cluster, by the commands and as the audit log has it."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def database(tmp_path: Path, command: CommandLine) -> Path:
    """A database with one job, where `sexton` looks for it when nothing else is said."""
    path = tmp_path / ".sexton" / "sexton.db"
    make_ledger(f"sqlite:///{path}")
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs:\n  bell: {schedule: '0 5 * * *', command: [echo, ding]}\n")
    assert command.run("apply", "jobs.yaml", "--yes").returncode == 0
    return path


def events_of(database: Path) -> list[tuple[str, str]]:
    engine = sqlalchemy.create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT actor, action FROM events ORDER BY event_id")).all()
    engine.dispose()
    return [(row.actor, row.action) for row in rows]


def test_trigger_writes_one_claim_a_request(database: Path, command: CommandLine) -> None:
    first = json.loads(command.run("trigger", "BELL", "--request-id", "r1", "-o", "json").stdout)
    again = json.loads(command.run("trigger", "bell", "--request-id", "r1", "-o", "json").stdout)
    other = json.loads(command.run("trigger", "bell", "-o", "json").stdout)
    assert (first["name"], first["existed"], again["existed"], other["existed"]) == ("bell", False, True, False)
    assert first["scheduled_at"] == again["scheduled_at"] != other["scheduled_at"]


def test_a_trigger_says_that_no_worker_serves_its_queue(database: Path, command: CommandLine) -> None:
    done = command.run("trigger", "bell")
    assert done.returncode == 0
    assert "no worker serves queue default now" in done.stderr
    with closing(open_store(StoreOptions(f"sqlite:///{database}"))) as store:
        store.grants.register("other", "vm", "0.1.0", 1, ["gpu"], 4)
        assert "no worker serves queue default now" in command.run("trigger", "bell").stderr
        store.grants.register("serves", "vm", "0.1.0", 2, ["default", "gpu"], 4)
        assert command.run("trigger", "bell").stderr == ""


def test_pause_and_resume_are_said_once_each(database: Path, command: CommandLine) -> None:
    paused = command.run("pause", "bell", "--reason", "the rope is worn")
    assert (paused.returncode, paused.stdout[:11]) == (0, "bell paused")
    assert command.run("pause", "bell", "--reason", "again").returncode == 1
    assert command.run("resume", "bell").returncode == 0
    assert command.run("resume", "bell").returncode == 1


def test_a_trigger_of_a_paused_job_says_that_it_is_paused(database: Path, command: CommandLine) -> None:
    assert "paused" not in command.run("trigger", "bell").stderr
    assert command.run("pause", "bell", "--reason", "x").returncode == 0
    done = command.run("trigger", "bell")
    assert (done.returncode, done.stdout[:14]) == (0, "bell triggered")
    assert "bell is paused, and stays so" in done.stderr


@pytest.mark.parametrize("arguments", [("trigger", "BELL"), ("next", "--job", "bell"), ("resume", "bell")])
def test_a_retired_job_is_said_to_be_retired(database: Path, command: CommandLine, arguments: tuple[str, ...]) -> None:
    (command.folder / "none.yaml").write_text("version: 1\njobs: {}\n")
    assert command.run("apply", "none.yaml", "--prune", "--yes").returncode == 0
    done = command.run(*arguments)
    assert done.returncode == 1
    assert "the job bell is retired; " in done.stderr


def test_pause_wants_a_reason_on_one_line(database: Path, command: CommandLine) -> None:
    assert command.run("pause", "bell").returncode == 2
    assert command.run("pause", "bell", "--reason", " ").returncode == 2
    assert command.run("pause", "bell", "--reason", "a\x1b[31m").returncode == 1


def test_who_acts_is_in_the_audit_log(database: Path, command: CommandLine) -> None:
    done = command.run("pause", "bell", "--reason", "x", env={"SUDO_USER": "mary"})
    assert done.returncode == 0, done.stderr
    actor, action = events_of(database)[-1]
    assert actor.startswith(f"mary/{pwd.getpwuid(os.geteuid()).pw_name}@")
    assert "pause" in action


@pytest.mark.parametrize("arguments", [("trigger", "bel"), ("pause", "bel", "--reason", "x"), ("next", "--job", "bel")])
def test_an_unknown_job_is_exit_1(database: Path, command: CommandLine, arguments: tuple[str, ...]) -> None:
    done = command.run(*arguments)
    assert done.returncode == 1
    assert "bel" in done.stderr


@pytest.mark.parametrize(("key", "value"), [("retention", "1d"), ("retention.max_runs", "10")])
def test_a_setting_that_nothing_acts_on_yet_is_refused_by_name(
    database: Path, command: CommandLine, key: str, value: str
) -> None:
    refused = command.run("settings", "set", key, value)
    assert refused.returncode == 1
    assert f"{key}: " in refused.stderr
    assert "a later version" in refused.stderr


def test_settings_are_checked_against_each_other(database: Path, command: CommandLine) -> None:
    assert command.run("settings", "set", "horizon", "30s").returncode == 0
    assert command.run("settings", "get", "horizon").stdout == "30s\n"
    refused = command.run("settings", "set", "horizon", "7s")
    assert refused.returncode == 1
    assert "raise horizon" in refused.stderr
    assert command.run("settings", "set", "horizont", "7s").returncode == 1
    warned = command.run("settings", "set", "failover.database_after", "2m")
    assert (warned.returncode, warned.stdout) == (0, "failover.database_after is 2m\n")
    assert warned.stderr.startswith("warning: failover.database_after 2m is not shorter than horizon 30s")
    rows = json.loads(command.run("settings", "list", "-o", "json").stdout)
    assert {row["key"]: row["value"] for row in rows}["horizon"] == "30s"


def test_settings_alone_lists_them(database: Path, command: CommandLine) -> None:
    done = command.run("settings")
    assert (done.returncode, done.stdout) == (0, command.run("settings", "list").stdout)
    assert "horizon" in done.stdout


def test_a_folder_without_a_cluster_is_named_and_nothing_is_made_there(command: CommandLine) -> None:
    for arguments in (("status",), ("db", "check"), ("console",)):
        done = command.run(*arguments)
        assert done.returncode == 1
        assert "there is no .sexton/sexton.db here; call this where `sexton up` runs" in done.stderr
    assert list(command.folder.iterdir()) == []


def test_nobody_to_resign_is_exit_1(database: Path, command: CommandLine) -> None:
    done = command.run("leader", "resign")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nobody leads" in done.stderr


def test_a_job_s_ticks_come_from_the_cluster(database: Path, command: CommandLine) -> None:
    done = command.run("next", "--job", "bell", "--after", "2026-01-01T00:00:00Z", "-n", "1", "-o", "json")
    assert json.loads(done.stdout) == ["2026-01-01T05:00:00Z"]


def test_a_node_leads_is_asked_to_resign_and_stops_at_sigterm(database: Path, processes: ProcessGroup) -> None:
    node = processes.sexton("scheduler", "--name", "north")
    asked = []

    def is_asked() -> bool:
        done = processes.run("leader", "resign", "-o", "json")
        asked.append(done)
        return done.returncode == 0

    eventually(is_asked, 60, "a leader to ask")
    assert json.loads(asked[-1].stdout) == {"asked": "north"}
    node.signal(signal.SIGTERM)
    assert node.wait(within=60) == 0, node.report()


def test_ctrl_c_is_exit_130(processes: ProcessGroup) -> None:
    """Interrupted while it waits for a database that took the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        waiting = processes.sexton(
            "settings", "list", "--database", f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/x"
        )
        connection, _ = server.accept()
        with connection:
            waiting.signal(signal.SIGINT)
            assert (waiting.wait(within=60), waiting.stderr()) == (130, "")
