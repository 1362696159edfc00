"""``python -m sexton_tui.web.console_in_tab PID``: the console of one tab, speaking to the server through its pipes.

It ends when it is left, when its tab is closed, and with the server, process PID. What it shows and acts on comes by
the environment, which other users of the machine cannot read: the database's address may hold a password.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.drivers.web_driver import WebDriver

from sexton_tui.actor import actor
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.parent import end_with
from sexton_tui.web.tab_environment import ASCII, DATABASE, PEER, READ_ONLY, THEME

STDERR = 2


def options_from(environ: Mapping[str, str]) -> ConsoleOptions:
    """How to run the console of this tab. Who acts is named after where the browser is, too."""
    return ConsoleOptions(
        database_url=environ[DATABASE],
        read_only=READ_ONLY in environ,
        ascii=ASCII in environ,
        theme=environ.get(THEME, "dark"),
        actor=f"web:{environ.get(PEER, '?')}/{actor()}",
    )


def run_in_tab(app: App[Any]) -> int:
    """Run it until it is left; its exit code. What went wrong is told on stderr without the values of variables, which
    may be secrets, as Textual would show them."""
    app.driver_class = WebDriver
    words = os.dup(STDERR)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDERR)
    app.run()
    error = getattr(app, "_exception", None)
    if error is None:
        return 0
    os.write(words, "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace"))
    return 1


def main(arguments: list[str]) -> int:
    """Run the console of a tab."""
    if not end_with(int(arguments[0])):
        return 0
    options = options_from(os.environ)
    return run_in_tab(SextonConsole(options, ascii_only=options.ascii))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
