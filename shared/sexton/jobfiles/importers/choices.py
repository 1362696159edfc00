"""What the person who imports decides, because the files do not say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sexton.jobfiles.importers.job_names import slug_of


class UserRule(StrEnum):
    """What becomes of the user a job ran as: Sexton's jobs run as the user of their worker."""

    QUEUE = "queue"
    """A queue named after the user, for a worker that this user starts."""
    SUDO = "sudo"
    """`sudo -n -u USER`, for a worker that may do so."""
    IGNORE = "ignore"
    """Whoever runs the worker."""


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """``timezone`` holds where the source names none, and ``timezone_reason`` says where it comes from; ``homes``: the
    home folder of a user, and of the file's own user under the empty name."""

    timezone: str = "UTC"
    timezone_reason: str = "the default"
    has_user_column: bool | None = None
    users: UserRule = UserRule.QUEUE
    queue: str = "default"
    homes: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    with_disabled: bool = False

    def queue_of(self, user: str | None) -> str:
        """The queue of a job that ran as ``user``; None where the source names nobody."""
        if user is None or self.users is not UserRule.QUEUE:
            return self.queue
        named = slug_of(user) or "unnamed"
        return named if self.queue == "default" else f"{self.queue}-{named}"[:100]

    def home_of(self, user: str | None) -> str | None:
        """The home folder, where it was told; root's is known."""
        is_known = user == "root" and self.users is UserRule.QUEUE
        return self.homes.get(user or "") or ("/root" if is_known else None)


def with_user(argv: list[str], user: str | None, rule: UserRule, env: Mapping[str, str]) -> list[str]:
    """``argv`` to be run as ``user``, where that is left to sudo; sudo empties the environment, so it is handed on."""
    if user is None or rule is not UserRule.SUDO:
        return argv
    carried = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
    return ["sudo", "-n", "-H", "-u", user, "--", *carried, *argv]


def what_of_users(choices: ImportChoices, user: str, queue: str) -> str:
    """The sentence about a user's jobs."""
    match choices.users:
        case UserRule.QUEUE:
            return (
                f"what ran as {user} has the queue {queue}, because Sexton's jobs run as their worker's user: "
                "start a worker "
                f"as {user} with --queues {queue} (or import with --users sudo or --users ignore)"
            )
        case UserRule.SUDO:
            return f"what ran as {user} is started by sudo -n -u {user}; allow that to the worker's user in sudoers"
    return f"what ran as {user} will run as the worker's user"
