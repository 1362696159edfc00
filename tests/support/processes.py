"""Sexton's commands as real processes, with real signals and with their output in files.

Whatever a test leaves running is killed at its end, and at the end of the session even if that was killed: processes
are known by a mark in their environment, which their children inherit wherever they go (tests/support/reaper).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import freezing, reaper
from tests.support.warm_start import CopiedProcess, can_be_copied, start_copy

# The command as the install made it, beside the interpreter that runs the tests: what a user types.
SEXTON = Path(sys.executable).parent / "sexton"


class RunningProcess:
    """One started command. Its standard output and error go to the files `stdout_path` and `stderr_path`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        name: str,
        *,
        fresh: bool = False,
    ) -> None:
        self.name = name
        self.stdout_path = folder / f"{name}.out"
        self.stderr_path = folder / f"{name}.err"
        self._process: CopiedProcess | subprocess.Popen[bytes]
        code, argv = _python_of(arguments)
        with self.stdout_path.open("wb") as output, self.stderr_path.open("wb") as errors:
            if not fresh and argv is not None and can_be_copied(environment):
                self._process = start_copy(
                    argv, code=code, environment=environment, folder=folder, output=output, errors=errors
                )
                return
            self._process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is that of its process group too."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the process exists (it may be frozen)."""
        return self._process.poll() is None

    def stdout(self) -> str:
        """What the process has written to standard output so far."""
        return self.stdout_path.read_text(errors="replace")

    def stderr(self) -> str:
        """What the process has written to standard error so far."""
        return self.stderr_path.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this process alone; to one that has ended, nothing."""
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Stop this process alone (SIGSTOP); its children go on."""
        freezing.freeze(self.pid)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def freeze_tree(self) -> None:
        """Stop this process and all its descendants, as a machine that hangs."""
        freezing.freeze_tree(self.pid)

    def thaw_tree(self) -> None:
        """Let the process and all its descendants go on."""
        freezing.thaw_tree(self.pid)

    def kill(self) -> int:
        """End this process alone with SIGKILL (its children live on) and return its exit code."""
        self._process.kill()
        return self.wait(within=60)

    def kill_tree(self) -> int:
        """End this process and all its descendants with SIGKILL, as if the power failed; return the exit code."""
        if self.is_running():
            reaper.kill_tree(self.pid)
        return self.wait(within=60)

    def wait(self, within: float) -> int:
        """Return the exit code (negative: the signal that ended it); AssertionError with the output if it runs on."""
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {within:g} s\n{self.report()}") from None
        return code

    def report(self) -> str:
        """Return the ends of both outputs, for the message of a failed test."""
        parts = [f"--- {path.name} ---\n{path.read_text(errors='replace')[-4000:]}" for path in self._paths()]
        return "\n".join(parts)

    def _paths(self) -> tuple[Path, Path]:
        return self.stdout_path, self.stderr_path


class ProcessGroup:
    """The processes of one test: they start in `folder`, where no settings file lies, and none outlives the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[RunningProcess] = []
        self._mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        reaper.watch("mark", self._mark)

    @property
    def mark(self) -> str:
        """What the environment of all processes of this test has, by which they are found (``reaper.marked``)."""
        return self._mark

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def sexton(
        self, *arguments: str, env: Mapping[str, str] | None = None, name: str | None = None, fresh: bool = False
    ) -> RunningProcess:
        """Start `sexton ARGUMENTS`; `env` is added to an environment without any SEXTON_* of the caller's."""
        return self.start([str(SEXTON), *arguments], env=env, name=name or next(iter(arguments), "sexton"), fresh=fresh)

    def start(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        fresh: bool = False,
    ) -> RunningProcess:
        """Start any program. `fresh`: by exec, also where it is Sexton's and a copy is cheaper
        (tests/support/warm_start)."""
        name = f"{len(self.processes) + 1}-{name or Path(arguments[0]).name}"
        environment = {**clean_environment(self.folder), reaper.MARK: self._mark, **(env or {})}
        process = RunningProcess(arguments, environment, self.folder, name, fresh=fresh)
        self.processes.append(process)
        return process

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, within: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run `sexton ARGUMENTS` to its end and return exit code and outputs."""
        process = self.sexton(*arguments, env=env)
        code = process.wait(within)
        return subprocess.CompletedProcess(arguments, code, process.stdout(), process.stderr())

    def end(self) -> None:
        """Kill what still runs, with all that it started."""
        for process in self.processes:
            process.kill_tree()
        reaper.kill_marked(self._mark)
        reaper.forget("mark", self._mark)


def _python_of(arguments: Sequence[str]) -> tuple[str | None, list[str] | None]:
    """The code of a `python -c` (None for `sexton`) and what `sys.argv` is; None for what is neither."""
    if arguments[0] == str(SEXTON):
        return None, list(arguments)
    if list(arguments[:2]) == [sys.executable, "-c"]:
        return arguments[2], ["-c", *arguments[3:]]
    return None, None


def clean_environment(home: Path) -> dict[str, str]:
    """Return this process's environment without Sexton's and PostgreSQL's variables, with an empty home folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEXTON_", "PG", "XDG_"))}
    return {**kept, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
