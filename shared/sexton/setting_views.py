"""Settings as screens and listings show them: what is in force, what else would be, and who or what says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from sexton.masked_url import masked_url
from sexton.process_settings import ProcessSettings, given_settings, load_process_settings
from sexton.secret_texts import HIDDEN
from sexton.settings import SETTING_KEYS, ClusterSettings, format_duration, setting_text, settings_from_rows

DEFAULT = "default"
_HIDDEN_KEYS = ("coordinator_login", "alert", "alert_command", "heartbeat_url")


class Scope(StrEnum):
    CLUSTER = "cluster"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting. ``source``: ``default``; ``set`` (in the database, by whom and when); of a process what gives it,
    such as ``SEXTON_SLOTS`` or ``slots in sexton.toml``. ``value`` None: off, or all; no value is a secret."""

    scope: Scope
    key: str
    value: str | None
    default: str | None
    source: str
    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A row of the database: what was set, by whom and when."""

    key: str
    value: str
    changed_by: str
    changed_at: datetime


def cluster_setting_views(changes: Sequence[SettingChange], coordinator: str | None) -> tuple[SettingView, ...]:
    """Every setting of a cluster, in the order of its documentation; last the coordinator, which its first node
    recorded. Raises InvalidSetting for a row that is none."""
    current = settings_from_rows({change.key: change.value for change in changes})
    by_key = {change.key: change for change in changes}
    views = []
    for key in SETTING_KEYS:
        texts = (setting_text(current, key), setting_text(ClusterSettings(), key))
        change = by_key.get(key)
        if change is None:
            views.append(SettingView(Scope.CLUSTER, key, *texts, DEFAULT))
        else:
            views.append(SettingView(Scope.CLUSTER, key, *texts, "set", change.changed_by, change.changed_at))
    recorded = "the first node's" if coordinator else "not recorded yet"
    return (*views, SettingView(Scope.CLUSTER, "coordinator", coordinator or None, None, recorded))


def process_setting_views(flags: Mapping[str, str], *, config: Path | None = None) -> tuple[SettingView, ...]:
    """What a process started here, by this user and with these options, would have. Raises InvalidSetting."""
    given = given_settings(flags, config=config)
    current = _texts(load_process_settings(flags, config=config))
    default = _texts(load_process_settings({}, environ={}, folders=(Path("/nonexistent"),)))
    sources = {key: source for key, (_, source) in given.items()}
    return tuple(
        SettingView(Scope.PROCESS, key, value, default[key], sources.get(key, DEFAULT))
        for key, value in current.items()
    )


def _texts(settings: ProcessSettings) -> dict[str, str | None]:
    values: dict[str, object] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name == "coordinator_access":
            values |= {f"coordinator_{one.name}": getattr(value, one.name) for one in fields(value)}
        elif field.name == "alerts":
            values |= {one.name: getattr(value, one.name) for one in fields(value)}
        else:
            values[field.name] = value
    return {key: _text(key, value) for key, value in values.items()}


def _text(key: str, value: object) -> str | None:
    if value is None:
        return None
    if key in _HIDDEN_KEYS:
        return HIDDEN
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return masked_url(str(value))
