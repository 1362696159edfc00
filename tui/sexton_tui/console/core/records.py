"""A line of the audit log and a setting, opened; settings in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from sexton.setting_views import DEFAULT, SettingView
from sexton.views import EventView
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, Row, line, row, text_lines
from sexton_tui.console.core.subjects import OfSetting
from sexton_tui.console.core.words import full_instant, instant

SETTING_COLUMNS = ("setting", "value", "default", "source", "by", "when", "what it is")
_SHOWN = 24

MEANINGS = {
    "strategy": "One leader decides, or all nodes race.",
    "horizon": "How far ahead claims are written: the outage of all nodes that delays nothing. 0s turns it off; else "
    "it is longer than session and 5 s.",
    "session": "How long a silent leader stays leader. Shorter: quicker takeovers, more false ones on a slow network.",
    "failover.database_after": "With ZooKeeper away: how long the heartbeat stands still before a node takes over by "
    "the leader lease. Keep it below horizon, or runs are late after such a failover.",
    "catch_up.rate": "Ticks a second, in the whole cluster, that missed ticks are caught up with.",
    "catch_up.concurrency": "How many caught-up runs go on at once; live ticks go first.",
    "catch_up.hold_above": "A pass that would fire more ticks than this holds them all for an operator.",
    "lease": "How long a worker that fell silent keeps its claims. Longer: it survives longer pauses.",
    "heartbeat": "How often leases are renewed; three times this is at most lease.",
    "retention": "How long ended claims and runs are kept.",
    "retention.max_runs": "The most runs that are kept of a job.",
    "coordinator": "Who elects the leader, as the first node recorded it: ZooKeeper, or the database.",
}


def setting_row(view: SettingView, now: datetime) -> Row:
    """A setting in force, and who says so."""
    changed = view.source != DEFAULT
    return row(
        view.key,
        view.key,
        (_short(_shown(view.value)), STRONG if changed and view.value != view.default else ""),
        (_shown(view.default), DIM),
        view.source if changed else (view.source, DIM),
        view.changed_by or "",
        "" if view.changed_at is None else instant(view.changed_at, now),
        (MEANINGS.get(view.key, ""), DIM),
        about=OfSetting(view.key),
    )


def _short(text: str) -> str:
    """A coordinator's address is long; the setting, opened, has all of it."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _shown(value: str | None) -> str:
    return "-" if value is None else value


def setting_lines(view: SettingView, changes: Sequence[EventView], now: datetime) -> list[Line]:
    """What it means, what it is, and how it came to be so."""
    source = view.source if view.changed_by is None else f"{view.source} by {view.changed_by}"
    lines = [
        line((view.key, STRONG)),
        line(MEANINGS.get(view.key, "")),
        line(),
        line(("value    ", DIM), _shown(view.value)),
        line(("default  ", DIM), _shown(view.default)),
        line(("source   ", DIM), source),
    ]
    if view.changed_at is not None:
        lines.append(line(("changed  ", DIM), full_instant(view.changed_at, now)))
    if view.key != "coordinator":
        lines += [line(), line((f"`sexton settings set {view.key} VALUE` changes it.", DIM))]
    lines += [line(), line(("Changes, newest first", STRONG))]
    return [*lines, *([_change_line(event, now) for event in changes] or [line(("  none recorded", DIM))])]


def _change_line(event: EventView, now: datetime) -> Line:
    before, after = event.detail.get("from"), event.detail.get("to")
    return line((f"  {instant(event.at, now):>12}  ", DIM), f"{before} to {after}", (f"  by {event.actor}", DIM))


def event_lines(event: EventView, now: datetime) -> list[Line]:
    """All of it: who did what when, and its whole detail, a key each."""
    lines = [
        line((event.action, STRONG), f"  event {event.event_id}"),
        line(("at   ", DIM), full_instant(event.at, now)),
        line(("who  ", DIM), event.actor),
    ]
    if event.job is not None:
        lines.append(line(("job  ", DIM), event.job))
    lines.append(line())
    if not event.detail:
        lines.append(line(("no more was recorded", DIM)))
    for key, value in event.detail.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        first, *rest = text_lines(text)
        lines.append(line((f"{key}: ", WARN if key in ("why", "reason") else DIM), first.text))
        lines += [line("  ", more.text) for more in rest]
    return lines
