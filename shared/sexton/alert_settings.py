"""Where a node tells alerts, and the heartbeat that it sends out: settings of its process, under the names of fields.

All are hidden from ``repr``: addresses and arguments may hold secrets. No message quotes them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from sexton.errors import InvalidSetting
from sexton.settings import parse_duration

_ADDRESS = re.compile(r"https?://[^/\s?#]+[^\s]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """``alert``: an address that gets each message by POST. ``alert_command``: argv, without a shell; it gets the
    message on its stdin. ``no_leader_after``: for how long nobody must lead until that is an alert.
    ``heartbeat_url``: called every ``heartbeat_every`` by the node that leads, for a dead man's switch."""

    alert: str | None = field(default=None, repr=False)
    alert_command: tuple[str, ...] | None = field(default=None, repr=False)
    no_leader_after: timedelta = timedelta(seconds=30)
    heartbeat_url: str | None = field(default=None, repr=False)
    heartbeat_every: timedelta = timedelta(seconds=60)

    @property
    def tells(self) -> bool:
        """Whether this node tells anybody."""
        return self.alert is not None or self.alert_command is not None

    def check(self) -> None:
        """Raise ``InvalidSetting`` where both ways are given."""
        if self.alert is not None and self.alert_command is not None:
            raise InvalidSetting("alert and alert_command are both set", hint="unset one of them")


def alert_environment(settings: AlertSettings) -> dict[str, str]:
    """The variables that give the secrets among ``settings`` to another process."""
    values = {name: getattr(settings, name) for name in ALERT_SECRETS}
    return {f"SEXTON_{name.upper()}": value for name, value in values.items() if value is not None}


def _address(value: object) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value.strip()):
        raise ValueError("is not an address; write https://HOST/PATH")
    try:
        parts = urlsplit(value.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:  # its text quotes the address
        raise ValueError("has a host or port that cannot be; write https://HOST:PORT/PATH") from None
    if not host:
        raise ValueError("names no host; write https://HOST/PATH")
    return value.strip()


def _command(value: object) -> tuple[str, ...]:
    """A TOML list of texts, or one text with quotes as a shell reads them."""
    words = value
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError:
            raise ValueError("has a quote without its end") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError('is not a command; write a list such as ["notify", "--urgent"]')
    if not words[0] or any("\0" in word for word in words):
        raise ValueError("names no program")
    return tuple(words)


def _duration(value: object) -> timedelta:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text; put it in quotes, such as '60s'")
    duration = parse_duration(value.strip())
    if duration < timedelta(seconds=1):
        raise ValueError(f"{value!r} is too short; the least is 1s")
    if duration > timedelta(days=366):
        raise ValueError(f"{value!r} is too long; the most is 366d")
    return duration


ALERT_READINGS: dict[str, Callable[[object], Any]] = {
    "alert": _address,
    "alert_command": _command,
    "no_leader_after": _duration,
    "heartbeat_url": _address,
    "heartbeat_every": _duration,
}
ALERT_SECRETS = ("alert", "heartbeat_url")
