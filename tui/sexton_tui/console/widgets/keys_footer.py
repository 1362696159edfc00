"""The footer: the keys that work now, the most needed first, as many as fit. None is cut in half; ``?`` has all."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # Textual names it nowhere else; its version is pinned

from sexton_tui.console.core.keys import fitting


class KeysFooter(Footer):
    """A click on a key presses it."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    def compose(self) -> ComposeResult:
        if not self._bindings_ready:
            return
        active = {one.binding.action: one for one in self.screen.active_bindings.values() if one.binding.show}
        keys = {
            action: f"{self.app.get_key_display(one.binding)} {one.binding.description}"
            for action, one in active.items()
        }
        for action in fitting(keys, self.size.width or self.app.size.width):
            one = active[action]
            yield FooterKey(
                one.binding.key,
                self.app.get_key_display(one.binding),
                one.binding.description,
                action,
                disabled=not one.enabled,
                tooltip=one.tooltip,
            ).data_bind(compact=Footer.compact)

    async def on_resize(self, event: Resize) -> None:
        await self.recompose()
