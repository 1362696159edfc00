"""The cluster's settings as they are in force."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton_tui.console.core import tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Shown
from sexton_tui.console.widgets.table import RowTable


class SettingsPane(Pane):
    """Every setting with its value, and whether it is the default."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.SETTING_COLUMNS, id="setting-table", ascii_only=self.ascii_only)
        yield self.table

    def show(self, shown: Shown, data: None) -> None:
        self.show_rows(tables.setting_rows(shown.overview.settings))
