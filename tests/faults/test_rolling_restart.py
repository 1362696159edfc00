"""A pool of four workers is restarted one after the other under load, by signal and by an operator's word.

Nothing is lost or doubled, and no attempt is wasted: what ran ends where it ran, what waited goes to the others.
"""

from __future__ import annotations

import collections
import itertools
import signal
from collections.abc import Callable

from sqlalchemy import select

from sexton.claims import State
from sexton.store.tables import jobs, runs
from tests.support.judge import Judge
from tests.support.trial import LONG, Trial

POOL = 4
WITH_TRIES = ("fails-at-first", "always-fails")  # jobs whose runs fail by themselves


def test_a_pool_of_four_is_restarted_under_load(
    trial: Trial, judge: Judge, tries: int, record_property: Callable[[str, object], None]
) -> None:
    trial.apply()
    began = trial.store.now()
    trial.start(nodes=1, workers=POOL)
    trial.wait_for_runs(5)
    for _ in range(tries):
        for number in range(1, POOL + 1):
            restart(trial, f"worker-{number}", by_word=number % 2 == 0)
    trial.wait_for_runs(10)
    ended = trial.ended_runs(began)
    judge.check()
    assert ended >= 10 * tries
    assert not lost_or_returned(trial)
    begun = collections.Counter(trial.log())
    twice = [key for key, count in collections.Counter((job, tick) for job, tick, _ in begun).items() if count > 1]
    assert not twice, "runs that began twice"
    record_property("runs", ended)
    record_property("longest_gap_seconds", longest_gap(trial))


def restart(trial: Trial, name: str, *, by_word: bool) -> None:
    """Have this worker end once its runs have, and start its successor of the same name."""
    process = trial.workers[name]
    if by_word:
        trial.sexton("workers", "drain", name)
    else:
        process.signal(signal.SIGTERM)
    assert process.wait(within=LONG) == 0, process.report()
    trial.start_worker(name)
    trial.wait_for_workers()
    trial.wait_for_runs(3)


def lost_or_returned(trial: Trial) -> list[tuple[str, str, str]]:
    """Runs that had begun and ended without an outcome of their own: job, state and reason."""
    statement = (
        select(jobs.c.name, runs.c.outcome, runs.c.error)
        .join(jobs, jobs.c.job_id == runs.c.job_id)
        .where(runs.c.outcome.in_([State.READY, State.LOST, State.CANCELLED]), runs.c.started_at.is_not(None))
    )
    with trial.store.reads.snapshot() as connection:
        found = [(row.name, State(row.outcome).word, row.error or "") for row in connection.execute(statement)]
    return [one for one in found if one[0] not in WITH_TRIES]


def longest_gap(trial: Trial) -> float:
    """Seconds between the ends of two runs; said, not judged: the machine's load is in it."""
    with trial.store.reads.snapshot() as connection:
        ends = [row.finished_at for row in connection.execute(select(runs.c.finished_at).order_by("finished_at"))]
    return max(float((after - before).total_seconds()) for before, after in itertools.pairwise(ends))
