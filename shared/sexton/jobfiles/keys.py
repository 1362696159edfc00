"""Every key of a job file, in one table: how it is read, what it is by default, and whether `defaults` may hold it.

The order is that of the documentation. A key that a later version brings stands here too, with the one value that needs
no code (its default), so that it is refused by name and never ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sexton.claims import OnWorkerLost, Overlap
from sexton.job_rules import CatchUpOrder, MissedPolicy
from sexton.jobfiles.day_readings import Day, Region, Weekday
from sexton.jobfiles.nodes import Mapping, Node, kind_of
from sexton.jobfiles.problems import FileProblems, Place, shown
from sexton.jobfiles.readings import (
    BAD,
    Choice,
    Decimal,
    Duration,
    Flag,
    Instant,
    Json,
    Later,
    ListOf,
    MapOf,
    OrNull,
    Reading,
    Text,
    Whole,
)
from sexton.jobfiles.schedule_reading import ScheduleParts, ZoneName
from sexton.wall_clock_ticks import GapRule, OverlapRule

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NAME_WANTED = "a name: letters, digits, '.', '_' and '-', at most 100, the first a letter or digit"

_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_JITTER = timedelta(days=20)  # a column of milliseconds has to hold it


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``own``: each job says it for itself, `defaults` cannot."""

    name: str
    reading: Reading
    default: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class TableOf:
    """A mapping with named keys, as a dict of those that are given."""

    keys: tuple[Key, ...]
    what: str

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if not isinstance(node, Mapping):
            problems.add(node, f"{key} is {kind_of(node)}; write a mapping with the keys {_names(self.keys)}")
            return BAD
        values = read_keys(node, self.keys, self.what, problems, prefix=f"{key}.")
        return BAD if BAD in values.values() else values


@dataclass(frozen=True, slots=True)
class _Argument:
    """One entry of an argument vector: any text, or a number in quotes."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        return Text(longest=131_072).read(node, key, problems)


@dataclass(frozen=True, slots=True)
class _EnvValue:
    """A text; secrets come with a later version and are never taken literally."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        text = Text(longest=131_072).read(node, key, problems)
        if text is not BAD and "${secret:" in text:
            problems.add(node, f"{key}: ${{secret:...}} comes with a later version; let the job read its secret itself")
            return BAD
        return text


