"""Readings of what a later version brings: the grammar is whole, every value but the default is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sexton.jobfiles.nodes import Mapping, Node, Scalar
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, Reading, Text
from sexton.jobfiles.secret_texts import HIDDEN, looks_secret


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
