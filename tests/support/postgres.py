"""A real PostgreSQL server for tests, from Debian's packages, on a free port, with its data in a scratch folder.

A `PostgresServer` is stopped, running or frozen. It can be killed like a machine that lost power, frozen like a machine
that hangs (postmaster and every backend, SIGSTOP), and started again on the same port with the same data.
Its user `sexton` is a superuser; everyone on 127.0.0.1 is trusted.

With `faked_clock=True` its wall clock is a test's to set, while it runs and over restarts (libfaketime, of Debian's
package `faketime`); `clock_timestamp()` follows at once, and the clocks of Sexton's processes stay the machine's:

    with PostgresServer(faked_clock=True) as server:
        server.set_clock(timedelta(hours=1))   # reads an hour more than the machine's clock from here on
        server.set_clock(timedelta())          # and is right again
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql

from tests.support import freezing, reaper
from tests.support.faketime import FakedClock, find_library
from tests.support.missing import MissingServerError
from tests.support.ports import free_port
from tests.support.scratch import make_folder, remove_folder
from tests.support.waiting import eventually

USER = "sexton"
START_SECONDS = 60
STOP_SECONDS = 30
START_ATTEMPTS = 3
PACKAGE = "postgresql"
_pristine: dict[str, Path] = {}  # "folder": what `initdb` made for this process, never started


def find_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`: the newest of Debian's, else the one on PATH."""
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    versions = sorted(folders, key=lambda folder: [int(part) for part in folder.parent.name.split(".")], reverse=True)
    on_path = shutil.which("initdb")
    for folder in (*versions, *([Path(on_path).resolve().parent] if on_path else [])):
        if os.access(folder / "initdb", os.X_OK) and os.access(folder / "postgres", os.X_OK):
            return folder
    raise MissingServerError(
        "PostgreSQL's server programs (initdb, postgres) are neither under /usr/lib/postgresql/*/bin nor on PATH; "
        f"install Debian's package {PACKAGE}: apt-get install {PACKAGE}"
    )


