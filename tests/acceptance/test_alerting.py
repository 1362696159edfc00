"""Alerts and the dead man's switch as nodes send them: real processes, a real server, a real command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sexton.alert_settings import AlertSettings
from sexton.alerts import CLUSTER, AlertKind, Condition
from sexton.claims import Overlap
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, StepRequest, Store, StoreOptions
from sexton.targets import CommandTarget
from sexton.terms import Confirmation
from sexton_scheduler import alerting
from sexton_scheduler.alerting import Beacon, Teller, call_url, deliver_by, run_command
from sexton_scheduler.node_state import Leading, NodeState, NodeView
from tests.support.alert_receiver import AlertReceiver, dripping
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger
from tests.support.processes import ProcessGroup
from tests.support.virtual_nodes import VirtualClock
from tests.support.waiting import eventually

LIMIT = 90.0
SECOND = timedelta(seconds=1)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    make_ledger(url := f"sqlite:///{tmp_path}/ledger.db")
    return url


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    with closing(open_store(StoreOptions(sqlite_url))) as opened:
        yield opened


def raise_one(store: Store) -> None:
    turn = store.alerts.take_turn(timedelta(0))
    assert turn is not None
    assert store.alerts.raise_alert(Condition(AlertKind.NO_LEADER, CLUSTER, store.now(), "no node leads"), turn)


def recover_it(store: Store) -> None:
    turn = store.alerts.take_turn(timedelta(0))
    assert turn is not None
    assert store.alerts.recover(AlertKind.NO_LEADER, CLUSTER, turn)


def test_two_nodes_tell_of_a_late_tick_once_and_only_who_leads_beats(
    postgres_ledger: str, processes: ProcessGroup
) -> None:
    """The server fails at first; the leader freezes at last."""
    definition = JobDefinition(
        "often",
        ({"cron": "* * * * * *"},),
        CommandTarget(("true",)),
        missed=MissedRules(MissedPolicy.SKIP, grace=SECOND, start_within=SECOND),
        overlap=Overlap.ALLOW,
        owner="ops",
    )
    with AlertReceiver(refuses=1) as receiver, closing(open_store(StoreOptions(postgres_ledger))) as store:
        store.edits.set_setting("session", "2s", "tests")
        store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition)], "tests")
        nodes = {}
        for name in ("one", "two"):
            settings = {
                "SEXTON_ALERT": receiver.url("/hook/hidden"),
                "SEXTON_HEARTBEAT_URL": receiver.url(f"/{name}"),
                "SEXTON_HEARTBEAT_EVERY": "1s",
            }
            arguments = ("--database", postgres_ledger, "--coordinator", "database:", "scheduler", "--name", name)
            nodes[name] = processes.sexton(*arguments, name=name, env=settings)
            eventually(lambda: store.terms.cluster().leader, within=LIMIT, what="a node leads")
        eventually(lambda: receiver.taken, within=LIMIT, what="the late tick is told")
        first = receiver.taken[0]
        assert (first["kind"], first["state"], first["job"], first["owner"]) == ("late", "open", "often", "ops")
        assert first["cluster"] == store.terms.cluster().cluster_id
        assert [one["state"] for one in receiver.refused] == ["open"]
        worker = store.grants.register("w", "here", "0", 1, ["default"], 4)
        request = StepRequest(worker, ("default",), 100, timedelta(seconds=30), 10)

        def is_told_as_recovered() -> bool:
            store.grants.step(request)
            return "recovered" in [one["state"] for one in receiver.taken]

        eventually(is_told_as_recovered, within=LIMIT, what="its recovery, once ticks are granted", every=0.2)
        told = [one["state"] for one in receiver.taken if one["episode"] == first["episode"]]
        assert told == ["open", "recovered"]

        leader = str(store.terms.cluster().leader)
        (other,) = {"one", "two"} - {leader}
        eventually(lambda: f"/{leader}" in receiver.beats, within=LIMIT, what="the leader beats")
        assert f"/{other}" not in receiver.beats
        nodes[leader].freeze()
        eventually(lambda: f"/{other}" in receiver.beats, within=LIMIT, what="the other node took over, and beats")
        before = receiver.beats.count(f"/{leader}")
        eventually(lambda: receiver.beats.count(f"/{other}") >= 3, within=LIMIT, what="it goes on")
        assert receiver.beats.count(f"/{leader}") == before
        nodes[leader].thaw()
        assert not any("hidden" in node.stderr() for node in nodes.values())


def teller(store: Store, settings: AlertSettings) -> Teller:
    clock = VirtualClock(datetime.now(UTC))
    state = NodeState(clock.wakeup(), clock.wakeup())
    return Teller(lambda: store, clock, state, "n1", deliver_by(settings))


def test_a_command_gets_the_message_on_its_standard_input_and_no_shell_reads_it(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEXTON_DATABASE", "postgresql://sexton:hidden@db/sexton")
    code = "import os, sys; open(sys.argv[1], 'a').write(sys.stdin.read()); sys.exit('SEXTON_DATABASE' in os.environ)"
    told = tmp_path / "told; touch no"
    one = teller(sqlite_store, AlertSettings(alert_command=(sys.executable, "-c", code, str(told))))
    assert not one.step(sqlite_store), "there is nothing to tell"
    raise_one(sqlite_store)
    assert one.step(sqlite_store)
    assert not one.step(sqlite_store)
    recover_it(sqlite_store)
    assert one.step(sqlite_store)
    messages = [json.loads(line) for line in told.read_text().splitlines()]
    assert [(message["state"], message["sentence"]) for message in messages] == [
        ("open", "no node leads"),
        ("recovered", "over, after 0s: no node leads"),
    ]
    assert messages[0]["since"] == messages[1]["since"]
    assert (messages[0]["job"], messages[0]["node"], messages[0]["recovered_at"]) == (None, "n1", None)


def test_who_cannot_be_told_is_tried_again_and_the_log_says_why_without_secrets(sqlite_store: Store) -> None:
    raise_one(sqlite_store)
    with capture_logs() as logged:
        assert teller(sqlite_store, AlertSettings(alert="http://127.0.0.1:1/hidden")).step(sqlite_store)
    (entry,) = logged
    assert (entry["event"], entry["error"], entry["again_in_seconds"]) == ("alert.not_told", "ConnectError", 5.0)
    assert "hidden" not in repr(logged)
    (view,) = sqlite_store.alerts.listed()
    assert (view.told_at, view.error, view.attempts) == (None, "ConnectError", 1)


def test_a_command_that_fails_is_told_in_a_few_words() -> None:
    message: dict[str, Any] = {"kind": "late"}
    assert run_command(("false",), message) == "the command exited with code 1"
    assert run_command(("/nonexistent/hidden",), message) == "the command cannot be started (No such file or directory)"


LEAVES_OTHERS = 'sleep 1000 & echo $! >> "$0"; setsid sleep 1000 & echo $! >> "$0"; echo end >> "$0"; sleep 1000'


def are_gone(pids: Path) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids.read_text().split()[:-1])


def test_what_a_command_starts_ends_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a session of its own."""
    pids = tmp_path / "pids"
    pids.touch()
    monkeypatch.setattr(alerting, "COMMAND_SECONDS", 3)
    assert run_command(("sh", "-c", LEAVES_OTHERS, str(pids)), {}) == "the command was ended after 3 s"
    assert pids.read_text().endswith("end\n")
    assert are_gone(pids)


