"""Pauses, resumes with what was missed, named ticks and backfills against a leader that commits and workers that grant
early, on PostgreSQL; then the ledger is audited.

    .venv/bin/python -m tests.stores.asked_stress --seconds 60 --seed 1

The leader and the workers are those of `edit_stress`. Operators do all that a person can ask for, several at once on
the same jobs, each by the functions that the command line calls. In the end every tick has one decision (invariant 2).
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from sexton.errors import Refused
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.store.backfilling import carry_out, read_backfill
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import ChangeKind, JobChange, Store
from sexton.store.resuming import resume_missed, skip_tick, unskip_tick
from sexton.tick_view import END_OF_TIME
from tests.stores.edit_stress import Stress, work_through
from tests.support.leader_scene import create, definition, lead

JOBS = 8
PERIODS = tuple(timedelta(milliseconds=period) for period in (1000, 1250, 1500, 2000))
OPERATORS = 3
_POLICIES = (MissedPolicy.LATEST, MissedPolicy.ALL, MissedPolicy.SKIP)


def run_operator(stress: Stress, job_ids: list[int], seed: int) -> None:
    """Ask for one thing after the other; what is refused is asked for in vain."""
    choice = random.Random(seed)
    store = stress.open("operator")
    asks: dict[str, Callable[[Store, int, random.Random], object]] = {
        "paused": _pause,
        "resumed": lambda store, job_id, _: resume_missed(store, job_id, "stress"),
        "skipped": _skip,
        "unskipped": lambda store, job_id, _: unskip_tick(store, job_id, None, "stress"),
        "revised": _revise,
        "backfilled": _backfill,
        "all paused": lambda store, job_id, _: store.pauses.pause_all("stress", "all"),
        "all resumed": lambda store, job_id, _: store.pauses.resume_all("stress"),
    }
    weights = (3, 8, 12, 3, 3, 8, 1, 4)
    while not stress.stop_editors.is_set():
        (what,) = choice.choices(list(asks), weights)
        try:
            asks[what](store, choice.choice(job_ids), choice)
            stress.counts[what] += 1
        except Refused:
            stress.counts["refused"] += 1


def _pause(store: Store, job_id: int, choice: random.Random) -> None:
    store.edits.edit([JobChange(ChangeKind.PAUSE, job_id, why="stress")], "stress")


def _skip(store: Store, job_id: int, choice: random.Random) -> None:
    """One of the ticks to come; the nearest are mostly with a worker."""
    stretch = store.backfills.stretch(job_id, store.now(), END_OF_TIME, 100)
    ticks = list(itertools.islice(stretch.newest.schedule.between(stretch.now, END_OF_TIME), 6))
    skip_tick(store, job_id, choice.choice(ticks), "stress", "")


def _revise(store: Store, job_id: int, choice: random.Random) -> None:
    (job,) = store.ticks.read_jobs([job_id])
    new = definition(job.name, choice.choice(PERIODS), missed=MissedRules(choice.choice(_POLICIES)))
    store.edits.edit([JobChange(ChangeKind.REVISE, job_id, new)], "stress")


def _backfill(store: Store, job_id: int, choice: random.Random) -> None:
    end = store.now() - timedelta(seconds=choice.random())
    begin = end - timedelta(seconds=4 * choice.random())
    rerun = choice.random() < 0.2
    plan = read_backfill(store, job_id, begin, end, rerun=rerun)
    if not plan.runs:
        raise Refused("nothing runs")
    carry_out(store, plan, begin, end, "stress", "", rerun=rerun)


def run(url: str, seconds: float, seed: int) -> tuple[Stress, Counter[str]]:
    """Stress the ledger at ``url``; the run, and what the audit found wrong with it."""
    stress = Stress(url)
    store = stress.open("control")
    lead(store)
    choice = random.Random(seed)
    jobs = create(store, *(definition(f"job {number}", choice.choice(PERIODS)) for number in range(JOBS)))
    begin = store.now() - timedelta(minutes=1)
    job_ids = [job.job_id for job in jobs]
    try:
        operators = [
            partial(run_operator, job_ids=job_ids, seed=seed * 100 + 50 + number) for number in range(OPERATORS)
        ]
        end = work_through(stress, store, seconds, seed, operators)
        wrong = Counter({"swallowed": stress.counts["swallowed"]})
        wrong["granted twice"] = len(stress.granted) - len(set(stress.granted))
        report = audit_ledger(store, begin, end)
        stress.counts["ticks"] = report.due
        for found in report.differences:
            if found.verdict.fails:
                wrong[f"{found.verdict}: {found.job} {found.at} {found.detail}"] += found.count
        return stress, Counter({what: number for what, number in wrong.items() if number})
    finally:
        for opened in stress.stores:
            opened.close()


def main() -> None:
    from sexton.store.schema import upgrade
    from tests.support.postgres import PostgresServer

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with PostgresServer() as server:
        url = server.create_database()
        upgrade(url)
        stress, wrong = run(url, arguments.seconds, arguments.seed)
    print(dict(stress.counts))  # noqa: T201 - the program's answer
    raise SystemExit("wrong:\n" + "\n".join(f"{number} {what}" for what, number in wrong.items()) if wrong else 0)


if __name__ == "__main__":
    main()
