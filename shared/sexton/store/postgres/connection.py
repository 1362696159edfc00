"""One connection to PostgreSQL: opened when first used, opened anew after a failure, never waited for too long.

Failure stance: a call ends within ``answer_within``, whatever the server does. A server that answers late is told to
stop (``statement_timeout``); one that does not answer at all, because it is frozen or cut off while the kernel still
acknowledges, is left by a deadline on this side. Either way the connection is closed, ``DatabaseUnreachable`` is
raised, and what the lost call did is unknown.

No transaction is open between two calls. ``transaction`` brackets several statements; ``autocommit`` is for calls of
one statement, which the server commits by itself: a client stopped there holds no lock.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from sexton.errors import DatabaseUnreachable, Refused

if TYPE_CHECKING:
    import sqlalchemy

    from sexton.store.protocol import StoreOptions

_Result = TypeVar("_Result")
_LEAST_CONNECT_SECONDS = 2  # libpq knows no shorter one
_CONTENDED = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)
# Classes of SQLSTATE: connection, out of resources, operator intervention (shutdown, terminated, statement timeout),
# errors of the server's system; a transaction that waited for its client; a server that is read-only for now (a standby
# after a failover, a full disk).
_WAITED_FOR_CLIENT = "25P03"
_UNREACHABLE_CLASSES = ("08", "53", "57", "58", _WAITED_FOR_CLIENT, "25006")


class GuardedConnection(psycopg.Connection[Any]):
    """A psycopg connection none of whose waits outlasts ``deadline`` (monotonic seconds) or ``answer_within``."""

    answer_within: float = 10.0
    deadline: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        own = self.answer_within if self.deadline is None else self.deadline - time.monotonic()
        if timeout is not None and timeout < own:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, min(interval, max(own, 0.001)), max(own, 0.001))
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise errors.OperationalError(f"no answer within {self.answer_within:g} s") from None


class PostgresConnection:
    """The connection of one ``Store``; for one thread."""

    def __init__(self, options: StoreOptions) -> None:
        self.options = options
        self._conninfo = _conninfo(options)
        self._open: GuardedConnection | None = None
        self._engine: Engine | None = None

    # --- for hot statements ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def autocommit(self) -> Iterator[psycopg.Connection[Any]]:
        """The connection with no transaction open: each statement commits by itself.

        Raises ``DatabaseUnreachable``; errors of contention (lock timeout, deadlock) pass as psycopg raises them.
        """
        with self._answering() as connection:
            yield connection

    @contextlib.contextmanager
    def transaction(self, settings: str = "") -> Iterator[psycopg.Connection[Any]]:
        """BEGIN .. COMMIT, READ COMMITTED; rolled back on any exception. ``settings``: statements sent with BEGIN."""
        with self._answering() as connection:
            connection.execute(f"BEGIN; {settings}".encode())
            yield connection
            connection.execute("COMMIT")

    def retrying(self, attempt: Callable[[], _Result], what: str, attempts: int = 10) -> _Result:
        """What ``attempt`` returns once no lock timeout, deadlock or serialization failure ends it.

        Raises ``Refused`` when ``attempts`` tries were not enough.
        """
        for number in range(1, attempts + 1):
            try:
                return attempt()
            except _CONTENDED as error:
                if number == attempts:
                    raise Refused(
                        f"{what}: its rows stayed locked by others through {attempts} tries ({_sentence(error)})",
                        hint="try again; `sexton doctor` names who holds locks for long",
                    ) from None
                if not isinstance(error, errors.LockNotAvailable):  # a lock timeout has waited already
                    time.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - two that collided must not meet again
        raise AssertionError("unreachable: the last try returns or raises")

    def unless_contended(self, attempt: Callable[[], _Result], otherwise: _Result) -> _Result:
        """What ``attempt`` returns, or ``otherwise`` where a lock timeout, deadlock or the like ends it."""
        try:
            return attempt()
        except _CONTENDED:
            return otherwise

    def dedicated(self) -> GuardedConnection:
        """A new connection in autocommit mode that the caller owns. Raises ``DatabaseUnreachable``."""
        try:
            return self._connect()
        except psycopg.Error as error:
            raise self._unreachable(error) from None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    # --- for portable reads ---------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """A SQLAlchemy engine with a pooled connection of its own and the same time limits."""
        if self._engine is None:
            self._engine = create_engine(
                "postgresql+psycopg://",
                creator=self._connect_for_engine,
                poolclass=QueuePool,
                pool_size=1,
                max_overflow=2,
                use_native_hstore=False,
            )
        return self._engine

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlalchemy.Connection]:
        """A REPEATABLE READ, read-only transaction: all that is read in it is one moment of the ledger.

        Raises ``DatabaseUnreachable``.
        """
        try:
            with self.engine.connect() as connection:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with connection.begin():
                    yield connection
        except DBAPIError as error:
            if isinstance(error.orig, psycopg.Error) and _is_unreachable(error.orig):
                raise self._unreachable(error.orig) from None
            if isinstance(error.orig, errors.InsufficientPrivilege):
                raise self._not_allowed(error.orig) from None
            raise
        except psycopg.Error as error:
            raise self._unreachable(error) from None

    # --- inside ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _answering(self) -> Iterator[GuardedConnection]:
        try:
            if self._open is None or self._open.closed:
                self._open = self._connect()
        except psycopg.Error as error:
            raise self._unreachable(error) from None
        connection = self._open
        connection.deadline = time.monotonic() + self.options.answer_within
        try:
            yield connection
        except psycopg.Error as error:
            self._roll_back(connection)
            if isinstance(error, errors.InsufficientPrivilege):
                raise self._not_allowed(error) from None
            if _is_unreachable(error):
                self._drop()
                raise self._unreachable(error) from None
            raise
        except BaseException:
            self._roll_back(connection)
            raise
        finally:
            connection.deadline = None

    def _roll_back(self, connection: GuardedConnection) -> None:
        """Leave no transaction open; a connection that cannot even roll back is dropped."""
        if connection.closed or connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connect(self) -> GuardedConnection:
        connection = GuardedConnection.connect(self._conninfo, autocommit=True)
        connection.answer_within = self.options.answer_within
        return connection

    def _connect_for_engine(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        # A reader may think for long over its snapshot; it locks nobody out.
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.autocommit = False
        return connection

    def _not_allowed(self, error: psycopg.Error) -> Refused:
        return Refused(
            f"the database role at {place(self._conninfo)} may not do this: {_sentence(error)}",
            hint="nothing was done; use a role that may, or ask whoever gives the rights",
        )

    def _unreachable(self, error: psycopg.Error) -> DatabaseUnreachable:
        where = place(self._conninfo)
        if error.sqlstate == _WAITED_FOR_CLIENT:
            return DatabaseUnreachable(
                f"the database at {where} gave up this step, in whose middle this process stood still: "
                f"{_sentence(error)}",
                hint="nothing of the step was done; try again, and see what keeps this machine busy",
            )
        return DatabaseUnreachable(
            f"the database at {where} does not answer: {_sentence(error)}",
            hint="check that PostgreSQL runs there and that `database` names it rightly",
        )


def place(conninfo: str) -> str:
    """Where a database is, without user or password."""
    parts = conninfo_to_dict(conninfo)
    host, port = parts.get("host") or parts.get("hostaddr") or "localhost", parts.get("port") or "5432"
    host = str(host).rpartition("@")[2]  # the rest of a password with an unescaped @
    return f"{host}:{port}/{parts.get('dbname') or ''}"


def _conninfo(options: StoreOptions) -> str:
    """The address with every limit and setting that this module's contract needs."""
    address = options.url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        given = conninfo_to_dict(address)
    except psycopg.ProgrammingError as error:
        raise DatabaseUnreachable(
            f"{_without_password(options.url)!r} is not a PostgreSQL address: "
            + _sentence(error).replace(address, _without_password(address)),  # libpq repeats it whole
            hint="write postgresql://user@host:5432/database",
        ) from None
    milliseconds = max(1, round(options.answer_within * 1000))
    server_milliseconds = max(1, round(options.answer_within * 900))  # the server ends it first: the connection stays
    settings = f"{given.get('options') or ''} -c TimeZone=UTC -c statement_timeout={server_milliseconds}"
    settings += " -c default_transaction_isolation=read\\ committed -c idle_in_transaction_session_timeout=60000"
    settings += " -c jit=off"  # compiling costs more than any statement here
    if options.read_only:
        settings += " -c default_transaction_read_only=on"
        if given.get("target_session_attrs") == "read-write":  # such a session is none; the server that has them is
            address = make_conninfo(address, target_session_attrs="primary")
    return make_conninfo(
        address,
        application_name=options.application,
        connect_timeout=max(_LEAST_CONNECT_SECONDS, int(options.answer_within)),
        keepalives=1,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=milliseconds,
        client_encoding="UTF8",
        options=settings.strip(),
    )


def _is_unreachable(error: psycopg.Error) -> bool:
    if isinstance(error, errors.InterfaceError):
        return True
    state = error.sqlstate
    if state is None:
        return isinstance(error, errors.OperationalError)
    return state.startswith(_UNREACHABLE_CLASSES)


def _sentence(error: psycopg.Error) -> str:
    """The first line that says something, without libpq's preamble."""
    text = error.diag.message_primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).removeprefix("connection failed: ")


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    scheme, slashes, user = head.partition("://")
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{tail}" if at else url
