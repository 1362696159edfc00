"""The keys that change something: asked for, confirmed, carried out on a thread, and answered with a sentence."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from sexton_tui.console.operating.cluster_keys import ClusterKeys
from sexton_tui.console.operating.job_keys import JobKeys
from sexton_tui.console.operating.tick_keys import TickKeys

OPERATING_BINDINGS: list[BindingType] = [
    Binding("e", "explain", "explain"),
    Binding("a", "approve", "approve"),
    Binding("x", "reject", "reject"),
    Binding("p", "pause", "pause"),
    Binding("r", "resume", "resume"),
    Binding("t", "trigger", "trigger"),
    Binding("s", "skip_next", "skip next"),
    Binding("b", "backfill", "backfill"),
    Binding("c", "cancel", "cancel"),
    Binding("o", "run_again", "once more"),
    Binding("d", "drain", "drain"),
    Binding("u", "undo", "undo"),
    Binding("P", "pause_all", "pause all", show=False),
    Binding("R", "resign", "resign"),
    Binding("h", "halt", "halt", show=False),
    Binding("F", "force_leader", "force", show=False),
    Binding("C", "accept_clock", "accept the clock", show=False),
    Binding("K", "kill_leader", "kill"),
]


class Operating(JobKeys, TickKeys, ClusterKeys):
    """What an operator can do."""


__all__ = ["OPERATING_BINDINGS", "Operating"]
