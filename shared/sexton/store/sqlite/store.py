"""The `Store` on SQLite: its parts over one connection, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from sexton.clock import Wakeup
from sexton.store.protocol import Channel, Listener
from sexton.store.sqlite.connection import SqliteConnection
from sexton.store.sqlite.listening import FileListener, MemoryListener

if TYPE_CHECKING:
    from sexton.store.reads import LedgerReader
    from sexton.store.sqlite.alerts import SqliteAlerts
    from sexton.store.sqlite.backfills import SqliteBackfills
    from sexton.store.sqlite.edits import SqliteEdits
    from sexton.store.sqlite.grants import SqliteGrants
    from sexton.store.sqlite.holds import SqliteHolds
    from sexton.store.sqlite.operations import SqliteOperations
    from sexton.store.sqlite.outputs import SqliteOutputs
    from sexton.store.sqlite.pauses import SqlitePauses
    from sexton.store.sqlite.races import SqliteRaces
    from sexton.store.sqlite.restores import SqliteRestores
    from sexton.store.sqlite.terms import SqliteTerms
    from sexton.store.sqlite.ticks import SqliteTicks


class SqliteStore:
    """One connection's view of the ledger, for one thread; connects at its first call."""

    def __init__(self, connection: SqliteConnection) -> None:
        self.connection = connection

    @cached_property
    def terms(self) -> SqliteTerms:
        from sexton.store.sqlite.terms import SqliteTerms

        return SqliteTerms(self.connection)

    @cached_property
    def ticks(self) -> SqliteTicks:
        from sexton.store.sqlite.ticks import SqliteTicks

        return SqliteTicks(self.connection)

    @cached_property
    def edits(self) -> SqliteEdits:
        from sexton.store.sqlite.edits import SqliteEdits

        return SqliteEdits(self.connection)

    @cached_property
    def grants(self) -> SqliteGrants:
        from sexton.store.sqlite.grants import SqliteGrants

        return SqliteGrants(self.connection)

    @cached_property
    def operations(self) -> SqliteOperations:
        from sexton.store.sqlite.operations import SqliteOperations

        return SqliteOperations(self.connection)

    @cached_property
    def holds(self) -> SqliteHolds:
        from sexton.store.sqlite.holds import SqliteHolds

        return SqliteHolds(self.connection)

    @cached_property
    def backfills(self) -> SqliteBackfills:
        from sexton.store.sqlite.backfills import SqliteBackfills

        return SqliteBackfills(self.connection)

    @cached_property
    def pauses(self) -> SqlitePauses:
        from sexton.store.sqlite.pauses import SqlitePauses

        return SqlitePauses(self.connection)

    @cached_property
    def outputs(self) -> SqliteOutputs:
        from sexton.store.sqlite.outputs import SqliteOutputs

        return SqliteOutputs(self.connection)

    @cached_property
    def restores(self) -> SqliteRestores:
        from sexton.store.sqlite.restores import SqliteRestores

        return SqliteRestores(self.connection)

    @cached_property
    def races(self) -> SqliteRaces:
        from sexton.store.sqlite.races import SqliteRaces

        return SqliteRaces(self.connection)

    @cached_property
    def alerts(self) -> SqliteAlerts:
        from sexton.store.sqlite.alerts import SqliteAlerts

        return SqliteAlerts(self.connection)

    @cached_property
    def reads(self) -> LedgerReader:
        from sexton.store.reads import LedgerReader

        return LedgerReader(self.connection.reading, self.connection.now)

    def load(self) -> None:
        """Load all parts now."""
        for name, attribute in vars(type(self)).items():
            if isinstance(attribute, cached_property):
                getattr(self, name)

    def now(self) -> datetime:
        return self.connection.now()

    def listen(
        self, channels: Sequence[Channel], wakeup: Wakeup, also: Mapping[Channel, Wakeup] | None = None
    ) -> Listener:
        wakeups = {**dict.fromkeys(channels, wakeup), **(also or {})}
        if self.connection.is_in_memory:
            return MemoryListener(self.connection, wakeups)
        return FileListener(self.connection, wakeups)

    def close(self) -> None:
        self.connection.close()
