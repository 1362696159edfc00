"""What the benchmarks of a cluster share: percentiles, a process's cost, and a line with its goal beside it."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.machine import load


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds(pid: int) -> float:
    """The same of a process and of all its descendants that live."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    return _sum_of_tree(pid, parents)


def _sum_of_tree(pid: int, parents: dict[int, list[int]]) -> float:
    own = 0.0
    with contextlib.suppress(OSError):
        own = cpu_seconds(pid)
    return own + sum(_sum_of_tree(child, parents) for child in parents.get(pid, ()))


def resident_mib(pid: int) -> float:
    """Memory that the process has now."""
    return _status_mib(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """The most memory that the process ever had."""
    return _status_mib(pid, "VmHWM")


def _status_mib(pid: int, key: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no {key}")


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def spread(values: Sequence[float], unit: str, digits: int = 2) -> str:
    """Median with least and most."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} {unit} ({low:.{digits}f} .. {high:.{digits}f}, {len(values)} tries)"


def show(what: str, measured: str, goal: str = "", is_met: bool | None = None) -> None:
    """One figure, its goal, whether that is met, and the load average of this moment."""
    verdict = "" if is_met is None else " met" if is_met else " MISSED"
    aim = f"  goal {goal}{verdict}" if goal else ""
    print(f"  {what:<44} {measured}{aim}  [{load()}]", flush=True)
