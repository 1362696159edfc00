"""Commands that only read, over the scene in a SQLite file at the host's time."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, delete, insert, update

from sexton.claims import State
from sexton.store import tables
from sexton_tui.cli.listings import logs
from sexton_tui.cli.main import run
from sexton_tui.cli.watching import WATCH_SECONDS
from tests.support import scene, troubles
from tests.support.ledgers import make_ledger

SILENT = timedelta(minutes=5)


@dataclass
class Cluster:
    """The scene's database, and `sexton` on it."""

    url: str
    engine: Engine
    now: datetime
    capture: pytest.CaptureFixture[str]

    def sexton(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self.capture.readouterr()
        code = run([*arguments, "--database", self.url])
        out, err = self.capture.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> Any:
        code, out, err = self.sexton(*arguments, "--output", "json")
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Cluster]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    engine = create_engine(url)
    now = datetime.now(UTC).replace(microsecond=0)
    with engine.begin() as connection:
        scene.seed(connection, now, hostile=True)
    yield Cluster(url, engine, now, capsys)
    engine.dispose()


def heal(cluster: Cluster) -> None:
    """Take away all that needs a human."""
    with cluster.engine.begin() as connection:
        connection.execute(delete(tables.proposals))
        connection.execute(delete(tables.claims).where(tables.claims.c.queue == "gpu"))
        connection.execute(update(tables.jobs).values(quarantined_at=None, quarantine_reason=None))
        later = cluster.now + timedelta(hours=1)
        connection.execute(update(tables.heartbeat).values(at=later))
        connection.execute(update(tables.workers).values(seen_at=later))
        connection.execute(update(tables.cursors).values(at=later))
        connection.execute(update(tables.claims).where(tables.claims.c.state == 0).values(available_at=later))


def test_status_is_0_when_nothing_needs_a_human_and_1_when_something_does(cluster: Cluster) -> None:
    code, out, err = cluster.sexton("status")
    assert (code, err) == (1, "")
    for text in ("queue gpu has no worker", "1 proposal held", "sched-2  term 41", "p50", "takeover", "jobs, 1 paused"):
        assert text in out
    assert len(out.splitlines()) < 45  # one screen
    assert f"in {cluster.url}\n" in out
    heal(cluster)
    code, out, err = cluster.sexton("status")
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"leader": None}, "NO LEADER"),
        ({"halted": True}, "HALTED"),
    ],
)
def test_status_is_1_without_a_leader_or_when_halted(cluster: Cluster, values: dict[str, Any], said: str) -> None:
    heal(cluster)
    with cluster.engine.begin() as connection:
        connection.execute(update(tables.cluster).values(**values))
    code, out, _ = cluster.sexton("status")
    assert code == 1
    assert said in out


def test_status_without_a_leader_says_where_it_looked(cluster: Cluster) -> None:
    with cluster.engine.begin() as connection:
        connection.execute(update(tables.cluster).values(leader=None))
    assert f"in {cluster.url}; --database or SEXTON_DATABASE names another cluster's\n" in cluster.sexton("status")[1]


def test_status_is_1_while_the_clock_is_in_doubt_and_0_while_degraded_and_says_both_first(cluster: Cluster) -> None:
    heal(cluster)
    later = cluster.now + timedelta(hours=1)
    with cluster.engine.begin() as connection:
        troubles.degraded(connection)
        connection.execute(update(tables.nodes).values(seen_at=later))
    code, out, _ = cluster.sexton("status")
    assert code == 0
    assert out.startswith("! DEGRADED: sched-2 took over by leader lease while ZooKeeper was away")
    assert "ZooKeeper 0 of 3 serve" in out
    _, out, _ = cluster.sexton("cluster")
    assert out.splitlines()[2].startswith("! DEGRADED")
    with cluster.engine.begin() as connection:
        troubles.clock_in_doubt(connection)
    code, out, _ = cluster.sexton("status")
    assert code == 1
    first, second, *_ = out.splitlines()
    assert first.startswith("!! CLOCK IN DOUBT: the database's clock jumped by +1h00m")
    assert second.startswith("! DEGRADED")


