"""What a worker does about its runs' outputs beside running them: shows those that are followed, carries whole ones."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sexton.clock import Clock, Wakeup
from sexton.errors import InvalidSetting
from sexton.output_places import place_at
from sexton.store.protocol import Store
from sexton_worker.core.runs import EndedRun
from sexton_worker.lease_book import LeaseBook
from sexton_worker.live_output import LiveOutputLoop, Looking, WatchBell
from sexton_worker.spool_room import SpoolRoom
from sexton_worker.whole_output import Carrier, WholeRun

UNLIMITED = 1 << 50  # bytes
PARTING_SECONDS = 15.0  # in which an ending worker carries what is left


@dataclass(frozen=True, slots=True)
class WholeOutput:
    """Where outputs are kept whole, and how many bytes of each; None: all."""

    base: str
    limit: int | None


class WholeOutputs:
    """Those of one worker, ``store`` its own. Raises ``InvalidSetting`` where the place or the spool cannot be used."""

    def __init__(self, options: WholeOutput, store: Store, clock: Clock) -> None:
        place, limit = place_at(options.base), options.limit or UNLIMITED
        self._store = store
        try:
            self.room = SpoolRoom(limit)
        except OSError as error:
            raise InvalidSetting(
                f"output: what is to be kept cannot be written down on this machine ({error})",
                hint="make the folder for temporary files writable, or name another in TMPDIR",
            ) from None
        self._carrier = Carrier(place, limit, store.outputs.note_whole, clock)

    def carry(self, ended: EndedRun, run: WholeRun) -> None:
        self._carrier.carry(ended, run)

    def close(self) -> None:
        """Carry what is left, for a while; then nothing of it is on this machine any more."""
        self._carrier.close(PARTING_SECONDS)
        self.room.close()
        with contextlib.suppress(Exception):
            self._store.close()


class LiveOutputs:
    """The thread of ``LiveOutputLoop``. ``told``: see there."""

    def __init__(
        self, open_own: Callable[[], Store], clock: Clock, execution: Looking, book: LeaseBook, seen: Wakeup
    ) -> None:
        self.told = WatchBell(seen)
        self._loop = LiveOutputLoop(open_own(), clock, execution, book, self.told, seen)
        self._thread = threading.Thread(target=self._loop.run, name="sexton live output", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._loop.end()
        self._thread.join()
