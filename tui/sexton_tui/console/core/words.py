"""Times, counts and outcomes in the fewest words that an operator reads at a glance.

Clock readings are those of the zone of ``now``, which the command line gives in UTC, and a screen in the zone it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum

from sexton.claims import State
from sexton.cluster_views import COUNT_LIMIT
from sexton_tui.console.core.lines import BAD, DIM, GOOD, PLAIN, WARN

_SECOND = timedelta(seconds=1)


class ShownNow(datetime):
    """The moment of what a screen shows, in the zone it shows; ``is_relative``: instants are told by their distance."""

    is_relative: bool = False

    @classmethod
    def of(cls, now: datetime, zone: tzinfo, *, is_relative: bool = False) -> ShownNow:
        """`now` on the zone's clock."""
        at = now.astimezone(zone)
        shown = cls.combine(at.date(), at.timetz())
        shown.is_relative = is_relative
        return shown


class ClockReading(StrEnum):
    """How a screen tells instants."""

    UTC = "UTC"
    LOCAL = "local"
    RELATIVE = "from now"

    @property
    def next(self) -> ClockReading:
        """The one that comes after it, round and round."""
        ways = list(ClockReading)
        return ways[(ways.index(self) + 1) % len(ways)]

    def now(self, now: datetime, zone: tzinfo) -> ShownNow:
        """`now` so that instants beside it are told this way; ``zone`` is the local one."""
        where = zone if self is ClockReading.LOCAL else UTC
        return ShownNow.of(now, where, is_relative=self is ClockReading.RELATIVE)

    def clock(self, now: datetime) -> str:
        """The clock on the screen, with its zone: ``UTC 02:30:41``."""
        return f"{now:%Z %H:%M:%S}" + ("+-" if self is ClockReading.RELATIVE else "")


def clock_of(now: datetime) -> tuple[tzinfo | None, bool]:
    """How instants beside `now` are told: on which clock, and whether by their distance."""
    return now.tzinfo, isinstance(now, ShownNow) and now.is_relative


def duration(value: timedelta | None) -> str:
    """``4 ms``, ``2.3 s``, ``41 s``, ``13m07s``, ``3h10m``, ``2d04h``; ``-`` for None."""
    if value is None:
        return "-"
    if value < timedelta(0):
        return "-" + duration(-value)
    seconds = value / _SECOND
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def late_words(value: timedelta | None) -> str:
    """A lateness. Clocks of two hosts differ by some ms: what started before its tick by them is ``0 ms`` late."""
    return duration(value if value is None else max(value, timedelta(0)))


def since_words(since: datetime, now: datetime) -> str:
    """For how long; never less than nothing, whichever clocks the two instants are from."""
    return duration(max(now - since, timedelta(0)))


def instant(at: datetime | None, now: datetime) -> str:
    """``02:13:07`` on the day of `now`, else ``Nov 28 02:13``, in another year ``2025-11-28``; ``-`` for None.

    Read on the clock of the zone of `now`; where that is a ``ShownNow`` that asks for it: ``17m34s ago``, ``in 5m00s``.
    """
    if at is None:
        return "-"
    if isinstance(now, ShownNow) and now.is_relative:
        away = at.astimezone(UTC) - now.astimezone(UTC)
        return f"in {duration(away)}" if away > timedelta(0) else f"{duration(-away)} ago"
    at = at.astimezone(now.tzinfo)
    if at.date() == now.date():
        return f"{at:%H:%M:%S}"
    if at.year == now.year:
        return f"{_MONTHS[at.month - 1]} {at.day:02d} {at:%H:%M}"
    return f"{at:%Y-%m-%d}"


def iso_instant(at: datetime) -> str:
    """``2026-03-29T01:00:00Z``, as commands take it; with a fraction only where there is one."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def full_instant(at: datetime, now: datetime) -> str:
    """Date, time and zone, and how far it is from `now`: ``2026-03-29 02:00:00 UTC, 31m ago``."""
    shown, away = at.astimezone(now.tzinfo), at.astimezone(UTC) - now.astimezone(UTC)
    distance = f"in {duration(away)}" if away > timedelta(0) else f"{duration(-away)} ago"
    fraction = f".{shown.microsecond // 1000:03d}" if shown.microsecond else ""
    return f"{shown:%Y-%m-%d %H:%M:%S}{fraction} {shown:%Z}, {distance}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # in every locale


def count(number: int) -> str:
    """``12``, ``1,234``, ``10,000+`` where counting stopped."""
    return f"{COUNT_LIMIT:,}+" if number > COUNT_LIMIT else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def size(number: int) -> str:
    """``17 B``, ``64 KiB``."""
    if number < 1024:
        return f"{number} B"
    return f"{number / 1024:.0f} KiB" if number < 1024 * 1024 else f"{number / 1024 / 1024:.1f} MiB"


def state_style(state: State) -> str:
    """Colour beside the word, never in its place."""
    if state in _FAILED:
        return BAD
    if state is State.SUCCEEDED:
        return GOOD
    if state in (State.HELD, State.EXPIRED, State.PARKED):
        return WARN
    return PLAIN if state is State.RUNNING else DIM


_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})
_SIGNS: Mapping[State, tuple[str, str]] = {
    State.SUCCEEDED: ("▪", "o"),
    State.FAILED: ("✗", "X"),
    State.TIMED_OUT: ("✗", "X"),
    State.LOST: ("✗", "X"),
    State.CANCELLED: ("–", "-"),
    State.READY: ("·", "."),  # ended to be tried again
}


def strip(outcomes: Sequence[State], width: int, *, ascii_only: bool = False) -> str:
    """The newest `width` outcomes as one sign each, oldest first: shapes, not colours."""
    signs = (_SIGNS.get(outcome, ("·", "."))[ascii_only] for outcome in outcomes[-width:])
    return "".join(signs).rjust(width)


def wants_ascii(environ: Mapping[str, str]) -> bool:
    """Whether the locale's encoding is none that has the signs. Python itself may have set LC_CTYPE=C.UTF-8."""
    if value := environ.get("LC_ALL"):
        return not _is_utf8(value)
    if (value := environ.get("LC_CTYPE")) and value != "C.UTF-8":
        return not _is_utf8(value)
    return not _is_utf8(environ.get("LANG", ""))


def _is_utf8(value: str) -> bool:
    return value.lower().replace("-", "").partition(".")[2].partition("@")[0] == "utf8"
