"""Whether a node could do its part now: decide ticks, or take over from who does."""

from __future__ import annotations

from dataclasses import dataclass

from sexton.terms import Confirmation

SILENT_COORDINATOR = frozenset({"away", "suspended", "lost"})


@dataclass(frozen=True, slots=True)
class NodeSigns:
    """What is known of a node. ``silent_for``: seconds since its loop came round; None before the first time.

    ``standing``: its candidate's word; None where none is asked. ``confirmation``: of the term that it decides under.
    """

    silent_for: float | None
    is_reached: bool
    jobs_read: bool
    is_eligible: bool
    standing: str | None
    confirmation: Confirmation | None
    clock_jump: float | None
    is_stopping: bool


def is_alive(silent_for: float | None, allowed: float) -> bool:
    """Whether the loop comes round. Before the first time it waits for the database, which is no fault of its own."""
    return silent_for is None or silent_for <= allowed


def unreadiness(signs: NodeSigns, allowed: float) -> tuple[str, ...]:
    """Why the node is not ready, each a sentence; none: it is.

    A halted cluster has ready nodes: to halt is an operator's decision. A leader that nobody confirms goes on, and is
    not ready: while its coordinator is away no node could be elected in its place, so none should be restarted.
    """
    return tuple(
        why
        for holds, why in (
            (signs.is_stopping, "it is stopping"),
            (not is_alive(signs.silent_for, allowed), f"its loop has not come round for {signs.silent_for or 0:.0f} s"),
            (not signs.is_reached, "the database does not answer"),
            (signs.is_reached and not signs.jobs_read, "it has not read the jobs yet"),
            (
                not signs.is_eligible,
                "its inputs (zone data, holidays, Sexton) are not the cluster's: it decides nothing",
            ),
            (signs.standing in SILENT_COORDINATOR, "the coordinator does not answer"),
            (
                signs.confirmation in (Confirmation.UNCONFIRMED, Confirmation.DEGRADED),
                f"it leads {signs.confirmation.value if signs.confirmation else ''}: the coordinator is away",
            ),
            (signs.clock_jump is not None, f"the database's clock jumped by {signs.clock_jump or 0:.1f} s: in doubt"),
        )
        if holds
    )
