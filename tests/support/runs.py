"""Runs as a worker makes them, in real processes, without a database."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sexton.claims import OnWorkerLost, Origin
from sexton.clock import SystemClock
from sexton.job_rules import RetryRules
from sexton.jobs import RunRules
from sexton.store.protocol import Grant
from sexton.targets import Target
from sexton_worker.core.runs import EndedRun, StopReason
from sexton_worker.core.wear import NO_WEAR, WearLimits
from sexton_worker.execution import RunOrder
from sexton_worker.process_execution import ProcessExecution, Wholes
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

TICK = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
DEADLINE = TICK + timedelta(hours=24)
WITHIN = 60.0

PLAIN = RunRules(
    target=None,  # type: ignore[arg-type]  # every order sets it
    env={},
    cwd=None,
    stdin=None,
    success_codes=(0,),
    max_runtime=timedelta(minutes=5),
    kill_after=timedelta(seconds=10),
    retries=RetryRules(),
    on_worker_lost=OnWorkerLost.RETRY,
)


def a_grant(
    token: int, *, scheduled_at: datetime = TICK, at_most_once: bool = False, retries: int = 0, losses: int = 0
) -> Grant:
    """A grant of job 1."""
    return Grant(
        job_id=1,
        scheduled_at=scheduled_at,
        revision=1,
        origin=Origin.SCHEDULE,
        token=token,
        attempt=3,
        retries=retries,
        slot=1,
        jitter=timedelta(0),
        at_most_once=at_most_once,
        lease_expires_at=scheduled_at + timedelta(seconds=30),
        losses=losses,
    )


def rules_for(target: Target, **keys: Any) -> RunRules:
    """``PLAIN`` rules with this target; durations in seconds for ``max_runtime`` and ``kill_after``."""
    for name in ("max_runtime", "kill_after"):
        if name in keys:
            keys[name] = timedelta(seconds=keys[name])
    plain = {name: getattr(PLAIN, name) for name in PLAIN.__slots__}
    return RunRules(**{**plain, "target": target, **keys})


class Runs:
    """A ``ProcessExecution`` and what has ended in it so far."""

    def __init__(
        self,
        slots: int = 2,
        environment: Mapping[str, str] | None = None,
        allow: Sequence[str] | None = None,
        wear: WearLimits = NO_WEAR,
        wholes: Wholes | None = None,
    ) -> None:
        clock = SystemClock()
        self.clock = clock
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(environment or {})}
        self.execution = ProcessExecution(clock, clock.wakeup(), slots, environment, allow, wear, wholes=wholes)
        self.ended: dict[int, EndedRun] = {}
        self._tokens = itertools.count(1)
        self._open: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for token in self._open:
            self.execution.stop(token, StopReason.GIVEN_BACK)
        self.execution.close()

    def start(self, target: Target, *, losses: int = 0, **keys: Any) -> int:
        """Begin a run; its token."""
        token = next(self._tokens)
        self._open.add(token)
        self.execution.start(RunOrder(a_grant(token, losses=losses), "nightly", rules_for(target, **keys), DEADLINE))
        return token

    def start_together(self, *targets: Target, **keys: Any) -> list[int]:
        """Begin these runs in one call; their tokens."""
        tokens = [next(self._tokens) for _ in targets]
        self._open.update(tokens)
        self.execution.start(
            *(
                RunOrder(a_grant(token), "nightly", rules_for(target, **keys), DEADLINE)
                for token, target in zip(tokens, targets, strict=True)
            )
        )
        return tokens

    def end_of(self, token: int, within: float = WITHIN) -> EndedRun:
        """The end of a run, once it has come."""

        def look() -> EndedRun | None:
            self.ended.update({one.token: one for one in self.execution.finished()})
            return self.ended.get(token)

        ended = eventually(look, within, f"run {token} ends")
        assert ended is not None
        self._open.discard(token)
        return ended

    def run(self, target: Target, **keys: Any) -> EndedRun:
        """Run to the end."""
        return self.end_of(self.start(target, **keys))


def zygote_of(worker: int) -> int:
    """The process id of this worker's zygote, once there is one."""

    def look() -> int | None:
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                stat = Path("/proc", name, "stat").read_text(errors="replace")
                state, parent = stat.rpartition(")")[2].split()[:2]
                if "(sexton zygote)" in stat and int(parent) == worker and state not in "ZX":
                    return int(name)
        return None

    found = eventually(look, WITHIN, f"worker {worker} has a zygote")
    assert found is not None
    return found


def open_in(pid: int) -> list[str]:
    """The descriptors that a process has open."""
    return sorted(os.listdir(f"/proc/{pid}/fd"))


def limit_that_leaves(pid: int, free: int) -> int:
    """The limit under which this process can open so many descriptors more."""
    used = set(map(int, open_in(pid)))
    unused = (number for number in itertools.count() if number not in used)
    return next(itertools.islice(unused, free, None))


def is_alive(pid: int) -> bool:
    """Whether a process of this id exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
