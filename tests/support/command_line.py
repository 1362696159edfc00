"""`sexton` commands run inside the test's own process: for what a command says and does, at no interpreter's price.

What needs a process of its own (signals, start-up, services that hang) takes `ProcessGroup` instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

from sexton_tui.cli.main import run
from tests.support.processes import clean_environment


class CommandLine:
    """Runs commands in `folder`, where no settings file lies, with none of the caller's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run `sexton ARGUMENTS` to its end and return exit code and outputs. There is no terminal to ask on."""
        output, errors = io.StringIO(), io.StringIO()
        environment = {**clean_environment(self.folder), **(env or {})}
        with (
            self._in_folder(),
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch("sys.stdin", io.StringIO()),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = run(arguments)
        return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())

    @contextlib.contextmanager
    def _in_folder(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            yield
        finally:
            os.chdir(before)
