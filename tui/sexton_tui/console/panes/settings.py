"""The cluster's settings as they are in force, and who says so."""

from __future__ import annotations

from textual.app import ComposeResult

from sexton.setting_views import SettingView
from sexton_tui.console.core.records import SETTING_COLUMNS, setting_row
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable


class SettingsPane(Pane):
    """Enter opens what a setting means, and its changes."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(SETTING_COLUMNS, id="setting-table", ascii_only=self.ascii_only)
        yield self.table

    def request(self) -> Request:
        return lambda store: store.reads.settings()

    def show(self, shown: Shown, data: tuple[SettingView, ...]) -> None:
        self.show_rows([setting_row(view, shown.now) for view in data])
