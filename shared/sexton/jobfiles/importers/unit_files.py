"""Unit files of systemd as settings with their places, and the small languages of values: words, spans, specifiers.

What is done here is what systemd.syntax(7) and systemd.time(7) say; no setting has a meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sexton.jobfiles.importers.findings import Findings, shown

_SECTION = re.compile(r"\[([^\[\]]+)\]")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_UNITS = {
    **dict.fromkeys(("us", "usec", "µs", "μs"), timedelta(microseconds=1)),
    **dict.fromkeys(("ms", "msec"), timedelta(milliseconds=1)),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
    **dict.fromkeys(("M", "month", "months"), timedelta(days=30.44)),
    **dict.fromkeys(("y", "year", "years"), timedelta(days=365.25)),
}
_SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-zµμ]*)\s*")
_LONGEST_SPAN = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class UnitSource:
    """A unit file, or a drop-in of it. ``unit``: what it belongs to, such as backup.timer."""

    unit: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Setting:
    """``key=value`` in a section; ``line`` is where it begins, continued lines joined."""

    section: str
    key: str
    value: str
    file: str
    line: int


class NotWords(ValueError):
    """A value whose quotes or escapes do not end."""


def settings_of(source: UnitSource, findings: Findings) -> list[Setting]:
    """All settings of one file in their order; lines that are none are reported."""
    settings: list[Setting] = []
    section = ""
    for line, text in _logical_lines(source.text):
        if header := _SECTION.fullmatch(text):
            section = header[1]
            continue
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            findings.error(line, f"{shown(text)} is neither [Section] nor Key=value; mend or remove it")
        elif not section:
            findings.error(line, f"{shown(key.strip())} stands before the first [Section]; systemd passes over it")
        else:
            settings.append(Setting(section, key.strip(), value.strip(), source.file, line))
    return settings


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """Lines with their continuations joined by a blank, comments left out."""
    joined: list[str] = []
    start = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.removesuffix("\r").strip(" \t")
        if line.startswith(("#", ";")) or (not line and not joined):
            continue
        if not joined:
            start = number
        if line.endswith("\\"):
            joined.append(line[:-1].rstrip())
            continue
        joined.append(line)
        yield start, " ".join(part for part in joined if part)
        joined = []
    if joined:
        yield start, " ".join(part for part in joined if part)


def words_of(text: str) -> list[str]:
    """The words of a value: quotes and C escapes are resolved. Raises NotWords."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    place = 0
    while place < len(text):
        one = text[place]
        if one == "\\":
            value, place = _escaped(text, place)
            word = [*(word or []), value]
            continue
        if quote:
            if one == quote:
                quote = ""
            else:
                assert word is not None  # noqa: S101 - the opening quote made it
                word.append(one)
        elif one in "'\"":
            quote, word = one, word or []
        elif one in " \t\n":
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = word if word is not None else []
            word.append(one)
        place += 1
    if quote:
        raise NotWords(f"a quote {quote} does not end in {shown(text)}; close it")
    return words if word is None else [*words, "".join(word)]


def _escaped(text: str, place: int) -> tuple[str, int]:
    """The character that the escape at ``place`` stands for, and where it ends."""
    after = text[place + 1 : place + 2]
    if after in _ESCAPES and after:
        return _ESCAPES[after], place + 2
    for pattern, base in ((r"x([0-9a-fA-F]{2})", 16), (r"([0-7]{3})", 8), (r"u([0-9a-fA-F]{4})", 16)):
        if match := re.compile(pattern).match(text, place + 1):
            return chr(int(match[1], base)), match.end()
    if after in ("\\", '"', "'", " ", ";"):
        return ("\\;" if after == ";" else after), place + 2
    return "\\" + after, place + 2  # systemd keeps what it does not know


def span_of(text: str) -> timedelta | None:
    """A time span such as `1h 30min` or `90`; None for infinity. Raises ValueError with what to write."""
    if text.strip().lower() == "infinity":
        return None
    total, place = timedelta(0), 0
    stripped = text.strip()
    while place < len(stripped):
        match = _SPAN.match(stripped, place)
        if match is None or match[2] not in _UNITS:
            break
        total += float(match[1]) * _UNITS[match[2]]
        place = match.end()
    if not stripped or place < len(stripped):
        raise ValueError(f"{shown(text)} is no time span; write e.g. 30s, 15min or 1h 30min")
    if total > _LONGEST_SPAN:
        raise ValueError(f"{shown(text)} is longer than Sexton's longest duration of {_LONGEST_SPAN.days}d")
    return timedelta(milliseconds=total // timedelta(milliseconds=1))


def is_true(text: str) -> bool | None:
    """A flag as systemd reads it; None where it is none."""
    words = {**dict.fromkeys(("1", "yes", "y", "true", "t", "on"), True)}
    words.update(dict.fromkeys(("0", "no", "n", "false", "f", "off"), False))
    return words.get(text.strip().lower())


def with_specifiers(text: str, unit: str) -> tuple[str, list[str]]:
    """``text`` with the specifiers that a unit's name answers, and those that only its machine could."""
    stem = unit.rpartition(".")[0] or unit
    prefix, _, instance = stem.partition("@")
    known = {
        "%": "%",
        "n": unit,
        "N": stem,
        "p": prefix,
        "P": _unescaped(prefix),
        "i": instance,
        "I": _unescaped(instance),
        "j": prefix.rpartition("-")[2],
    }
    if "@" in stem and not instance:  # a template: nobody has said whose
        known = {letter: value for letter, value in known.items() if letter not in "iI"}
    unknown: list[str] = []

    def resolved(match: re.Match[str]) -> str:
        if match[1] not in known:
            unknown.append(match[0])
        return known.get(match[1], match[0])

    return re.sub(r"%([A-Za-z%])", resolved, text), unknown


def _unescaped(name: str) -> str:
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), name.replace("-", "/"))
