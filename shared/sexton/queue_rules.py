"""Rules of queues: how many of a queue's claims run at once in the cluster, and how many start a second. Pure.

The rate is a token bucket kept as one instant, ``next_at``: when the rate admits the next grant. It holds what one
second admits, and at least one grant. So in no stretch of t seconds are there more than ``rate * (t + 1)`` grants (or
one more than ``rate * t``, below 1/s), and a queue that was idle does not make up for hours.

A clock that jumps ahead fills the bucket, no more. One that jumps back leaves ``next_at`` ahead of where any grant
can have put it: then it counts for nothing, one grant is admitted, and the rate goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor

from sexton.errors import InvalidSetting

MOST_SLOTS = 100_000
MOST_RATE = 100_000.0  # a second
LEAST_RATE = 1 / 86_400
OTHERS_WAIT = timedelta(milliseconds=500)
"""How long after ``next_at`` those workers look again that did not take the queue's last claims: whoever took them
comes at ``next_at`` itself, and they come only if it has no room left."""

_SECOND = timedelta(seconds=1)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:/([smhd]))?")
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class QueueRule:
    """``slots``: how many run at once; ``rate``: how many are granted a second; None: as many as workers take."""

    slots: int | None = None
    rate: float | None = None

    def __bool__(self) -> bool:
        """Whether it limits anything."""
        return self.slots is not None or self.rate is not None

    def words(self) -> dict[str, str]:
        """Both limits as an operator writes them."""
        return {
            "slots": "none" if self.slots is None else str(self.slots),
            "rate": "none" if self.rate is None else rate_text(self.rate),
        }

    def __str__(self) -> str:
        return ", ".join(f"{limit} {text}" for limit, text in self.words().items())


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What ``queues set`` changed; a rule that limits nothing is no rule."""

    before: QueueRule
    after: QueueRule


def with_limits(rule: QueueRule, limits: Mapping[str, str]) -> QueueRule:
    """``rule`` with the given ``slots`` and ``rate`` read from text. Raises ``InvalidSetting``."""
    slots = slots_of(limits["slots"]) if "slots" in limits else rule.slots
    rate = rate_of(limits["rate"]) if "rate" in limits else rule.rate
    return QueueRule(slots, rate)


def slots_of(text: str) -> int | None:
    """``8`` or ``none``. Raises ``InvalidSetting`` with what to write instead."""
    if text == "none":
        return None
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MOST_SLOTS:
        hint = f"write a whole number from 1 to {MOST_SLOTS}, or none"
        if text == "0":
            hint += "; to stop the queue's jobs, pause them"
        raise InvalidSetting(f"{text!r} is no number of slots", hint=hint)
    return int(text)


def rate_of(text: str) -> float | None:
    """Grants a second: ``10/s``, ``600/m``, ``30/h``, ``5/d``, ``10`` or ``none``. Raises ``InvalidSetting``."""
    if text == "none":
        return None
    found = _RATE.fullmatch(text)
    if found is None:
        raise InvalidSetting(f"{text!r} is no rate", hint="write e.g. 10/s, 600/m, 30/h or none")
    rate = float(found[1]) / _UNITS[found[2] or "s"]
    if not LEAST_RATE * 0.999 <= rate <= MOST_RATE:
        raise InvalidSetting(f"the rate {text!r} is out of bounds", hint=f"from 1/d to {MOST_RATE:.0f}/s, or none")
    return rate


def rate_text(rate: float) -> str:
    """A rate as ``rate_of`` reads it back: in the smallest unit in which it is a whole number, else in seconds."""
    for unit, seconds in _UNITS.items():
        count = rate * seconds
        if count >= 1 and abs(count - round(count)) < 1e-6 * count:
            return f"{round(count)}/{unit}"
    unit, seconds = next(((unit, seconds) for unit, seconds in _UNITS.items() if rate * seconds >= 1), ("d", 86_400))
    return f"{rate * seconds:.6g}/{unit}"


# --- the bucket -----------------------------------------------------------------------------------


def admitted(rate: float, next_at: datetime | None, now: datetime) -> int:
    """How many grants the rate admits now."""
    since = _since(rate, next_at, now)
    if since > now:
        return 0
    return floor((now - since).total_seconds() * rate + 1e-3) + 1  # instants are whole microseconds


def next_after(rate: float, next_at: datetime | None, now: datetime, granted: int) -> datetime:
    """``next_at`` once so many grants were made now."""
    return _since(rate, next_at, now) + timedelta(seconds=granted / rate)


def _since(rate: float, next_at: datetime | None, now: datetime) -> datetime:
    """The instant from which on grants have been admitted and not made."""
    period = timedelta(seconds=1 / rate)
    full = now - max(timedelta(0), _SECOND - period)
    if next_at is None:
        return full
    if next_at > now + period + _SECOND:  # the clock was ahead
        return now
    return max(next_at, full)


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """A queue with a rule at one moment of the database's clock (``seen_at``), and what waits in it."""

    name: str
    rule: QueueRule
    next_at: datetime | None
    running: int  # counted where it decides something
    seen_at: datetime
    top: int | None = None  # the highest priority among its due live claims
    is_paced_due: bool = False
    ahead: datetime | None = None  # the next instant at which a claim becomes available

    @property
    def is_due(self) -> bool:
        return self.top is not None or self.is_paced_due

    @property
    def admits(self) -> int | None:
        """How many more grants the rule allows; None: any number."""
        bounds = []
        if self.rule.slots is not None:
            bounds.append(max(0, self.rule.slots - self.running))
        if self.rule.rate is not None:
            bounds.append(admitted(self.rule.rate, self.next_at, self.seen_at))
        return min(bounds, default=None)

    def room(self, asked: int) -> int:
        """How many of the grants asked for the rule allows."""
        admits = self.admits
        return max(0, asked if admits is None else min(asked, admits))

    @property
    def opens_at(self) -> datetime | None:
        """When the rate admits the next grant, if that is ahead."""
        if self.rule.rate is None or admitted(self.rule.rate, self.next_at, self.seen_at):
            return None
        return self.next_at

    def look_at(self, own: datetime | None) -> datetime | None:
        """When a worker should look again without being told; None: it will be told, or there is nothing.

        ``own``: the ``next_at`` that this worker left behind when it was granted claims of this queue. A slot that
        becomes free is told of.
        """
        opens_at = self.opens_at
        moments = []
        if self.is_due and opens_at is not None:
            moments.append(opens_at if opens_at == own else opens_at + OTHERS_WAIT)
        if self.ahead is not None:
            moments.append(self.ahead if opens_at is None else max(self.ahead, opens_at))
        return min(moments, default=None)
