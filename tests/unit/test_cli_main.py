"""The command line's edge: exit codes, sentences instead of tracebacks, and what it does not import."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import types
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from sexton.errors import DatabaseUnreachable, InvalidJobFile, NotFound, OldSchema, Problem
from sexton_tui.actor import actor
from sexton_tui.cli import main
from sexton_tui.cli.invocation import invocation_of
from sexton_tui.cli.main import COMMANDS, Command, load, run
from sexton_tui.console.options import ConsoleOptions

Body = Callable[[], object]


@pytest.fixture
def run_body(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a body as the command `probe`, with arguments."""

    def run_it(body: Body, *arguments: str) -> int:
        def probe() -> object:
            return body()

        module = types.ModuleType("sexton_probe")
        module.probe = probe  # type: ignore[attr-defined]  # a module made for this test
        monkeypatch.setitem(sys.modules, "sexton_probe", module)
        monkeypatch.setattr(main, "COMMANDS", (Command("probe", "sexton_probe:probe", "For tests."),))
        return run(["probe", *arguments])

    return run_it


def raising(error: BaseException) -> Body:
    def body() -> object:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (NotFound("there is no job x"), 1, "sexton: there is no job x\n"),
        (OldSchema("schema 0001", hint="run `sexton db upgrade`"), 1, "sexton: schema 0001; run `sexton db upgrade`\n"),
        (DatabaseUnreachable("no answer from db1"), 3, "sexton: no answer from db1\n"),
        (InvalidJobFile([Problem("a.yaml", 3, 7, "wrong")]), 1, "a.yaml:3:7: wrong\n"),
        (typer.Abort(), 1, "sexton: stopped; nothing was changed\n"),
        (typer.BadParameter("--x is odd"), 2, "sexton: --x is odd (see 'sexton probe --help')\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Exit(1), 1, ""),
        (ModuleNotFoundError("no", name="kazoo.client"), 1, "pip install 'sexton[scheduler]'\n"),
        (ModuleNotFoundError("no", name="textual"), 1, "pip install 'sexton[tui]'\n"),
        (ModuleNotFoundError("no", name="psycopg"), 1, "pip install 'sexton[postgres]'\n"),
        (ModuleNotFoundError("no", name="other"), 4, "report the traceback\n"),
        (PermissionError(13, "Permission denied", "/x/s.db"), 1, "sexton: /x/s.db: Permission denied; check"),
        (ZeroDivisionError("by zero"), 4, "a fault of its own (ZeroDivisionError: by zero)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_a_command_raises_becomes_a_code_and_a_sentence(
    run_body: Callable[..., int], capsys: pytest.CaptureFixture[str], error: BaseException, code: int, sentence: str
) -> None:
    assert run_body(raising(error)) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert sentence in told.err
    assert "Traceback" not in told.err
    assert told.err.count("\n") <= 1


def test_debug_shows_the_traceback_and_keeps_the_code(
    run_body: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_body(raising(ZeroDivisionError("by zero")), "--debug") == 4
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1)])
def test_a_command_may_return_its_code(run_body: Callable[..., int], returned: int | None, code: int) -> None:
    assert run_body(lambda: returned) == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nxt"], "Did you mean 'next'?"),
        (["next", "--foo"], "No such option: --foo"),
        (["trigger"], "Missing argument"),
        (["next", "0 5 * * *", "--job", "x"], "give either"),
        (["next", "0 5 * * *", "--after", "2026-01-01T00:00:00"], "has no zone"),
        (["next", "0 5 * * *", "--count", "0"], "--count"),
        (["next", "0 5 * * *", "--after", "2026-01-01"], "write 2026-01-01T00:00:00Z for UTC"),
        (["leader"], "Usage"),
        ([], "Usage"),
    ],
)
def test_wrong_usage_is_exit_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_shared_options_stand_before_or_after_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, bool]] = []

    def probe(ctx: typer.Context) -> None:
        settings = invocation_of(ctx).settings()
        seen.append((settings.database, settings.coordinator, invocation_of(ctx).debug))

    module = types.ModuleType("sexton_probe")
    module.probe = probe  # type: ignore[attr-defined]  # a module made for this test
    monkeypatch.setitem(sys.modules, "sexton_probe", module)
    monkeypatch.setattr(main, "COMMANDS", (Command("probe", "sexton_probe:probe", "For tests."),))
    assert run(["--database", "sqlite:///a.db", "probe", "--coordinator", "zookeeper://z:2181/s", "--debug"]) == 0
    assert run(["probe", "--database=sqlite:///a.db", "--coordinator", "zookeeper://z:2181/s", "--debug"]) == 0
    assert seen == [("sqlite:///a.db", "zookeeper://z:2181/s", True)] * 2


def test_help_next_and_validate_load_neither_drivers_nor_consoles(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\njobs: {}\n")
    program = (
        "import sys\n"
        "from sexton_tui.cli.main import run\n"
        "run(['--help']); run(['next', '0 5 * * *', '-n', '1']); run(['validate', sys.argv[1]])\n"
        "heavy = {'sqlalchemy', 'alembic', 'psycopg', 'kazoo', 'textual', 'rich', 'apscheduler'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("count", "code"), [("1", 0), ("2000", 141)], ids=["at the end", "amid the output"])
def test_a_closed_pipe_ends_a_command_without_a_word(count: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "sexton_tui.cli", "next", "* * * * *", "--count", count]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    try:
        done = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False, env=buffered)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_every_command_of_the_table_can_be_loaded(command: Command) -> None:
    assert load(command).name == command.name


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [command.name for command in COMMANDS if f"\n  {command.name} " not in shown] == []


def test_the_actor_is_the_user_of_the_process_and_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("SUDO_USER", "mary")
    assert actor().startswith(f"mary/{user}@")
    monkeypatch.delenv("SUDO_USER")
    assert actor().startswith(f"{user}@")


def test_the_console_s_actor_is_the_commands_(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME"):  # as in many a container
        monkeypatch.setenv(name, "")
    assert ConsoleOptions("sqlite://").actor == actor()


class TestNext:
    def test_is_strictly_after_the_instant(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["next", "0 2 * * *", "--after", "2026-01-01T02:00:00Z", "-n", "2", "-o", "json"]
        assert run(arguments) == 0
        assert capsys.readouterr().out == '[\n  "2026-01-02T02:00:00Z",\n  "2026-01-03T02:00:00Z"\n]\n'

    def test_prints_the_zone_it_reckons_in(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["next", "0 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "-n", "1"]) == 0
        shown = capsys.readouterr().out
        assert "Europe/Berlin" in shown
        assert "2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 CEST" in shown

    def test_starts_from_now_by_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["next", "* * * * * *", "-n", "1", "-o", "jsonl"]) == 0
        tick = datetime.fromisoformat(capsys.readouterr().out.strip().strip('"'))
        assert abs(tick - datetime.now(UTC)) < timedelta(minutes=1)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["61 * * * *"], "61"),
            (["0 5 * * *", "--tz", "Europe/Berln"], "did you mean 'Europe/Berlin'?"),
            (["H 5 * * *"], "--hash-seed"),
        ],
    )
    def test_what_means_nothing_is_exit_1(
        self, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["next", *arguments]) == 1
        assert said in capsys.readouterr().err