def test_status_tells_programs_the_word_the_alarms_and_the_servers(cluster: Cluster) -> None:
    with cluster.engine.begin() as connection:
        troubles.degraded(connection)
        connection.execute(update(tables.heartbeat).values(at=cluster.now + timedelta(hours=1)))
        connection.execute(update(tables.nodes).values(seen_at=cluster.now + timedelta(hours=1)))
    status = json.loads(cluster.sexton("status", "-o", "json")[1])
    for leadership in (status["leadership"], cluster.json("cluster")["leadership"]):
        assert leadership["word"] == "degraded"
        assert [alarm["is_urgent"] for alarm in leadership["alarms"]] == [False]
        assert leadership["session"] == "session 0x1a, 6s, not connected"
        assert [(server["address"], server["state"]) for server in leadership["servers"]] == [
            ("zk1:2181", "not serving"),
            ("zk2:2181", "refused"),
            ("zk3:2181", "refused"),
        ]


def test_a_watched_status_keeps_its_first_lines_on_a_small_terminal(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = time.sleep

    def stop(seconds: float) -> None:
        if seconds == WATCH_SECONDS:
            raise KeyboardInterrupt
        sleep(seconds)  # of a database that is busy, or of another thread

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=None: os.terminal_size((80, 24)))
    monkeypatch.setattr("time.sleep", stop)
    with cluster.engine.begin() as connection:
        connection.execute(update(tables.cluster).values(halted=True))
    code, out, _ = cluster.sexton("status", "--watch")
    assert code == 130
    assert len(out.splitlines()) < 24
    assert "HALTED" in out.splitlines()[0]


def test_status_is_1_when_a_tick_fell_due_undecided(cluster: Cluster) -> None:
    heal(cluster)
    with cluster.engine.begin() as connection:
        late = cluster.now - timedelta(hours=3)
        connection.execute(update(tables.cursors).where(tables.cursors.c.job_id == 2).values(at=late))
    code, out, _ = cluster.sexton("status")
    assert code == 1
    assert "1 job with undecided ticks" in out
    assert "minutely-sync" in out


def test_status_as_one_object(cluster: Cluster) -> None:
    code, out, _ = cluster.sexton("status", "-o", "json")
    status = json.loads(out)
    assert (code, status["is_healthy"], status["leader"], status["term"]) == (1, False, "sched-2", 41)
    assert any("gpu" in need["text"] and need["is_urgent"] for need in status["needs"])
    assert [node["name"] for node in status["nodes"]] == ["sched-1", "sched-2", "sched-3"]
    _, lines, _ = cluster.sexton("status", "-o", "jsonl")
    assert len(lines.splitlines()) == 1


def test_jobs_with_filters_and_one_opened(cluster: Cluster) -> None:
    assert len(cluster.json("jobs")) == 10
    assert [job["job"] for job in cluster.json("jobs", "--queue", "gpu")] == ["train-model"]
    assert [job["job"] for job in cluster.json("jobs", "--state", "paused")] == ["backup-db"]
    assert [job["job"] for job in cluster.json("jobs", "--find", "sync", "--limit", "1")] == ["minutely-sync"]
    assert cluster.json("jobs", "backup-db")["pauses"][0]["why"] == "storage moves tonight"
    code, out, _ = cluster.sexton("jobs", "backup-db")
    assert code == 0
    assert "ana: storage moves tonight" in out
    code, _, err = cluster.sexton("jobs", "backup-database")
    assert (code, err) == (1, "sexton: there is no job 'backup-database'; near it: backup-db\n")
    assert cluster.sexton("jobs", "--state", "tired")[0] == 2


def test_ticks_interleave_claims_skips_and_those_to_come(early_in_a_minute: None, cluster: Cluster) -> None:
    rows = cluster.json("ticks", "minutely-sync", "--limit", "500")
    ticks = [row["tick"] for row in rows]
    assert ticks == sorted(ticks, reverse=True)
    assert [row["kind"] for row in rows[:6]] == ["upcoming"] * 4 + ["ahead", "claim"]
    assert [row["state"] for row in rows[3:5]] == ["to come", "claimed"]
    (skip,) = [row for row in rows if row["kind"] == "skip"]
    assert (skip["state"], skip["count"]) == ("merged", 12)
    assert len(cluster.json("ticks", "minutely-sync", "--limit", "3", "--upcoming", "0")) == 3
    ready = cluster.json("ticks", "minutely-sync", "--state", "ready")
    assert {row["state"] for row in ready} <= {"claimed", "ready"}
    assert ready[0]["state"] == "claimed"
    before = rows[8]["tick"]
    assert cluster.json("ticks", "minutely-sync", "--before", before, "--limit", "1")[0]["tick"] == rows[9]["tick"]


