"""Tables of keys: what a mapping of a job file may hold, read and described from the same rows (``keys`` has them)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from sexton.jobfiles.meant_keys import Meant, meant_by
from sexton.jobfiles.nodes import Mapping, Node, Scalar, kind_of
from sexton.jobfiles.problems import FileProblems, Place, shown
from sexton.jobfiles.readings import BAD, Flag, JsonSchema, ListOf, Reading
from sexton.jobfiles.remedies import LONGEST, entry, node_from


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
        if self.meaning:
            schema["description"] = self.meaning
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
            write = self._meant(node, key, problems) or f"a mapping with the keys {_names(self.keys)}"
            problems.add(node, f"{key} is {kind_of(node)}; write {write}")
            return BAD
        values = read_keys(node, self.keys, self.what, problems, prefix=f"{key}.")
        missing = [one for one in self.keys if one.name in self.required and one.name not in values]
        if missing:
            names, examples = (one.name for one in missing), (f"{one.name}: {one.example}" for one in missing)
            problems.add(node, f"{key} has no {' and no '.join(names)}; write e.g. {', '.join(examples)}")
        return BAD if missing or BAD in values.values() else values

    def _meant(self, node: Node, key: str, problems: FileProblems) -> str | None:
        """The mapping written out, where the value stands for one of its keys alone: ``retries: 3``."""
        for one in self.keys:
            if isinstance(one.reading, Flag) or any(name != one.name for name in self.required):
                continue
            proposal = _in_a_list(one.reading, node, problems)
            text = entry(key, _nested([one.name], proposal), problems)
            if len(text) <= LONGEST and _is_taken(one.reading, proposal, problems):
                return text
        return None

    def example_of(self, name: str) -> str:
        """A value of this key, in YAML."""
        return next(key.example or key.default for key in self.keys if key.name == name)

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.keys},
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema


def read_keys(
    node: Mapping, keys: Sequence[Key], what: str, problems: FileProblems, *, prefix: str = ""
) -> dict[str, Any]:
    """The values of a mapping whose keys are ``keys``; BAD where one was refused. Unknown keys are reported."""
    by_name = {key.name: key for key in keys}
    values: dict[str, Any] = {}
    for name, (key_node, value_node) in node.entries.items():
        key = by_name.get(name)
        if key is None:
            advice = _advice(name, value_node, by_name, what, problems)
            problems.add(key_node, f"{shown(name)} is not a key of {what}; {advice}")
            values[name] = BAD
        else:
            values[name] = key.reading.read(value_node, prefix + name, problems)
    return values


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known key that ``name`` was probably meant to be."""
    near = difflib.get_close_matches(name.lower().replace("-", "_")[:100], list(known), n=1, cutoff=0.75)
    return near[0] if near else None


def unknown_key(name: str, known: Sequence[str], what: str) -> str:
    """The sentence for a key that is not there, with the nearest one that is."""
    near = nearest(name, known)
    return f"{shown(name)} is not a key of {what}; {_near(near) if near else _listed(known)}"


def keys_meant(name: str, keys: Sequence[Key]) -> set[str]:
    """The keys of a job that a key which is none was probably meant to be."""
    by_name = {key.name: key for key in keys}
    if _run_together(name, by_name):
        return {name.partition(":")[0]}
    if meant := _meant(name, by_name):
        return {path[0] for path in meant.paths}
    near = nearest(name, by_name)
    return {near} if near else set()


def _advice(name: str, value: Node, keys: dict[str, Key], what: str, problems: FileProblems) -> str:
    """What to write for a key that is not there. Nothing is proposed that would be refused in its turn."""
    if _run_together(name, keys):
        return f"write a blank after '{name.partition(':')[0]}:'"
    folded = name.replace("_", "").replace("-", "").lower()
    same = next((known for known in keys if known.replace("_", "") == folded), None)
    if same is None and (meant := _meant(name, keys, what)) is not None:
        return _told(meant, value, keys, what, problems)
    near = same or nearest(name, keys)
    if near is None:
        return _listed(list(keys))
    return _near(near)


