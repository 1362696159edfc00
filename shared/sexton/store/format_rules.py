"""What both stores say of processes that do not know a job's format (`sexton.job_formats`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sexton.errors import Refused
from sexton.job_formats import FIRST_FORMAT, needed_format
from sexton.store.protocol import JobChange

_NAMED = 5


def format_of_changes(changes: Iterable[JobChange]) -> tuple[int, str]:
    """The youngest format that these changes need, and who needs it: ``job payroll (limits)``."""
    found = (FIRST_FORMAT, "")
    for change in changes:
        if change.definition is not None:
            needed, key = needed_format(change.definition)
            if needed > found[0]:
                found = (needed, f"job {change.definition.name} ({key})")
    return found


def too_old(what: str, processes: Sequence[tuple[str, str]]) -> Refused:
    """``processes``: names and versions of those that are at work and do not know the format."""
    shown = ", ".join(f"{name} (Sexton {version})" for name, version in processes[:_NAMED])
    more = f" and {len(processes) - _NAMED} more" if len(processes) > _NAMED else ""
    return Refused(
        f"{what} needs a younger Sexton than {shown}{more}, heard of in the last 10 minutes",
        hint="nothing was changed; upgrade or end those first (SIGTERM drains a worker)",
    )
