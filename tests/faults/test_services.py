"""The tests' own servers and processes: what they promise to the tests that use them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from kazoo.client import KazooClient

from tests.support import reaper
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.waiting import NeverHappenedError, eventually
from tests.support.zookeeper import ZooKeeperServer

ROOT = Path(__file__).parents[2]


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


def test_a_killed_test_session_leaves_nothing_behind() -> None:
    session = """
import sys
from tests.support.postgres import PostgresServer
server = PostgresServer()
server.start()
print(server._process.pid, server._folder, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", session], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        pid, folder = process.stdout.readline().split()
        assert Path(folder).is_dir()
        backends = reaper.descendants(int(pid))
        process.send_signal(signal.SIGKILL)
    eventually(
        lambda: all(_is_gone(one) for one in (int(pid), *backends)) and not Path(folder).exists(),
        within=60,
        what="server and data folder are gone",
    )


def test_waiting_for_what_never_happens_says_what() -> None:
    with pytest.raises(NeverHappenedError, match="pigs fly"):
        eventually(lambda: False, within=0.05, what="pigs fly")


def _in_session(server: ZooKeeperServer, act: Callable[[KazooClient], object]) -> object:
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
