"""A real ZooKeeper ensemble for tests: servers that know each other, killed and frozen one by one or all at once.

An ensemble keeps its ports, and its data until `wipe`. What is done to all is done to all at the same time.
A server is one of `servers`, a `ZooKeeperServer` with a life of its own: `ensemble.leader().kill()`.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.at_once import all_at_once
from tests.support.scratch import make_folder, remove_folder
from tests.support.waiting import NeverHappenedError, eventually
from tests.support.zookeeper import Ensemble, ZooKeeperServer

SERVES_SECONDS = 60
START_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class SavedState:
    """What an ensemble held at one moment, one folder for each server."""

    folder: Path

    def of(self, server: ZooKeeperServer) -> Path:
        return self.folder / str(server.number)


class ZooKeeperEnsemble:
    """`size` servers. `config` and `properties` are given to each (see ZooKeeperServer), and are each's to change."""

    def __init__(
        self,
        size: int = 3,
        *,
        tick_time: int = 500,
        config: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.servers = tuple(
            ZooKeeperServer(tick_time=tick_time, number=number, config=config, properties=properties)
            for number in range(1, size + 1)
        )
        self._saved: list[SavedState] = []
        self._has_ports = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    @property
    def hosts(self) -> str:
        """The addresses as clients write them: `127.0.0.1:port,127.0.0.1:port,...`."""
        return ",".join(server.hosts for server in self.servers)

    # ------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Have every server that does not run start, and return when all of them serve."""
        for attempt in range(1, START_ATTEMPTS + 1):
            is_first = not self._has_ports
            if is_first:
                self._draw_ports()
            self.launch()
            with contextlib.suppress(NeverHappenedError):
                eventually(self._all_serve_or_one_ended, within=SERVES_SECONDS, what="the ensemble serves")
                if all(server.is_running() for server in self.servers):
                    return
            if not is_first or attempt == START_ATTEMPTS:
                break
            self.destroy()  # a port was taken meanwhile: others
        tails = "\n".join(f"--- server {server.number} ---\n{server.log_tail()}" for server in self.servers)
        raise RuntimeError(f"the ensemble did not start on {self.hosts}; its logs end:\n{tails}")

    def launch(self) -> None:
        """Start the processes that do not run, without waiting."""
        for server in self.servers:
            if not server.is_running():
                server.launch()

    def wait_until_serving(self, fewest: int | None = None) -> None:
        """Return when this many servers (most of them by default) serve clients, one of them as the leader."""
        fewest = len(self.servers) // 2 + 1 if fewest is None else fewest

        def serves() -> bool:
            modes = [mode for mode in self.modes().values() if mode is not None]
            return len(modes) >= fewest and "leader" in modes

        eventually(serves, within=SERVES_SECONDS, what=f"{fewest} servers of {self.hosts} serve")

    def stop(self) -> None:
        """End every server with SIGTERM. The data stays."""
        all_at_once(*(server.stop for server in self.servers))

    def kill(self) -> None:
        """End every server with SIGKILL. The data stays."""
        all_at_once(*(server.kill for server in self.servers))

    def freeze(self) -> None:
        """Stop (SIGSTOP) every server that runs: connections stay open and nothing answers."""
        for server in self.servers:
            if server.is_running():
                server.freeze()

    def thaw(self) -> None:
        """Let every frozen server go on."""
        for server in self.servers:
            if server.is_running():
                server.thaw()

    def restart(self) -> None:
        """Stop all, start all, on the same ports with the same data."""
        self.stop()
        self.start()

    def destroy(self) -> None:
        """End every server and remove all data."""
        all_at_once(*(server.destroy for server in self.servers))
        for saved in self._saved:
            remove_folder(saved.folder)
        self._saved.clear()
        self._has_ports = False

    # ------------------------------------------------------------------------------------------- data

    def wipe(self) -> None:
        """End every server and forget every znode and session. `start` begins an empty ensemble on the same ports."""
        all_at_once(*(server.wipe for server in self.servers))

    def save(self) -> SavedState:
        """Copy what every server has on its disk now, while they run: a backup to come back to."""
        saved = SavedState(make_folder("ensemble"))
        self._saved.append(saved)
        for server in self.servers:
            shutil.copytree(server.data, saved.of(server))
        return saved

    def restore(self, saved: SavedState) -> None:
        """End every server and put the data back as it was saved. `start` goes on from there."""
        self.wipe()
        for server in self.servers:
            shutil.copytree(saved.of(server), server.data)

    # ----------------------------------------------------------------------------------------- asking

    def modes(self) -> dict[int, str | None]:
        """What each server is, by its number: `leader`, `follower`; None for one that does not serve."""
        return {server.number: server.mode() if server.is_running() else None for server in self.servers}

    def leader(self) -> ZooKeeperServer:
        """The server that leads the ensemble, once one does."""

        def leading() -> list[ZooKeeperServer]:
            return [server for server in self.servers if server.is_running() and server.mode() == "leader"]

        return eventually(leading, within=SERVES_SECONDS, what=f"one of {self.hosts} leads")[0]

    def followers(self) -> tuple[ZooKeeperServer, ...]:
        """The servers that follow now."""
        modes = self.modes()
        return tuple(server for server in self.servers if modes[server.number] == "follower")

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of every server's log."""
        return "\n".join(f"--- server {server.number} ---\n{server.log_tail(lines)}" for server in self.servers)

    # ----------------------------------------------------------------------------------------- inside

    def _draw_ports(self) -> None:
        members = Ensemble.of(len(self.servers))
        for server in self.servers:
            server.ensemble = members
        self._has_ports = True

    def _all_serve_or_one_ended(self) -> bool:
        if not all(server.is_running() for server in self.servers):
            return True
        return all(server.mode() is not None for server in self.servers)
