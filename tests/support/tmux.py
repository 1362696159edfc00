"""A program in a terminal that a test looks at and types into: a pane of tmux, from Debian's package `tmux`.

The tmux server is a process of the test's `ProcessGroup`, and so is what runs in its pane: none outlives the test.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.missing import MissingServerError
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually

PACKAGE = "tmux"
LONG = 90.0
_SETTINGS = "set -g escape-time 0\nset -g default-terminal tmux-256color\n"
_ENDED = "ended with "  # told by a shell that stays: tmux does not always learn it, nor show the last that was written
_SOCKET = "tmux"  # in the test's folder: a path of its own may be longer than a socket's can be


class TmuxPane:
    """One program in one pane of this size; of its screen, what `tmux capture-pane` sees."""

    def __init__(
        self,
        processes: ProcessGroup,
        command: Sequence[str],
        env: Mapping[str, str],
        columns: int = 120,
        lines: int = 40,
    ) -> None:
        if shutil.which("tmux") is None:
            raise MissingServerError(f"there is no tmux here; run: apt-get install {PACKAGE}")
        self._folder = processes.folder
        (self._folder / "tmux.conf").write_text(_SETTINGS)
        # LC_ALL: tmux draws no other characters than its locale has. TERM: of the terminal that nobody looks at.
        environment = {**env, "LC_ALL": "C.UTF-8", "TERM": "tmux-256color"}
        arguments = ["tmux", "-S", _SOCKET, "-f", "tmux.conf", "-D"]
        self._server = processes.start(arguments, env=environment, name="tmux")
        eventually((self._folder / _SOCKET).is_socket, within=LONG, what="tmux listens")
        # Without the size of the tests' own terminal, which the program would take for that of its pane.
        shell = f'unset COLUMNS LINES; {shlex.join(command)}; echo "{_ENDED}$?"; exec cat'
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), shell)

    def screen(self) -> str:
        """What the pane shows now, its lines without the spaces at their ends."""
        return self._tmux("capture-pane", "-p")

    def sees(self, *texts: str) -> str:
        """The screen, once it shows all of these."""

        def shown() -> str:
            screen = self.screen()
            return screen if all(text in screen for text in texts) else ""

        return eventually(shown, within=LONG, what=lambda: f"the screen shows {texts}\n{self.screen()}", every=0.2)

    def press(self, *keys: str) -> None:
        """Type these keys, as tmux names them: ``2``, ``Enter``."""
        self._tmux("send-keys", *keys)

    def exit_code(self) -> int:
        """With which code the program ended, once it has."""
        return int(self.sees(_ENDED).rpartition(_ENDED)[2].split()[0])

    def _tmux(self, *arguments: str) -> str:
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LONG}
        done = subprocess.run(["tmux", "-S", _SOCKET, *arguments], cwd=self._folder, **options)
        assert done.returncode == 0, f"tmux {shlex.join(arguments)}: {done.stderr}\n{self._server.report()}"
        return str(done.stdout)
