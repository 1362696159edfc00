"""Settings as screens and listings show them: what is in force, what else would be, and who or what says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sexton.settings import SETTING_KEYS, ClusterSettings, setting_text, settings_from_rows

DEFAULT = "default"


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
