"""Outputs of runs on standard output, as they come: escaped, raw, with labels, or as JSON lines.

Escaped is the rule, on a terminal and elsewhere: bytes that are no UTF-8 and control characters read ``\\xff`` and
``\\x1b``, so that no output can act on a terminal, now or when a file is looked at later. What is said about an output
goes to standard error.
"""

from __future__ import annotations

import codecs
import json
import sys
from enum import StrEnum
from typing import Protocol

from sexton.output_views import Piece
from sexton.views import RunView
from sexton_tui.cli.listings.printing import is_ascii_output
from sexton_tui.cli.output import json_value
from sexton_tui.console.core.lines import clean, to_ascii
from sexton_tui.console.core.words import duration, size

NAMES = ("stdout", "stderr")


class Stream(StrEnum):
    BOTH = "both"
    STDOUT = "stdout"
    STDERR = "stderr"


class Writer(Protocol):
    """Takes what is to be shown of both outputs of one run after another."""

    def piece(self, name: str, piece: Piece) -> None: ...

    def gap(self, name: str, missing: int) -> None: ...

    def note(self, text: str) -> None:
        """Something about the run that is none of its output."""
        ...

    def ended(self, run: RunView, text: str) -> None:
        """All of the run's output has been given; ``text`` says how it ended."""
        ...

    def finish(self) -> None:
        """Nothing comes for now: show what waits for the rest of its line."""
        ...


class TextWriter:
    """Text for people, or the bytes themselves (``raw``). ``labels``: each line with the name of its output."""

    def __init__(self, *, raw: bool, labels: bool) -> None:
        self._raw = raw
        self._labels = labels
        self._ascii_only = is_ascii_output()
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("backslashreplace") for name in NAMES}
        self._lines = dict.fromkeys(NAMES, "")  # with labels: what has no end yet
        self._last = ""  # the output that wrote last, and in the midst of a line
        self._raw_lines = dict.fromkeys(NAMES, b"")

    def piece(self, name: str, piece: Piece) -> None:
        if self._raw:
            self._write_raw(name, piece.data)
        else:
            self._write(name, self._decoders[name].decode(piece.data))
        sys.stdout.flush()

    def _write_raw(self, name: str, data: bytes) -> None:
        if self._labels:
            *lines, self._raw_lines[name] = (self._raw_lines[name] + data).split(b"\n")
            data = b"".join(b"%s | %s\n" % (name.encode(), line) for line in lines)
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def _write(self, name: str, text: str) -> None:
        text = (self._lines[name] + text).replace("\r\n", "\n")
        # A carriage return may belong to the line end that comes next.
        text, self._lines[name] = (text[:-1], "\r") if text.endswith("\r") else (text, "")
        if self._labels:
            *lines, rest = text.split("\n")
            self._lines[name] = rest + self._lines[name]
            self._print("".join(f"{name} | {line}\n" for line in map(self._shown, lines)))
        elif text:
            if self._last not in ("", name):
                self._print("\n")
            self._print("\n".join(map(self._shown, text.split("\n"))))
            self._last = "" if text.endswith("\n") else name

    def _shown(self, line: str) -> str:
        shown = "\t".join(map(clean, line.split("\t")))
        return to_ascii(shown) if self._ascii_only else shown

    def _print(self, text: str) -> None:
        sys.stdout.write(text)

    def gap(self, name: str, missing: int) -> None:
        self.finish()
        self.note(f"... {size(missing)} of {name} not shown ...")

    def note(self, text: str) -> None:
        sys.stdout.flush()
        print(f"sexton: {clean(text)}", file=sys.stderr, flush=True)

    def ended(self, run: RunView, text: str) -> None:
        for name in NAMES:
            if rest := self._decoders[name].decode(b"", final=True):
                self._write(name, rest)
            self._decoders[name].reset()
        self.finish()
        self.note(text)

    def finish(self) -> None:
        for name in NAMES:
            if line := self._lines[name]:
                self._lines[name] = ""
                self._print(f"{name} | {self._shown(line)}\n" if self._labels else self._shown(line))
            if raw := self._raw_lines[name]:
                self._raw_lines[name] = b""
                sys.stdout.buffer.write(b"%s | %s\n" % (name.encode(), raw))
        if self._last and not self._raw:
            self._print("\n")
        self._last = ""
        sys.stdout.flush()


class JsonLinesWriter:
    """One JSON object a line: ``output``, ``gap``, ``note``, ``ended``, each under ``event``."""

    def __init__(self) -> None:
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("backslashreplace") for name in NAMES}

    def piece(self, name: str, piece: Piece) -> None:
        text = self._decoders[name].decode(piece.data)
        self._print(event="output", stream=name, at=piece.at, bytes=len(piece.data), text=text)

    def gap(self, name: str, missing: int) -> None:
        self._decoders[name].reset()
        self._print(event="gap", stream=name, bytes=missing)

    def note(self, text: str) -> None:
        self._print(event="note", text=text)

    def ended(self, run: RunView, text: str) -> None:
        for name in NAMES:
            if rest := self._decoders[name].decode(b"", final=True):
                self._print(event="output", stream=name, at=None, bytes=0, text=rest)
            self._decoders[name].reset()
        self._print(event="ended", text=text, run=run)

    def finish(self) -> None:
        sys.stdout.flush()

    def _print(self, **values: object) -> None:
        print(json.dumps(json_value(values), ensure_ascii=False), flush=True)


def how_it_ended(run: RunView) -> str:
    """One line about a run that is over."""
    code = "" if run.exit_code is None else f", exit code {run.exit_code}"
    word = run.outcome.word if run.outcome.word != "ready" else "ended, to be tried again"
    took = "" if run.duration is None else f" after {duration(run.duration)}"
    why = f": {run.error}" if run.error else ""
    return f"try {run.attempt} {word}{code}{took} on {run.worker}{why}"
