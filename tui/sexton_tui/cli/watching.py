"""``--watch``: a listing again and again, until interrupted (exit code 130), on a terminal also until ``q`` (0).

    look: the command runs, what it prints is kept ──▶ shown ──2 s──▶ look
      └── the database does not answer, or not yet ──▶ the last answer stays, and its age is said

A listing is marked ``@watchable`` and does nothing more for it. On a terminal each look takes the place of the one
before, cut to the screen; elsewhere (a pipe, JSON) one follows the other. All looks are on one thread, over one
connection: a database that hangs holds up neither Ctrl-C nor the age of what is shown.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NoReturn, ParamSpec, TextIO, TypeVar, cast

import typer

from sexton.errors import Unreachable
from sexton_tui.cli.invocation import Invocation, invocation_of
from sexton_tui.cli.leaving_key import leaving_by_key
from sexton_tui.cli.output import Output

WATCH_SECONDS = 2.0
SILENT_SECONDS = 4.0  # after which a look is not slow any more, but unanswered
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HOME, _CLEAR, _REST_OF_LINE, _REST = "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"

P = ParamSpec("P")
R = TypeVar("R")


def watchable(command: Callable[Concatenate[typer.Context, P], R]) -> Callable[Concatenate[typer.Context, P], R]:
    """``command`` with ``--watch``: it only reads, by ``open_cluster(read_only=True)``, and prints."""

    @functools.wraps(command)
    def once_or_again(ctx: typer.Context, *args: P.args, **kwargs: P.kwargs) -> R:
        invocation = invocation_of(ctx)
        if not invocation.is_watched or invocation.is_kept_open or ctx.invoked_subcommand is not None:
            return command(ctx, *args, **kwargs)
        is_table = kwargs.get("output", Output.TABLE) is Output.TABLE
        _watch(lambda: command(ctx, *args, **kwargs), invocation, is_table=is_table)

    marked: Any = once_or_again
    marked.is_watchable = True
    return cast("Callable[Concatenate[typer.Context, P], R]", marked)


def screen_rows(ctx: typer.Context) -> int | None:
    """How many rows at most can be seen of a table that is watched on a terminal; None where all of it is printed."""
    if not invocation_of(ctx).is_watched or not _is_screen(sys.stdout):
        return None
    return shutil.get_terminal_size().lines


@dataclass(frozen=True, slots=True)
class Look:
    """What a command printed, and when: by this machine's clock, and by one that only goes forward."""

    printed: str
    notes: str
    at: datetime
    seconds: float


def _watch(look: Callable[[], object], invocation: Invocation, *, is_table: bool) -> NoReturn:
    out, err = sys.stdout, sys.stderr
    shown = _Screen(out) if is_table and _is_screen(out) else _Stream(out, err)
    with leaving_by_key() if isinstance(shown, _Screen) else contextlib.nullcontext() as pressed:
        try:
            _go_on(look, invocation, shown)
        except KeyboardInterrupt:
            shown.end()
            if pressed is not None and pressed.is_set():
                raise typer.Exit(0) from None
            raise
        finally:
            sys.stdout, sys.stderr = out, err  # a look that was left behind has them still


def _go_on(look: Callable[[], object], invocation: Invocation, shown: _Screen | _Stream) -> NoReturn:
    looking = _Looking(look, invocation)
    last: Look | None = None
    try:
        while True:
            looking.begin()
            waited = 0.0
            while (answer := looking.answer_within(WATCH_SECONDS)) is None:
                waited += WATCH_SECONDS
                if last is not None and waited >= SILENT_SECONDS:
                    shown.show_again(last, "the database does not answer")
            if isinstance(answer, Look):
                last = answer
                shown.show(last)
            elif last is None or not isinstance(answer, Unreachable):
                raise answer
            else:
                shown.show_again(last, str(answer).removesuffix(f"; {answer.hint}"))
            time.sleep(WATCH_SECONDS)
    finally:
        looking.end()


