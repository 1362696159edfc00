"""The crontab of docs/importing.md, each of its lines broken in the ways people break them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.crontab import import_crontab
from sexton.jobfiles.importers.findings import Verdict

GUIDE = (Path(__file__).parent.parent.parent / "docs" / "importing.md").read_text(encoding="utf-8")
(CRONTAB,) = re.findall(r"^```crontab\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
LINES: list[str] = CRONTAB.splitlines()
TO_DO = re.compile(r"\b(?:write|remove|close|correct|allowed|retype|outside|use|did you mean)\b")


def breaks_of(line: str) -> list[str]:
    """A line of a crontab, broken in the ways people break it."""
    if re.match(r"[A-Z_]+=", line):
        name, _, value = line.partition("=")
        return [
            f"{name} {value}",
            f"{name}: {value}",
            f'{name}="{value}',
            f'{name}="{value}" x',
            f"export {name}={value}",
        ]
    if line.startswith("@"):
        word, _, rest = line.partition(" ")
        return [f"{word[:2]}{word[3:]} {rest}", f"@ {word[1:]} {rest}", f"{word[1:]} {rest}", f"@every 5m {rest}", word]
    *fields, command = line.split(None, 5)
    broken = [" ".join([*fields[:at], *fields[at + 1 :], command]) for at in range(5)]
    for at in range(5):
        for wrong in ("99", "x", "5-2", "*/0", "*/99", "1/2", "1,", "1, 2", "0~3", "?", "H", "*5", "1–3"):
            broken.append(" ".join([*fields[:at], wrong, *fields[at + 1 :], command]))
    whole = " ".join(fields)
    return [*broken, f"* {line}", whole, f"{whole} %x", f"0 0 31 2 * {command}", f"'{line}'", f"-{line}", f"{line}\0"]


@pytest.mark.parametrize("number", [at for at, line in enumerate(LINES) if line[:1] not in ("", "#")])
def test_a_broken_line_is_an_error_at_its_line_that_tells_what_to_do(number: int) -> None:
    for broken in breaks_of(LINES[number]):
        text = "\n".join([*LINES[:number], broken, *LINES[number + 1 :], ""])
        done = import_crontab(text.encode(), "crontab", ImportChoices())
        errors = [finding for finding in done.findings if finding.verdict is Verdict.ERROR]
        assert [error.line for error in errors] == [number + 1], broken
        assert TO_DO.search(errors[0].message), (broken, errors[0].message)
        assert len(done.jobs) >= 18


def test_the_crontab_as_it_stands_has_no_error() -> None:
    done = import_crontab(CRONTAB.encode(), "crontab", ImportChoices())
    assert (done.has_errors, len(done.jobs), sum(done.counts.values())) == (False, 19, 30)
