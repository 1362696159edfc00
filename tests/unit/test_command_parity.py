"""What a screen of the console shows, a command prints: the table in docs/command-line.md names one for each."""

from __future__ import annotations

import re
import shlex
from typing import Any, get_args

import pytest

from sexton_tui.cli.main import COMMANDS, load
from sexton_tui.console.core.keys import PANES
from sexton_tui.console.core.subjects import OfJob, Subject
from sexton_tui.console.opened.job import screen
from tests.support.source_tree import ROOT

ROW = re.compile(r"^\| (?P<shown>[^|]+?) \| (?P<commands>`sexton [^|]+) \|$", re.MULTILINE)
ROWS = {row["shown"]: row["commands"] for row in ROW.finditer((ROOT / "docs" / "command-line.md").read_text())}
NAMED = [command for told in ROWS.values() for command in re.findall(r"`sexton ([^`]+)`", told)]


def shown_things() -> list[str]:
    """As the table's first column begins: every pane, every part of a job, and whatever else enter opens."""
    opened = [of.__name__.removeprefix("Of").lower() for of in get_args(Subject) if of is not OfJob]
    parts = [f"a job: {part.title.lower()}" for part in screen._SECTIONS]
    articles = ["decisions" if one == "decisions" else f"{'an' if one[0] in 'aeiou' else 'a'} {one}" for one in opened]
    return [*(pane.title for pane in PANES), *parts, *articles]


@pytest.mark.parametrize("shown", shown_things())
def test_what_the_console_shows_has_a_command(shown: str) -> None:
    assert [row for row in ROWS if re.match(rf"{re.escape(shown)}\b", row)], f"{shown} is not in docs/command-line.md"


@pytest.mark.parametrize("line", NAMED)
def test_the_command_exists_prints_as_data_and_goes_on(line: str) -> None:
    command, words = command_of(line)
    options = {name for parameter in command.params for name in parameter.opts}
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    values = {
        name for parameter in command.params if not getattr(parameter, "is_flag", True) for name in parameter.opts
    }
    given = [word for word in words if word.startswith("--")]
    assert set(given) <= options
    assert len(words) - len(given) - len(values.intersection(given)) <= len(arguments)
    assert "--output" in options
    assert options & {"--watch", "--follow"}


def command_of(line: str) -> tuple[Any, list[str]]:
    """The command that a line calls, and the words after its name."""
    name, *words = shlex.split(line)
    command: Any = load(next(row for row in COMMANDS if row.name == name))
    if words and words[0] in getattr(command, "commands", {}):
        return command.commands[words[0]], words[1:]
    return command, words


def test_the_table_is_read_whole() -> None:
    assert len(ROWS) >= len(shown_things())
    assert len(NAMED) > len(ROWS)
