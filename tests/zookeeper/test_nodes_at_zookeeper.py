"""`sexton scheduler` at a ZooKeeper with a login: what it shows of it, and what it keeps to itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.cluster_views import NodeView
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from tests.support.elections import LONG
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

PASSWORD = "opensesame"  # noqa: S105 - of a user that lives for one test


@pytest.fixture
def store(postgres_ledger: str) -> Iterator[Store]:
    opened = open_store(StoreOptions(postgres_ledger))
    yield opened
    opened.close()


def test_a_node_reports_the_servers_it_sees_and_its_login_is_nowhere_to_be_read(
    own_zookeeper_server: ZooKeeperServer, postgres_ledger: str, store: Store, processes: ProcessGroup, tmp_path: Path
) -> None:
    login, database = tmp_path / "login", tmp_path / "database"
    login.write_text(f"sexton:{PASSWORD}\n")
    database.write_text(f"{postgres_ledger}\n")
    node = processes.sexton(
        *("scheduler", "--coordinator", f"zookeeper://{own_zookeeper_server.hosts}/locked", "--name", "node-1"),
        env={"SEXTON_DATABASE_FILE": str(database), "SEXTON_COORDINATOR_LOGIN_FILE": str(login)},
        fresh=True,  # /proc is to show its own arguments
    )

    def reported() -> list[NodeView]:
        return [
            seen
            for seen in store.reads.nodes()
            if [server.state for server in seen.coordinator_servers] == ["standalone"] and seen.confirmation
        ]

    (view,) = eventually(reported, LONG, f"the node leads and reports its server: {node.report()}")
    assert [server.address for server in view.coordinator_servers] == [own_zookeeper_server.hosts]
    assert view.confirmation == "confirmed"
    assert view.coordinator_status.startswith("session 0x")
    assert view.coordinator_status.endswith(f", 6s, connected to {own_zookeeper_server.hosts}")
    own_zookeeper_server.kill()
    eventually(
        lambda: (
            [[server.state for server in seen.coordinator_servers] for seen in store.reads.nodes()] == [["refused"]]
        ),
        within=LONG,
        what="the node sees its server gone",
    )
    eventually(lambda: "refuses connections" in node.stderr(), LONG, f"the node says it: {node.report()}")
    shown = f"{store.terms.cluster()} {store.reads.nodes()} {node.report()}"
    arguments = Path(f"/proc/{node.pid}/cmdline").read_bytes().decode()
    for text in (shown, arguments):
        assert PASSWORD not in text
        assert "sexton:" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--coordinator-ca", "none.pem"), "coordinator_ca: none.pem cannot be read (No such file or directory)"),
        (("--coordinator-certificate", "a", "--coordinator-ca", "b"), "coordinator_key belong together"),
    ],
)
def test_certificates_that_cannot_be_used_end_a_node_at_once_with_a_sentence(
    processes: ProcessGroup, options: tuple[str, ...], said: str
) -> None:
    done = processes.run("scheduler", "--coordinator", "zookeeper://127.0.0.1:1/sexton", *options)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
