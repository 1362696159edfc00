"""How job files write sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, pattern_schema, read_scalar
from sexton.sizes import SIZE_PATTERN, SIZE_UNITS, bytes_of


@dataclass(frozen=True, slots=True)
class Size:
    """``512MB`` or ``2GiB``, in bytes."""

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
        return pattern_schema(f"^{SIZE_PATTERN.pattern}$", "a size such as 512MB or 2GiB")


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
    near = {known.lower(): known for known in SIZE_UNITS}
    meant = near.get(unit.lower()) or near.get(f"{unit.lower()}b")
    if meant is None:
        return f"has the unit {shown(unit)}; the units are {', '.join(SIZE_UNITS)}"
    return f"is not spelt as sizes are; write {number}{meant}"
