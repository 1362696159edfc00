"""The console's themes: dark, light, and one of high contrast. No meaning hangs on their colours alone."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES, Theme

THEMES = ("dark", "light", "contrast")
_CONTRAST = Theme(
    name="contrast",
    primary="#ffffff",
    secondary="#00ffff",
    accent="#00ffff",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    success="#00ff5f",
    warning="#ffff00",
    error="#ff5f5f",
    dark=True,
    variables={
        "text-muted": "#d0d0d0",
        "text-success": "#00ff5f",
        "text-warning": "#ffff00",
        "text-error": "#ff8787",
        "block-cursor-background": "#ffff00",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold",
        "footer-key-foreground": "#ffff00",
        "border": "#ffffff",
    },
)


def themes() -> tuple[Theme, ...]:
    """Every theme under its own name."""
    dark, light = BUILTIN_THEMES["textual-dark"], BUILTIN_THEMES["textual-light"]
    return (_renamed(dark, "dark"), _renamed(light, "light"), _CONTRAST)


def next_theme(name: str) -> str:
    """The one after it, round and round."""
    return THEMES[(THEMES.index(name) + 1) % len(THEMES)] if name in THEMES else THEMES[0]


def cell_styles(variables: Mapping[str, str]) -> dict[str, str]:
    """Rich's styles for the core's style words, in the colours of a theme's variables: for what draws text itself."""
    good, warn, bad = (_colour(variables, f"text-{word}") for word in ("success", "warning", "error"))
    return {
        "": "",
        "dim": "dim",
        "strong": "bold",
        "good": good,
        "warn": warn,
        "bad": f"bold {bad}".strip(),
        "warning": f"bold reverse {warn}".strip(),
        "alarm": f"bold reverse {bad}".strip(),
    }


def _colour(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "")
    return value if value.startswith("#") and len(value) == 7 else ""


def _renamed(theme: Theme, name: str) -> Theme:
    fields = {key: value for key, value in vars(theme).items() if not key.startswith("_")}
    return Theme(**{**fields, "name": name})
