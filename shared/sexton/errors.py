"""Every error Sexton raises on purpose, in one tree.

    SextonError
    ├── InvalidInput              the answer is no: exit code 1
    │   ├── InvalidSchedule       an expression, zone or interval that means nothing
    │   ├── InvalidJobFile        carries every problem of every file at once
    │   └── InvalidSetting
    │       └── InvalidOption     the same, given as an option: exit code 2
    ├── Refused                   understood, but not now or not here: exit code 1
    │   ├── NotFound
    │   ├── MovedOn           the cluster is not any more what a change was planned against
    │   ├── WrongCluster          another coordinator or cluster owns this database
    │   ├── OldSchema             the database needs `sexton db upgrade`
    │   ├── OtherInputs           this node's zone data or tick engine differ from the cluster's
    │   ├── StaleToken            a run wrote after a newer grant had: its write does not count
    │   └── OutsideRun            asked for the run at hand, where there is none
    └── Unreachable               a service did not answer in time: exit code 3
        ├── DatabaseUnreachable
        └── CoordinatorUnreachable

A message is one sentence that says what, where, and what to do next. A lost
compare-and-set is not an error (invariant 6): stores return it as a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class SextonError(Exception):
    """The root: catching it catches all that Sexton raises on purpose."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.hint = hint


class InvalidInput(SextonError):
    """What was given means nothing or is not allowed."""

    exit_code = 1


class InvalidSchedule(InvalidInput):
    """A schedule, time zone or interval that Sexton refuses, with the reason."""


class InvalidSetting(InvalidInput):
    """A setting that does not exist, has a bad value, or contradicts another."""


class InvalidOption(InvalidSetting):
    """A setting given as an option of the command line that is no such setting: wrong usage."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault of one job file; line and column count from 1."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class InvalidJobFile(InvalidInput):
    """Job files that are not applied; every problem of every file, in order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Refused(SextonError):
    """Understood, but the cluster's state or rules say no."""

    exit_code = 1


class NotFound(Refused):
    """No such job, claim, run, node or proposal."""


class MovedOn(Refused):
    """The cluster is not any more what a change was planned against; ``job_id``: the job that shows it, if one does."""

    def __init__(self, message: str, *, job_id: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.job_id = job_id


class WrongCluster(Refused):
    """The database belongs to a cluster with another coordinator."""


class OldSchema(Refused):
    """The database's schema is not the one this version needs."""


class YoungerFormat(Refused):
    """A job says what only a younger Sexton understands."""


class OtherInputs(Refused):
    """This node's zone data or tick engine differ from the cluster's (invariant 8)."""


class StaleToken(Refused):
    """A run is older than one that passed the fence ``key`` before it: its write does not count (invariant 4).

    ``seen``: the highest token that passed; None: it cannot be read in this transaction.
    """

    def __init__(self, key: str, token: int, seen: int | None) -> None:
        newer = "that of another" if seen is None else f"token {seen}"
        super().__init__(
            f"stale token {token}: a newer run, {newer}, has passed the fence {key!r}",
            hint="roll back and end this run, for its claim was granted again and its result will be refused too",
        )
        self.key = key
        self.token = token
        self.seen = seen

    def __reduce__(self) -> tuple[type[StaleToken], tuple[str, int, int | None]]:
        return StaleToken, (self.key, self.token, self.seen)  # so that it crosses the border of a process


class OutsideRun(Refused):
    """There is no run here, or not one that this thread belongs to."""


class Unreachable(SextonError):
    """A service did not answer within its time."""

    exit_code = 3


class DatabaseUnreachable(Unreachable):
    """The database did not answer; nothing is known about what it did last."""


class CoordinatorUnreachable(Unreachable):
    """ZooKeeper did not answer."""
