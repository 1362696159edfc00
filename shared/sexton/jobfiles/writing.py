"""Job files as text: what exports and importers write, and ``load`` reads back to exactly the same keys.

The text is made for people and for ``diff``: one block a job, keys in the order of their documentation, one line a key
where it fits, scripts of several lines as block literals. What any YAML reader could take for something other than a
text stands in quotes, cron expressions always.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sexton.claims import Overlap
from sexton.cron_fields import WEEKDAY
from sexton.errors import InvalidInput
from sexton.job_rules import AlertRules, ConcurrencyKey, DstRules, ExcludeRules, Limits, MissedRules, RetryRules
from sexton.jobfiles.keys import JOB_KEYS
from sexton.jobfiles.load import FORMAT_VERSION
from sexton.jobfiles.yaml_words import why_not_text
from sexton.jobs import JobDefinition
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, ShellTarget, Target

_WIDTH = 110
_LONG_SCRIPT = 80
_LONGEST_SIMPLE_KEY = 1_000  # YAML readers give up on longer ones, unless they are marked by `?`
_EPOCH_TEXT = "1970-01-01T00:00:00Z"
_ORDER = {key.name: place for place, key in enumerate(JOB_KEYS)}
_ALWAYS_BLOCK = frozenset({"env", "kwargs"})
_OF_FILES = frozenset(  # below these, keys are the format's own
    {"schedule", "exclude", "retries", "missed", "dst", "limits", "concurrency_key", "alert", "http", "celery"}
)
_DATES = frozenset({"start", "end", "anchor", "dates"})  # read as dates wherever they stand: no quotes needed

_WORD = r"[A-Za-z0-9_./=+@~-]+"
_PLAIN = re.compile(rf"(?:--?|\.{{0,2}}/|_)?[A-Za-z]{_WORD[:-1]}*(?: {_WORD})*")
_PLAIN_WITH_COLONS = re.compile(rf"[A-Za-z_]{_WORD[:-1]}*(?::{_WORD})+")
_PLAIN_DURATION = re.compile(r"(?:[0-9]+(?:ms|s|m|h|d))+")
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)?")


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job as it is to stand in a file: ``keys`` with values as files have them (texts, numbers, flags, None, lists,
    mappings; durations and instants as texts), ``comment`` as lines above it."""

    name: str
    keys: Mapping[str, object]
    comment: tuple[str, ...] = ()


def job_file_text(
    entries: Iterable[JobEntry],
    *,
    header: tuple[str, ...] = (),
    defaults: Mapping[str, object] | None = None,
) -> str:
    """A YAML job file with these jobs, in this order; ``header`` and comments as lines that start with ``#``.

    Raises InvalidInput for what no job file can hold: NUL, half a character, a number that JSON has not, an unknown
    key.
    """
    lines = [*_comment(header, ""), *([""] if header else []), f"version: {FORMAT_VERSION}"]
    if defaults:
        lines += ["defaults:", *_keys("defaults", defaults, 2)]
    blocks = [_job(entry) for entry in entries]
    lines.append("jobs:" if blocks else "jobs: {}")
    for place, block in enumerate(blocks):
        lines += ([""] if place else []) + block
    return "\n".join(lines) + "\n"


def _job(entry: JobEntry) -> list[str]:
    head = _key_line(entry.name, 2)
    body = _keys(entry.name, entry.keys, 4)
    return [*_comment(entry.comment, "  "), *(head if body else [f"{head[0]} {{}}"]), *body]


def _comment(texts: Iterable[str], indent: str) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines() or [""]:
            shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
            yield f"{indent}# {shown}".rstrip()


def _keys(what: str, keys: Mapping[str, object], indent: int) -> list[str]:
    if unknown := [name for name in keys if name not in _ORDER]:
        raise InvalidInput(f"{what}: {unknown[0]!r} is not a key of a job", hint=f"the keys are {', '.join(_ORDER)}")
    lines: list[str] = []
    for name in sorted(keys, key=_ORDER.__getitem__):
        try:
            lines += _entry(name, keys[name], indent, name)
        except _CannotStand as fault:
            raise InvalidInput(f"{what}: {name} holds {fault}, which no job file can hold") from None
    return lines


class _CannotStand(ValueError):
    """What a value holds that YAML, or the reader, does not take."""


