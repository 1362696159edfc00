"""How the value of a key is read from a node: one small value per kind, put together in ``keys``.

Every reading either returns the value or reports, at the node, the faulty value and what to write instead, and returns
``BAD``. Each also says what it reads as JSON Schema, from the same limits; the schema may be the wider of the two (it
knows neither quotes nor what lies between values), never the narrower. Its patterns are for ECMA regular expressions.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence, kind_of
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.remedies import LONGEST, entry, node_from
from sexton.jobfiles.yaml_words import has_leading_zero, number, whole_number, why_scalar_not_text
from sexton.secret_texts import shown_text


class _Bad(Enum):
    BAD = "bad"


JsonSchema = dict[str, Any]

BAD: Final = _Bad.BAD
"""Stands for a value that was refused; the fault has been reported."""


class Reading(Protocol):
    """Reads one kind of value."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        """The value, or BAD with the fault reported. ``key`` is how messages call it."""
        ...

    def schema(self) -> JsonSchema:
        """JSON Schema (draft 2020-12) of the values as a YAML 1.2 reader gives them."""
        ...


def read_scalar(node: Node, key: str, problems: FileProblems, wanted: str) -> Scalar | None:
    """``node`` where it is a single value; else None, reported."""
    if isinstance(node, Scalar):
        return node
    problems.add(node, f"{key} is {kind_of(node)}; write {wanted}")
    return None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most ``longest`` characters that ``pattern`` (if any) matches whole."""

    longest: int = 65_536
    shortest: int = 0
    pattern: str | None = None
    wanted: str = "a text"

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, self.wanted)
        if scalar is None:
            return BAD
        text = scalar.text
        if why := why_scalar_not_text(scalar):
            problems.add(node, f"{key}: {text} {why}" if text else f"{key} {why}, or remove the key")
            return BAD
        if not _is_storable(text):
            problems.add(
                node, f"{key}: {shown(text)} holds a NUL or half a character, which no database stores; remove it"
            )
            return BAD
        if len(text) > self.longest:
            problems.add(node, f"{key}: {shown(text)} has {len(text)} characters; at most {self.longest} are allowed")
            return BAD
        if len(text) < self.shortest:
            problems.add(node, f"{key} is empty; write {self.wanted}, or remove the key")
            return BAD
        if self.pattern is not None and not re.fullmatch(self.pattern, text):
            problems.add(node, f"{key}: {shown(text)} is not {self.wanted}")
            return BAD
        return text

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {"type": "string", "maxLength": self.longest}
        if self.shortest:
            schema["minLength"] = self.shortest
        if self.pattern is not None:
            schema |= pattern_schema(f"^(?:{self.pattern})$", self.wanted)
        return schema


def pattern_schema(pattern: str, wanted: str) -> JsonSchema:
    """Texts that match; editors that know ``patternErrorMessage`` say ``wanted`` instead of the expression."""
    return {"type": "string", "pattern": pattern, "patternErrorMessage": f"not {wanted}"}


