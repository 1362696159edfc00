"""Settings of the cluster: kept in the database, so that a takeover changes none.

Settings of a process (database address, queues, slots, ...) are in
``sexton.process_settings``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache

from sexton.errors import InvalidSetting
from sexton.terms import Strategy

_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def parse_duration(text: str) -> timedelta:
    """``30s``, ``15m``, ``1h30m``, ``2d``, ``250ms``. Raises ValueError with what to write instead."""
    if not text or not re.fullmatch(r"([0-9]{1,12}(ms|s|m|h|d))+", text):
        raise ValueError(f"{text!r} is not a duration; write e.g. 30s, 15m, 1h30m or 2d")
    try:
        return sum((int(number) * _UNITS[unit] for number, unit in _DURATION.findall(text)), timedelta(0))
    except OverflowError:
        raise ValueError(f"{text!r} is longer than any schedule; write e.g. 30d") from None


def format_duration(duration: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back: ``1h30m``, ``0s``."""
    milliseconds = duration // timedelta(milliseconds=1)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms"):
        size = _UNITS[unit] // timedelta(milliseconds=1)
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Every setting of the cluster with its default; field names are the keys with ``.`` as ``_``."""

    strategy: Strategy = Strategy.LEADER
    horizon: timedelta = timedelta(seconds=60)
    session: timedelta = timedelta(seconds=6)
    failover_database_after: timedelta = timedelta(seconds=30)
    catch_up_rate: float = 50.0
    catch_up_concurrency: int = 10
    catch_up_hold_above: int = 1000
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    retention: timedelta = timedelta(days=30)
    retention_max_runs: int | None = None

    def check(self) -> None:
        """Raise ``InvalidSetting`` where settings contradict each other."""
        self.check_leases()
        self._check_horizon()

    def check_leases(self) -> None:
        """Raise ``InvalidSetting`` where those that workers go by contradict each other."""
        if self.heartbeat * 3 > self.lease:
            raise InvalidSetting(
                f"heartbeat {format_duration(self.heartbeat)} × 3 is longer than lease {format_duration(self.lease)}",
                hint="a worker must get three tries before it loses a claim: raise lease or lower heartbeat",
            )

    def _check_horizon(self) -> None:
        if self.horizon and self.horizon <= self.session + timedelta(seconds=5):
            raise InvalidSetting(
                f"horizon {format_duration(self.horizon)} is not longer than session "
                f"{format_duration(self.session)} + 5s",
                hint="claims must outlast a takeover: raise horizon, or set it to 0s to turn writing ahead off",
            )
        if self.failover_database_after < self.session:
            raise InvalidSetting(
                f"failover.database_after {format_duration(self.failover_database_after)} is shorter than session "
                f"{format_duration(self.session)}",
                hint="a leader beats three times a session, and must get them all before it is taken for dead: "
                "raise failover.database_after, or lower session",
            )

    def warning(self) -> str | None:
        """What is allowed, and delays runs in a bad hour; None where nothing is."""
        if not self.horizon or self.failover_database_after < self.horizon:
            return None
        return (
            f"failover.database_after {format_duration(self.failover_database_after)} is not shorter than horizon "
            f"{format_duration(self.horizon)}: a leader that dies while ZooKeeper is away leaves runs late"
        )


# Beyond these, instants computed from a setting leave the calendar, and every node that leads would end.
_LONGEST_HORIZON = timedelta(days=366)
_LONGEST = timedelta(days=36525)
_LEAST_RATE = 0.001
_TOO_MUCH = 1_000_000_000

SETTING_KEYS: Mapping[str, str] = {
    "strategy": "strategy",
    "horizon": "horizon",
    "session": "session",
    "failover.database_after": "failover_database_after",
    "catch_up.rate": "catch_up_rate",
    "catch_up.concurrency": "catch_up_concurrency",
    "catch_up.hold_above": "catch_up_hold_above",
    "lease": "lease",
    "heartbeat": "heartbeat",
    "retention": "retention",
    "retention.max_runs": "retention_max_runs",
}


def settings_from_rows(rows: Mapping[str, str]) -> ClusterSettings:
    """The settings that stored ``key: text`` rows describe; missing keys keep their default."""
    settings = ClusterSettings()
    for key, text in rows.items():
        settings = with_setting(settings, key, text)
    return settings


@lru_cache(maxsize=256)  # every node and worker reads all of them every few seconds
def with_setting(settings: ClusterSettings, key: str, text: str) -> ClusterSettings:
    """``settings`` with one key set from text, not yet checked against the others."""
    name = SETTING_KEYS.get(key)
    if name is None:
        raise InvalidSetting(f"there is no setting {key!r}", hint=f"the settings are {', '.join(SETTING_KEYS)}")
    try:
        return replace(settings, **{name: _parse(name, text)})  # type: ignore[arg-type]  # _parse follows the field
    except ValueError as error:
        raise InvalidSetting(f"{key}: {error}") from None


def setting_text(settings: ClusterSettings, key: str) -> str:
    """The value of a key as ``with_setting`` reads it back."""
    value = getattr(settings, SETTING_KEYS[key])
    if isinstance(value, timedelta):
        return format_duration(value)
    return "none" if value is None else str(value)


def _parse(name: str, text: str) -> object:
    kind = {field.name: str(field.type) for field in fields(ClusterSettings)}[name]
    if kind == "timedelta":
        value = parse_duration(text)
        if name != "horizon" and value < timedelta(milliseconds=100):
            raise ValueError(f"{text!r} is too short; the least is 100ms")
        if value > (most := _LONGEST_HORIZON if name == "horizon" else _LONGEST):
            raise ValueError(f"{text!r} is too long; the most is {format_duration(most)}")
        return value
    if kind == "Strategy":
        try:
            return Strategy(text)
        except ValueError:
            raise ValueError(f"{text!r} is neither leader nor race") from None
    if kind == "float":
        return _positive(_rate(text), text, _LEAST_RATE)
    if text == "none" and "None" in kind:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,12}", text):
        raise ValueError(f"{text!r} is not a whole number; write e.g. 1000{' or none' if 'None' in kind else ''}")
    return _positive(int(text), text)


def _rate(text: str) -> float:
    """How many a second: ``50``, ``0.5``, ``50/s``."""
    number = text.removesuffix("/s")
    if not re.fullmatch(r"[+-]?[0-9]{1,12}(\.[0-9]{1,12})?(e[+-]?[0-9]{1,3})?", number):
        raise ValueError(f"{text!r} is not a number a second; write e.g. 50 or 0.5")
    return float(number)


def _positive(value: float, text: str, least: float = 1) -> float:
    if value <= 0:
        raise ValueError(f"{text!r} is not a number above 0")
    if value >= _TOO_MUCH:
        raise ValueError(f"{text!r} is too much; it has to be under {_TOO_MUCH:,}")
    if value < least:
        raise ValueError(f"{text!r} is too small; the least is {least:g}")
    return value
