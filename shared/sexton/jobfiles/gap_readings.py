"""Readings of texts that a worker fills: secrets in variables and addresses, secrets and what the run is told in
requests (``sexton.text_templates``). What could never be filled is told here, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Mapping, Node
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, Reading
from sexton.text_templates import first_fault

_SET_BY_SEXTON = "sexton-"
_OF_THE_CONNECTION = ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")


@dataclass(frozen=True, slots=True)
class WithSecrets:
    """What ``inner`` reads, a text that may hold ``${secret:NAME}``."""

    inner: Reading
    is_template: bool = False

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        text = self.inner.read(node, key, problems)
        if not isinstance(text, str):
            return text
        fault = first_fault(text, is_template=self.is_template)
        if fault is None:
            return text
        problems.add(node, f"{key}: {shown(fault.part)} {fault.why}")
        return BAD

    def schema(self) -> JsonSchema:
        return self.inner.schema()


def template(inner: Reading) -> WithSecrets:
    """What ``inner`` reads, a text that may also hold ``${tick}`` and its like."""
    return WithSecrets(inner, is_template=True)


@dataclass(frozen=True, slots=True)
class Headers:
    """What ``inner`` reads, a mapping of headers, without those that are not the job's to set."""

    inner: Reading

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        before = len(problems.found)
        headers = self.inner.read(node, key, problems)
        if isinstance(node, Mapping):
            self._check_names(node, key, problems)
        return headers if len(problems.found) == before else BAD

    def _check_names(self, node: Mapping, key: str, problems: FileProblems) -> None:
        for name, (place, _) in node.entries.items():
            lower = name.lower()
            if lower.startswith(_SET_BY_SEXTON):
                problems.add(place, f"{key}: {shown(name)} begins as what Sexton sets itself; choose another name")
            elif lower in _OF_THE_CONNECTION:
                problems.add(place, f"{key}: {shown(name)} is for the connection and set by Sexton; remove it")

    def schema(self) -> JsonSchema:
        return self.inner.schema()
