"""What no YAML reader can read is told at its cause, and nothing is told that only follows from it."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text

HEAD = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n"
NEXT = "  b:\n    shell: z\n    schedule: '*/5 * * * *'\n"


def told(text: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text)
    return [f"{one.line}:{one.column}: {one.message}" for one in refused.value.problems]


@pytest.mark.parametrize(
    ("lines", "opened"),
    [
        ("    description: 'abc\n    tags: [a]\n", "6:18"),  # ends at the quote before */5
        ("    description: 'abc\n    cwd: 'a'\n", "6:18"),
        ("    env: {A: '1}\n    tags: ['1']\n", "6:14"),
        ('    description: "abc\n    owner: "x"\n', "6:18"),
        ("    command: [a, 'b]\n    cwd: '/x'\n", "6:18"),
    ],
)
def test_an_open_quote_is_told_where_it_was_opened(lines: str, opened: str) -> None:
    (fault,) = told(HEAD + lines + NEXT)
    assert fault.startswith(f"{opened}: the quoted text ")
    assert "does not end in its line but in line" in fault
    assert fault.endswith("; close its quotes")


def test_a_quoted_text_of_several_lines_is_left_alone() -> None:
    assert len(load_job_text(HEAD + "    description: 'a\n      b'\n    owner: x\n").jobs) == 1
    (fault,) = told(HEAD + "    description: 'a\n      b'\n    owner: 'it's'\n")
    assert fault.startswith("8:")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEAD.replace("schedule: ", "schedule:"), "4:5: no blank follows 'schedule:'"),
        (HEAD.replace("shell: ", "shell:"), "5:5: no blank follows 'shell:'"),
        (HEAD.replace("version: ", "version:"), "1:1: no blank follows 'version:'"),
        ("version: 1\njobs:\n  a: {schedule: '@daily', shell:x}\n", "3:27: 'shell:x' is not a key of a job; write a"),
    ],
)
def test_a_missing_blank_after_a_colon_is_told_there_alone(text: str, fault: str) -> None:
    (one,) = told(text)
    assert one.startswith(fault), one


def test_the_rest_is_read_as_if_the_blank_were_there() -> None:
    assert len(told(HEAD.replace("shell: ", "shell:") + "    priority: 9\n")) == 2


@pytest.mark.parametrize(
    ("escape", "says"),
    [
        ("\\ud83d\\ude00", '\\ud83d\\ude00 is one character in two halves, as JSON writes it; write "\\U0001F600"'),
        ("\\ud800", "\\ud800 is half a character, which stands for nothing; remove it"),
        ("\\q", "follows a backslash that means nothing here"),
    ],
)
def test_what_an_escape_should_have_been(escape: str, says: str) -> None:
    (fault,) = told(f'{HEAD}    description: "{escape}"\n')
    assert says in fault


def test_the_escape_that_is_told_is_the_character() -> None:
    (job,) = load_job_text(f'{HEAD}    description: "\\U0001F600"\n').jobs
    assert job.definition.description == "\U0001f600"


@pytest.mark.parametrize(
    "lines",
    [
        "    env: {TOKEN: 12345678}\n",
        "    env: {PASSWORD: 12345678\n",
        "    env: PASSWORD=12345678\n",
        "    env: [PASSWORD=12345678]\n",
        '    env: {A: \'x\', DB_PASSWORD: "12345678}\n    owner: "x"\n',
    ],
)
def test_a_secret_in_a_faulty_line_is_not_told(lines: str) -> None:
    assert all("12345678" not in fault for fault in told(HEAD + lines))
