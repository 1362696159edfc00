"""A real ZooKeeper server for tests, from Debian's jars, on a free port, with its data in a scratch folder.

A `ZooKeeperServer` is stopped, running or frozen; it keeps its port over stop, kill and start, and its data
until `wipe`. It stands alone unless it is given an `Ensemble`, whose members know each other's ports.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import freezing, reaper
from tests.support.class_archive import sharing
from tests.support.missing import MissingServerError
from tests.support.ports import free_port
from tests.support.scratch import make_folder, remove_folder
from tests.support.waiting import eventually

JARS = ("zookeeper.jar", "slf4j-simple.jar")
TLS_JARS = ("netty-codec.jar", "netty-resolver.jar")  # what TLS needs beside: libnetty-java, which zookeeper depends on
JAR_FOLDER = Path("/usr/share/java")
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
START_SECONDS = 60
STOP_SECONDS = 15
START_ATTEMPTS = 3


def find_jars() -> str:
    """Return the class path of Debian's ZooKeeper; zookeeper.jar's manifest pulls in the rest."""
    missing = [jar for jar in JARS if not (JAR_FOLDER / jar).exists()]
    if missing:
        raise MissingServerError(
            f"ZooKeeper's {' and '.join(missing)} not found in {JAR_FOLDER}; "
            "install Debian's package zookeeper: apt-get install zookeeper"
        )
    return ":".join(str(JAR_FOLDER / jar) for jar in (*JARS, *TLS_JARS))


def find_java() -> str:
    """Return the `java` program: the one on PATH, else the newest under /usr/lib/jvm."""
    found = shutil.which("java")
    candidates = sorted(str(path) for path in Path("/usr/lib/jvm").glob("*/bin/java"))
    if found is None and not candidates:
        raise MissingServerError(
            "no java on PATH or under /usr/lib/jvm, and ZooKeeper needs one; "
            "install Debian's package default-jre-headless: apt-get install default-jre-headless"
        )
    return found or candidates[-1]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What the members of an ensemble must agree on: number of each server -> (quorum port, election port)."""

    ports: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, size: int) -> Self:
        """Draw ports for `size` servers, numbered from 1."""
        return cls({number: (free_port(), free_port()) for number in range(1, size + 1)})

    def lines(self) -> list[str]:
        """Return the lines of zoo.cfg that name the members."""
        return [f"server.{number}=127.0.0.1:{first}:{second}" for number, (first, second) in self.ports.items()]