def _entry(name: str, value: object, indent: int, where: str) -> list[str]:
    """``name: value`` at this indent: on one line where it is short, else as a block below the key. ``where``: the key
    of the job file that says what texts mean here, which keys that the author chose do not."""
    head = _key_line(name, indent)
    if isinstance(value, str) and (script := _literal(where, value, indent + 2)):
        return [*head[:-1], f"{head[-1]} {script[0]}", *script[1:]]
    is_nested = isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)
    line = f"{head[-1]} {_inline(where, value, is_flow=is_nested)}"
    if not is_nested or not value or (len(line) <= _WIDTH and not _wants_block(where, value)):
        return [*head[:-1], line]
    below: list[str] = []
    if isinstance(value, Mapping):
        for key, one in value.items():
            below += _entry(_text_key(key), one, indent + 2, _within(where, _text_key(key)))
    elif isinstance(value, Sequence):
        below = [f"{' ' * (indent + 2)}- {_inline(where, one, is_flow=not isinstance(one, str))}" for one in value]
    return [*head, *below]


def _within(where: str, key: str) -> str:
    return key if where in _OF_FILES else where


def _wants_block(where: str, value: object) -> bool:
    """Whether a value that would fit on the key's line is better read, and compared, as lines."""
    return where in _ALWAYS_BLOCK or (
        isinstance(value, Mapping) and any(isinstance(one, str) and "\n" in one for one in value.values())
    )


def _key_line(name: str, indent: int) -> list[str]:
    shown = _text(name, is_flow=True)
    blanks = " " * indent
    if len(shown) > _LONGEST_SIMPLE_KEY:
        return [f"{blanks}? {shown}", f"{blanks}:"]
    return [f"{blanks}{shown}:"]


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise _CannotStand(f"the key {key!r}")
    return key


def _literal(where: str, text: str, indent: int) -> list[str]:
    """A text of several lines (or a long script) as a block literal, its first line the mark; empty where it is none.

    The mark says the indent where the text begins with a blank, and keeps or strips the last line's end.
    """
    wanted = "\n" in text.strip("\n") or (where == "shell" and len(text) > _LONG_SCRIPT)
    if not wanted or not all(one.isprintable() or one in "\n\t" for one in text) or "\ufeff" in text:
        return []
    body = text.removesuffix("\n")
    end = "-" if body == text else "+" if body.endswith("\n") else ""
    start = "2" if text[0] in " \t\n" else ""
    blanks = " " * indent
    return [f"|{start}{end}", *(f"{blanks}{line}" if line else "" for line in body.split("\n"))]


