"""A setting, opened: what it means, what it is, and its changes."""

from __future__ import annotations

from sexton.errors import NotFound
from sexton.setting_views import SettingView
from sexton.store.protocol import Store
from sexton.views import EventView
from sexton_tui.console.core.lines import Line
from sexton_tui.console.core.records import setting_lines
from sexton_tui.console.core.subjects import OfSetting
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown

_CHANGES = 200


class SettingScreen(LinesScreen):
    """Its newest changes are among the newest of all settings."""

    def __init__(self, setting: OfSetting, *, ascii_only: bool = False) -> None:
        super().__init__(setting, ascii_only=ascii_only)
        self.add_class("wrapped")
        self._key = setting.key

    def request(self) -> Request:
        key = self._key

        def read(store: Store) -> tuple[SettingView, tuple[EventView, ...]]:
            view = next((one for one in store.reads.settings() if one.key == key), None)
            if view is None:
                raise NotFound(f"there is no setting {key!r}")
            changes = store.reads.events_page(limit=_CHANGES, action="setting.changed")
            return view, tuple(event for event in changes if event.detail.get("key") == key)

        return read

    def lines_of(self, shown: Shown, data: tuple[SettingView, tuple[EventView, ...]]) -> list[Line]:
        return setting_lines(*data, shown.now)
