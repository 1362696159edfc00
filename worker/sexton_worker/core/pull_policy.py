"""When a worker goes to the database, and for how many claims it asks.

One exchange writes the results that have come in, promotes what they freed and
pulls new work. So batches grow by themselves under load and are one run long
when idle; and a result is written at once unless a pull is due within ``GAP``
anyway, which then takes it along.

Slots that run only short jobs would idle during every exchange. So a worker
takes some claims ahead while its recent runs are short: four times what ends
between two exchanges, and no more than its slots run in ``AHEAD_SECONDS``. What
waits longer than that behind a job that turns out long is given back.

An exchange of many claims costs less for each than one of few, but an urgent claim
waits for the exchange that is on its way. So one carries no more claims than go through
in ``EXCHANGE_SECONDS`` here, or ``SHORT_SECONDS`` for a while after an urgent claim was
granted; and the one after somebody said that there is work is small, and leaves the
results to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

GAP = 0.005  # seconds: what is due closer together than this is one exchange
LARGEST_PULL = 400
SMALLEST_PULL = 100  # below this an exchange costs more than its claims
EXCHANGE_SECONDS = 0.024
SHORT_SECONDS = 0.009
URGENT_FOR = 10.0  # seconds for which exchanges are short after an urgent claim
URGENT_PULL = 8  # claims of the exchange that only looks what others said there is
LARGEST_HOLD = 1000  # so that one batch runs while the next is pulled and the one before is written
GROWTH = 4
AHEAD_SECONDS = 0.25
RECALL_SECONDS = 0.5
REMEMBERED = 32  # runs; one long one among them and nothing is taken ahead
LINGER = 0.02  # seconds for which a few results wait for more, of a worker that has work in hand
WORTH_WRITING = 25  # results; so many wait no longer than ``GAP``
WAKE_LATE = 0.001  # woken a little late, a claim is there; a little early, it costs another exchange


@dataclass(frozen=True, slots=True)
class Pulled:
    """What the last pull found. ``next_due``: elapsed seconds at which the next claim becomes available."""

    asked: int
    picked: int
    granted: int
    next_due: float | None
    fruitless: int = 0  # pulls in a row that picked claims and were granted none
    at: float = 0.0  # elapsed seconds

    def after(self, asked: int, picked: int, granted: int, next_due: float | None, at: float = 0.0) -> Pulled:
        """The pull that follows this one."""
        fruitless = self.fruitless + 1 if picked and not granted else 0
        return Pulled(asked, picked, granted, next_due, fruitless, at)

    def worth_at(self) -> float | None:
        """When the next claim is there, elapsed seconds; not sooner than ``GAP`` after a pull that granted some."""
        if self.next_due is None:
            return None
        woken = self.next_due + WAKE_LATE
        return max(woken, self.at + GAP) if self.granted else woken


NOTHING_PULLED = Pulled(0, 0, 0, None)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast runs end. ``recent``: seconds of the last runs; ``ended``: runs between the last two exchanges."""

    recent: tuple[float, ...] = ()
    ended: int = 0
    ended_before: int = 0
    each: float = 0.0  # seconds that a claim took in the last large exchanges
    urgent_at: float = float("-inf")  # elapsed seconds, when an urgent claim was granted last

    def after(self, durations: Sequence[float]) -> Pace:
        """The pace once an exchange takes these results along."""
        recent = (*self.recent, *durations)[-REMEMBERED:]
        return replace(self, recent=recent, ended=len(durations), ended_before=self.ended)

    def exchanged(self, claims: int, seconds: float, urgent_at: float | None = None) -> Pace:
        """The pace once an exchange of so many claims has taken so long; ``urgent_at``: one of them was urgent."""
        pace = self if urgent_at is None else replace(self, urgent_at=urgent_at)
        if claims < SMALLEST_PULL:
            return pace
        each = seconds / claims
        return replace(pace, each=(3 * self.each + each) / 4 if self.each else each)

    def largest_pull(self, now: float) -> int:
        """How many claims one exchange may carry."""
        if self.each <= 0:
            return LARGEST_PULL
        seconds = SHORT_SECONDS if now - self.urgent_at < URGENT_FOR else EXCHANGE_SECONDS
        return max(SMALLEST_PULL, min(LARGEST_PULL, int(seconds / self.each)))


def capacity(slots: int, pace: Pace) -> int:
    """How many claims may be in hand: the slots, and ahead of them what short runs will not keep waiting."""
    if len(pace.recent) < min(slots, REMEMBERED):
        return slots
    longest = max(pace.recent)
    in_time = int(slots * AHEAD_SECONDS / longest) if longest > 0 else LARGEST_PULL
    return max(slots, min(LARGEST_HOLD, slots + in_time, GROWTH * max(pace.ended, pace.ended_before)))


def room(holds: int, in_hand: int, *, is_draining: bool, most: int = LARGEST_PULL) -> int:
    """How many grants to ask for with ``holds`` as the capacity: what is free, nothing while draining."""
    return 0 if is_draining else max(0, min(most, holds - in_hand))


def exchange_in(results: int, free: int, last: Pulled, now: float) -> float | None:
    """Seconds until the next exchange makes sense for a worker that was just woken; None: there is nothing to do."""
    if not results:
        return 0.0 if free else None
    worth_at = last.worth_at()
    if free and worth_at is not None and WAKE_LATE < worth_at - now <= GAP + WAKE_LATE:
        return worth_at - now
    return 0.0


def linger(results: int, since: float, now: float) -> float:
    """Seconds until the next exchange of a worker that has taken ahead, had results ``since`` and will soon have more:
    many small exchanges cost both sides more than a moment's patience."""
    patience = GAP if results >= WORTH_WRITING else LINGER
    return max(0.0, since + patience - now)


def is_full(last: Pulled) -> bool:
    """Whether the last pull found as much as it asked for: there is likely more."""
    return last.granted > 0 and last.picked >= last.asked


def pause(free: int, last: Pulled, now: float, poll: float) -> float:
    """Seconds to sleep after an exchange; whoever has news for the worker wakes it before.

    Picked claims that were not granted may have been parked or skipped, or their slot could not be locked: that is
    not idle, and is looked at again soon, less and less so while nothing comes of it.
    """
    if not free:
        return poll
    if is_full(last):
        return 0.0
    worth_at = last.worth_at()
    until_due = poll if worth_at is None else worth_at - now
    if last.picked > last.granted:
        until_due = min(until_due, GAP * 2 ** min(last.fruitless, 10))
    return max(0.0, min(poll, until_due))
