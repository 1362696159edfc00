"""The ledger's database behind one `Store` protocol; `open_store` chooses the implementation by the url's scheme.

The drivers and SQLAlchemy load at the first `open_store`, so that importing `sexton` stays light. The parts of a store
load when they are first asked for, so that a command waits for what it needs alone; a process that stays has them all
from the start (``StoreOptions.stays``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sexton.store.postgres.store import PostgresStore
    from sexton.store.protocol import Store, StoreOptions
    from sexton.store.sqlite.store import SqliteStore

__all__ = ["open_store"]


def open_store(options: StoreOptions) -> Store:
    """A store on the database that ``options.url`` names, for one thread; it connects at its first call.

    ``sqlite:///path``, ``sqlite://`` (in memory, made with its tables, shared by this process) and
    ``postgresql://...`` are known. Raises ``InvalidInput`` for any other. It does not check the schema's version:
    processes do, by ``sexton.store.schema.check_schema``.
    """
    from sexton.store.schema import connection_for, upgrade_over
    from sexton.store.sqlite.connection import SqliteConnection

    store: SqliteStore | PostgresStore
    connection = connection_for(options)
    if isinstance(connection, SqliteConnection):
        from sexton.store.sqlite.store import SqliteStore

        if connection.is_in_memory:
            upgrade_over(connection)
        store = SqliteStore(connection)
    else:
        from sexton.store.postgres.store import PostgresStore

        store = PostgresStore(connection)
    if options.stays:
        store.load()
    return store