def _inline(where: str, value: object, *, is_flow: bool) -> str:
    """``value`` on one line; ``is_flow``: it stands, or may stand, within brackets."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return _whole(value)
        case float():
            return _float(value)
        case str():
            if where in ("schedule", "cron"):
                return _quoted(value)
            if where in _DATES and _PLAIN_DATE.fullmatch(value):
                return value
            return _text(value, is_flow=is_flow)
        case Mapping():
            return "{" + ", ".join(_flow_entry(where, _text_key(key), one) for key, one in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(_inline(where, one, is_flow=True) for one in value) + "]"
    raise _CannotStand(f"a {type(value).__name__}")


def _flow_entry(where: str, key: str, value: object) -> str:
    shown = _text(key, is_flow=True)
    mark = "? " if len(shown) > _LONGEST_SIMPLE_KEY else ""
    return f"{mark}{shown}: {_inline(_within(where, key), value, is_flow=True)}"


def _whole(number: int) -> str:
    text = str(number)
    if len(text) > 20:
        raise _CannotStand("a whole number of more than 20 characters")
    return text


def _float(number: float) -> str:
    if not math.isfinite(number):
        raise _CannotStand(f"the number {number}")
    mantissa, _, exponent = repr(number).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _text(text: str, *, is_flow: bool) -> str:
    """A text as one line: without quotes where no reader takes it for anything else."""
    is_plain = (
        _PLAIN.fullmatch(text)
        or _PLAIN_DURATION.fullmatch(text)
        or (not is_flow and _PLAIN_WITH_COLONS.fullmatch(text))
    )
    return text if is_plain and why_not_text(text) is None else _quoted(text)


def _quoted(text: str) -> str:
    if "\0" in text:
        raise _CannotStand("a NUL")
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise _CannotStand("half a character")
    if '"' not in text and "\\" not in text and text.isprintable():
        return f'"{text}"'
    if text.isprintable() and text.count("'") < text.count('"') + text.count("\\"):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(one: str) -> str:
    if one.isprintable() and one not in '"\\\ufeff':
        return one
    if ord(one) > 0xFFFF:
        return f"\\U{ord(one):08x}"
    return json.dumps(one, ensure_ascii=True)[1:-1]


# --- from definitions -------------------------------------------------------------------------------------------------


def keys_of(definition: JobDefinition) -> dict[str, object]:
    """The keys of a definition that differ from their default, as a job file writes them, in the file's order.

    ``renamed_from`` is among them where the definition has it.
    """
    plain = JobDefinition(definition.name, (), definition.target)
    keys: dict[str, object] = {"schedule": _schedule_keys(definition.schedule_parts), **_target_keys(definition.target)}
    for key in JOB_KEYS:
        if key.name in keys or not hasattr(plain, key.name):
            continue
        value = getattr(definition, key.name)
        if value != getattr(plain, key.name):
            keys[key.name] = _file_value(value)
    return dict(sorted(keys.items(), key=lambda entry: _ORDER[entry[0]]))


def _schedule_keys(parts: Sequence[Mapping[str, Any]]) -> object:
    shown = [_part_keys(part) for part in parts]
    return shown[0] if len(shown) == 1 else shown


def _part_keys(part: Mapping[str, Any]) -> object:
    if "cron" in part:
        return str(part["cron"])
    if "every_ms" in part:
        anchor = {} if part["anchor"] == _EPOCH_TEXT else {"anchor": part["anchor"]}
        return {"every": format_duration(timedelta(milliseconds=part["every_ms"])), **anchor}
    if "calendar" in part:
        month_end = {} if part["month_end"] == "clamp" else {"month_end": part["month_end"]}
        at = part["at"].removesuffix(":00") if part["at"].count(":") == 2 else part["at"]
        return {"calendar": dict(part["calendar"]), "at": at, "start": part["start"], **month_end}
    return {"at": list(part["at"])}


def _target_keys(target: Target) -> dict[str, object]:
    if isinstance(target, CommandTarget):
        return {"command": list(target.argv)}
    if isinstance(target, ShellTarget):
        return {"shell": target.script}
    if isinstance(target, HttpTarget):
        return {"http": _inner_keys(target, HttpTarget(target.url), ("url",))}
    arguments = {"args": list(target.args), "kwargs": dict(target.kwargs)}
    given = {name: value for name, value in arguments.items() if value}
    if isinstance(target, CeleryTarget):
        plain = CeleryTarget(target.broker, target.task, target.args, target.kwargs)
        return {"celery": _inner_keys(target, plain, ("broker", "task")), **given}
    return {"python": target.reference, **given}


def _inner_keys(
    target: HttpTarget | CeleryTarget, plain: HttpTarget | CeleryTarget, always: Sequence[str]
) -> dict[str, object]:
    """The fields of a target that differ from a ``plain`` one, and those that are always written."""
    return {
        one.name: _file_value(getattr(target, one.name))
        for one in fields(target)
        if one.name in always or getattr(target, one.name) != getattr(plain, one.name)
    }


def _file_value(value: Any) -> object:
    match value:
        case ExcludeRules():
            days = {
                "dates": [day.isoformat() for day in value.dates],
                "weekdays": [WEEKDAY.names[day] for day in value.weekdays],
                "holidays": list(value.holidays),
            }
            return {name: listed for name, listed in days.items() if listed}
        case ConcurrencyKey():
            return {"key": value.key, "limit": value.limit}
        case Limits():
            limits = {"cpu_time": value.cpu_time, "open_files": value.open_files}
            memory = {} if value.memory is None else {"memory": size_text(value.memory)}
            return memory | {name: _file_value(limit) for name, limit in limits.items() if limit is not None}
        case MissedRules() | RetryRules() | DstRules() | AlertRules():
            plain = type(value)()
            names = type(value).__dataclass_fields__
            return {
                name: _file_value(getattr(value, name))
                for name in names
                if getattr(value, name) != getattr(plain, name)
            }
        case timedelta():
            return format_duration(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Overlap():
            return value.name.lower()
        case StrEnum():
            return value.value
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            return dict(value)
        case tuple():
            return [_file_value(one) for one in value]
    return value  # a text, a flag, a whole number or None
