"""The panes that the number keys choose, a file each. A pane's module loads when the pane is first made."""

from __future__ import annotations

from collections.abc import Mapping

from sexton_tui.console.loading import part
from sexton_tui.console.panes.pane import Pane

_HERE = "sexton_tui.console.panes"
PANE_PARTS: Mapping[str, str] = {
    "overview": f"{_HERE}.overview:OverviewPane",
    "jobs": f"{_HERE}.jobs:JobsPane",
    "runs": f"{_HERE}.runs:RunsPane",
    "takeovers": f"{_HERE}.takeovers:TakeoversPane",
    "holds": f"{_HERE}.holds:HoldsPane",
    "workers": f"{_HERE}.workers:WorkersPane",
    "queues": f"{_HERE}.queues:QueuesPane",
    "audit": f"{_HERE}.audit:AuditPane",
    "settings": f"{_HERE}.settings:SettingsPane",
}
"""By the id of ``core.keys.PANES``; the parts most looked at load first."""


def make_pane(name: str, *, ascii_only: bool) -> Pane:
    """The pane with this id, to be mounted."""
    of_type: type[Pane] = part(PANE_PARTS[name])
    return of_type(id=name, ascii_only=ascii_only)


__all__ = ["PANE_PARTS", "Pane", "make_pane"]
