"""Whatever stands in a job file, reading it ends: with jobs, or with problems that lie inside the file."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text

WHOLE = "".join(
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent.parent.parent / "examples" / "jobs").glob("parish.yaml"))
)
MARKS = [
    "*",
    "&a ",
    "*a",
    "!!str ",
    "<<: ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "'",
    '"',
    "|",
    ">",
    "%",
    "@",
    "`",
    "?",
    "#",
]
WORDS = ["~", "null", "no", "022", "12:30", "2026-01-01", "é", "𝄞", "---\n", "\n", "\t", "\x00", "\ud800", "\u2028"]
SNIPPETS = st.sampled_from(MARKS + WORDS)
PLAIN_VALUES = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"]), max_size=20)


def read(content: bytes | str, lines: int) -> bool:
    """Whether it loaded; every problem has a place inside the file and a message on one line."""
    try:
        load_job_text(content)
    except InvalidJobFile as error:
        problems = error.problems
    else:
        return True
    assert problems
    for problem in problems:
        assert 1 <= problem.line <= lines + 1
        assert problem.column >= 1
        assert "\n" not in problem.message
    return False


@given(st.binary(max_size=200))
@example(b"\xff\xfe\x00")
@example(b"")
@settings(deadline=None)
def test_any_bytes(content: bytes) -> None:
    read(content, content.count(b"\n") + content.count(b"\r") + 1)


@given(st.integers(0, len(WHOLE)), st.integers(0, 30), SNIPPETS)
@settings(deadline=None, max_examples=100)
def test_a_file_with_something_cut_out_or_put_in(start: int, length: int, snippet: str) -> None:
    content = WHOLE[:start] + snippet + WHOLE[start + length :]
    read(content, len(content.splitlines()) + 1)


@given(PLAIN_VALUES)
@example("no")
@example("12:30")
@example("0x1F")
@example(".5")
@example("1e3")
@example("+.inf")
@example("2026-1-1")
@example("=")
@example("<<")
@settings(deadline=None, max_examples=120)
def test_an_unquoted_text_that_is_taken_is_what_every_yaml_reader_makes_of_it(text: str) -> None:
    """Nothing that YAML 1.1 resolves to a number, date, boolean or null ever passes for a text."""
    content = f"version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n    description: {text}\n"
    if not read(content, 7):
        return
    (job,) = load_job_text(content).jobs
    resolved = yaml.safe_load(content)["jobs"]["a"]["description"]
    assert isinstance(resolved, str)
    assert job.definition.description == resolved


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=50))
@settings(deadline=None)
def test_any_quoted_text_arrives_as_it_stands(text: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    content = f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', shell: x, description: {quoted}}}\n"
    if any(mark in text for mark in "\u2028\u2029\x85\ufeff\ufffe\uffff"):
        return  # line breaks of their own to YAML 1.1, or no text at all
    (job,) = load_job_text(content).jobs
    assert job.definition.description == text
