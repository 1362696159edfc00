"""The seam between Sexton and its database: six small protocols, two implementations.

``Store`` is one connection's view: not for two threads at once (open another).
PostgreSQL and SQLite implement it, and one behavioural suite runs against both.

What every implementation promises:

* Each method is one transaction, committed when it returns. A safety property is
  a condition inside the statement that writes, never a check before it.
* A lost compare-and-set is a return value, never an exception (invariant 6).
* The time that counts is the database's (``now``); callers never pass their own
  except where a value says so (``TickBatch.planned_at`` is compared, not trusted).
* A database that does not answer raises ``DatabaseUnreachable`` within the
  store's timeout; the connection is then opened anew by the next call. What the
  lost call did is unknown, and every caller is written for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from sexton.cluster_views import PauseOfAll
from sexton.hold_views import HoldAnswer
from sexton.store.protocol.alerts import AlertStore
from sexton.store.protocol.backfills import BackfillStore
from sexton.store.protocol.edits import (
    ChangeDone,
    ChangeKind,
    CurrentJob,
    EditConditions,
    EditStore,
    HaltChange,
    JobChange,
    PauseSeen,
    Triggered,
)
from sexton.store.protocol.grants import (
    Grant,
    GrantStore,
    Renewal,
    Requeued,
    RunResult,
    StepRequest,
    StepResult,
    StopRequests,
)
from sexton.store.protocol.holds import Approval, HoldStore
from sexton.store.protocol.operations import (
    DrainAsked,
    OperationStore,
    Rerun,
    StopOutcome,
    StoppedClaim,
    WorkerChoice,
)
from sexton.store.protocol.outputs import OutputStore
from sexton.store.protocol.pauses import AllChanged, PauseStore
from sexton.store.protocol.races import RaceStore
from sexton.store.protocol.restores import CursorStands, RestoreStore
from sexton.store.protocol.terms import TermStore
from sexton.store.protocol.ticks import (
    CursorsRead,
    JobRow,
    JobsPage,
    JobsRead,
    LateClaimRow,
    LateJobRow,
    RevisionRow,
    TickStore,
)

if TYPE_CHECKING:
    from sexton.clock import Wakeup
    from sexton.store.reads import LedgerReader

__all__ = [
    "AlertStore",
    "AllChanged",
    "Approval",
    "BackfillStore",
    "ChangeDone",
    "ChangeKind",
    "Channel",
    "CurrentJob",
    "CursorStands",
    "CursorsRead",
    "DrainAsked",
    "EditConditions",
    "EditStore",
    "Grant",
    "GrantStore",
    "HaltChange",
    "HoldAnswer",
    "HoldStore",
    "JobChange",
    "JobRow",
    "JobsPage",
    "JobsRead",
    "LateClaimRow",
    "LateJobRow",
    "Listener",
    "OperationStore",
    "OutputStore",
    "PauseOfAll",
    "PauseSeen",
    "PauseStore",
    "RaceStore",
    "Renewal",
    "Requeued",
    "Rerun",
    "RestoreStore",
    "RevisionRow",
    "RunResult",
    "StepRequest",
    "StepResult",
    "StopOutcome",
    "StopRequests",
    "StoppedClaim",
    "Store",
    "StoreOptions",
    "TermStore",
    "TickStore",
    "Triggered",
    "WorkerChoice",
]


class Channel(StrEnum):
    """What listeners can be woken for. Polling is the net under each."""

    JOBS = "sexton_jobs"  # an edit, a setting, a request to the leader
    WORK = "sexton_work"  # a claim that is available now or within seconds
    STOPS = "sexton_stops"  # a run, or a worker, was asked to stop: `grants.stop_requests` tells whose
    WATCHES = "sexton_watches"  # somebody follows a run's output: `outputs.watched` tells whose


class Listener(Protocol):
    """Sets a wake-up when a channel is notified; reconnects by itself."""

    def close(self) -> None: ...


class Store(Protocol):
    """One connection's view of the ledger."""

    @property
    def terms(self) -> TermStore: ...

    @property
    def ticks(self) -> TickStore: ...

    @property
    def edits(self) -> EditStore: ...

    @property
    def grants(self) -> GrantStore: ...

    @property
    def operations(self) -> OperationStore: ...

    @property
    def holds(self) -> HoldStore: ...

    @property
    def backfills(self) -> BackfillStore: ...

    @property
    def pauses(self) -> PauseStore: ...

    @property
    def outputs(self) -> OutputStore: ...

    @property
    def restores(self) -> RestoreStore: ...

    @property
    def races(self) -> RaceStore: ...

    @property
    def alerts(self) -> AlertStore: ...

    @property
    def reads(self) -> LedgerReader: ...

    def now(self) -> datetime:
        """The database's clock, UTC."""
        ...

    def listen(
        self, channels: Sequence[Channel], wakeup: Wakeup, also: Mapping[Channel, Wakeup] | None = None
    ) -> Listener:
        """Set ``wakeup`` whenever one of the channels is notified, until closed; ``also``: further channels, each with
        a wake-up of its own, on the same connection."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How to reach a database. ``answer_within``: seconds until a call raises ``DatabaseUnreachable``."""

    url: str  # sqlite:///path or postgresql://...
    application: str = "sexton"
    answer_within: float = 10.0
    read_only: bool = False
    stays: bool = False  # what a node needs at a takeover in a month is loaded now, while its files are this release's
    clock: Callable[[], datetime] | None = field(default=None, repr=False)  # SQLite only: the simulator's now
