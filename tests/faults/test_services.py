"""The tests' own servers and processes: what they promise to the tests that use them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from kazoo.client import KazooClient

from tests.screens.test_console_hang import OnTerminal
from tests.support import reaper
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.waiting import NeverHappenedError, eventually
from tests.support.zookeeper import ZooKeeperServer

ROOT = Path(__file__).parents[2]

# The terminal on standard input becomes the session's own: closing it hangs the session up, as closing a window does.
_WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def test_a_killed_and_a_frozen_postgres_keep_their_data(own_postgres_server: PostgresServer) -> None:
    server = own_postgres_server
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        server.freeze()
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            psycopg.connect(server.conninfo(), connect_timeout=2)
        server.thaw()
        connection.execute("INSERT INTO kept VALUES (1)")
        connection.execute("CHECKPOINT")
    port = server.port
    server.kill()
    server.start()
    assert server.port == port
    with psycopg.connect(server.conninfo()) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_every_postgres_url_is_an_empty_database_of_its_own(postgres_server: PostgresServer, postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_server.conninfo(name)) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)
    copy = postgres_server.create_database(template=name)
    assert copy != postgres_url
    postgres_server.drop_database(copy)


def test_zookeeper_keeps_its_znodes_over_a_kill_and_loses_them_when_wiped(
    own_zookeeper_server: ZooKeeperServer,
) -> None:
    server = own_zookeeper_server
    _in_session(server, lambda client: client.create("/kept"))
    server.kill()
    server.start()
    assert _in_session(server, lambda client: client.exists("/kept")) is not None
    server.freeze()
    assert server.mode() is None
    server.thaw()
    server.wipe()
    server.start()
    assert _in_session(server, lambda client: client.exists("/kept")) is None


def test_a_process_group_leaves_no_orphan(tmp_path: Path) -> None:
    orphan = "import subprocess, sys; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    with ProcessGroup(tmp_path) as group:
        process = group.start([sys.executable, "-c", orphan])
        assert process.wait(within=60) == 0
        pid = int(process.stdout())
        os.kill(pid, 0)
    eventually(lambda: _is_gone(pid), within=60, what="the orphan is gone")


def test_an_ensemble_outlives_its_leader_and_goes_back_to_what_was_saved() -> None:
    with ZooKeeperEnsemble() as ensemble:
        _in_session(ensemble, lambda client: client.create("/early"))
        saved = ensemble.save()
        _in_session(ensemble, lambda client: client.create("/late"))
        lost = ensemble.leader()
        lost.kill()
        ensemble.wait_until_serving()
        assert ensemble.leader() is not lost
        assert _in_session(ensemble, lambda client: client.exists("/late")) is not None
        ensemble.start()
        assert sorted(str(mode) for mode in ensemble.modes().values()) == ["follower", "follower", "leader"]
        hosts = ensemble.hosts
        ensemble.restore(saved)
        ensemble.start()
        assert ensemble.hosts == hosts
        assert _in_session(ensemble, lambda client: sorted(client.get_children("/"))) == ["early", "zookeeper"]
        ensemble.wipe()
        ensemble.start()
        assert _in_session(ensemble, lambda client: client.get_children("/")) == ["zookeeper"]


def test_a_postgres_with_a_clock_of_its_own_reads_what_the_test_sets() -> None:
    with PostgresServer(faked_clock=True) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            before = _database_time(connection)
            server.set_clock(timedelta(hours=2))
            assert timedelta(hours=2) <= _database_time(connection) - before < timedelta(hours=3)
            server.set_clock(timedelta(hours=-2))
            assert _database_time(connection) < before - timedelta(hours=1)
        server.restart()
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            assert _database_time(connection) < before - timedelta(hours=1)
        pid = server.pid
        server.kill()
        assert not list(Path("/dev/shm").glob(f"*faketime*_{pid}"))  # noqa: S108 - where libfaketime keeps what it shares


def test_a_killed_test_session_leaves_nothing_behind() -> None:
    session = """
import sys
from tests.support.services import Services
services = Services()
services.start()
servers = [services.postgres, *services.zookeeper.servers]
print(*[server.pid for server in servers], *[server._folder for server in servers], flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", session], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        pids, folders = [int(word) for word in words[:4]], [Path(word) for word in words[4:]]
        assert all(folder.is_dir() for folder in folders)
        started = [*pids, *(below for pid in pids for below in reaper.descendants(pid))]
        process.send_signal(signal.SIGKILL)
    eventually(
        lambda: all(map(_is_gone, started)) and not any(folder.exists() for folder in folders),
        within=60,
        what="servers and data folders are gone",
    )


def test_make_cluster_without_a_terminal_ends_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "cluster.env"
    with ProcessGroup(tmp_path) as group:
        cluster = group.start([sys.executable, "-m", "tests.support.cluster", str(file)], env={"PYTHONPATH": str(ROOT)})
        eventually(lambda: " added" in cluster.stderr(), within=200, what="the cluster is up")
        told = file.read_text()
        folder = Path(re.findall(r"Logs of nodes and workers: (.*)/.sexton/logs", told)[0])
        shown = subprocess.run(
            ["bash", "-c", f". {file}; services kill zookeeper 2 && services show && sexton status"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        ).stdout
        started = [cluster.pid, *reaper.descendants(cluster.pid)]
        cluster.signal(signal.SIGTERM)
        assert cluster.wait(within=120) == 0, cluster.report()
        assert re.search(r"zookeeper 2  127.0.0.1:\d+  not running", shown)
        assert re.search(r"^cluster [0-9a-f]{32} ", shown, re.MULTILINE)
        assert len(started) > 10
        eventually(lambda: all(map(_is_gone, started)), within=60, what="every process is gone")
        assert not folder.exists()
        assert not file.exists()
        assert "killed" not in cluster.stderr()


def test_make_cluster_ends_with_all_it_started_when_its_terminal_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "cluster.env"
    arguments = [sys.executable, "-c", _WITH_TERMINAL, sys.executable, "-m", "tests.support.cluster", str(file)]
    arguments += ["--schedulers", "1", "--workers", "1"]
    with OnTerminal(arguments, program=None) as cluster:
        eventually(lambda: b"Needs a human" in cluster.drawn, within=200, what="the console is drawn")
        started = [cluster.process.pid, *reaper.descendants(cluster.process.pid)]
        assert len(started) > 10
        cluster.close()
        cluster.process.wait(120)
        eventually(lambda: all(map(_is_gone, started)), within=60, what="every process is gone")
        assert not file.exists()


def test_waiting_for_what_never_happens_says_what() -> None:
    with pytest.raises(NeverHappenedError, match="pigs fly"):
        eventually(lambda: False, within=0.05, what="pigs fly")


def _database_time(connection: psycopg.Connection) -> datetime:
    row = connection.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    assert isinstance(row[0], datetime)
    return row[0]


def _in_session(server: ZooKeeperServer | ZooKeeperEnsemble, act: Callable[[KazooClient], object]) -> object:
    client = KazooClient(hosts=server.hosts)
    client.start()
    try:
        return act(client)
    finally:
        client.stop()
        client.close()


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