class ZooKeeperServer:
    """One ZooKeeper server. `tick_time` (milliseconds) bounds the sessions clients get: from 2 ticks to 60 s.

    `config` are further settings of zoo.cfg (they win over those of this module); `properties` are Java's, given as
    `-Dname=value`. Both may be changed while the server is stopped. With `secureClientPort` in `config` the server
    listens there for TLS as well; `port` stays the plain one, by which readiness is asked.
    """

    def __init__(
        self,
        *,
        tick_time: int = 500,
        number: int = 1,
        ensemble: Ensemble | None = None,
        config: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.tick_time = tick_time
        self.number = number
        self.ensemble = ensemble
        self.config = dict(config or {})
        self.properties = dict(properties or {})
        self.port = 0
        self.sharing: Sequence[str] | None = None  # Java's options for its classes; None: those of class_archive
        self._java = find_java()
        self._class_path = find_jars()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    @property
    def hosts(self) -> str:
        """The address as clients write it: `127.0.0.1:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        """Its data folder; it must have been started."""
        if self._folder is None:
            raise RuntimeError("this ZooKeeper server has no data yet: call start() first")
        return self._folder / "data"

    # ------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Have the server answer; the port and the data of an earlier start are kept."""
        if self.is_running():
            return
        is_first = self.port == 0
        for attempt in range(START_ATTEMPTS):
            if is_first:
                self.port = free_port()
            self.launch()
            self.wait_until_ready()
            if self.is_running():
                return
            if not is_first or attempt == START_ATTEMPTS - 1:
                break
        raise RuntimeError(f"ZooKeeper did not start on port {self.port}; its log ends:\n{self.log_tail()}")

    def launch(self) -> None:
        """Start the process without waiting (the members of an ensemble answer only when most of them are there)."""
        if self.port == 0:
            self.port = free_port()
        if self._folder is None:
            self._folder = make_folder("zookeeper")
        data = self._folder / "data"
        data.mkdir(exist_ok=True)
        (data / "myid").write_text(f"{self.number}\n")
        config = self._folder / "zoo.cfg"
        config.write_text("\n".join(self._config_lines(data)) + "\n")
        command = [self._java, "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += self.sharing if self.sharing is not None else sharing(self._java, self._class_path, _archive_classes)
        command += ["-Dzookeeper.admin.enableServer=false", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        # Who missed a vote of an election hears of it again after two seconds at most, not a minute.
        command += ["-Dzookeeper.fastleader.maxNotificationInterval=2000"]
        command += [f"-D{name}={value}" for name, value in self.properties.items()]
        command += ["-cp", self._class_path, MAIN_CLASS, str(config)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop the server
            )
        reaper.watch("process", self._process.pid)

    def wait_until_ready(self) -> None:
        """Return when the server serves clients, or when its process has ended."""
        eventually(
            lambda: self.mode() is not None or self._has_ended(),
            within=START_SECONDS,
            what=f"ZooKeeper on port {self.port} serves",
        )

    def stop(self) -> None:
        """End the server with SIGTERM; a frozen one is thawed. The data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server with SIGKILL. The data stays."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop (SIGSTOP) the server: connections stay open and nothing answers."""
        freezing.freeze(self.pid)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Stop and start on the same port with the same data; sessions survive if they are long enough."""
        self.stop()
        self.start()

    def wipe(self) -> None:
        """End the server and forget all its data: every znode and session. `start` begins an empty one on its port."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder / "data", ignore_errors=True)

    def destroy(self) -> None:
        """End the server and remove its data."""
        self.kill()
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
            self.port = 0

    @property
    def pid(self) -> int:
        """The process id of the server; RuntimeError while it does not run."""
        if self._process is None:
            raise RuntimeError("this ZooKeeper server is not running: call start() first")
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the server's process exists (it may be frozen)."""
        return self._process is not None and self._process.poll() is None

    # ------------------------------------------------------------------------------------------ asking

    def ask(self, word: str) -> str:
        """Return the answer to a four-letter word (`srvr`, `cons`, `dump`, ...); empty if there is none."""
        answer = bytearray()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(word.encode())
            while part := connection.recv(65536):
                answer += part
        return answer.decode(errors="replace")

    def mode(self) -> str | None:
        """Return `standalone`, `leader` or `follower`; None while the server does not serve."""
        for line in self.ask("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the server's log."""
        if self._folder is None or not (self._folder / "log").exists():
            return "(no log)"
        return "\n".join((self._folder / "log").read_text(errors="replace").splitlines()[-lines:])

    # ------------------------------------------------------------------------------------------ inside

    def _config_lines(self, data: Path) -> list[str]:
        settings = {
            "tickTime": str(self.tick_time),
            "initLimit": "10",
            "syncLimit": "5",
            "dataDir": str(data),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "maxSessionTimeout": "60000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": "0",
            **self.config,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        return lines + (self.ensemble.lines() if self.ensemble else [])

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._ended()

    def _has_ended(self) -> bool:
        if self.is_running():
            return False
        self._ended()
        return True

    def _ended(self) -> None:
        if self._process is not None:
            reaper.forget("process", self._process.pid)
            self._process = None


def _archive_classes(path: Path) -> None:
    """Have the leader or a follower of an ensemble write an archive of the classes it came to load."""
    members = Ensemble.of(2)
    servers = [ZooKeeperServer(number=number, ensemble=members) for number in members.ports]
    servers[0].sharing, servers[1].sharing = (f"-XX:ArchiveClassesAtExit={path}",), ()
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.destroy)
            server.launch()
        for server in servers:
            server.wait_until_ready()
        servers[0].stop()
