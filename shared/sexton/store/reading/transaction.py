"""One short read transaction a read, on the ledger's clock, with its statements counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from sqlalchemy import Connection, event, func, select

from sexton.store import tables


class ReadTransactions:
    """Gives a connection for each read, and the ledger's time.

    `connect` gives a connection for one read transaction, ended when the block ends; it raises
    ``DatabaseUnreachable`` where the database does not answer. `now`: the ledger's clock, where that is not the
    database's own (SQLite has none; None means the host's).
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Connection]],
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._connecting = connect
        self._clock = now
        self._standing: datetime | None = None
        self.statements = 0
        """How many have been made so far, apart from where transactions begin and end."""

    @contextmanager
    def at(self, now: datetime) -> Iterator[None]:
        """All that is read meanwhile is read as of `now`, which was asked of the database a moment ago."""
        self._standing = now
        try:
            yield
        finally:
            self._standing = None

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._connecting() as connection:
            event.listen(connection, "before_cursor_execute", self._count)
            if connection.dialect.name == "sqlite" and self._clock is None:
                self._clock = lambda: datetime.now(UTC)
            yield connection

    def _count(self, *_: object) -> None:
        self.statements += 1

    def _given_now(self) -> datetime | None:
        return self._standing or (None if self._clock is None else self._clock())

    def _now(self, connection: Connection) -> datetime:
        given = self._given_now()
        if given is not None:
            return given
        return connection.execute(select(func.clock_timestamp(type_=tables.Instant()))).scalar_one()

    def snapshot(self) -> AbstractContextManager[Connection]:
        """One read transaction over the whole ledger, for the audit: one moment of it, however long it takes."""
        return self._connect()