def test_what_a_command_starts_ends_with_its_node(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    runner = (*alerting.COMMAND_RUNNER, "1000", "sh", "-c", LEAVES_OTHERS, str(pids))
    with subprocess.Popen(runner, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        eventually(lambda: pids.read_text().endswith("end\n"), within=LIMIT, what="all is started")
        process.stdin.close()  # as the kernel does when the node dies
        try:
            process.wait(LIMIT)
        finally:
            process.kill()
    assert are_gone(pids)


def test_a_receiver_whose_answer_never_ends_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of the whole, not of each read."""
    monkeypatch.setattr(alerting, "HTTP_SECONDS", 0.3)
    with dripping() as address:
        assert call_url(address, {}) == "no answer within 0.3 s"
        assert call_url(address) == "no answer within 0.3 s"


def test_an_answer_that_is_no_success_is_none() -> None:
    with AlertReceiver(refuses=1) as receiver:
        assert call_url(receiver.url("/"), {}) == "answered 500"
        assert call_url(receiver.url("/"), {}) is None
        assert call_url(receiver.url("/beat")) is None
        assert receiver.beats == ["/beat"]
    assert call_url("http://a:hidden/", {}) == "InvalidURL"


def beacon(answers: list[str | None]) -> tuple[VirtualClock, NodeState, Beacon]:
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    state = NodeState(clock.wakeup(), clock.wakeup())
    return clock, state, Beacon(clock, state, timedelta(seconds=60), lambda: answers.pop(0))


def test_a_node_beats_while_it_leads_and_its_loop_is_at_work() -> None:
    clock, state, one = beacon([])
    state.view = NodeView(jobs_read_at=clock.elapsed())
    assert not one.is_alive(), "it follows"
    state.lead(Leading(7, Confirmation.CONFIRMED))
    assert one.is_alive()
    clock.seconds += 31
    assert not one.is_alive(), "the loop hangs, or the database is away"
    state.view = NodeView(jobs_read_at=clock.elapsed())
    assert one.is_alive()
    state.view = NodeView(jobs_read_at=clock.elapsed(), clock_jump=timedelta(hours=1))
    assert not one.is_alive(), "it decides nothing by a clock in doubt"
    state.view = NodeView(jobs_read_at=clock.elapsed())
    state.supersede(7)
    assert not one.is_alive(), "another leads"
    state.follow()
    state.race(8)
    assert one.is_alive(), "a racer decides too"


def test_beats_that_fail_are_said_once_and_counted() -> None:
    _, _, one = beacon(["ConnectError", "answered 503", "ConnectError", None, None])
    with capture_logs() as logged:
        for _ in range(5):
            one.step()
    assert [entry["event"] for entry in logged] == ["heartbeat_url.failed", "heartbeat_url.answered"]
    assert logged[1]["failed"] == 3


def test_alerts_are_listed_and_status_names_them(sqlite_store: Store, sqlite_url: str, tmp_path: Path) -> None:
    line = CommandLine(tmp_path)
    assert line.run("alerts", "--database", sqlite_url).stderr == "no alert\n"
    raise_one(sqlite_store)
    listed = line.run("alerts", "--database", sqlite_url)
    assert listed.returncode == 1
    assert "no_leader" in listed.stdout
    assert "not yet" in listed.stdout
    assert "an alert is open: no node leads" in line.run("status", "--database", sqlite_url).stdout
    (row,) = json.loads(line.run("alerts", "--database", sqlite_url, "--output", "json").stdout)
    assert (row["state"], row["kind"], row["job"], row["sentence"]) == ("open", "no_leader", None, "no node leads")
    recover_it(sqlite_store)
    assert line.run("alerts", "--database", sqlite_url).returncode == 0
    assert line.run("alerts", "test", "--database", sqlite_url).returncode == 1
    tells = {"SEXTON_ALERT_COMMAND": f"tee '{tmp_path}/told'"}
    assert "told  yes" in line.run("alerts", "test", "--database", sqlite_url, env=tells).stdout
    assert json.loads((tmp_path / "told").read_text())["kind"] == "test"
    assert json.loads(line.run("alerts", "--open", "--database", sqlite_url, "--output", "json").stdout) == []
