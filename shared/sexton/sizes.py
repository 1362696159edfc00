"""Sizes in bytes as job files and settings write them: KB, MB, GB, TB count by 1000, KiB, MiB, GiB, TiB by 1024."""

from __future__ import annotations

import re

SIZE_UNITS = {
    **{unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), start=1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), start=1)},
}
SIZE_PATTERN = re.compile(rf"([0-9]{{1,15}})({'|'.join(SIZE_UNITS)})")


def bytes_of(text: str) -> int | None:
    """The bytes that ``512MB`` or ``2GiB`` says; None for what is no size."""
    match = SIZE_PATTERN.fullmatch(text)
    return None if match is None else int(match[1]) * SIZE_UNITS[match[2]]


def size_text(size: int) -> str:
    """The shortest text that ``bytes_of`` reads back; ``size`` is a whole number of KB or KiB."""
    exact = [f"{size // unit}{name}" for name, unit in SIZE_UNITS.items() if size % unit == 0]
    return min(exact, key=len)
