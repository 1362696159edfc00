"""How to run the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from sexton_tui.actor import actor as actor_here
from sexton_tui.console.local_zone import local_zone


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """How to run the console.

    ``kill_leader`` ends the leader's process and says what it did; only who started that process can give it.
    ``leaving_ends``: what ends with the console besides itself, in a sentence; then leaving it is asked about.
    ``is_over`` is asked twice a second and ends the console when it says so. ``actor``: who acts, for the audit log.
    ``toast_seconds``: for how long what was done is told. ``theme``: one of ``themes.THEMES``.
    ``zone``: the one that is called local.
    ``clock`` replaces the host's clock in a database that has none (SQLite), for pictures and tests.
    """

    database_url: str
    read_only: bool = False
    ascii: bool = False
    theme: str = "dark"
    toast_seconds: float = 5.0
    kill_leader: Callable[[], str] | None = None
    leaving_ends: str = ""
    is_over: Callable[[], bool] | None = None
    title: str = "sexton"
    actor: str = field(default_factory=actor_here)
    zone: tzinfo = field(default_factory=local_zone)
    clock: Callable[[], datetime] | None = None