def test_claims_written_ahead_take_no_place_of_what_was_decided(cluster: Cluster) -> None:
    with cluster.engine.begin() as connection:
        for minutes in range(2, 40):
            tick = cluster.now.replace(second=0) + timedelta(minutes=minutes)
            connection.execute(insert(tables.claims).values(**scene._claim(2, tick, State.READY)))
    rows = cluster.json("ticks", "minutely-sync", "--limit", "5")
    assert [row["kind"] for row in rows] == ["ahead"] * 5 + ["claim"] * 5


def test_no_tick_in_a_state_is_not_no_tick_at_all(cluster: Cluster) -> None:
    assert cluster.sexton("ticks", "minutely-sync", "--state", "held") == (0, "", "no tick of minutely-sync is held\n")


def test_a_run_that_awaits_its_next_try_is_no_ready_one(cluster: Cluster) -> None:
    with cluster.engine.begin() as connection:
        connection.execute(update(tables.runs).where(tables.runs.c.outcome == State.FAILED).values(outcome=State.READY))
    rows = cluster.json("runs", "--job", "sync-eu", "--state", "to_retry")
    assert {row["state"] for row in rows} == {"to_retry"}
    code, _, err = cluster.sexton("runs", "--state", "ready")
    assert code == 2
    assert "to_retry" in err


def test_runs_list_what_runs_and_what_ran(cluster: Cluster) -> None:
    rows = cluster.json("runs", "--limit", "5")
    assert [row["state"] for row in rows[:3]] == ["running"] * 3
    assert len(rows) == 5
    assert {row["state"] for row in cluster.json("runs", "--state", "running")} == {"running"}
    failed = cluster.json("runs", "--state", "failed", "--job", "SYNC-EU")
    assert {row["job"] for row in failed} == {"sync-eu"}
    assert all(row["exit_code"] == 7 for row in failed)
    assert {row["job"] for row in cluster.json("runs", "--queue", "reports")} == {"weekly-report"}
    assert cluster.sexton("runs", "--job", "nobody")[0] == 1
    assert cluster.sexton("runs", "--state", "tired")[0] == 2


def test_logs_print_the_output_escaped_and_as_it_was_written_where_that_is_asked_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = cluster.sexton("logs", "sync-eu", "--stream", "stderr")
    assert (code, out) == (0, "connection refused\n")
    code, out, _ = cluster.sexton("logs", "sync-eu")
    assert out == "connecting to db-eu\n\\x1b[31mretry\\x1b[0m 1\nretry 2\nconnection refused\n"
    code, out, _ = cluster.sexton("logs", "sync-eu", "--raw")
    assert out == "connecting to db-eu\n\x1b[31mretry\x1b[0m 1\nretry 2\nconnection refused\n"
    code, out, _ = cluster.sexton("logs", "sync-eu", "--label")
    assert out.splitlines()[-2:] == ["stdout | retry 2", "stderr | connection refused"]
    tick = cluster.json("runs", "--job", "sync-eu", "--limit", "3")[-1]["tick"]
    assert cluster.json("logs", "sync-eu", tick)["run"]["scheduled_at"] == tick
    code, _, err = cluster.sexton("logs", "sync-eu", tick, "--attempt", "2")
    assert code == 1
    assert "try 2" in err
    code, _, err = cluster.sexton("logs", "weekly-report", "--attempt", "1")
    assert code == 1
    assert "has ended" in err
    monkeypatch.setattr(logs, "ANSWER_SECONDS", 0.2)
    code, _, err = cluster.sexton("logs", "nightly-billing")  # it runs on a worker that is not there
    assert code == 1
    assert "worker-1 did not tell" in err