def _run_together(name: str, keys: dict[str, Key]) -> bool:
    """Whether this is a key and its value, as ``{shell:x}`` is read."""
    key, colon, value = name.partition(":")
    return bool(colon and value) and key in keys


def _meant(name: str, keys: dict[str, Key], what: str = "a job") -> Meant | None:
    """What this name is to those who know another scheduler, or one level too high; in ``keys`` or in a job."""
    tables = {key.name: key.reading for key in keys.values() if isinstance(key.reading, TableOf)}
    paths = [(table, name) for table, reading in tables.items() if name in (key.name for key in reading.keys)]
    known = meant_by(name)
    if paths and (known is None or not known.paths):
        return Meant(tuple(paths), yaml.safe_load(tables[paths[0][0]].example_of(name)))
    if known is None or what in ("a job", "defaults"):
        return known
    if what == "limits" and not known.paths:  # where such things are looked for
        return known
    inside = tuple(path[1:] for path in known.paths if path[0] == what and len(path) == 2)
    return Meant(inside, known.example) if inside else None


def _told(meant: Meant, value: Node, keys: dict[str, Key], what: str, problems: FileProblems) -> str:
    if meant.advice:
        return meant.advice
    paths = [path for path in meant.paths if path[0] in keys]
    if not paths:  # in defaults, which cannot hold what is each job's own
        return f"it is written as {meant.paths[0][0]!r}, in each job"
    is_within = what not in ("a job", "defaults")
    prefix = "x." if is_within else ""
    for path in paths:
        proposed = _nested(path[1:], _in_a_list(_reading_at(path, keys), value, problems))
        text = entry(prefix + path[0], proposed, problems)
        if len(text) <= LONGEST and _is_taken(keys[path[0]].reading, proposed, problems):
            return f"write {text}"
    path = paths[0]
    reading = keys[path[0]].reading
    own = _completed(reading, _nested(path[1:], _in_a_list(_reading_at(path, keys), value, problems)))
    example = entry(prefix + path[0], own, problems)
    if len(path) == 1 or len(example) > LONGEST or not _is_taken(reading, own, problems):
        example = entry(prefix + path[0], _completed(reading, _nested(path[1:], node_from(meant.example))), problems)
    return f"write it as {path[0]!r}, such as {example}" if len(path) == 1 else f"write e.g. {example}"


def _completed(reading: Reading, node: Node) -> Node:
    """A mapping with what it needs beside the one key that is proposed, as examples."""
    if not isinstance(reading, TableOf) or not isinstance(node, Mapping):
        return node
    missing = {name: yaml.safe_load(reading.example_of(name)) for name in reading.required if name not in node.entries}
    more = node_from(missing)
    return Mapping(1, 1, {**node.entries, **(more.entries if isinstance(more, Mapping) else {})})


def _reading_at(path: Sequence[str], keys: dict[str, Key]) -> Reading:
    reading = keys[path[0]].reading
    inside = reading.keys if isinstance(reading, TableOf) else ()
    return next((key.reading for key in inside if key.name in path[1:]), reading)


def _in_a_list(reading: Reading, node: Node, problems: FileProblems) -> Node:
    """``node``, in a list where ``reading`` wants one."""
    return (reading.meant(node, problems) or node) if isinstance(reading, ListOf) else node


def _nested(path: Sequence[str], value: Node) -> Node:
    """``value`` below these keys."""
    for name in reversed(path):
        value = Mapping(1, 1, {name: (Scalar(1, 1, name, is_plain=False), value)})
    return value


def _is_taken(reading: Reading, node: Node, problems: FileProblems) -> bool:
    silent = FileProblems(problems.file)
    return reading.read(node, "", silent) is not BAD and not silent.found


def _near(near: str) -> str:
    return f"did you mean {near!r}?"


def _listed(known: Sequence[str]) -> str:
    return f"the keys are {', '.join(known)}"


def place_of(node: Mapping, *names: str) -> Place:
    """Where the first of these keys' values stands; the mapping itself where none is given."""
    return next((node.entries[name][1] for name in names if name in node.entries), node)


def _names(keys: Sequence[Key]) -> str:
    return ", ".join(key.name for key in keys)