def _is_storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text))


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within limits."""

    least: int
    most: int

    @property
    def wanted(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, self.wanted)
        if scalar is None:
            return BAD
        value = whole_number(scalar.text) if scalar.is_plain else None
        if value is not None and self.least <= value <= self.most:
            return value
        if scalar.is_plain and has_leading_zero(scalar.text):
            why = "has a leading zero, which is octal to some YAML readers; write it without"
        elif not scalar.is_plain and whole_number(scalar.text) is not None:
            why = "stands in quotes; write the number without them"
        else:
            why = f"is not {self.wanted}"
        problems.add(node, f"{key}: {shown(scalar.text)} {why}")
        return BAD

    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number within limits."""

    least: float
    most: float

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = f"a number from {self.least:g} to {self.most:g}"
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        value = number(scalar.text) if scalar.is_plain else None
        if value is not None and self.least <= value <= self.most:
            return float(value)
        problems.add(node, f"{key}: {shown(scalar.text)} is not {wanted}")
        return BAD

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``, and none of the other words YAML has for them."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        scalar = read_scalar(node, key, problems, "true or false")
        if scalar is None:
            return BAD
        if scalar.is_plain and scalar.text in ("true", "false"):
            return scalar.text == "true"
        meant = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
        word = scalar.text.lower()
        what = meant.get(word, word if word in ("true", "false") else "true or false, without quotes")
        problems.add(node, f"{key}: {shown(scalar.text)} is not true or false; write {what}")
        return BAD

    def schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a few, each with the value it stands for."""

    words: dict[str, Any]

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        wanted = " or ".join(filter(None, [", ".join([*self.words][:-1]), [*self.words][-1]]))
        scalar = read_scalar(node, key, problems, wanted)
        if scalar is None:
            return BAD
        if scalar.text in self.words:
            return self.words[scalar.text]
        near = difflib.get_close_matches(scalar.text[:60].lower(), [*self.words], n=1, cutoff=0.7)
        same = [word for word in self.words if word.lower() == scalar.text.lower()]
        meant = f"; did you mean {(same or near)[0]}?" if same or near else ""
        problems.add(node, f"{key}: {shown(scalar.text)} is not {wanted}{meant}")
        return BAD

    def schema(self) -> JsonSchema:
        return {"enum": [*self.words]}


@dataclass(frozen=True, slots=True)
class OrNull:
    """What ``inner`` reads, or ``null``, which is None."""

    inner: Reading

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if isinstance(node, Scalar) and node.is_plain and node.text in ("null", "~", ""):
            if node.text == "null":
                return None
            what = f"{node.text!r} is not null to every YAML reader" if node.text else "the value is missing"
            problems.add(node, f"{key}: {what}; write null, or remove the key")
            return BAD
        return self.inner.read(node, key, problems)

    def schema(self) -> JsonSchema:
        return {"anyOf": [self.inner.schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of what ``inner`` reads, as a tuple."""

    inner: Reading
    shortest: int = 0
    longest: int = 10_000
    wanted: str = "a list"
    takes_one: bool = True
    """Whether a single value was probably meant as the only item."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if not isinstance(node, Sequence):
            write = self._meant(node, key, problems) or self.wanted
            problems.add(node, f"{key} is {kind_of(node)}; write {write}")
            return BAD
        if not self.shortest <= len(node.items) <= self.longest:
            problems.add(node, f"{key} has {len(node.items)} items; write {self.shortest} to {self.longest} of them")
            return BAD
        values = [self.inner.read(item, f"{key}[{place}]", problems) for place, item in enumerate(node.items)]
        return BAD if BAD in values else tuple(values)

    def _meant(self, node: Node, key: str, problems: FileProblems) -> str | None:
        proposal = self.meant(node, problems)
        text = entry(key, proposal, problems) if proposal is not None else ""
        return text if 0 < len(text) <= LONGEST else None

    def meant(self, node: Node, problems: FileProblems) -> Sequence | None:
        """The list that is meant where one value stands, or several with commas between them."""
        if not isinstance(node, Scalar) or not self.takes_one:
            return None
        parts = [part for part in re.split(r"\s*,\s*", node.text) if part]
        several = [Scalar(node.line, node.column, part, node.is_plain) for part in parts]
        for items in ([several] if len(several) > 1 else []) + [[node]]:
            proposal = Sequence(node.line, node.column, [*items])
            if self.read(proposal, "", FileProblems(problems.file)) is not BAD:
                return proposal
        return None

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {"type": "array", "items": self.inner.schema(), "maxItems": self.longest}
        if self.shortest:
            schema["minItems"] = self.shortest
        return schema


def _is_text_key(node: Scalar, key: str, problems: FileProblems) -> bool:
    """Whether a name that the author chose is a text to every YAML reader; reported if not."""
    if why := why_scalar_not_text(node):
        problems.add(node, f"{key}: the name {node.text} {why}")
        return False
    return True


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from texts that ``pattern`` matches to what ``inner`` reads."""

    inner: Reading
    pattern: str
    wanted_key: str
    longest: int = 1_000
    example: tuple[str, str | int] = ("NAME", "value")

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if not isinstance(node, Mapping):
            such_as = entry(key, node_from(dict([self.example])), problems)
            write = self._meant(node, key, problems) or f"a mapping, such as {such_as}"
            problems.add(node, shown_text("", f"{key} is {kind_of(node)}; write {write}"))
            return BAD
        if len(node.entries) > self.longest:
            problems.add(node, f"{key} has {len(node.entries)} entries; at most {self.longest} are allowed")
            return BAD
        found: dict[str, Any] = {}
        for name, (key_node, value_node) in node.entries.items():
            if not _is_text_key(key_node, key, problems):
                found[name] = BAD
            elif not re.fullmatch(self.pattern, name):
                problems.add(key_node, f"{key}: {shown(name)} is not {self.wanted_key}")
                found[name] = BAD
            else:
                found[name] = self.inner.read(value_node, f"{key}.{name}", problems)
        return BAD if BAD in found.values() else found

    def _meant(self, node: Node, key: str, problems: FileProblems) -> str | None:
        """The mapping written out, where NAME=value stands, or a list of these."""
        items = node.items if isinstance(node, Sequence) else [node]
        pairs = [item.text.partition("=") for item in items if isinstance(item, Scalar) and "=" in item.text]
        proposal = node_from({name: value for name, _, value in pairs})
        text = entry(key, proposal, problems)
        is_whole = 0 < len(items) == len(pairs) and len(text) <= LONGEST
        return text if is_whole and self.read(proposal, key, FileProblems(problems.file)) is not BAD else None

    def schema(self) -> JsonSchema:
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^(?:{self.pattern})$"},
            "additionalProperties": self.inner.schema(),
            "maxProperties": self.longest,
        }


@dataclass(frozen=True, slots=True)
class Json:
    """Any JSON value: what a target's arguments may be. Dates and the like are to be quoted."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if isinstance(node, Sequence):
            items = [self.read(item, f"{key}[{place}]", problems) for place, item in enumerate(node.items)]
            return BAD if any(item is BAD for item in items) else items
        if isinstance(node, Mapping):
            entries = {
                name: self.read(value, f"{key}.{name}", problems) if _is_text_key(key_node, key, problems) else BAD
                for name, (key_node, value) in node.entries.items()
            }
            return BAD if any(value is BAD for value in entries.values()) else entries
        if node.is_plain:
            words = {"null": None, "true": True, "false": False}
            if node.text in words:
                return words[node.text]
            if (value := number(node.text)) is not None:
                return value
        return Text().read(node, key, problems)

    def schema(self) -> JsonSchema:
        return {}
