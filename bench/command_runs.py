"""Commands a second, from pull to committed row, beside a bare loop over `subprocess.Popen` of the same concurrency.

    .venv/bin/python -m bench.command_runs [--claims 3000] [--rounds 3] [--slots 4]

Both start `/bin/true` in a session of its own and read both outputs to their ends. The bare loop has as many threads as
the worker has slots, and no database. Method and clock are those of `bench/drain.py`; a round has both, in turn.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from bench import machine
from bench.drain import WARM_UP, trials
from bench.drain_sides import SextonSide
from bench.measuring import show, spread
from sexton.claims import Overlap
from sexton.targets import CommandTarget

TRUE = CommandTarget(("/bin/true",))
JOBS = 500  # whose definitions the worker reads once
GOAL = 0.7


def popen_rate(count: int, at_once: int) -> float:
    """Processes a second of so many threads."""

    def run(_: int) -> None:
        process = subprocess.Popen(
            TRUE.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        process.communicate()

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(run, range(at_once)))  # they are there before the clock runs
        began = time.perf_counter()
        list(threads.map(run, range(count)))
        return count / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=4)
    options = parser.parse_args()
    print(machine.describe())
    side = SextonSide("commands", Overlap.QUEUE, options.slots, target=TRUE, jobs=JOBS)
    worker: list[float] = []
    bare: list[float] = []
    with trials() as trial:
        trial.drain(side, 1, min(WARM_UP, options.claims) // 10)
        for _ in range(options.rounds):
            worker.append(trial.drain(side, 1, options.claims).rate)
            bare.append(popen_rate(options.claims, options.slots))
    ratios = [ours / theirs for ours, theirs in zip(worker, bare, strict=True)]
    made = f"{statistics.median(worker):,.0f}/s and {statistics.median(bare):,.0f}/s"
    name = f"commands, {options.slots} at once, x a bare Popen loop"
    show(name, f"{spread(ratios, '')}; {made}", f"{GOAL:g}", statistics.median(ratios) >= GOAL)


if __name__ == "__main__":
    main()