class PostgresServer:
    """One PostgreSQL server. `durable` keeps fsync on and the data on disk; else a crash of the machine may lose it."""

    def __init__(
        self, *, durable: bool = False, options: dict[str, str] | None = None, faked_clock: bool = False
    ) -> None:
        self.durable = durable
        self.port = 0
        self._options = options or {}
        self._binaries = find_binaries()
        self._has_faked_clock = faked_clock
        if faked_clock:
            find_library()
        self._clock: FakedClock | None = None
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    # ------------------------------------------------------------------------------------------- life

    def start(self) -> None:
        """Have the server accept connections; makes its data folder the first time, keeps port and data later."""
        if self.is_running():
            return
        if self._folder is None:
            self._folder = self._initialise()
            self._clock = FakedClock(self._folder / "clock") if self._has_faked_clock else None
        is_first = self.port == 0
        for attempt in range(START_ATTEMPTS):
            if is_first:
                self.port = free_port()
            self._launch()
            if eventually(
                self._has_started_or_ended, within=START_SECONDS, what=f"PostgreSQL on port {self.port} starts"
            ):
                if self.is_running():
                    return
                if not is_first or attempt == START_ATTEMPTS - 1:
                    break
        raise RuntimeError(f"PostgreSQL did not start on port {self.port}; its log ends:\n{self.log_tail()}")

    def stop(self) -> None:
        """Shut down in order (fast: transactions are rolled back, a checkpoint is written); thaws a frozen one."""
        if self._process is None:
            return
        self.thaw()
        for number in (signal.SIGINT, signal.SIGQUIT):  # fast, then immediate
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
                self._ended()
                return
        self.kill()

    def kill(self) -> None:
        """End postmaster and backends with SIGKILL, as a machine that loses power would; `start` recovers."""
        if self._process is None:
            return
        reaper.kill_tree(self._process.pid)
        self._process.wait()
        self._ended()

    def freeze(self) -> None:
        """Stop (SIGSTOP) the postmaster and every backend: connections stay open and nothing answers."""
        freezing.freeze_tree(self.pid)

    def thaw(self) -> None:
        """Let everything that `freeze` stopped go on."""
        freezing.thaw_tree(self.pid)

    def restart(self) -> None:
        """Stop and start on the same port with the same data; all connections are lost."""
        self.stop()
        self.start()

    def destroy(self) -> None:
        """End the server and remove its data."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(signal.SIGQUIT)  # the data goes anyway: no checkpoint
            try:
                self._process.wait(STOP_SECONDS)
                self._ended()
            except subprocess.TimeoutExpired:
                self.kill()
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
            self.port = 0

    @property
    def pid(self) -> int:
        """The process id of the postmaster; RuntimeError while it does not run."""
        if self._process is None:
            raise RuntimeError("this PostgreSQL server is not running: call start() first")
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the postmaster's process exists (it may be frozen)."""
        return self._process is not None and self._process.poll() is None

    def set_clock(self, offset: timedelta) -> None:
        """Have the server's wall clock read this much more (or less) than the machine's; it must have been started."""
        if self._clock is None:
            raise RuntimeError("this server has no clock to set: PostgresServer(faked_clock=True), then start()")
        self._clock.set(offset)

    # -------------------------------------------------------------------------------------- databases

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database of this server as SQLAlchemy writes it."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{database}"

    def conninfo(self, database: str = "postgres") -> str:
        """Return the address of a database of this server as libpq writes it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}?connect_timeout=10"

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        """Create a database, empty or a copy of `template` (to which nobody may be connected), and return its url."""
        name = name or f"t{os.getpid()}_{next(self._numbers)}"
        # template0 carries nothing that an administrator could have added.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._administer(statement.format(sql.Identifier(name), sql.Identifier(template or "template0")))
        return self.url(name)

    def drop_database(self, name_or_url: str) -> None:
        """Drop a database and cut off whoever is connected to it; one that does not exist is fine."""
        name = name_or_url.rpartition("/")[2]
        self._administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the server's log."""
        if self._folder is None or not (self._folder / "log").exists():
            return "(no log)"
        return "\n".join((self._folder / "log").read_text(errors="replace").splitlines()[-lines:])

    # ---------------------------------------------------------------------------------------- inside

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            connection.execute(statement)

    def _initialise(self) -> Path:
        """A folder with a fresh cluster: `initdb`'s, or where it need not be durable a copy of this process's first.

        Copies have one system identifier.
        """
        if self.durable:
            return self._initialise_anew()
        if "folder" not in _pristine:
            _pristine["folder"] = self._initialise_anew()
        folder = self._make_folder()
        self._run(["cp", "-R", _pristine["folder"] / "data", folder / "data"], folder)
        return folder

    def _initialise_anew(self) -> Path:
        folder = self._make_folder()
        command: list[Path | str] = [
            self._binaries / "initdb",
            "-D",
            folder / "data",
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        command += ["--locale=C", "--no-instructions", *([] if self.durable else ["--no-sync"])]
        self._run(command, folder)
        return folder

    def _run(self, command: list[Path | str], folder: Path) -> None:
        done = self._popen(command, folder, subprocess.PIPE)
        output, _ = done.communicate()
        if done.returncode:
            remove_folder(folder)
            text = output.decode(errors="replace")
            raise RuntimeError(f"{command[0]} failed with exit code {done.returncode}:\n{text}")

    def _make_folder(self) -> Path:
        """A folder that the server's user may write to."""
        folder = make_folder("postgres", durable=self.durable)
        account = _account()
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        return folder

    def _launch(self) -> None:
        assert self._folder is not None
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
            "max_connections": "200",
            "shared_buffers": "128MB",
            # Files in the data folder: nothing stays in /dev/shm after a kill.
            "dynamic_shared_memory_type": "mmap",
            "log_line_prefix": "%m [%p] %d ",
            "timezone": "UTC",
            "jit": "off",  # as on Sexton's own connections: compiling costs more than any statement here
            **({} if self.durable else {"fsync": "off", "full_page_writes": "off"}),
            **self._options,
        }
        command: list[Path | str] = [self._binaries / "postgres", "-D", self._folder / "data", "-p", str(self.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            clock = self._clock.environment() if self._clock else {}
            self._process = self._popen(command, self._folder, log.fileno(), clock)
        reaper.watch("process", self._process.pid)

    def _popen(
        self, command: list[Path | str], folder: Path, output: int, extra: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        account = _account()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**environment, "LC_ALL": "C", **(extra or {})},
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
            start_new_session=True,  # Ctrl-C is for the tests, which then stop the server
        )

    def _has_started_or_ended(self) -> bool:
        if not self.is_running():
            self._ended()
            return True
        try:
            psycopg.connect(self.conninfo()).close()
        except psycopg.OperationalError:
            return False
        return True

    def _ended(self) -> None:
        if self._process is not None:
            reaper.forget("process", self._process.pid)
            self._process = None


def _account() -> pwd.struct_passwd | None:
    """The system user to run as: PostgreSQL refuses to run as root. None means: as who we are."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise MissingServerError(
            "the tests run as root and PostgreSQL may not, but there is no system user postgres to run it as; "
            f"install Debian's package {PACKAGE} (it makes that user), or run the tests as another user"
        ) from None


@contextlib.contextmanager
def fresh_database(server: PostgresServer) -> Iterator[str]:
    """Give the url of a new, empty database, dropped at the end with whoever is still connected to it."""
    url = server.create_database()
    yield url
    server.drop_database(url)
