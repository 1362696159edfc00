"""TOML job files: the same jobs and the same errors as in YAML, each at its line and column."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.nodes import Mapping, Node, Sequence
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.toml_nodes import parse
from sexton.jobfiles.toml_values import written_scalar

YAML = """\
version: 1
defaults: {timezone: Europe/Berlin, missed: {policy: all}}
jobs:
  nightly:
    schedule:
      - "0 2 * * *"
      - {every: 90m, anchor: 2026-01-01T00:00:00+01:00}
      - {at: [2026-12-24T17:00:00Z]}
      - {calendar: {months: 1}, at: "02:30", start: 2026-01-31, month_end: skip}
    start: 2026-01-01T00:00:00Z
    exclude: {dates: [2026-12-25], weekdays: [SAT]}
    python: billing.jobs:nightly
    args: [1, 2.5, true, "a\\tb", [x], {k: 1.0e+22}]
    env: {A.B: "1"}
    enabled: false
    retries: {max: 3, factor: 1.5, on: [75, TimeoutError]}
    missed: {grace: 5m}
  "2": {schedule: "@daily", shell: "echo hi\\n"}
"""
TOML = """\
version = 1

[defaults]
timezone = 'Europe/Berlin'
missed.policy = "all"

[jobs.nightly]   # a comment
start = 2026-01-01T00:00:00Z
exclude = { dates = [2026-12-25], weekdays = ["SAT"] }
python = "billing.jobs:nightly"
args = [
  1, 2.5, true, "a\\tb",
  ["x"], {k = 1e22},   # among values
]
env."A.B" = "1"
enabled = false
missed.grace = "5m"
retries = {max = 0x3, factor = 1.5, on = [75, "TimeoutError"]}

[[jobs.nightly.schedule]]
cron = "0 2 * * *"
[[jobs.nightly.schedule]]
every = "90m"
anchor = 2026-01-01T00:00:00+01:00
[[jobs.nightly.schedule]]
at = [2026-12-24 17:00:00Z]
[[jobs.nightly.schedule]]
calendar.months = 1
at = 02:30:00
start = 2026-01-31
month_end = "skip"

