"""A pool of workers under random blows for minutes, with jobs of every kind: `make soak`. Collected only when named.

At its end the ledger is clean, at most once was at most once by the runs' own log, and nothing is left: no process, no
temporary file, no descriptor in the one worker that lived through all of it.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from sexton.claims import State
from sexton.store.tables import runs
from tests.support import reaper
from tests.support.blows import PATIENCE, Blows, children_of
from tests.support.judge import Judge
from tests.support.processes import ProcessGroup
from tests.support.source_tree import ROOT
from tests.support.trial import TWENTY_JOBS, Trial, wait_until
from tests.support.waiting import stays

MINUTES = 1.0  # if nobody says
WORKERS, NODES = 3, 2
SPARED = "worker-1"
OF_A_CHILD = 8  # descriptors that a worker has open for each Python process
MORE = 12  # that may be open at one moment and not at another: connections, runs that begin or end

MORE_JOBS = """
  python-in-passing:
    schedule: "* * * * * *"
    python: tests.support.work_module:noop
    overlap: allow
  python-that-talks:
    schedule: "* * * * * *"
    python: tests.support.work_module:write_both
    args: [something]
    overlap: queue
  python-in-the-background:
    schedule: "*/2 * * * * *"
    python: tests.support.work_module:nap
    args: [1.5]
    overlap: allow
  python-killed-with-its-lease:
    schedule: "*/3 * * * * *"
    python: tests.support.work_module:nap
    args: [6]
    on_lease_lost: kill
    max_runtime: 20s
  python-that-never-returns:
    schedule: "*/7 * * * * *"
    python: tests.support.work_module:wait_for_ever
    max_runtime: 3s
    kill_after: 1s
  python-that-dies:
    schedule: "*/5 * * * * *"
    python: tests.support.work_module:kill_self
  limited:
    schedule: "*/4 * * * * *"
    shell: head -c 1000000 /dev/zero
    limits: {memory: 256MiB, open_files: 64}
  command-killed-with-its-lease:
    schedule: "*/3 * * * * *"
    shell: sleep 6
    on_lease_lost: kill
  stubborn:
    schedule: "*/10 * * * * *"
    shell: "trap '' TERM; setsid sleep 100 & while :; do sleep 0.2; done"
    max_runtime: 2s
    kill_after: 1s
"""


@pytest.fixture
def trial(processes: ProcessGroup, postgres_url: str, tmp_path: Path) -> Iterator[Trial]:
    (tmp_path / "tmp").mkdir()
    with contextlib.closing(Trial(processes, postgres_url)) as made:
        made.environment |= {"PYTHONPATH": str(ROOT), "SEXTON_SLOTS": "6", "TMPDIR": str(tmp_path / "tmp")}
        made.apply(TWENTY_JOBS + MORE_JOBS, {"lease": "6s", "heartbeat": "2s"})
        made.start(nodes=NODES, workers=WORKERS)
        yield made


def test_workers_under_random_blows(trial: Trial, soak: float, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    judge, blows = Judge(trial), Blows(trial, SPARED, random.Random(seed))
    tell(f"\nsoak of {soak or MINUTES:g} minutes, seed {seed}")
    trial.wait_for_runs(50)
    spared = trial.workers[SPARED].pid
    before = descriptors(spared)
    until = time.monotonic() + 60 * (soak or MINUTES)
    while time.monotonic() < until:
        blows.strike()
        stays(blows.mend, during=blows.draw_pause(), what="the pool is mended")
    blows.calm()
    trial.wait_for_leader()
    trial.wait_for_workers()
    trial.wait_for_runs(100)
    report = judge.check()
    after = descriptors(spared)
    assert trial.workers[SPARED].pid == spared, "the spared worker has ended"
    end(trial)
    left = reaper.marked(trial.processes.mark)
    files = list((tmp_path / "tmp").iterdir())
    summary = [
        f"blows: {', '.join(f'{count} × {kind}' for kind, count in sorted(blows.count.items()))}",
        f"runs: {', '.join(f'{count} {word}' for word, count in outcomes(trial).items())}",
        f"late results refused: {trial.counter('stale_results')}",
        f"ticks: {report.due} fell due, {report.decided} decided, {len(report.differences)} differences",
        f"descriptors of the worker that lived through it: {before} before, {after} after",
        f"left: {len(left)} processes, {len(files)} temporary files",
    ]
    tell("\n".join(summary))
    assert not left, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]
    assert not files
    assert after <= before + MORE
    trial.audit()


def tell(text: str) -> None:
    """On the terminal of who ran this with `-s`."""
    sys.stderr.write(f"{text}\n")


def descriptors(worker: int) -> int:
    """Of this worker, without those for its Python processes."""
    count = len(list(Path(f"/proc/{worker}/fd").iterdir()))
    return count - OF_A_CHILD * len(children_of(worker, "python_child"))


def outcomes(trial: Trial) -> dict[str, int]:
    statement = select(runs.c.outcome, func.count()).group_by(runs.c.outcome).order_by(runs.c.outcome)
    with trial.store.reads.snapshot() as connection:
        return {State(outcome).word: count for outcome, count in connection.execute(statement)}


def end(trial: Trial) -> None:
    """Everybody leaves in order; nobody is left of what they started."""
    for process in (*trial.workers.values(), *trial.nodes.values()):
        process.signal(signal.SIGTERM)
    for process in (*trial.workers.values(), *trial.nodes.values()):
        assert process.wait(PATIENCE) == 0, process.report()
    wait_until(lambda: not reaper.marked(trial.processes.mark), "all that was started is gone")