def test_logs_are_cleaned_on_a_terminal(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, out, _ = cluster.sexton("logs", scene.HOSTILE_NAME)
    assert code == 0
    assert "\\x1b]0;owned\\x07" in out
    assert not any(character in out for character in "\x1b\x07\u202e")


def test_takeovers_tell_gap_and_decisions_with_reasons(cluster: Cluster) -> None:
    newest = cluster.json("takeovers")[0]
    assert (newest["term"], newest["predecessor_ended"], newest["gap"]) == (41, "vanished", 760.04)
    assert (newest["missed"], newest["fired"], newest["merged"], newest["held"]) == (17, 2, 12, 2)
    decisions = cluster.json("takeovers", "41")["decisions"]
    assert "latest: 02:13:00 fired, 12 merged into it" in [decision["reason"] for decision in decisions]
    code, out, _ = cluster.sexton("takeovers", "41")
    assert code == 0
    assert "sched-2 took over from sched-1, which vanished" in out
    assert "hold: older than grace 60s, waits for an operator" in out
    assert cluster.sexton("takeovers", "7")[0] == 1


def test_cluster_workers_queues_and_events(cluster: Cluster) -> None:
    told = cluster.json("cluster")
    assert (told["leader"], [node["role"] for node in told["nodes"]]) == ("sched-2", ["follower", "leader", "follower"])
    assert "term 41" in cluster.sexton("cluster")[1]
    assert [worker["name"] for worker in cluster.json("workers")] == ["worker-1", "worker-2"]
    queues = {queue["name"]: queue for queue in cluster.json("queues")}
    assert (queues["gpu"]["due"], queues["gpu"]["workers"]) == (3, 0)
    assert [event["action"] for event in cluster.json("events", "--action", "job.p")] == ["job.paused"]
    assert len(cluster.json("events", "--limit", "2")) == 2
    assert [event["actor"] for event in cluster.json("events", "--job", "sync-eu")] == ["ana"]


def test_workers_say_who_serves_who_drains_and_who_fell_silent(cluster: Cluster) -> None:
    rows = tables.workers
    with cluster.engine.begin() as connection:
        connection.execute(update(rows).where(rows.c.name == "worker-1").values(seen_at=cluster.now - SILENT))
        connection.execute(
            update(rows).where(rows.c.name == "worker-2").values(seen_at=cluster.now + SILENT, draining=True)
        )
    assert {worker["name"]: worker["state"] for worker in cluster.json("workers")} == {
        "worker-1": "silent",
        "worker-2": "drains",
    }
    with cluster.engine.begin() as connection:
        connection.execute(update(rows).values(seen_at=cluster.now + SILENT, draining=False))
    _, out, _ = cluster.sexton("workers")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["worker", "state"],
        ["worker-1", "serves"],
        ["worker-2", "serves"],
    ]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit --from 2026-03-02T00:00:00Z --to 2026-03-01T00:00:00Z", "is not before --to"),
        ("audit --from 9998-01-01T00:00:00Z", "is still to come"),
        ("audit --from 0001-01-01T00:00:00+14:00", "outside the years 1 to 9999"),
        ("ticks minutely-sync --before 9999-12-31T23:59:59-14:00", "outside the years 1 to 9999"),
        ("takeovers 99999999999999999999999", "less than or equal to 9223372036854775807"),
        ("jobs --limit 99999999999999999999999", "less than or equal to 10000000"),
    ],
)
def test_ranges_and_numbers_that_cannot_be_are_refused_with_a_sentence(
    cluster: Cluster, command: str, said: str
) -> None:
    code, out, err = cluster.sexton(*command.split())
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "jobs",
        "ticks minutely-sync",
        "runs",
        "takeovers",
        "takeovers 41",
        "cluster",
        "workers",
        "queues",
        "events",
    ],
)
def test_no_table_lets_a_stored_text_act_on_the_terminal(cluster: Cluster, command: str) -> None:
    _, out, _ = cluster.sexton(*command.split())
    assert out
    assert not any(character in out for character in "\x1b\x07\u202e\x9b")


@pytest.mark.parametrize(
    "command", ["ticks gl-export", "runs", "takeovers", "events", "jobs", "workers", "queues", "history"]
)
def test_a_terminal_of_80_columns_shows_every_instant_whole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = cluster.sexton(*command.split())
    days = re.findall(r"\d{4}-\d\d-\S*", out)
    assert days
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z[,;]?", day) for day in days)
    assert max(map(len, out.splitlines())) <= 80


def test_events_tell_their_detail_in_words_and_to_programs_as_it_is(cluster: Cluster) -> None:
    assert '{"' not in cluster.sexton("events")[1]
    assert isinstance(cluster.json("events")[0]["detail"], dict)


@pytest.mark.parametrize("command", ["jobs", "runs", "takeovers", "workers", "queues", "events"])
def test_lines_of_json_are_objects_each(cluster: Cluster, command: str) -> None:
    _, out, _ = cluster.sexton(command, "-o", "jsonl")
    assert all(isinstance(json.loads(one), dict) for one in out.splitlines())
