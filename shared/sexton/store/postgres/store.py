"""The `Store` on PostgreSQL: its parts over one connection, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from sexton.clock import Wakeup
from sexton.store.postgres import places
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.listening import PostgresListener
from sexton.store.protocol import Channel, Listener

if TYPE_CHECKING:
    from sexton.store.postgres.alerts import PostgresAlerts
    from sexton.store.postgres.backfills import PostgresBackfills
    from sexton.store.postgres.edits import PostgresEdits
    from sexton.store.postgres.grants import PostgresGrants
    from sexton.store.postgres.holds import PostgresHolds
    from sexton.store.postgres.operations import PostgresOperations
    from sexton.store.postgres.outputs import PostgresOutputs
    from sexton.store.postgres.pauses import PostgresPauses
    from sexton.store.postgres.races import PostgresRaces
    from sexton.store.postgres.restores import PostgresRestores
    from sexton.store.postgres.terms import PostgresTerms
    from sexton.store.postgres.ticks import PostgresTicks
    from sexton.store.reads import LedgerReader


class PostgresStore:
    """One connection's view of the ledger, for one thread; connects at its first call."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection

    @cached_property
    def terms(self) -> PostgresTerms:
        from sexton.store.postgres.terms import PostgresTerms

        return PostgresTerms(self.connection)

    @cached_property
    def ticks(self) -> PostgresTicks:
        from sexton.store.postgres.ticks import PostgresTicks

        return PostgresTicks(self.connection)

    @cached_property
    def edits(self) -> PostgresEdits:
        from sexton.store.postgres.edits import PostgresEdits

        return PostgresEdits(self.connection)

    @cached_property
    def grants(self) -> PostgresGrants:
        from sexton.store.postgres.grants import PostgresGrants

        return PostgresGrants(places.AdmittedConnection(self.connection))

    @cached_property
    def operations(self) -> PostgresOperations:
        from sexton.store.postgres.operations import PostgresOperations

        return PostgresOperations(self.connection)

    @cached_property
    def holds(self) -> PostgresHolds:
        from sexton.store.postgres.holds import PostgresHolds

        return PostgresHolds(self.connection)

    @cached_property
    def backfills(self) -> PostgresBackfills:
        from sexton.store.postgres.backfills import PostgresBackfills

        return PostgresBackfills(self.connection)

    @cached_property
    def pauses(self) -> PostgresPauses:
        from sexton.store.postgres.pauses import PostgresPauses

        return PostgresPauses(self.connection)

    @cached_property
    def outputs(self) -> PostgresOutputs:
        from sexton.store.postgres.outputs import PostgresOutputs

        return PostgresOutputs(self.connection)

    @cached_property
    def restores(self) -> PostgresRestores:
        from sexton.store.postgres.restores import PostgresRestores

        return PostgresRestores(self.connection)

    @cached_property
    def races(self) -> PostgresRaces:
        from sexton.store.postgres.races import PostgresRaces

        return PostgresRaces(self.connection)

    @cached_property
    def alerts(self) -> PostgresAlerts:
        from sexton.store.postgres.alerts import PostgresAlerts

        return PostgresAlerts(self.connection)

    @cached_property
    def reads(self) -> LedgerReader:
        from sexton.store.reads import LedgerReader

        return LedgerReader(self.connection.reading)

    def load(self) -> None:
        """Load all parts now."""
        for name, attribute in vars(type(self)).items():
            if isinstance(attribute, cached_property):
                getattr(self, name)

    def now(self) -> datetime:
        with self.connection.autocommit() as connection:
            (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
        assert isinstance(now, datetime)  # noqa: S101 - a SELECT without FROM returns one row
        return now.astimezone(UTC)

    def listen(
        self, channels: Sequence[Channel], wakeup: Wakeup, also: Mapping[Channel, Wakeup] | None = None
    ) -> Listener:
        return PostgresListener(self.connection, {**dict.fromkeys(channels, wakeup), **(also or {})})

    def close(self) -> None:
        self.connection.close()
