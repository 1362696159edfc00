"""The machine beside every figure: its cores, what one fdatasync costs, and how loaded it is right now.

    .venv/bin/python -m bench.machine

A rate says little without the disk's flush, and nothing while other work takes the cores: each benchmark prints both.
"""

from __future__ import annotations

import os
import platform
import re
import select
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.postgres import find_binaries

_FDATASYNC = re.compile(r"^\s*fdatasync\s+[\d.]+ ops/sec\s+([\d.]+) usecs/op", re.MULTILINE)
_LIMIT_SECONDS = 30.0


def fdatasync_micros() -> float | None:
    """Microseconds of an 8 kB write with fdatasync, as ``pg_test_fsync`` tells; None where it does not."""
    program = find_binaries() / "pg_test_fsync"
    if not program.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [str(program), "-s", "1", "-f", str(Path(folder) / "file")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            return _read_fdatasync(process)
        finally:
            process.kill()  # the other methods would take it half a minute more
            process.wait()


def _read_fdatasync(process: subprocess.Popen[bytes]) -> float | None:
    assert process.stdout is not None
    output, until = b"", time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < until and select.select([process.stdout], [], [], until - time.monotonic())[0]:
        part = os.read(process.stdout.fileno(), 65536)
        output += part
        found = _FDATASYNC.search(output.decode(errors="replace"))
        if found is not None:
            return float(found[1])
        if not part:
            break
    return None


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe() -> str:
    """One line for the head of a benchmark's output."""
    micros = fdatasync_micros()
    flush = "pg_test_fsync is not installed" if micros is None else f"fdatasync of 8 kB {micros:.0f} us (pg_test_fsync)"
    cores = len(os.sched_getaffinity(0))
    return f"machine: {cores} cores {processor()}; {flush}; Python {platform.python_version()}; {load()}"


def load() -> str:
    """The load average of the last minute: what this machine does beside, and because of, the benchmark."""
    return f"load {os.getloadavg()[0]:.2f}"


if __name__ == "__main__":
    print(describe())
