"""What every kind of job file becomes before its keys are read: values that know where they stand.

Job files in YAML, TOML and Python give the same nodes, so that one set of readings (``keys``) reads them all with the
same errors. A scalar keeps its text and how it was written; what it means is decided by the key it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sexton.jobfiles.problems import shown

MAX_DEPTH = 32
MAX_VALUES = 2_000_000  # of one file: 200,000 jobs of ten


@dataclass(frozen=True, slots=True)
class Scalar:
    """One text. ``is_plain``: written without quotes, so that it may be a number, ``true``, ``false`` or ``null``.

    ``typed`` says what the value is where the format itself types it and that is none of these ("a TOML date", "a
    timedelta"): readings that want a text refuse it, those that want such a value read ``text``.
    """

    line: int
    column: int
    text: str
    is_plain: bool
    size: int = 1
    typed: str = ""


@dataclass(slots=True)
class Sequence:
    """A list; ``size``: values in it, itself included, aliases written out."""

    line: int
    column: int
    items: list[Node] = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class Mapping:
    """A mapping; keys are texts, unique, in the order of the file."""

    line: int
    column: int
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1


Node = Scalar | Sequence | Mapping


def kind_of(node: Node) -> str:
    """What a node is, as messages say it."""
    if isinstance(node, Scalar):
        return f"the single value {shown(node.text)}" if node.text else "empty"
    return "a list" if isinstance(node, Sequence) else "a mapping"
