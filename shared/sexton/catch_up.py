"""The catch-up as it stands: what waits under its budget, and when it will be done. Pure.

When it is done is a sum over what is known now, each of it a lower bound, the largest of which is told: the last start
that the budget gave, and for each thing that claims share (a job's slot, a concurrency key, a queue and its workers,
``catch_up.concurrency``) how long their runs take one after the other. Live ticks go first, so it may take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sexton.claims import Origin
from sexton.settings import format_duration

_NO_TIME = timedelta(0)
_SECOND = timedelta(seconds=1)


def paced_slots(slots: int) -> int:
    """How many of a worker's slots runs under the budget may have: a quarter, one at least, is kept for live ticks,
    for nobody knows how long a caught-up run takes. A worker's only slot serves both."""
    return slots - max(1, slots // 4) if slots > 1 else slots


@dataclass(frozen=True, slots=True)
class Load:
    """Claims of a job in a queue that wait, ready or parked. ``upto``: when the last of them may start. ``slot``: what
    bounds how many of them run at once; None: nothing does. ``run``: how long one takes; None: no run tells."""

    origin: Origin
    queue: str
    count: int
    upto: datetime
    slot: int | None = None
    run: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """How many of a queue's claims can run at once and start a second; ``rate`` None: as many as there are."""

    slots: int
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The budget (``rate`` starts a second, ``concurrency`` runs at once) and what it paces, at ``now``.

    ``running``: claims under the budget that run, which is how much of ``concurrency`` is in use. ``waiting``: by
    the word of their origin; claims of paused jobs are not among them. ``parked``: those that wait for their slot.
    ``unserved``: those in queues that no worker serves. ``is_whole``: all were counted. ``last_start_in``: from now
    until the budget lets the last one start; None: none waits. ``done_in``: from now until all have run; None where
    that cannot be told: no run tells how long they take, or some are unserved.
    """

    now: datetime
    rate: float
    concurrency: int
    running: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    parked: int = 0
    unserved: int = 0
    is_whole: bool = True
    last_start_in: timedelta | None = None
    usual_run: timedelta | None = None
    done_in: timedelta | None = None

    @property
    def count(self) -> int:
        """All that wait."""
        return sum(self.waiting.values())

    @property
    def is_idle(self) -> bool:
        """Nothing is caught up with."""
        return not self.count and not self.running


@dataclass(frozen=True, slots=True)
class CatchUpRead:
    """What the ledger says: loads, the sizes of the slot groups that are more than one, and the room of the queues that
    workers serve, together ``slots``."""

    loads: Sequence[Load]
    running: int = 0
    parked: int = 0
    is_whole: bool = True
    sizes: Mapping[int, int] = field(default_factory=dict)
    rooms: Mapping[str, Room] = field(default_factory=dict)
    slots: int = 0


def catch_up_at(now: datetime, rate: float, concurrency: int, read: CatchUpRead) -> CatchUp:
    """The view of what was read at ``now`` (UTC)."""
    waiting = {origin: sum(load.count for load in read.loads if load.origin is origin) for origin in Origin}
    usual = _usual(read.loads)
    unserved = sum(load.count for load in read.loads if load.queue not in read.rooms)
    is_known = usual is not None and not unserved
    return CatchUp(
        now=now,
        rate=rate,
        concurrency=concurrency,
        running=read.running,
        waiting={origin.word: count for origin, count in waiting.items() if count},
        parked=read.parked,
        unserved=unserved,
        is_whole=read.is_whole,
        last_start_in=max((max(load.upto - now, _NO_TIME) for load in read.loads), default=None),
        usual_run=usual,
        done_in=max(_bounds(now, concurrency, read, usual)) if is_known and usual is not None else None,
    )


def _usual(loads: Sequence[Load]) -> timedelta | None:
    """What a claim takes in the mean, by those whose jobs have run."""
    known = [(load.count, load.run) for load in loads if load.run is not None]
    total = sum(count for count, _ in known)
    return sum((count * run for count, run in known), _NO_TIME) / total if total else None


def _bounds(now: datetime, concurrency: int, read: CatchUpRead, usual: timedelta) -> Iterator[timedelta]:
    by_slot: dict[int, timedelta] = {}
    by_queue: dict[str, tuple[int, timedelta]] = {}
    for load in read.loads:
        run = usual if load.run is None else load.run
        yield max(load.upto - now, _NO_TIME) + run
        if load.slot is not None:
            by_slot[load.slot] = by_slot.get(load.slot, _NO_TIME) + load.count * run
        count, work = by_queue.get(load.queue, (0, _NO_TIME))
        by_queue[load.queue] = (count + load.count, work + load.count * run)
    yield from (work / read.sizes.get(slot, 1) for slot, work in by_slot.items())
    for queue, (count, work) in by_queue.items():
        room = read.rooms[queue]
        yield work / max(min(concurrency, room.slots), 1)
        if room.rate is not None:
            yield count / room.rate * _SECOND
    everything = sum((work for _, work in by_queue.values()), _NO_TIME)
    yield everything / max(min(concurrency, read.slots), 1)


def catch_up_sentences(found: CatchUp) -> tuple[str, ...]:
    """What waits, at which pace, and until when, for a screen; none where nothing is caught up with."""
    if found.is_idle:
        return ()
    budget = f"{found.running:,} of {found.concurrency:,} at once, {found.rate:g}/s"
    if not found.count:
        return (f"the last of it runs ({budget})",)
    parts = ", ".join(f"{count:,} {_WORDS.get(word, word)}" for word, count in found.waiting.items())
    more = "" if found.is_whole else "more than "
    waits = f"{more}{found.count:,} wait ({parts}): {_end(found)}"
    beside = tuple(_beside(found))
    return (waits, f"budget: {budget}" + (f"; {', '.join(beside)}" if beside else ""))


_WORDS = {Origin.CATCH_UP.word: "missed", Origin.HELD.word: "held and approved"}


def _end(found: CatchUp) -> str:
    if found.done_in is not None:
        return f"done {'in about' if found.is_whole else 'not before'} {coarse(found.done_in)}"
    last = found.last_start_in
    starts = "all may start now" if not last else f"the last may start in {coarse(last)}"
    if found.unserved:
        return f"{starts}, but {found.unserved:,} are in queues without a worker"
    return f"{starts}; how long they run is not known yet"


def _beside(found: CatchUp) -> Iterable[str]:
    if found.parked:
        yield f"{found.parked:,} wait for their job's slot"
    if found.usual_run is not None and found.usual_run >= _SECOND:
        yield f"a run takes {coarse(found.usual_run)}"


def coarse(duration: timedelta) -> str:
    """Whole seconds, at least one; whole minutes from an hour on."""
    unit = timedelta(minutes=1) if duration >= timedelta(hours=1) else _SECOND
    return format_duration(max(duration // unit * unit, _SECOND))
