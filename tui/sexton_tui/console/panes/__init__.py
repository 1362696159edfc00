"""The panes that the number keys choose, a file each."""

from __future__ import annotations

from collections.abc import Mapping

from sexton_tui.console.panes.audit import AuditPane
from sexton_tui.console.panes.holds import HoldsPane
from sexton_tui.console.panes.jobs import JobsPane
from sexton_tui.console.panes.overview import OverviewPane
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.panes.queues import QueuesPane
from sexton_tui.console.panes.runs import RunsPane
from sexton_tui.console.panes.settings import SettingsPane
from sexton_tui.console.panes.takeovers import TakeoversPane
from sexton_tui.console.panes.workers import WorkersPane

PANE_TYPES: Mapping[str, type[Pane]] = {
    "overview": OverviewPane,
    "takeovers": TakeoversPane,
    "holds": HoldsPane,
    "jobs": JobsPane,
    "runs": RunsPane,
    "workers": WorkersPane,
    "queues": QueuesPane,
    "audit": AuditPane,
    "settings": SettingsPane,
}
"""By the id of ``core.keys.PANES``."""

__all__ = ["PANE_TYPES", "Pane"]