@dataclass(frozen=True, slots=True)
class _CodeOrName:
    """An exit code, or the name of an exception."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        silent = FileProblems(problems.file)
        code = Whole(0, 255).read(node, key, silent)
        if code is not BAD:
            return code
        return Text(
            longest=200, pattern=r"[A-Za-z_][A-Za-z0-9_.]*", wanted="an exit code (0 to 255) or an exception's name"
        ).read(node, key, problems)


RETRY_KEYS = (
    Key("max", Whole(0, 1_000), "0"),
    Key("delay", Duration(), "10s"),
    Key("factor", Decimal(1, 100), "2"),
    Key("max_delay", Duration(), "10m"),
    Key("jitter", Flag(), "true"),
    Key("on", OrNull(ListOf(_CodeOrName(), shortest=1, longest=100)), "null"),
)

MISSED_KEYS = (
    Key("policy", Choice({policy.value: policy for policy in MissedPolicy}), "latest"),
    Key("grace", Duration(), "60s"),
    Key("start_within", OrNull(Duration(least=_SECOND)), "null"),
    Key("within", OrNull(Duration(least=_SECOND)), "null"),
    Key("max", Whole(1, 100_000), "100"),
    Key("order", Choice({order.value: order for order in CatchUpOrder}), "oldest"),
    Key("hold_for", Duration(least=_SECOND), "7d"),
)

DST_KEYS = (
    Key("gap", Choice({rule.value: rule for rule in GapRule}), "shift"),
    Key("overlap", Choice({rule.value: rule for rule in OverlapRule}), "first"),
)

EXCLUDE_KEYS = (
    Key("dates", ListOf(Day(), longest=5_000, wanted="a list of dates such as [2026-12-25]"), "[]"),
    Key("weekdays", ListOf(Weekday(), longest=6, wanted="a list of weekdays such as [SAT, SUN]"), "[]"),
    Key("holidays", ListOf(Region(), longest=20, wanted="a list of regions such as [DE-BE]"), "[]"),
)

_OVERLAPS = {"skip": Overlap.SKIP, "queue": Overlap.QUEUE, "allow": Overlap.ALLOW}

JOB_KEYS = (
    Key("schedule", ScheduleParts(), "", own=True),
    Key("timezone", ZoneName(), "UTC"),
    Key("start", OrNull(Instant()), "null"),
    Key("end", OrNull(Instant()), "null"),
    Key("exclude", TableOf(EXCLUDE_KEYS, "exclude"), "{}"),
    Key("jitter", Duration(most=_LONGEST_JITTER), "0s"),
    Key("dst", TableOf(DST_KEYS, "dst"), "{gap: shift, overlap: first}"),
    Key("hash_seed", Text(longest=200, shortest=1), "the name at the first apply", own=True),
    Key("enabled", Flag(), "true"),
    Key(
        "command",
        ListOf(_Argument(), shortest=1, wanted="a list of program and arguments, or use 'shell' for a text"),
        "",
        own=True,
    ),
    Key("shell", Text(longest=262_144, shortest=1, wanted="a script for /bin/sh"), "", own=True),
    Key(
        "python",
        Text(
            longest=400,
            pattern=r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*",
            wanted="a module and a function, such as billing.jobs:nightly",
        ),
        "",
        own=True,
    ),
    Key("args", ListOf(Json()), "[]", own=True),
    Key("kwargs", MapOf(Json(), r"[A-Za-z_][A-Za-z0-9_]*", "a name of an argument"), "{}", own=True),
    Key("http", Later(None, "not there"), "", own=True),
    Key("celery", Later(None, "not there"), "", own=True),
    Key("env", MapOf(_EnvValue(), r"[^=\x00]{1,200}", "a name of a variable"), "{}"),
    Key("cwd", OrNull(Text(longest=4_096, shortest=1, wanted="a folder")), "null"),
    Key("stdin", OrNull(Text(longest=1_048_576)), "null"),
    Key("success_codes", ListOf(Whole(0, 255), shortest=1, longest=256, wanted="a list of exit codes"), "[0]"),
    Key("limits", Later({}, "{}"), "{}"),
    Key("queue", Text(pattern=NAME_PATTERN, wanted=NAME_WANTED), "default"),
    Key("priority", Whole(-2, 2), "0"),
    Key("overlap", Choice(_OVERLAPS, later=("replace",)), "skip"),
    Key("queue_limit", Later(100, "100"), "100"),
    Key("concurrency_key", Later(None, "null"), "null"),
    Key("max_runtime", Duration(least=_MILLISECOND), "24h"),
    Key("kill_after", Duration(), "10s"),
    Key("retries", TableOf(RETRY_KEYS, "retries"), "{}"),
    Key(
        "on_worker_lost",
        Choice({"retry": OnWorkerLost.RETRY, "fail": OnWorkerLost.FAIL}),
        "retry",
    ),
    Key("on_lease_lost", Later("continue", "continue"), "continue"),
    Key("missed", TableOf(MISSED_KEYS, "missed"), "{}"),
    Key("description", Text(longest=10_000), ""),
    Key("owner", Text(longest=200), ""),
    Key("tags", ListOf(Text(longest=100, shortest=1), longest=100, wanted="a list of texts"), "[]"),
    Key(
        "alert", Later({"late": None, "failures": None}, "{late: null, failures: null}"), "{late: null, failures: null}"
    ),
    Key("renamed_from", OrNull(Text(pattern=NAME_PATTERN, wanted=NAME_WANTED)), "null", own=True),
)

TARGETS = ("command", "shell", "python")
LATER_TARGETS = ("http", "celery")
MAPPINGS = ("env", "retries", "missed", "dst", "exclude")  # these merge by key

# What people write who know another scheduler, or an older habit.
_MEANT = {
    "cron": "write it as 'schedule'",
    "interval": "write schedule: {every: 5m}",
    "every": "write schedule: {every: 5m}",
    "at": "write schedule: {at: [2026-12-24T18:00:00+01:00]}",
    "calendar": "write schedule: {calendar: {months: 1}, at: '02:30', start: 2026-01-31}",
    "timeout": "write it as 'max_runtime'",
    "tz": "write it as 'timezone'",
    "cmd": "write it as 'command'",
    "run": "write it as 'command' or 'shell'",
    "misfire_policy": "write missed: {policy: latest}",
    "catchup": "write missed: {policy: all}",
    "lease": "it is a setting of the cluster: sexton settings set lease 30s",
    "heartbeat": "it is a setting of the cluster: sexton settings set heartbeat 10s",
    "name": "a job's name is its key under 'jobs'",
}


def read_keys(
    node: Mapping, keys: Sequence[Key], what: str, problems: FileProblems, *, prefix: str = ""
) -> dict[str, Any]:
    """The values of a mapping whose keys are ``keys``; BAD where one was refused. Unknown keys are reported."""
    by_name = {key.name: key for key in keys}
    values: dict[str, Any] = {}
    for name, (key_node, value_node) in node.entries.items():
        key = by_name.get(name)
        if key is None:
            problems.add(key_node, unknown_key(name, [key.name for key in keys], what))
            values[name] = BAD
        else:
            values[name] = key.reading.read(value_node, prefix + name, problems)
    return values


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known key that ``name`` was probably meant to be."""
    near = difflib.get_close_matches(name.lower().replace("-", "_")[:100], known, n=1, cutoff=0.7)
    return near[0] if near else None


def unknown_key(name: str, known: Sequence[str], what: str) -> str:
    """The sentence for a key that is not there, with the nearest one that is."""
    if near := nearest(name, known):
        advice = f"did you mean {near!r}?"
    elif what == "a job" and name.lower() in _MEANT:
        advice = _MEANT[name.lower()]
    else:
        advice = f"the keys are {', '.join(known)}"
    return f"{shown(name)} is not a key of {what}; {advice}"


def place_of(node: Mapping, *names: str) -> Place:
    """Where the first of these keys' values stands; the mapping itself where none is given."""
    return next((node.entries[name][1] for name in names if name in node.entries), node)


def _names(keys: Sequence[Key]) -> str:
    return ", ".join(key.name for key in keys)
