"""docs/operations.md cannot go stale: its settings, their defaults, its commands and options are the program's."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from sexton.alert_settings import ALERT_READINGS
from sexton.process_settings import CoordinatorAccess, ProcessSettings, load_process_settings
from sexton.settings import SETTING_KEYS, ClusterSettings, format_duration, setting_text
from sexton_tui.cli.main import COMMANDS, load

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "operations.md").read_text()
COMMAND_LINES = sorted(
    {
        line
        for line in re.findall(r"^\$ (?:\S+/)?(sexton .*?)(?: +#.*)?$", GUIDE, re.MULTILINE)
        + re.findall(r"`(sexton [a-z][^`]*)`", GUIDE)
        if "..." not in line
    }
)


def table(title: str) -> dict[str, str]:
    """Key and default of the settings' table under a title."""
    text = GUIDE.split(f"### {title}\n", 1)[1].split("\n#", 1)[0]
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.*?) \|", text, re.MULTILINE))


def test_every_setting_of_the_cluster_is_told_with_its_default() -> None:
    defaults = ClusterSettings()
    assert table("Of the cluster") == {key: f"`{setting_text(defaults, key)}`" for key in SETTING_KEYS}


def test_every_setting_of_a_process_is_told_with_its_default(tmp_path: Path) -> None:
    told = table("Of a process")
    access = {f"coordinator_{field.name}" for field in fields(CoordinatorAccess)}
    known = {field.name for field in fields(ProcessSettings)} - {"coordinator_access", "alerts"} | set(ALERT_READINGS)
    assert set(told) == known | access
    settings = load_process_settings({}, environ={}, folders=[tmp_path])
    for key in ("database", "coordinator", "poll", "drain", "queues", "log"):
        value = getattr(settings, key)
        text = (
            format_duration(value) if isinstance(value, timedelta) else ",".join([value] if key != "queues" else value)
        )
        assert told[key] == f"`{text}`"
    assert settings.coordinator_access == CoordinatorAccess()
    assert {told[key] for key in access} == {"none"}
    assert settings.allow is None


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_every_command_of_the_guide_is_one(line: str) -> None:
    """The command, its subcommand and its options exist; whether it does what is said was tried on a cluster."""
    words = shlex.split(line)[1:]
    command = next((one for one in COMMANDS if one.name == words[0]), None)
    assert command is not None, f"there is no `sexton {words[0]}`"
    found = load(command)
    below = getattr(found, "commands", {})
    if below and len(words) > 1 and not words[1].startswith("-"):
        assert words[1] in below, f"there is no `sexton {words[0]} {words[1]}`"
        found = below[words[1]]
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= options


def test_every_link_and_picture_of_the_guide_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", GUIDE):
        assert (DOCS / target).exists(), target
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", GUIDE, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", GUIDE)) <= headings
