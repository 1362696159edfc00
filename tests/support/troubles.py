"""The scene in trouble: each function turns the seeded rows into those of one night an operator is called in."""

from __future__ import annotations

import json
from datetime import timedelta

from sqlalchemy import Connection, update

from sexton.store import tables
from tests.support.scene import NOW, SERVERS

_DOWN = (("zk1:2181", "not serving"), ("zk2:2181", "refused"), ("zk3:2181", "refused"))


def zookeeper_away(connection: Connection) -> None:
    """Two of three servers are down: no quorum; the leader goes on, unconfirmed."""
    nodes = tables.nodes
    connection.execute(
        update(nodes).values(
            coordinator_servers=json.dumps(_DOWN), coordinator_status="session 0x1a, 6s, not connected"
        )
    )
    connection.execute(update(nodes).where(nodes.c.role == "leader").values(confirmation="unconfirmed"))
    connection.execute(update(tables.heartbeat).values(confirmation="unconfirmed"))


def degraded(connection: Connection) -> None:
    """ZooKeeper is away, the leader was killed meanwhile, and a node took over by the leader lease."""
    zookeeper_away(connection)
    nodes = tables.nodes
    connection.execute(update(nodes).where(nodes.c.role == "leader").values(confirmation="degraded"))
    connection.execute(update(tables.heartbeat).values(confirmation="degraded"))
    connection.execute(update(tables.cluster).values(elected_by="database"))


def no_leader(connection: Connection) -> None:
    """The leader gives no sign of life."""
    nodes = tables.nodes
    silent = NOW - timedelta(seconds=14)
    connection.execute(update(tables.heartbeat).values(at=silent))
    connection.execute(update(nodes).where(nodes.c.role == "leader").values(seen_at=silent))


def halted(connection: Connection) -> None:
    """An operator has halted the cluster."""
    halt = {"halted_at": NOW - timedelta(minutes=4), "halted_by": "ana@ops-1", "halt_reason": "restoring a backup"}
    connection.execute(update(tables.cluster).values(halted=True, **halt))


def clock_in_doubt(connection: Connection) -> None:
    """The database's clock has jumped, and no second node has agreed yet."""
    nodes = tables.nodes
    connection.execute(update(nodes).where(nodes.c.role == "leader").values(clock_jump_ms=3_600_000))


def one_server_cut_off(connection: Connection) -> None:
    """One node cannot reach a server of ZooKeeper that the others reach."""
    nodes = tables.nodes
    seen = [(address, "silent" if address == "zk3:2181" else state) for address, state in SERVERS]
    connection.execute(update(nodes).where(nodes.c.name == "sched-3").values(coordinator_servers=json.dumps(seen)))
