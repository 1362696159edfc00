"""The footer: the keys that work now, the most needed first, as many as fit. None is cut in half; ``?`` has all."""

from __future__ import annotations

from typing import NamedTuple

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # Textual names it nowhere else; its version is pinned

from sexton_tui.console.core.keys import MORE, fitting

_NARROWEST = 30


class _Key(NamedTuple):
    """What the footer tells of a key."""

    key: str
    display: str
    description: str
    action: str
    is_enabled: bool
    tooltip: str


class KeysFooter(Footer):
    """A click on a key presses it."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._shown: tuple[_Key, ...] = ()

    def compose(self) -> ComposeResult:
        for one in self._shown:
            key = FooterKey(
                one.key, one.display, one.description, one.action, disabled=not one.is_enabled, tooltip=one.tooltip
            )
            key.set_reactive(FooterKey.compact, False)
            yield key

    async def recompose(self) -> None:
        """Anew, where other keys work than stand there: it costs as much as most keys."""
        if self.is_attached and (keys := self._keys()) != self._shown:
            self._shown = keys
            await super().recompose()

    def _keys(self) -> tuple[_Key, ...]:
        """Those that work now and have room."""
        if not self._bindings_ready:
            return ()
        active = {
            one.binding.action: _Key(
                one.binding.key,
                self.app.get_key_display(one.binding),
                one.binding.description,
                one.binding.action,
                one.enabled,
                one.tooltip,
            )
            for one in self.screen.active_bindings.values()
            if one.binding.show
        }
        told = {action: f"{one.display} {one.description}" for action, one in active.items()}
        width = self.size.width or self.app.size.width
        shown = fitting(told, width)
        if len(shown) < len(active) and "help" in active:
            display, description = MORE
            in_words = description if width >= _NARROWEST else ""
            active["help"] = active["help"]._replace(display=display, description=in_words)
        return tuple(active[action] for action in shown)

    async def on_resize(self, event: Resize) -> None:
        await self.recompose()
