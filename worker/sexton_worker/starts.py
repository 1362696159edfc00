"""Runs that begin: of what was granted, what may start starts, and the rest goes where it belongs.

    granted ──its definition makes no sense──▶ given back, or failed
       ├── its lease may be over, or is ──────▶ given back: it has certainly not begun
       ├── its *started* write was refused ───▶ dropped: it is another's
       └── else ──────────────────────────────▶ ordered

At most once: a run starts only after its *started* write was answered with yes (invariant 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import structlog

from sexton.claims import State
from sexton.clock import Clock, Wakeup
from sexton.recipes import Recipe
from sexton.store.protocol import Grant, Store
from sexton_worker.definitions import Definitions, Key, UnreadableDefinition
from sexton_worker.execution import Execution
from sexton_worker.hands import Hands
from sexton_worker.lease_book import LeaseBook
from sexton_worker.worker_time import WorkerTime

FOR_YOUNGER = timedelta(seconds=5)  # how long a claim is left to workers that can read it
LEDGER_MOVED = "given back: the ledger was restored or promoted before it could start"
LEASE_PASSED = "given back: its lease had passed before it could start"


class Starts:
    """Belongs to the loop of ``hands``. Sets ``wakeup`` where there is something to tell the database."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        time: WorkerTime,
        execution: Execution,
        book: LeaseBook,
        hands: Hands,
        wakeup: Wakeup,
        worker: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._time = time
        self._execution = execution
        self._book = book
        self._hands = hands
        self._wakeup = wakeup
        self._definitions = Definitions(store)
        self._log = structlog.get_logger("sexton.worker").bind(worker=worker)

    def read(self, grants: Iterable[Grant]) -> None:
        """Have here what these runs need to begin. Raises ``DatabaseUnreachable``."""
        self._definitions.read(grants)

    def begin_anew(self, grants: Sequence[Grant]) -> None:
        """The ledger was restored or promoted: what was read of it counts no more, nor may these grants, which have not
        begun. They go back, and their tokens say whether they still do."""
        self._definitions.forget()
        for grant in grants:
            self._hands.give_back(grant, LEDGER_MOVED)
        if grants:
            self._wakeup.set()

    def readable(self, grants: Sequence[Grant]) -> list[Grant]:
        """Those of which ``read`` got what they need; the others wait for that."""
        return [grant for grant in grants if self._definitions.has(grant)]

    def begin(self, grants: Sequence[Grant]) -> None:
        """Start these, which were read, as far as they may. Raises ``DatabaseUnreachable``: then none has begun."""
        found = self._definitions.of(grants)
        may_start, refused = self._may_start(grants, found)
        now, orders = self._time.now(), []
        for grant in grants:
            recipe = found[grant.job_id, grant.revision]
            if isinstance(recipe, UnreadableDefinition) and recipe.is_younger:
                self._hands.give_back(grant, str(recipe), after=FOR_YOUNGER)
                self._wakeup.set()
            elif isinstance(recipe, UnreadableDefinition):
                self._hands.give_back(grant, str(recipe), State.FAILED)
                self._wakeup.set()
            elif (until := may_start.get(grant.token)) is not None:
                orders.append(self._hands.begin(grant, recipe, now, until))
            elif grant.token in refused:
                self._hands.drop(grant.token)
                self._book.release(grant.token)
                self._log.warning("grant.dropped", token=grant.token)
            else:  # if it still counts, it is not lost, though it may be marked as started
                self._hands.give_back(grant, LEASE_PASSED)
                self._wakeup.set()
        self._book.bind(order.token for order in orders if order.ends_with_lease)
        self._execution.start(*orders)

    def _may_start(
        self, grants: Sequence[Grant], found: Mapping[Key, Recipe | UnreadableDefinition]
    ) -> tuple[dict[int, float], set[int]]:
        """Which tokens may start, and until which elapsed seconds; and which no longer count. Those that run at most
        once are marked first."""
        until = self._book.live(self._clock.elapsed())
        once = [
            grant
            for grant in grants
            if grant.at_most_once and grant.token in until and isinstance(found[grant.job_id, grant.revision], Recipe)
        ]
        refused = {grant.token for grant in once} - (self._store.grants.mark_started(once) if once else set())
        for token in refused:
            del until[token]
        return until, refused
