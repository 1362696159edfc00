"""The unit files that belong to a timer: its drop-ins, the service that it starts, and that one's drop-ins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sexton.jobfiles.importers.findings import Finding, Findings
from sexton.jobfiles.importers.source_text import MAX_SOURCE_BYTES, decode_source
from sexton.jobfiles.importers.unit_files import UnitSource

# `systemctl cat` puts the path of each file before it.
_PATH_LINE = re.compile(r"^# (?P<path>/\S+\.(?:timer|service|conf))$")
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.@\\-]+\.(?:timer|service)")


def read_units(given: Iterable[tuple[str, bytes]]) -> tuple[list[UnitSource], tuple[Finding, ...]]:
    """The files of all units, each before its drop-ins; what could not be read is told."""
    found: list[UnitSource] = []
    told: list[Finding] = []
    seen: set[str] = set()
    for file, data in given:
        findings = Findings(file)
        text = decode_source(data, findings)
        told += findings.found
        if text is None:
            continue
        if file == "stdin":
            found += _from_systemctl_cat(text)
            continue
        for source in _with_neighbours(Path(file), text, told):
            if source.file not in seen:
                seen.add(source.file)
                found.append(source)
    return found, tuple(told)


def _from_systemctl_cat(text: str) -> list[UnitSource]:
    """The units in the output of `systemctl cat`; lines keep their number in it."""
    sources: list[UnitSource] = []
    unit, lines, start = "stdin.timer", list[str](), 0

    def close() -> None:
        if any(line.strip() for line in lines):
            sources.append(UnitSource(unit, "stdin", "\n" * start + "\n".join(lines)))

    for number, line in enumerate(text.split("\n")):
        if match := _PATH_LINE.match(line.rstrip("\r")):
            close()
            unit, lines, start = _unit_of(match["path"]), [], number + 1
        else:
            lines.append(line)
    close()
    return sources


def _unit_of(path: str) -> str:
    """The unit that a file is, or is a drop-in of."""
    parent, _, name = path.rpartition("/")
    folder = parent.rpartition("/")[2]
    return folder.removesuffix(".d") if name.endswith(".conf") and folder.endswith(".d") else name


def _with_neighbours(path: Path, text: str, told: list[Finding]) -> list[UnitSource]:
    unit = _unit_of(str(path.absolute()))
    sources = [UnitSource(unit, str(path), text), *_drop_ins(path, told)]
    if not path.name.endswith(".timer"):
        return sources
    stem = path.name.removesuffix(".timer")
    named = re.findall(r"^\s*Unit\s*=\s*(\S+)\s*$", text, re.MULTILINE)
    service = named[-1] if named and _UNIT_NAME.fullmatch(named[-1]) else f"{stem}.service"
    template = re.sub(r"@.*\.service$", "@.service", service)
    for name in dict.fromkeys([service, template]):
        beside = path.parent / name
        if beside.is_file():
            read = _read(beside, told)
            if read is not None:
                sources += [UnitSource(name, str(beside), read), *_drop_ins(beside, told)]
    return sources


def _drop_ins(path: Path, told: list[Finding]) -> list[UnitSource]:
    """FILE.d/*.conf, in the order of their names."""
    folder = path.with_name(path.name + ".d")
    if not folder.is_dir():
        return []
    files = sorted(one for one in folder.iterdir() if one.name.endswith(".conf") and one.is_file())
    return [UnitSource(path.name, str(one), text) for one in files if (text := _read(one, told)) is not None]


def _read(path: Path, told: list[Finding]) -> str | None:
    findings = Findings(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        findings.error(0, f"cannot be read ({error.strerror}); check who may read it")
        told += findings.found
        return None
    text = decode_source(data, findings)
    told += findings.found
    return text
