"""A process's settings as listings show them, with what gives each: an option, a variable, a file, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

from sexton.masked_url import masked_url
from sexton.process_settings import ProcessSettings, given_settings, load_process_settings
from sexton.secret_texts import HIDDEN
from sexton.setting_views import DEFAULT, Scope, SettingView
from sexton.settings import format_duration

_HIDDEN_KEYS = ("coordinator_login", "alert", "alert_command", "heartbeat_url")


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
