"""`sexton` commands run inside the test's own process: for what a command says and does, at no interpreter's price.

What needs a process of its own (signals, start-up, services that hang) takes `ProcessGroup` instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

from sexton_tui.cli.main import run
from tests.support.processes import clean_environment


class _Person(io.StringIO):
    """A terminal with someone at it."""

    def __init__(self, answer: Callable[[], str]) -> None:
        super().__init__()
        self._answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # as TextIOBase has it
        return self._answer()


class CommandLine:
    """Runs commands in `folder`, where no settings file lies, with none of the caller's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        answer: Callable[[], str] | None = None,
        stdin: bytes = b"",
    ) -> subprocess.CompletedProcess[str]:
        """Run `sexton ARGUMENTS` to its end, with `stdin` piped into it, and return exit code and outputs.

        There is no terminal to ask on, unless `answer` is given: what it returns is what a person types when asked.
        """
        output, errors = io.StringIO(), io.StringIO()
        environment = {**clean_environment(self.folder), **(env or {})}
        with (
            self._in_folder(),
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)) if answer is None else _Person(answer)),
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
