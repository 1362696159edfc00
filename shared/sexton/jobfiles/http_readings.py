"""Readings of what only requests have: an address, a header's value, and the expression that an answer must match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sexton.jobfiles.nodes import Node, Scalar
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, JsonSchema, Reading, Text
from sexton.secret_texts import HIDDEN, looks_secret, shown_text

_ADDRESS = Text(
    longest=8_192,
    pattern=r"https?://[^\s/?#]+(?:[/?#]\S*)?|\$\{secret:[^}\s]*\}\S*",
    wanted="an http or https address, such as https://billing.internal/run",
)
_EXPRESSION = Text(longest=1_000, shortest=1, wanted='a regular expression, such as \'"status": *"ok"\'')


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes. A port, where it is written out, is one."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        text = _ADDRESS.read(node, key, problems)
        if text is BAD or _has_right_port(text):
            return text
        problems.add(
            node, f"{key}: the port is not a whole number from 1 to 65535; write e.g. https://billing.internal:8443/run"
        )
        return BAD

    def schema(self) -> JsonSchema:
        return _ADDRESS.schema()


def _has_right_port(address: str) -> bool:
    try:
        parts = urlsplit(address)
        if "$" in parts.netloc.rpartition("@")[2]:
            return True  # a worker puts it together
        return parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression of Python's, looked for anywhere in a text."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        text = _EXPRESSION.read(node, key, problems)
        if text is BAD:
            return BAD
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            problems.add(
                node,
                f"{key}: {shown(text)} is not a regular expression: {error}; write \\ before what is meant literally",
            )
            return BAD
        return text

    def schema(self) -> JsonSchema:
        return _EXPRESSION.schema()


HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"
HEADER_VALUE = Text(
    longest=8_192,
    pattern=r"(?:[!-~](?:[\t -~]*[!-~])?)?",
    wanted="a text of ASCII characters on one line, without blanks around it",
)


@dataclass(frozen=True, slots=True)
class Unrepeated:
    """What ``inner`` reads, which may be a secret: messages, which go into logs of CI, do not repeat what looks so."""

    inner: Reading

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        silent = FileProblems(problems.file)
        value = self.inner.read(node, key, silent)
        for problem in silent.found:
            message = shown_text("", problem.message)
            if isinstance(node, Scalar) and node.text and looks_secret(key.removeprefix("defaults."), node.text):
                message = message.replace(shown(node.text), HIDDEN).replace(node.text, HIDDEN)
            problems.add(node, message)
        return value

    def schema(self) -> JsonSchema:
        return self.inner.schema()
