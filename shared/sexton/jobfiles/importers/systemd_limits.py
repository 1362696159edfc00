"""What a service's processes may use, as the `limits` of a job: what systemd too sets by rlimit, for each process.

What systemd counts for all processes of a service together (MemoryMax=, CPUQuota=) is not the same, and is told.
"""

from __future__ import annotations

import re
from datetime import timedelta

from sexton.jobfiles.importers.findings import shown
from sexton.jobfiles.importers.unit_files import Setting, span_of
from sexton.jobfiles.importers.unit_findings import AboutJob, Unit
from sexton.settings import format_duration
from sexton.sizes import size_text

LIMIT_SETTINGS = frozenset({"LimitAS", "LimitCPU", "LimitNOFILE"})

_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)")
_LEAST_MEMORY, _MOST_MEMORY = 1_000_000, 1024**5
_OPEN_FILES = range(8, 1_048_577)


def limits_of(unit: Unit, about: AboutJob) -> dict[str, object]:
    """The key `limits`, empty where the service has none that a job can have."""
    limits: dict[str, object] = {}
    if (memory := _text(unit, "LimitAS", about)) is not None:
        setting, text = memory
        size = _bytes(text)
        if size is None or not _LEAST_MEMORY <= size <= _MOST_MEMORY:
            about.error(setting, f"{shown(text)} is no size from 1M to 1024T; write limits: {{memory: ...}} by hand")
        else:
            limits["memory"] = size_text(-(-size // 1024) * 1024)
    if (cpu_time := _text(unit, "LimitCPU", about)) is not None:
        setting, text = cpu_time
        try:
            span = span_of(text)
        except ValueError as error:
            about.error(setting, str(error))
            span = None
        if span:
            limits["cpu_time"] = format_duration(max(span, timedelta(seconds=1)))
    if (files := _text(unit, "LimitNOFILE", about, takes_hard=True)) is not None:
        setting, text = files
        if re.fullmatch(r"[0-9]{1,9}", text) and int(text) in _OPEN_FILES:
            limits["open_files"] = int(text)
        else:
            about.error(
                setting, f"{shown(text)} is no number from 8 to 1048576; write limits: {{open_files: ...}} by hand"
            )
    return {"limits": limits} if limits else {}


def _text(unit: Unit, key: str, about: AboutJob, *, takes_hard: bool = False) -> tuple[Setting, str] | None:
    """The setting and the one of its two values that counts; None where there is none, or no limit."""
    setting = unit.last("Service", key)
    if setting is None:
        return None
    soft, colon, hard = (part.strip() for part in setting.value.partition(":"))
    taken = hard if colon and takes_hard else soft
    if colon and soft != hard:
        written = "hard" if takes_hard else "soft"
        about.differs(setting, f"has a soft and a hard limit, and a job has one: the {written} one was written")
    return None if taken == "infinity" else (setting, taken)


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return None if match is None else int(match[1]) * 1024 ** " KMGT".index(match[2] or " ")
