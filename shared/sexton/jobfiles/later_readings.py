"""Readings of what a later version brings: the grammar is whole, every value but the default is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Mapping, Node, Scalar
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, Reading, Text, pattern_schema, read_scalar
from sexton.jobfiles.secret_texts import HIDDEN, looks_secret

NO_DEFAULT = BAD
"""The default of a key that is not there unless it is written: no value is accepted."""


@dataclass(frozen=True, slots=True)
class Later:
    """A key of a coming version. Its value is read as ``inner`` says, with every fault in it reported; then its
    ``default`` is accepted (it needs no code), and all else is refused. ``remedy``: what to do until then."""

    inner: Reading
    default: Any
    remedy: str

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        before = len(problems.found)
        value = self.inner.read(node, key, problems)
        if value is BAD and self._wants_mapping and not isinstance(node, Mapping):
            del problems.found[before:]  # how to write what would then be refused
            value = NO_DEFAULT if self.default is NO_DEFAULT else object()
        if self.default is not NO_DEFAULT:
            if value is BAD:
                return BAD  # once mended, it may be the default
            if value == self.default or self._is_part(value):
                return self.default
        problems.add(node, f"{key} comes with a later version; {self.remedy}")
        return BAD

    @property
    def _wants_mapping(self) -> bool:
        return self.default in (NO_DEFAULT, None) or isinstance(self.default, dict)

    def _is_part(self, value: Any) -> bool:
        """Whether a mapping says only what the default says."""
        return (
            isinstance(value, dict)
            and isinstance(self.default, dict)
            and all(key in self.default and self.default[key] == entry for key, entry in value.items())
        )

    def schema(self) -> JsonSchema:
        return self._only_default() | {"errorMessage": f"comes with a later version; {self.remedy}"}

    def _only_default(self) -> JsonSchema:
        if self.default is NO_DEFAULT:
            return {"not": {}}
        if isinstance(self.default, dict):
            properties = {name: {"const": value} for name, value in self.default.items()}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        return {"const": self.default}


_SIZE_UNITS = {
    **{unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), start=1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), start=1)},
}
_SIZE = re.compile(rf"([0-9]{{1,15}})({'|'.join(_SIZE_UNITS)})")


@dataclass(frozen=True, slots=True)
class Size:
    """``512MB`` or ``2GiB``, in bytes: KB, MB, GB, TB count by 1000, KiB, MiB, GiB, TiB by 1024."""

    least: str
    most: str

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = "a size such as 512MB or 2GiB"
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        value = bytes_of(scalar.text)
        if value is None:
            problems.add(node, f"{key}: {shown(scalar.text)} {_why_no_size(scalar.text, wanted)}")
            return BAD
        for bound, is_kept in ((self.least, value >= _known(self.least)), (self.most, value <= _known(self.most))):
            if not is_kept:
                side = "least" if bound is self.least else "most"
                problems.add(node, f"{key}: {shown(scalar.text)} is not allowed; it must be at {side} {bound}")
                return BAD
        return value

    def schema(self) -> JsonSchema:
        return pattern_schema(f"^{_SIZE.pattern}$", "a size such as 512MB or 2GiB")


def bytes_of(text: str) -> int | None:
    """The bytes that ``512MB`` or ``2GiB`` says; None for what is no size."""
    match = _SIZE.fullmatch(text)
    return None if match is None else int(match[1]) * _SIZE_UNITS[match[2]]


def size_text(size: int) -> str:
    """The shortest text that ``bytes_of`` reads back; ``size`` is a whole number of KB or KiB."""
    exact = [f"{size // unit}{name}" for name, unit in _SIZE_UNITS.items() if size % unit == 0]
    return min(exact, key=len)


def _known(text: str) -> int:
    size = bytes_of(text)
    if size is None:
        raise AssertionError(f"the bound {text} is a size")
    return size


def _why_no_size(text: str, wanted: str) -> str:
    match = re.fullmatch(r"([0-9]{1,15})[ ]*([A-Za-z]*)", text)
    if match is None:
        return f"is not {wanted}: a whole number and its unit"
    number, unit = match[1], match[2]
    if not unit:
        return f"has no unit; write e.g. {number}MB"
    near = {known.lower(): known for known in _SIZE_UNITS}
    meant = near.get(unit.lower()) or near.get(f"{unit.lower()}b")
    if meant is None:
        return f"has the unit {shown(unit)}; the units are {', '.join(_SIZE_UNITS)}"
    return f"is not spelt as sizes are; write {number}{meant}"


def _without_secret(message: str, node: Node, key: str) -> str:
    """Messages go into logs of CI: a value whose name says that it is a secret is not told."""
    name = key.removeprefix("defaults.")
    if not isinstance(node, Scalar) or not looks_secret(name, node.text):
        return message
    return message.replace(node.text, HIDDEN)


_SECRET = re.compile(r"\$\{secret:([^}]*)\}?")
_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class EnvValue:
    """A text. A secret in it comes with a later version; it is never taken literally."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        silent = FileProblems(problems.file)
        text = Text(longest=131_072).read(node, key, silent)
        for problem in silent.found:
            problems.add(node, _without_secret(problem.message, node, key))
        if text is BAD:
            return BAD
        secrets = list(_SECRET.finditer(text))
        for secret in secrets:
            if not secret[0].endswith("}"):
                problems.add(node, f"{key}: {shown(secret[0])} has no closing brace; write ${{secret:NAME}}")
                return BAD
            if not _SECRET_NAME.fullmatch(secret[1]):
                problems.add(
                    node,
                    f"{key}: {shown(secret[1])} is not a secret's name (letters, digits, '.', '_' and '-'); write "
                    "${secret:NAME}",
                )
                return BAD
        if secrets:
            problems.add(node, f"{key}: ${{secret:...}} comes with a later version; let the job read its secret itself")
            return BAD
        return text

    def schema(self) -> JsonSchema:
        return {"type": "string", "maxLength": 131_072, "not": {"pattern": r"\$\{secret:"}}
