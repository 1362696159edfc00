"""Readings of what a later version brings: the grammar is whole, every value but the default is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Mapping, Node
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.readings import BAD, JsonSchema, Reading


@dataclass(frozen=True, slots=True)
class Later:
    """A mapping of a coming version. Its value is read as ``inner`` says, with every fault in it reported; then its
    ``default`` is accepted (it needs no code), and all else is refused. ``remedy``: what to do until then."""

    inner: Reading
    default: dict[str, Any]
    remedy: str

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        if isinstance(node, Mapping):
            value = self.inner.read(node, key, problems)
            if value is BAD:
                return BAD  # once mended, it may be the default
            if all(name in self.default and self.default[name] == entry for name, entry in value.items()):
                return self.default
        # of what is no mapping it is not told how to write what would then be refused
        problems.add(node, f"{key} comes with a later version; {self.remedy}")
        return BAD

    def schema(self) -> JsonSchema:
        properties = {name: {"const": value} for name, value in self.default.items()}
        only_default = {"type": "object", "properties": properties, "additionalProperties": False}
        return only_default | {"errorMessage": f"comes with a later version; {self.remedy}"}