class _Looking:
    """The thread on which looks are made, one at a time; it ends with the process, whatever a look waits for."""

    def __init__(self, look: Callable[[], object], invocation: Invocation) -> None:
        self._look = look
        self._invocation = invocation
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[Look | BaseException] = SimpleQueue()
        self._is_idle = True
        self._thread = threading.Thread(target=self._serve, name="watch", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self._is_idle = False
        self._asked.put(True)

    def answer_within(self, seconds: float) -> Look | BaseException | None:
        """What the look that was begun came to; None: nothing yet."""
        try:
            answer = self._answers.get(timeout=seconds)
        except Empty:
            return None
        self._is_idle = True
        return answer

    def end(self) -> None:
        """Have the connection closed, unless it is in use: then it is left behind."""
        self._asked.put(False)
        if self._is_idle:
            self._thread.join()

    def _serve(self) -> None:
        with self._invocation.keeping_open():
            while self._asked.get():
                try:
                    self._answers.put(_look(self._look))
                except Unreachable as error:
                    self._invocation.let_go()
                    self._answers.put(error)
                except BaseException as error:  # raised by who waits for it
                    self._answers.put(error)


def _look(look: Callable[[], object]) -> Look:
    printed, notes = _Kept(sys.stdout), _Kept(sys.stderr)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(notes):
        look()
    return Look(printed.getvalue(), notes.getvalue(), datetime.now(UTC), time.monotonic())


class _Kept(io.StringIO):
    """Keeps what is printed, and looks to the command like the stream that it will be printed on."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a variable there
        return self._stream.encoding or "ascii"


class _Stream:
    """One look after the other."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._said = ""

    def show(self, look: Look) -> None:
        if self._said.startswith("sexton: "):
            self._say("sexton: the database answers again\n")
        self._out.write(look.printed)
        self._out.flush()
        self._say(look.notes)

    def show_again(self, look: Look, why: str) -> None:
        if not self._said.startswith("sexton: "):
            self._say(f"sexton: {why}; the last answer is of {look.at:%H:%M:%S} UTC, going on\n")

    def end(self) -> None:
        """Nothing is left to be put in order."""

    def _say(self, text: str) -> None:
        if text != self._said:
            self._err.write(text)
            self._err.flush()
        self._said = text


class _Screen:
    """Each look in the place of the one before."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_begun = False

    def show(self, look: Look) -> None:
        self._draw(look, "")

    def show_again(self, look: Look, why: str) -> None:
        from sexton_tui.cli.listings.printing import is_coloured_output

        age = max(round(time.monotonic() - look.seconds), 1)
        alarm = f"!! AWAY: {why}; what follows is {age} s old, of {look.at:%H:%M:%S} UTC"
        self._draw(look, f"\x1b[1;31m{alarm}\x1b[0m" if is_coloured_output() else alarm)

    def _draw(self, look: Look, alarm: str) -> None:
        columns, rows = shutil.get_terminal_size()
        lines = ([alarm] if alarm else []) + (look.printed + look.notes).splitlines()
        lines = screen_lines(lines, columns, max(rows - 1, 2), f"{look.at:%H:%M:%S} UTC, every {WATCH_SECONDS:g} s")
        start = _HOME if self._is_begun else _HOME + _CLEAR
        self._out.write(start + "".join(f"{line}{_REST_OF_LINE}\n" for line in lines) + _REST)
        self._out.flush()
        self._is_begun = True

    def end(self) -> None:
        """The prompt goes under what was shown, and not behind the terminal's ^C."""
        self._out.write("\n")


def screen_lines(lines: Sequence[str], columns: int, rows: int, foot: str) -> list[str]:
    """So many of the first lines as fit into ``rows`` rows of ``columns`` cells, and what is left out in a last one."""
    from rich.cells import cell_len

    taken, used = 0, 1
    for line in lines:
        used += max(-(-cell_len(_COLOUR.sub("", line)) // max(columns, 1)), 1)
        if used > rows:
            break
        taken += 1
    if left := len(lines) - taken:
        foot += f", {left} more {'line' if left == 1 else 'lines'} below"
    return [*lines[:taken], foot[:columns]]


def _is_screen(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")
