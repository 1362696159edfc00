"""Tables of keys: what a mapping of a job file may hold, read and described from the same rows (``keys`` has them)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from sexton.jobfiles.later_readings import Later
from sexton.jobfiles.nodes import Mapping, Node, kind_of
from sexton.jobfiles.problems import FileProblems, Place, shown
from sexton.jobfiles.readings import BAD, Choice, JsonSchema, Reading


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``default``: as it would be written in YAML, empty where there is none. ``meaning``: one sentence for
    people. ``example``: a value in YAML. ``own``: each job says it for itself, `defaults` cannot."""

    name: str
    reading: Reading
    default: str
    meaning: str = ""
    own: bool = False
    example: str = ""

    def schema(self) -> JsonSchema:
        """JSON Schema of the key's values, with what it means and its default."""
        schema = self.reading.schema()
        said = [self.meaning] if self.meaning else []
        if isinstance(self.reading, Choice) and self.reading.later:
            said.append(f"({', '.join(self.reading.later)} comes with a later version)")
        elif isinstance(self.reading, Later):
            said.append(f"Comes with a later version; {self.reading.remedy}.")
        if said:
            schema["description"] = " ".join(said)
        if self.default:
            schema["default"] = yaml.safe_load(self.default)
        if self.example:
            schema["examples"] = [yaml.safe_load(self.example)]
        return schema


@dataclass(frozen=True, slots=True)
class TableOf:
    """A mapping with named keys, as a dict of those that are given; those in ``required`` must be."""

    keys: tuple[Key, ...]
    what: str
    required: tuple[str, ...] = ()

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if not isinstance(node, Mapping):
            problems.add(node, f"{key} is {kind_of(node)}; write a mapping with the keys {_names(self.keys)}")
            return BAD
        values = read_keys(node, self.keys, self.what, problems, prefix=f"{key}.")
        missing = [one for one in self.keys if one.name in self.required and one.name not in values]
        if missing:
            names, examples = (one.name for one in missing), (f"{one.name}: {one.example}" for one in missing)
            problems.add(node, f"{key} has no {' and no '.join(names)}; write e.g. {', '.join(examples)}")
        return BAD if missing or BAD in values.values() else values

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.keys},
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema


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
    "retry": "write retries: {max: 3}",
    "misfire_grace_time": "write missed: {grace: 60s}",
    "starting_deadline_seconds": "write missed: {grace: 60s}",
    "max_instances": "write overlap: skip, queue or allow",
    "concurrencypolicy": "write overlap: skip, queue or allow",
    "coalesce": "write missed: {policy: latest}",
    "depends_on": "jobs know nothing of each other; let one command start the other",
    "on_failure": "write alert: {failures: 1}",
    "user": "a job runs as its worker's user; choose the worker by 'queue'",
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
