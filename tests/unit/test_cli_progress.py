"""The bar of long work: where it is shown, what it tells, and that nothing of it is left."""

from __future__ import annotations

import io
import threading

import pytest

from sexton_tui.cli import progress as progress_module
from sexton_tui.cli.output import Output
from sexton_tui.cli.progress import Bar, progress


class Terminal(io.StringIO):
    """A terminal that lets the test wait for what it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.has_shown = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if "planning" in self.getvalue():
            self.has_shown.set()
        return written


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error is this terminal from now on."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = a_terminal(monkeypatch)
    with progress("planning") as bar:
        assert bar is not None
        bar(1, 2)
    assert stderr.getvalue() == ""


def test_long_work_shows_how_far_it_is_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "AFTER_SECONDS", 0.0)
    with progress("planning") as bar:
        assert bar is not None
        bar(2500, 5000, "half of it [bold]")
        assert stderr.has_shown.wait(60)
    said = stderr.getvalue()
    assert "50%" in said
    assert "half of it [bold]" in said  # no markup
    assert said.rstrip("\n").endswith("\x1b[2K")  # the line is erased


@pytest.mark.parametrize("output", list(Output))
def test_nothing_is_shown_where_nobody_looks(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with progress("planning", output) as bar:
        assert bar is None


@pytest.mark.parametrize(("output", "is_shown"), [(Output.TABLE, True), (Output.JSON, False), (Output.JSONL, False)])
def test_data_for_a_pipe_comes_without_a_bar(output: Output, is_shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    a_terminal(monkeypatch)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    with progress("planning", output) as bar:
        assert (bar is not None) is is_shown


def test_a_dumb_terminal_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with progress("planning") as bar:
        assert bar is None


def test_an_interrupt_takes_it_off_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "AFTER_SECONDS", 0.0)

    def work(bar: Bar | None) -> None:
        assert stderr.has_shown.wait(60)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress("planning") as bar:
        work(bar)
    assert "\x1b[?25h" in stderr.getvalue()  # the cursor is shown again
