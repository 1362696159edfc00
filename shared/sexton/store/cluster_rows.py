"""Values about the cluster and its nodes, as both databases store and check them."""

from __future__ import annotations

from datetime import datetime

from sexton.cluster_views import Halt
from sexton.errors import Refused, WrongCluster
from sexton.job_formats import FORMAT
from sexton.terms import ClusterState, Confirmation, NodeReport, servers_text


def check_coordinator(state: ClusterState, coordinator: str) -> None:
    """Raise ``WrongCluster`` where the cluster's coordinator is another one."""
    if state.coordinator != coordinator:
        raise WrongCluster(
            f"this database belongs to a cluster whose coordinator is {state.coordinator}, not {coordinator}",
            hint="point this node at that coordinator, or at a database of its own",
        )


def check_resignation(leader: str, confirmation: str) -> None:
    """Raise ``Refused`` for a leader that its coordinator does not confirm: nobody could follow it at once."""
    if confirmation != Confirmation.CONFIRMED:
        raise Refused(
            f"{leader} is not asked to resign: it leads {confirmation}, and while the coordinator is away no other "
            "node could follow; `sexton leader force NODE` hands over all the same"
        )


def check_halt(standing: Halt | None, expected: Halt | None) -> None:
    """Raise ``Refused`` where another halt stands than the expected one; without ``expected`` any may."""
    if expected is not None and standing != expected:
        anew = "" if standing is None else f" by {standing.by} since {_seconds(standing.at)}"
        why = f": {standing.reason}" if standing is not None and standing.reason else ""
        raise Refused(f"the cluster is halted anew{anew}{why}", hint="it stays halted; look at it again")


def _seconds(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def node_values(report: NodeReport) -> dict[str, str | int | datetime | None]:
    """A report as the columns of ``nodes``."""
    return {
        "name": report.name,
        "address": report.address,
        "version": report.version,
        "pid": report.pid,
        "role": report.role,
        "confirmation": None if report.confirmation is None else report.confirmation.value,
        "coordinator_status": report.coordinator_status,
        "jobs_warm": report.jobs_warm,
        "behind_ms": report.behind_ms,
        "clock_offset_ms": report.clock_offset_ms,
        "claims_upto": report.claims_upto,
        "inputs_id": report.inputs_id,
        "coordinator_servers": servers_text(report.coordinator_servers),
        "clock_jump_ms": report.clock_jump_ms,
        "job_format": FORMAT,
        "race_attempts": report.raced.attempts,
        "race_conflicts": report.raced.conflicts,
        "race_ticks": report.raced.ticks,
    }
