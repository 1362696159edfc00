"""Two definitions side by side, and a schedule in a few words: what plans and listings show.

Values are texts as a job file writes them. Whatever looks like a secret is hidden already (``secret_texts``), so that a
difference can be printed, quoted and stored; terminals are the printer's care.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from sexton.jobs import JobDefinition
from sexton.schedule_words import schedule_summary as schedule_summary
from sexton.secret_texts import HIDDEN, looks_secret, shown_text
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, target_to_json

ANOTHER_HIDDEN = "(another hidden value)"
_COMPARED_LINES = 2_000  # longer texts are told by their number of lines
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MAPPINGS = frozenset(
    (
        *("env", "missed", "retries", "dst", "exclude", "limits", "concurrency_key", "alert"),
        *("http", "http.headers", "celery"),
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One key whose value changes, as texts; None where the definition has no such key. ``hides``: a value holds what
    looks like a secret, and the texts do not show it."""

    key: str
    old: str | None
    new: str | None
    hides: bool = False

    @property
    def sign(self) -> str:
        """``+`` for a key that comes, ``-`` for one that goes, ``~`` for one that changes."""
        return "+" if self.old is None else "-" if self.new is None else "~"

    @property
    def is_long(self) -> bool:
        """Whether a value has several lines, so that ``lines`` says more than the two texts."""
        return "\n" in (self.old or "") or "\n" in (self.new or "")

    def lines(self) -> tuple[str, ...]:
        """The lines that go (``- ...``), come (``+ ...``) and two on either side of them (``  ...``), in order; ``...``
        stands for lines that stay."""
        old, new = (self.old or "").splitlines(), (self.new or "").splitlines()
        if max(len(old), len(new)) > _COMPARED_LINES:
            return (f"- {len(old)} lines", f"+ {len(new)} lines")
        told: list[str] = []
        for line in list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]:
            if line.startswith("@@"):
                told.extend(["..."] if told else [])
            else:
                told.append(f"{line[0]} {line[1:]}")
        return tuple(told)


def differences_between(old: JobDefinition, new: JobDefinition) -> tuple[Difference, ...]:
    """The keys in which two definitions differ, by name, with both values as a job file writes them."""
    olds, news = _data(old), _data(new)
    targets = olds.pop("target"), news.pop("target")
    before = _flatten(_unlike(olds, news)) | _flatten(_unlike(*targets))
    after = _flatten(_unlike(news, olds)) | _flatten(_unlike(*reversed(targets)))
    pairs = ((key, before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys()))
    return tuple(_difference(*pair) for pair in pairs if not _is_nothing_new(*pair))


def _is_nothing_new(key: str, old: str | None, new: str | None) -> bool:
    """Whether values are the same; also where a target comes or goes with its own defaults."""
    default = _target_defaults().get(key)
    return old == new or (old is None and new == default) or (new is None and old == default)


def keys_of_new_job(definition: JobDefinition) -> tuple[Difference, ...]:
    """What a new job says beyond the defaults, its schedule and target included."""
    data = _data(definition)
    target = _flatten(data.pop("target"))
    plain = _default_keys()
    given = {key: value for key, value in _flatten(data).items() if plain.get(key) != value}
    given |= {key: value for key, value in target.items() if _target_defaults().get(key) != value}
    return tuple(_difference(key, None, value) for key, value in sorted(given.items()) if key != "name")


def _unlike(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What the other does not have alike: most of a definition, in most edits, which need not be told as texts. By
    ``repr``, for an argument 1 is not the argument true."""
    return {key: value for key, value in data.items() if key not in other or repr(value) != repr(other[key])}


@cache
def _default_keys() -> dict[str, str]:
    data = _data(JobDefinition("any", (), CommandTarget(("any",))))
    return _flatten({key: value for key, value in data.items() if key != "target"})


@cache
def _target_defaults() -> dict[str, str]:
    """What the keys of targets are where nothing is said; a target's own name for itself is not among them."""
    targets = (HttpTarget(""), CeleryTarget("", ""))
    known = _flatten({name: value for one in targets for name, value in _as_written(target_to_json(one)).items()})
    return {key: value for key, value in known.items() if key not in ("http.url", "celery.task", "celery.broker")}


def keys_of_retired_job(definition: JobDefinition) -> tuple[Difference, ...]:
    """What a job that goes had said beyond the defaults."""
    return tuple(Difference(one.key, one.new, None, one.hides) for one in keys_of_new_job(definition))


def _difference(key: str, old: str | None, new: str | None) -> Difference:
    hides = any(text is not None and looks_secret(key, text) for text in (old, new))
    shown_old = None if old is None else shown_text(key, old)
    shown_new = None if new is None else shown_text(key, new)
    if hides and shown_old == shown_new:
        shown_new = ANOTHER_HIDDEN if shown_new == HIDDEN else f"{shown_new} {ANOTHER_HIDDEN}"
    return Difference(key, shown_old, shown_new, hides)


def _data(definition: JobDefinition) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(definition.to_text())
    data.pop("format", None)  # Sexton's own, about who can read it
    data["target"] = _as_written(data["target"])
    limits = {name: limit for name, limit in data.pop("limits", {}).items() if limit is not None}
    if "memory" in limits:
        limits["memory"] = size_text(limits["memory"])
    alert = {name: rule for name, rule in data.pop("alert", {}).items() if rule is not None}
    return data | {"limits": limits, "alert": alert}


def _as_written(target: dict[str, Any]) -> dict[str, Any]:
    """A target's JSON in the mappings of job files."""
    if "http" in target:
        return {"http": {"url": target.pop("http"), **target}}
    if "celery" in target:
        arguments = {name: target.pop(name) for name in ("args", "kwargs")}
        return {"celery": {"task": target.pop("celery"), **target}, **arguments}
    return target


def _flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in data.items():
        name = prefix + key.removesuffix("_ms")
        if isinstance(value, dict) and name in _MAPPINGS:
            flat.update(_flatten(value, f"{name}."))
        elif key.endswith("_ms") and isinstance(value, int):
            flat[name] = format_duration(timedelta(milliseconds=value))
        elif key == "schedule" and not prefix:
            flat[name] = _schedule_text(value)
        elif name == "exclude.weekdays":
            flat[name] = json.dumps([_WEEKDAYS[day] for day in value])
        else:
            flat[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat


def _schedule_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """All of a schedule: its summary, and a line for each instant that the summary only counts."""
    listed = [instant for part in parts if "at" in part and "calendar" not in part for instant in part["at"]]
    summary = schedule_summary(parts)
    return summary if all(instant in summary for instant in listed) else "\n".join([summary, *listed])
