"""The variables by which a tab's console is told what to do."""

from __future__ import annotations

DATABASE = "SEXTON_DATABASE"
READ_ONLY = "SEXTON_WEB_READ_ONLY"
ASCII = "SEXTON_WEB_ASCII"
THEME = "SEXTON_WEB_THEME"
PEER = "SEXTON_WEB_PEER"
# A variable of the server's own that would contradict the one given here.
_GIVEN_OTHERWISE = ("SEXTON_DATABASE_FILE",)


def tab_environment(inherited: dict[str, str], given: dict[str, str], size: tuple[int, int]) -> dict[str, str]:
    """The environment of a tab's console: that of the server, what it is given, and a terminal as xterm.js is one."""
    kept = {name: value for name, value in inherited.items() if name not in _GIVEN_OTHERWISE}
    width, height = size
    terminal = {
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM_PROGRAM": "textual",
        "COLUMNS": str(width),
        "ROWS": str(height),  # as Textual's WebDriver reads it
    }
    return {**kept, **given, **terminal}