[jobs]
2.schedule = "@daily"
2.shell = \"\"\"
echo hi
\"\"\"
"""


def problems_of(content: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(content, "jobs.toml")
    return [str(one).removeprefix("jobs.toml:") for one in refused.value.problems]


def test_a_toml_file_says_what_a_yaml_file_says() -> None:
    expected = [job.definition.to_text() for job in load_job_text(YAML).jobs]
    assert [job.definition.to_text() for job in load_job_text(TOML, "jobs.toml").jobs] == expected


def test_windows_line_ends_change_neither_values_nor_places() -> None:
    (one, two) = load_job_text(TOML, "jobs.toml").jobs
    (same, too) = load_job_text(TOML.replace("\n", "\r\n"), "jobs.toml").jobs
    assert (one, two) == (same, too)
    assert (one.line, one.column) == (7, 7)
    assert (two.line, two.column) == (34, 1)


MINIMAL = '[jobs.a]\nschedule = "0 5 * * *"\ncommand = ["x"]\n'


@pytest.mark.parametrize(
    ("added", "place", "says"),
    [
        ("priority = 022", "6:12", "'022' has a leading zero"),
        ("priority = 3", "6:12", "from -2 to 2"),
        ("priority = '1'", "6:12", "stands in quotes"),
        ("priority = nan", "6:12", "'nan' is not a whole number"),
        ("enabled = yes", "6:11", "'yes' is not true or false; write true"),
        ("enabled = True", "6:11", "write true in small letters"),
        ("cwd = null", "6:7", "no null; remove the key"),
        ("timezone = Europe/Berln", "6:12", 'quote the value: "Europe/Berln"'),
        ("timezone = 'Europe/Berln'", "6:12", "did you mean 'Europe/Berlin'?"),
        ("start = 2026-01-01", "6:9", "write the time and the offset too"),
        ("start = 2026-01-01T00:00:00", "6:9", "has no offset"),
        ("start = 2026-02-30T00:00:00Z", "6:9", "is no date and time of the calendar"),
        ("description = 2026-01-01", "6:15", "is a TOML date, not a text; write it in quotes"),
        ("description = 12:30:00", "6:15", "is a TOML time, not a text"),
        ("description = 5", "6:15", "quote it"),
        ("description = 'x", "6:15", "does not end in its line"),
        ('description = "C:\\x"', "6:15", "single quotes"),
        ("description = '''x", "6:15", "close it with '''"),
        ("description = a # b", "6:15", 'quote the value: "a"'),
        ("missed.grace = 5", "6:16", "has no unit"),
        ("missed = {grace = '5m', polcy = 'skip'}", "6:25", "did you mean 'policy'?"),
        ("missed = {grace = '5m',}", "6:23", "a ',' stands before '}'"),
        ("missed = {grace = '5m'\n}", "6:10", "does not end in its line"),
        ("tags = ['a' 'b']", "6:13", "needs ',' or ']'"),
        ("tags = ['a',", "6:8", "a list does not end"),
        ("tags = [*.txt]", "6:9", "quote the value"),
        ("queue: 'fast'", "6:6", "TOML writes '='"),
        ("queue 'fast'", "6:1", "has no value"),
        ("queue =", "6:8", "a value is missing"),
        ("queue = 'a' 'b'", "6:12", "stands after the end of this line's value"),
        ("schedule = '0 6 * * *'", "6:1", "stands here a second time (first in line 4)"),
        ("comand = ['y']", "6:1", "did you mean 'command'?"),
        ("Größe = 1", "6:1", ""),
        ("- x", "6:1", "is YAML"),
        ("[jobs.a]", "6:7", "the table 'a' stands here a second time (first in line 3)"),
        ("[jobs.A]\nschedule = '0 5 * * *'\ncommand = ['x']", "6:7", "differs only in case from 'a'"),
        ("[jobs.b", "6:1", "close it with ']'"),
        ("[jobs.'a b']\nschedule = '0 5 * * *'\ncommand = ['x']", "6:7", "is not a name"),
        ("[job.b]", "6:2", "did you mean 'jobs'?"),
        ("[command]", "6:2", "is not a key of a job file"),
        ("[defaults]\nshell = 'x'", "7:1", "is each job's own"),
        ("[[jobs.a.env]]\nA = '1'", "6:10", "env is a list"),
        ("[jobs.a.command.x]", "6:9", "has a value of another kind in line 5"),
        ("x.y.z = " + "[" * 40, "6:41", "is nested deeper than 32 levels"),
        (".".join("a" * 40) + " = 1", "6:65", "is nested deeper than 32 levels"),
    ],
)
def test_a_fault_is_told_at_its_place_with_the_remedy(added: str, place: str, says: str) -> None:
    found = problems_of(f"version = 1\n\n{MINIMAL}{added}\n")
    assert found[0].startswith(f"{place}: "), found
    assert says in found[0]
    assert len(found) == 1 or added.startswith("Gr")


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("", "1:1: is empty; write 'version = 1' and a table [jobs.NAME]"),
        ("# nothing\n", "1:1: is empty"),
        ("jobs = 1\nversion = 1\n", "1:8: jobs is the single value '1'; write a table for each job"),
        ("version = 1\n", "1:1: has no 'jobs'; write a table [jobs.NAME]"),
        ("version = '1'\n[jobs]\n", "1:11: version: '1' stands in quotes"),
        ("version = 2\n[jobs]\n", "1:11: version: '2' is not known"),
        ("[jobs]\n", "1:1: has no 'version'; write 'version = 1'"),
        ("version = 1\n[[jobs]]\nname = 'a'\n", "2:3: jobs is a list"),
        ("version = 1\r[jobs]\r", "1:12: a carriage return stands alone"),
    ],
)
def test_the_top_of_the_file(content: str, first: str) -> None:
    assert problems_of(content)[0].startswith(first)


def test_no_jobs_is_said_by_an_empty_table() -> None:
    assert load_job_text("version = 1\n[jobs]\n", "a.toml").jobs == ()


def test_all_faults_of_a_file_come_at_once() -> None:
    content = (
        "version = 1\n[jobs.a]\nschedule = */5 * * * *\ncommand = ['x']\n"
        "[jobs.b]\nschedule = '61 * * * *'\ncomand = ['x']\nshell = 'echo\n"
        "[jobs.c]\nschedule = {every = 5}\nshell = 'echo'\ntimezone = Mars/Olympus\nqueue = 'q'\nqueue = 'r'\n"
    )
    places = [one.split(" ")[0] for one in problems_of(content)]
    assert places == ["3:12:", "6:12:", "7:1:", "8:9:", "10:21:", "12:12:", "14:1:"]


def test_a_long_chain_of_dots_or_brackets_ends_at_once() -> None:
    assert len(problems_of("version = 1\n" + ".".join(["a"] * 300_000) + " = 1\n[jobs]\n")) == 1
    assert len(problems_of("version = 1\nx = " + "[" * 300_000)) == 2
    assert problems_of(f"version = {'9' * 100_000}\n[jobs]\n")[0].startswith("1:11: ")


# ------------------------------------------------------------------------------------ beside the library's own reader

PIECES = [
    *(
        "[a]\n",
        "[a.b]\n",
        "[[a]]\n",
        "[[a.b]]\n",
        "[b]\n",
        "[a.b.c]\n",
        "[[a.b.c]]\n",
        "[ a . 'b' ] # c\n",
        "[a",
        "[]\n",
    ),
    *("a = 1\n", "a.b = 1\n", "a.b.c = 2\n", "'a' = 3\n", '""=1\n', "-1 = 2\n", "é = 1\n", 'a."b".c = 3\n', "b = 1"),
    *("b = {a = 1}\n", "b = {a.b = 1, a.c = 2}\n", "b = {a.b = 1, a = 2}\n", "b = {a=1,}\n", "b = { }\n", "b = {\n"),
    *("c = [{b = 1}, [2]]\n", "c = [1, 2,\n3,]\n", "c=[1,#c\n2]\n", "c = [ ]\n", "c = [1 2]\n", "b.x = [,]\n"),
    *(
        'd = "x\\ty\\u00e9"\n',
        'd = "\\ud800"\n',
        "d = '''x\n'y''''\n",
        'd = """\nabc""""\n',
        'd = """a\\\n  b"""\n',
        'd="a\n',
    ),
    *("e = 1979-05-27T07:32:00.5-08:00\n", "e = 1979-05-27 07:32:00\n", "e = 1979-05-27\n", "e = 07:32:00\n"),
    *(
        "e = 2026-02-30\n",
        "e = 7:32\n",
        "f = 1e5\n",
        "f = 1.\n",
        "f = .5\n",
        "f = -inf\n",
        "f = +nan\n",
        "f = 6.02e+23\n",
    ),
    *("g = 0x_1\n", "g = 1_000\n", "g = 022\n", "g = 0o17\n", "g = -0\n", "g = true\n", "g = True\n", "g = 1 h = 2\n"),
    *("# c\n", "\n", "= ", '"', "'", "{", " , ", "}", "]", ".", "\t", "\r\n"),
]


def value_of(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {name: value_of(value) for name, (_, value) in node.entries.items()}
    if isinstance(node, Sequence):
        return [value_of(item) for item in node.items]
    return (node.text, node.is_plain, node.typed)


def written(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: written(one) for name, one in value.items()}
    if isinstance(value, list):
        return [written(one) for one in value]
    return (value, False, "") if isinstance(value, str) else written_scalar(value, "TOML")


def compare(content: str) -> None:
    problems = FileProblems("x.toml")
    root = parse(content, problems)
    lines = content.count("\n") + 1
    for problem in problems.found:
        assert 1 <= problem.line <= lines + 1
        assert problem.column >= 1
        assert problem.message.isprintable()
    try:
        expected = tomllib.loads(content)
    except tomllib.TOMLDecodeError:
        assert problems.found, content
    else:
        assert not problems.found, (content, problems.found)
        assert value_of(root) == written(expected)


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@example("[a]\nb.c = 1\n[a.b]\n")
@example("[a.b]\n[a]\nb.c = 1\n")
@example("[[a]]\n[a.b]\n[[a]]\n[a.b]\n")
@settings(deadline=None, max_examples=150)
def test_takes_and_refuses_what_tomllib_takes_and_refuses(content: str) -> None:
    compare(content)


@given(st.integers(0, len(TOML)), st.integers(0, 30), st.sampled_from(PIECES))
@settings(deadline=None, max_examples=120)
def test_a_whole_file_with_something_cut_out_or_put_in(start: int, length: int, piece: str) -> None:
    compare(TOML[:start] + piece + TOML[start + length :])


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
@settings(deadline=None)
def test_any_characters(content: str) -> None:
    compare(content)


KEYS = "schedule = '0 5 * * *'\nshell = 'x'\n"


@pytest.mark.parametrize(
    ("header", "faults"),
    [
        (
            "[jobs.prüf]",
            ["2:7: 'prüf' has characters other than A-Z", "2:7: the job's name: 'prüf' is not a name: ASCII"],
        ),
        ("[jobs.a b]", ["2:7: 'a b' has characters other than A-Z", "2:7: the job's name: 'a b' is not a name"]),
        ("[jobs.a:b]", ["2:7: 'a:b' has characters other than A-Z", "2:7: the job's name: 'a:b' is not a name"]),
        ('[jobs."prüf"]', ["2:7: the job's name: 'prüf' is not a name: ASCII letters"]),
        ("[[jobs.a]]", ["2:8: the job 'a' is a list; write [jobs.a], with single brackets"]),
        ("[jobs.a.b]", ["2:9: 'b' holds keys of a job and stands within the job 'a'; if the job is called a.b, write"]),
        ("[jobs.a.b.c]", ["2:9: 'b' holds keys of a job and stands within the job 'a'; if the job is called a.b.c"]),
        ("[jobs.a", ["2:1: the header of a table does not end; close it with ']'"]),
        ("jobs.a]", ["2:1: the header of a table begins with '['; write [jobs.a]"]),
        ("[jobs.]", ["2:7: ']' is not TOML"]),
        ("[jobs]\na = 3\n[jobs.b]", ["3:5: the job 'a' is the single value '3'; write [jobs.a] and below it its keys"]),
    ],
)
def test_a_faulty_header_is_one_fault_and_its_keys_are_no_others(header: str, faults: list[str]) -> None:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(f"version = 1\n{header}\n{KEYS}", "jobs.toml")
    found = [f"{one.line}:{one.column}: {one.message}" for one in refused.value.problems]
    assert len(found) == len(faults), found
    for one, start in zip(found, faults, strict=True):
        assert one.startswith(start), one


def test_a_name_with_a_point_is_told_as_a_header_that_is_taken() -> None:
    with pytest.raises(InvalidJobFile, match=r"write \[jobs\.\"a\.b\"\]"):
        load_job_text(f"version = 1\n[jobs.a.b]\n{KEYS}", "jobs.toml")
    (job,) = load_job_text(f'version = 1\n[jobs."a.b"]\n{KEYS}', "jobs.toml").jobs
    assert job.name == "a.b"


def test_keys_in_other_letters_below_a_table_are_named_too() -> None:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(f"version = 1\n[jobs]\nprüf = {{}}\n[jobs.a]\n{KEYS}", "jobs.toml")
    assert refused.value.problems[0].message.startswith("'prüf' has characters other than")
