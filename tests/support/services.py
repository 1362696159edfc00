"""The services of a real cluster, for tests, trials, benches and `make cluster`: PostgreSQL and a ZooKeeper ensemble.

    with Services() as services:
        url = services.postgres.create_database()
        coordinator = services.coordinator("/sexton")       # zookeeper://127.0.0.1:p1,127.0.0.1:p2,127.0.0.1:p3/sexton
        services.zookeeper.leader().kill()                  # one server: kill, stop, freeze, thaw, start, restart
        services.zookeeper.wipe(); services.zookeeper.start()
        services.postgres.restart()

Everything listens on free ports of 127.0.0.1 and keeps its data in scratch folders, and nothing outlives the process
that made it, however that ends (tests/support/reaper). PostgreSQL never runs as root.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tests.support.at_once import all_at_once
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.postgres import PostgresServer


class Services:
    """`servers` ZooKeeper servers (see ZooKeeperEnsemble) and one PostgreSQL (see PostgresServer).

    What is done to all is done to all at the same time; singly they are `postgres`, `zookeeper` and its `servers`.
    """

    def __init__(
        self,
        *,
        servers: int = 3,
        zookeeper_config: Mapping[str, str] | None = None,
        zookeeper_properties: Mapping[str, str] | None = None,
        postgres_options: Mapping[str, str] | None = None,
        durable: bool = False,
        faked_clock: bool = False,
    ) -> None:
        self.zookeeper = ZooKeeperEnsemble(servers, config=zookeeper_config, properties=zookeeper_properties)
        self.postgres = PostgresServer(durable=durable, options=dict(postgres_options or {}), faked_clock=faked_clock)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    def coordinator(self, path: str = "/sexton") -> str:
        """Return SEXTON_COORDINATOR for a cluster that keeps its election under `path`."""
        return f"zookeeper://{self.zookeeper.hosts}{path}"

    def environment(self, database_url: str, path: str = "/sexton") -> dict[str, str]:
        """Return what Sexton's processes must be told to form a cluster on this database."""
        return {"SEXTON_DATABASE": database_url, "SEXTON_COORDINATOR": self.coordinator(path)}

    def start(self) -> None:
        """Return when all servers serve; ports and data of an earlier start are kept."""
        all_at_once(self.postgres.start, self.zookeeper.start)

    def stop(self) -> None:
        """End all in order; the data stays."""
        all_at_once(self.postgres.stop, self.zookeeper.stop)

    def kill(self) -> None:
        """End all with SIGKILL, as if the power failed; the data stays."""
        all_at_once(self.postgres.kill, self.zookeeper.kill)

    def freeze(self) -> None:
        """Stop (SIGSTOP) all: connections stay open and nothing answers."""
        self.zookeeper.freeze()
        self.postgres.freeze()

    def thaw(self) -> None:
        """Let all go on."""
        self.postgres.thaw()
        self.zookeeper.thaw()

    def restart(self) -> None:
        """Stop all, start all, on the same ports with the same data."""
        self.stop()
        self.start()

    def destroy(self) -> None:
        """End all and remove all data."""
        all_at_once(self.postgres.destroy, self.zookeeper.destroy)
