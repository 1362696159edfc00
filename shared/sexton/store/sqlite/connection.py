"""One connection to SQLite: a file in WAL mode, or a database in memory for tests and the simulator.

Writers queue for the one write lock: every transaction is BEGIN IMMEDIATE. As safe as on PostgreSQL, with one
difference to know: a process frozen inside a transaction blocks all others until it goes on or ends.
A commit is on the disk when it returns (``synchronous=FULL``).

A database in memory lives as long as a store of this process is open on its url, and all of them share one
connection, in one thread.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, StaticPool

from sexton.errors import DatabaseUnreachable
from sexton.store.tables import to_micros

if TYPE_CHECKING:
    import sqlalchemy

    from sexton.store.protocol import StoreOptions


_KEPT_STATEMENTS = 512  # prepared: more than there are, so that none is prepared again


@dataclass(slots=True)
class _Shared:
    connection: sqlite3.Connection
    users: int


_in_memory: dict[str, _Shared] = {}


class SqliteConnection:
    """The connection of one ``Store``; for one thread."""

    def __init__(self, options: StoreOptions) -> None:
        self.options = options
        self.path = path_of(options.url)
        self._open: sqlite3.Connection | None = None
        self._engine: Engine | None = None
        if self.is_in_memory:
            shared = _in_memory.get(options.url)
            if shared is None:
                shared = _in_memory[options.url] = _Shared(self._connect(), 0)
            shared.users += 1
            self._open = shared.connection

    @property
    def is_in_memory(self) -> bool:
        return self.path is None

    def now(self) -> datetime:
        """The database's clock: the host's, or the one that the options gave."""
        return self.options.clock() if self.options.clock is not None else datetime.now(UTC)

    def now_micros(self) -> int:
        """``now`` as SQLite keeps instants."""
        return to_micros(self.now())

    # --- for hot statements ---------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """BEGIN IMMEDIATE .. COMMIT; rolled back on any exception.

        Raises ``DatabaseUnreachable`` where the write lock is not to be had within ``answer_within``.
        """
        return Transaction(self, "BEGIN IMMEDIATE")

    def snapshot(self) -> Transaction:
        """A transaction that only reads, as of one moment. Raises ``DatabaseUnreachable``."""
        # In memory nobody else writes meanwhile: one connection, one thread.
        return Transaction(self, None if self.is_in_memory else "BEGIN")

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        if self._open is None:
            return
        if self.is_in_memory:
            shared = _in_memory[self.options.url]
            shared.users -= 1
            if shared.users == 0:
                del _in_memory[self.options.url]
                self._open.close()
        else:
            self._open.close()
        self._open = None

    # --- for portable reads ---------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """A SQLAlchemy engine; on a file with a connection of its own, in memory over the shared one."""
        if self._engine is None:
            if self.is_in_memory:
                shared = _in_memory[self.options.url].connection
                self._engine = create_engine("sqlite://", creator=lambda: _Kept(shared), poolclass=StaticPool)
            else:
                self._engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
            event.listen(self._engine, "begin", _begin)
        return self._engine

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlalchemy.Connection]:
        """A transaction that only reads: all that is read in it is one moment of the ledger.

        Raises ``DatabaseUnreachable``.
        """
        try:
            with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            if isinstance(error.orig, sqlite3.DatabaseError) and _is_unreachable(error.orig):
                raise self._unreachable(error.orig) from None
            raise
        except sqlite3.DatabaseError as error:
            raise self._unreachable(error) from None

    # --- inside ---------------------------------------------------------------------------------------

    def opened(self) -> sqlite3.Connection:
        """The connection itself, opened at the first call. Raises ``DatabaseUnreachable``."""
        if self._open is None:
            self._open = self.dedicated()
        return self._open

    def dedicated(self) -> sqlite3.Connection:
        """A new connection that the caller owns; not for databases in memory. Raises ``DatabaseUnreachable``."""
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            raise self._unreachable(error) from None

    def _connect(self, **_: Any) -> sqlite3.Connection:
        name = ":memory:" if self.path is None else self.path
        connection = sqlite3.connect(
            name, timeout=self.options.answer_within, isolation_level=None, cached_statements=_KEPT_STATEMENTS
        )
        # In the order that matters: without the timeout, changing the journal mode fails at once.
        connection.execute(f"PRAGMA busy_timeout = {round(self.options.answer_within * 1000)}")
        if self.options.read_only:
            connection.execute("PRAGMA query_only = ON")
        elif self.path is not None:
            self._use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Make the file WAL, once and for all; SQLite does not wait for others here, whatever the timeout says."""
        deadline = time.monotonic() + self.options.answer_within
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.DatabaseError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    connection.close()
                    raise
            time.sleep(0.01)

    def answer_to(self, error: BaseException) -> DatabaseUnreachable | None:
        """What the error means, where it means that the database does not answer."""
        if isinstance(error, sqlite3.DatabaseError) and _is_unreachable(error):
            return self._unreachable(error)
        return None

    def _unreachable(self, error: sqlite3.DatabaseError) -> DatabaseUnreachable:
        shown = self.path or "in memory"
        if "not a database" in str(error):  # no OperationalError of sqlite3's
            return DatabaseUnreachable(f"{shown} is not a SQLite database", hint="name another file, or move it away")
        if "locked" in str(error):
            return DatabaseUnreachable(
                f"the database {shown} stayed locked for {self.options.answer_within:g} s",
                hint="a process frozen inside a transaction holds SQLite's one write lock: resume or end it",
            )
        return DatabaseUnreachable(
            f"the database {shown} cannot be used: {error}",
            hint="check that its folder exists and that this user may write there",
        )


class Transaction:
    """BEGIN .. COMMIT as a context; a class of its own, as a generator's context costs more than SQLite's part.

    Rolled back on any exception, and on one of COMMIT's own; ``begin`` None: each statement stands for itself.
    """

    __slots__ = ("_begin", "_connection", "_owner")

    def __init__(self, owner: SqliteConnection, begin: str | None) -> None:
        self._owner = owner
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        connection = self._connection = self._owner.opened()
        if self._begin is not None:
            try:
                connection.execute(self._begin)
            except sqlite3.DatabaseError as error:
                self._fail(error)
        return connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is not None:
            self._roll_back()
            if (unreachable := self._owner.answer_to(error)) is not None:
                raise unreachable from None
        elif self._begin is not None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.DatabaseError as failed:
                self._fail(failed)

    def _fail(self, error: sqlite3.DatabaseError) -> NoReturn:
        self._roll_back()
        raise self._owner.answer_to(error) or error from None

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class _Kept:
    """The shared connection of a database in memory, as SQLAlchemy may hold it: closing it does nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        """Nothing: the stores that share the connection close it."""


def path_of(url: str) -> str | None:
    """The file that a ``sqlite:`` url names; None for a database in memory."""
    address, _, _ = url.partition("?")
    _, _, path = address.partition("://")
    path = unquote(path.removeprefix("/"))
    return None if path in ("", ":memory:") else path


def _begin(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get("sqlite_begin", "BEGIN")))


def _is_unreachable(error: sqlite3.DatabaseError) -> bool:
    text = str(error)
    return any(part in text for part in ("locked", "unable to open", "disk I/O", "readonly", "full", "not a database"))
