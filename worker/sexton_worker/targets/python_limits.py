"""The limits of a Python run: rlimits of the process that is its own, set once that is ready.

So what the interpreter took to start counts for memory and open files, which are of the whole process, but not for the
processor time, which is the run's.
"""

from __future__ import annotations

import math
import os
import resource
import signal
from pathlib import Path

from sexton.job_rules import Limits
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton_worker.core.runs import EndedRun, Ending
from sexton_worker.execution import RunOrder

CPU_GRACE = 2  # seconds from SIGXCPU to SIGKILL

_SPARSE = 64 << 20  # bytes, with which an interpreter can import and call little
# What is said by who gets no memory for a file, a library, a thread.
_NO_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread")
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_OUT_OF_TIME = 128 + signal.SIGXCPU


def set_limits(pid: int, limits: Limits) -> None:
    """What this process must not exceed from now on, never more than it may now. Raises OSError if it is gone."""
    if limits.cpu_time is not None:
        most = math.ceil(_processor_time(pid) + limits.cpu_time.total_seconds())
        _set(pid, resource.RLIMIT_CPU, most, most + CPU_GRACE)
    if limits.open_files is not None:
        _set(pid, resource.RLIMIT_NOFILE, limits.open_files, limits.open_files)
    if limits.memory is not None:
        _set(pid, resource.RLIMIT_AS, limits.memory, limits.memory)


def _set(pid: int, kind: int, soft: int, hard: int) -> None:
    _, most = resource.prlimit(pid, kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.prlimit(pid, kind, (soft, hard))


def _processor_time(pid: int) -> float:
    """Seconds that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def _is_out_of_memory(ended: EndedRun) -> bool:
    said = ended.error.lower()
    return "MemoryError" in ended.exceptions or not ended.exceptions or any(words in said for words in _NO_MEMORY)


def why_limited(order: RunOrder, ended: EndedRun) -> EndedRun:
    """The end as told, and what a limit had to do with it."""
    limits = order.rules.limits
    if ended.ending not in (Ending.RAISED, Ending.NOT_STARTED):
        return ended
    if limits.cpu_time is not None and ended.exit_code == _OUT_OF_TIME:
        why = f", for it used more processor time than its limit cpu_time {format_duration(limits.cpu_time)}"
    elif limits.memory is not None and _is_out_of_memory(ended):
        why = f", perhaps because of its limit memory {size_text(limits.memory)}"
        if limits.memory < _SPARSE:
            why += "; an interpreter alone takes 30 MB"
    elif limits.open_files is not None and "too many open files" in ended.error.lower():
        why = f", perhaps because of its limit open_files {limits.open_files}"
    else:
        return ended
    return ended._replace(error=ended.error + why)
