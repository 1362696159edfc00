"""Edits of a cluster that runs: what a team's job files say from one apply to the next, and what must be left behind.

Each edit is an apply with prune, by the functions that `sexton apply` calls. The changes are drawn from a seed; every
kind comes in each round of six: another schedule, another zone, a rename, a pause by file and its end, a job
retired, and another one under its name.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from sexton.claims import Origin, State
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.jobfiles.writing import JobEntry, job_file_text
from sexton.store.protocol import EditConditions, Store
from sexton.store.tables import claims, cursors, jobs, runs
from tests.support.waiting import eventually

# Of the two zones' minutes, one has what the other has not: a change of the zone moves every tick by half an hour.
_HALF_HOURS = ({"timezone": "UTC"}, {"timezone": "Asia/Kolkata"})
_SCHEDULES: tuple[Any, ...] = (
    "* * * * * *",
    "*/2 * * * * *",
    {"every": "1s"},
    {"every": "1s500ms"},
    ["*/3 * * * * *", {"every": "2s"}],
    "H/2 * * * * *",
    "1-59/2 * * * * *",
)
_SECOND = timedelta(seconds=1)
_COMMAND = {"command": ["true"], "missed": {"policy": "all", "grace": "60s"}}


class LiveEdits:
    """The jobs of a team, edited one step after the other; ``counts``: what was done."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.counts: Counter[str] = Counter()
        self._choice = random.Random(seed)
        self._number = 0
        self._gone: list[str] = []
        self.jobs: dict[str, dict[str, Any]] = {
            f"second-{number}": {"schedule": schedule, **_COMMAND} for number, schedule in enumerate(_SCHEDULES)
        }
        for number in range(2):
            self.jobs[f"half-{number}"] = {
                "schedule": ["* 0-29 * * * *", "0 30-59 * * * *"],
                "timezone": "UTC",
                "jitter": "700ms",
                **_COMMAND,
            }

    def begin(self) -> None:
        """Apply the jobs as they are at the beginning."""
        self._apply()

    def step(self) -> None:
        """One edit, of the next kind."""
        kinds: tuple[Callable[[], None], ...] = (
            self.other_schedules,
            self.rename,
            self.pause_or_go_on,
            self.retire,
            self.create_again,
            self.other_zone,
        )
        kinds[self._number % len(kinds)]()
        self._number += 1
        self._apply()

    def _apply(self) -> None:
        text = job_file_text([JobEntry(name, keys) for name, keys in self.jobs.items()])
        plan = plan_changes(load_job_text(text), self.store.edits.current_jobs(), prune=True, prune_limit=99)
        done = self.store.edits.edit(plan.changes, "team", EditConditions(plan.unchanged_at))
        for keys in self.jobs.values():
            keys.pop("renamed_from", None)
        self.counts["edits"] += 1
        self.counts["renamed"] += sum(one.renamed for one in plan.revised)
        self.counts["withdrawn"] += sum(one.withdrawn for one in done)
        for one in done:
            self.counts[one.kind.value] += 1

    def _some(self, prefix: str) -> str:
        return self._choice.choice([name for name in self.jobs if name.startswith(prefix)])

    def other_schedules(self) -> None:
        for _ in range(2):
            self.jobs[self._some("second")]["schedule"] = self._choice.choice(_SCHEDULES)

    def other_zone(self) -> None:
        keys = self.jobs[self._some("half")]
        keys |= _HALF_HOURS[keys["timezone"] == "UTC"]

    def rename(self) -> None:
        old = self._some("second")
        new = f"second-{self._number}-was-{old.rpartition('-')[2]}"
        self.jobs[new] = {**self.jobs.pop(old), "schedule": self._choice.choice(_SCHEDULES), "renamed_from": old}

    def pause_or_go_on(self) -> None:
        for _ in range(2):
            keys = self.jobs[self._choice.choice(list(self.jobs))]
            keys["enabled"] = not keys.get("enabled", True)

    def retire(self) -> None:
        name = self._some("second")
        del self.jobs[name]
        self._gone.append(name)

    def create_again(self) -> None:
        name = self._gone.pop()
        self.jobs[name] = {"schedule": self._choice.choice(_SCHEDULES), **_COMMAND}

    # --- what the cluster makes of it ------------------------------------------------------------------

    def wait_until_written_ahead(self, within: float) -> None:
        """Return when every job that runs is decided beyond now: the next edit then finds claims to withdraw."""
        now = self.store.now()
        eventually(lambda: self._behind(now) == 0, within=within, what="claims are written ahead", every=0.05)

    def wait_for_the_next_second(self, within: float) -> None:
        """Return when the database's clock shows another second than it does now: the pace of one edit a second."""
        now = self.store.now().replace(microsecond=0)
        eventually(lambda: self.store.now() >= now + _SECOND, within=within, what="a second passes", every=0.05)

    def _behind(self, now: datetime) -> int:
        running = (jobs.c.retired_at.is_(None), jobs.c.paused_at.is_(None), cursors.c.at <= now)
        query = select(func.count()).select_from(jobs.join(cursors, jobs.c.job_id == cursors.c.job_id)).where(*running)
        with self.store.reads.snapshot() as connection:
            return connection.execute(query).scalar_one()

    def run_twice(self) -> list[tuple[int, datetime]]:
        """Ticks of which more than one run came to its end; one that was given back or lost is no end."""
        by_tick = (runs.c.job_id, runs.c.scheduled_at)
        query = select(*by_tick).where(runs.c.outcome != State.READY).group_by(*by_tick).having(func.count() > 1)
        with self.store.reads.snapshot() as connection:
            return [(row.job_id, row.scheduled_at) for row in connection.execute(query)]

    def scheduled(self, upto: datetime) -> int:
        """Claims of origin schedule that fell due."""
        query = select(func.count()).where(claims.c.origin == Origin.SCHEDULE, claims.c.scheduled_at <= upto)
        with self.store.reads.snapshot() as connection:
            return connection.execute(query).scalar_one()
