"""Whatever a job is given that no run can use: a failed run with one sentence of reason, or the outcome that is right;
the worker lives on, and no row of the table takes more than one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sexton.claims import ENDED, State
from sexton.job_rules import Limits, RetryRules
from sexton.targets import CommandTarget, PythonTarget, ShellTarget, Target
from tests.support.processes import ProcessGroup
from tests.support.waiting import eventually
from tests.support.worker_trial import TRUE, WorkerTrial

LONG = 120.0
CANNOT = "cannot import 'tests.support.bad_jobs:"
NUL = "an argument, a variable or the cwd holds a NUL, which no process can be told; correct the job"
TOO_LONG = "its arguments and variables are longer than this machine takes; hand them over by stdin or a file"
NO_PROGRAM = (
    "it is no program of this machine, and has no first line that names an interpreter, such as #!/bin/sh; add that "
    "line, or use 'shell'"
)


@dataclass(frozen=True, slots=True)
class Row:
    """``says``: what the run's error is, or begins with where it ends in dots; a folder's name stands as {folder}."""

    target: Target
    says: str = ""
    code: int | None = 1
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> State:
        return State.FAILED if self.says else State.SUCCEEDED


def job(name: str, *args: Any, **kwargs: Any) -> PythonTarget:
    return PythonTarget(f"tests.support.bad_jobs:{name}", args, kwargs)


def well(target: Target, **keys: Any) -> Row:
    return Row(target, "", 0, keys)


def command(*argv: str) -> CommandTarget:
    return CommandTarget(argv)


NAMES = {
    "unknown module": Row(
        PythonTarget("no_such_module:run"),
        "cannot import 'no_such_module:run': ModuleNotFoundError: No module named 'no_such_module'; install it where "
        "the worker runs, or name its folder in the worker's PYTHONPATH",
        None,
    ),
    "unknown function": Row(job("no_such"), f"{CANNOT}no_such': AttributeError: module ...", None),
    "no function": Row(job("NO_FUNCTION"), f"{CANNOT}NO_FUNCTION': TypeError: ...", None),
    "a class": well(job("Caller")),
    "no argument": Row(job("take_one"), "TypeError: take_one() missing 1 required positional argument: 'one'"),
    "an argument too many": Row(job("take_one", 1, 2), "TypeError: take_one() takes 1 positional argument but ..."),
    "another name": Row(job("take_one", two=1), "TypeError: take_one() got an unexpected keyword argument 'two'"),
    "an argument with NUL": well(job("take_one", "a\0b")),
    "an argument that is no number": well(job("take_one", float("nan"))),
}
ENDS = {
    "no text": Row(job("raise_unnamed"), "Unnamed"),
    "neither text nor repr": Row(job("raise_unspoken"), "Unspoken"),
    "no Exception": Row(job("raise_fatal"), "Fatal: not an Exception"),
    "a text with NUL": Row(job("raise_text", "a\0b"), "ValueError: a\N{REPLACEMENT CHARACTER}b"),
    "an empty text": Row(job("raise_text", ""), "ValueError"),
    "a huge text": Row(job("raise_long", 10_000_000), "ValueError: xxxx..."),
    "half a character": Row(job("raise_surrogate"), "ValueError: half ..."),
    "what cannot be raised": Row(job("raise_number"), "TypeError: exceptions must derive from BaseException"),
    "a class of its own": Row(job("raise_local"), "OnlyHere: of a class that nobody can import"),
    "a group": Row(job("raise_group"), "ExceptionGroup: two at once (2 sub-exceptions)"),
    "StopIteration": Row(job("raise_stop"), "StopIteration: stop"),
    "cancelled by itself": Row(job("raise_cancelled"), "CancelledError"),
    "a coroutine cancelled by itself": Row(job("raise_cancelled_later"), "CancelledError"),
    "endless recursion": Row(job("recurse"), "RecursionError: maximum recursion depth exceeded..."),
    "MemoryError": Row(job("exhaust"), "MemoryError"),
    "retried on a class that is nowhere": Row(
        job("raise_text", "x"), "ValueError: x", keys={"retries": RetryRules(max=2, on=("no.such.Error",))}
    ),
    "SystemExit": well(job("leave")),
    "SystemExit 0": well(job("leave", 0)),
    "SystemExit 300": Row(job("leave", 300), "SystemExit: 300", 44),
    "SystemExit -1": Row(job("leave", -1), "SystemExit: -1", 255),
    "SystemExit with a long number": Row(job("leave", 2**70), f"SystemExit: {2**70}", 255),
    "SystemExit with a text": Row(job("leave", "no money"), "SystemExit: no money"),
    "SystemExit with an empty text": Row(job("leave", ""), "SystemExit"),
    "SystemExit with a huge text": Row(job("leave_long"), "SystemExit: xxxx..."),
    "SystemExit with what has no text": Row(job("leave_silent"), "SystemExit"),
    "SystemExit in a coroutine": Row(job("leave_later"), "SystemExit: 4", 4),
    "os._exit": Row(job("leave_at_once", 0), "the job's process died in mid-run: exited with code 0", 0),
    "a coroutine that is returned": well(job("forget_to_await")),
    "a coroutine that is forgotten": well(job("forget_within")),
    "a generator that is returned": Row(
        job("give_generator"),
        "it returned a generator, whose code has not run; write a plain function or a coroutine",
    ),
    "a text with NUL that is returned": well(job("give_nul")),
    "too deep a list that is returned": well(job("give_deep")),
    "any bytes that are printed": well(job("print_anything")),
}
COMMANDS = {
    "no such folder": Row(TRUE, "cannot work in '/no/such': No such file or directory; ...", None, {"cwd": "/no/such"}),
    "a file as folder": Row(TRUE, "cannot work in '/etc/passwd': Not a directory; ...", None, {"cwd": "/etc/passwd"}),
    "a folder with NUL": Row(TRUE, f"cannot start 'true': {NUL}", None, {"cwd": "/a\0b"}),
    "not executable": Row(
        command("/etc/passwd"), "'/etc/passwd' may not be executed by this worker's user; check its mode ...", 126
    ),
    "a folder as program": Row(command("/etc"), "'/etc' is a folder; write the program in it", 126),
    "a program that is a dot": Row(command("."), "'.' is a folder; write the program in it", 126),
    "a script without a first line": Row(
        command("{folder}/plain"), f"cannot start '{{folder}}/plain': {NO_PROGRAM}", None
    ),
    "the same in its folder": Row(
        command("./plain"), f"cannot start './plain': {NO_PROGRAM}", None, {"cwd": "{folder}"}
    ),
    "an empty file": Row(command("{folder}/empty"), f"cannot start '{{folder}}/empty': {NO_PROGRAM}", None),
    "an interpreter that is not there": Row(
        command("{folder}/lost"), "there is no '{folder}/lost', or no interpreter for it, on this worker; ...", 127
    ),
    "a program below a file": Row(command("/etc/passwd/x"), "there is no '/etc/passwd/x', ...", 127),
    "a name too long": Row(command("x" * 300), "cannot start 'xxxx...", None),
    "an empty program": Row(command("", "x"), "cannot start '': it names no program; correct the job", None),
    "an empty program with limits": Row(
        command(""), "cannot start '': it names no program; correct the job", None, {"limits": Limits(open_files=64)}
    ),
    "many arguments": Row(command("true", *["x" * 100_000] * 40), f"cannot start 'true': {TOO_LONG}", None),
    "a long argument": Row(command("true", "x" * 200_000), f"cannot start 'true': {TOO_LONG}", None),
    "a long script": Row(ShellTarget("true #" + "x" * 200_000), f"cannot start '/bin/sh': {TOO_LONG}", None),
    "a long variable": Row(TRUE, f"cannot start 'true': {TOO_LONG}", None, {"env": {"A": "x" * 200_000}}),
    "an argument with NUL": Row(command("true", "a\0b"), f"cannot start ...{NUL}", None),
    "a script with NUL": Row(ShellTarget("echo a\0b"), f"cannot start ...{NUL}", None),
    "a variable with NUL": Row(TRUE, f"cannot start 'true': {NUL}", None, {"env": {"A": "b\0"}}),
    "a variable's name with =": Row(
        TRUE, "cannot start 'true': illegal ... name 'A=B'...", None, {"env": {"A=B": "c"}}
    ),
    "a variable without a name": Row(TRUE, "cannot start 'true': illegal ... name ''...", None, {"env": {"": "c"}}),
    "stdin with NUL": well(command("od", "-c"), stdin="a\0b"),
    "stdin that nobody reads": well(TRUE, stdin="x" * 1_000_000),
    "a script that is none": Row(ShellTarget("if then ("), "exited with code 2", 2),
    "any bytes that are written": well(ShellTarget(r"printf 'a\000b\377'")),
    "less memory than its start takes": Row(
        TRUE, "exited with code 127, perhaps because of its limit memory 1MB", 127, {"limits": Limits(memory=1_000_000)}
    ),
}
TABLE = {
    f"{group}: {name}": row
    for group, rows in (("name", NAMES), ("end", ENDS), ("command", COMMANDS))
    for name, row in rows.items()
}


@pytest.fixture
def trial(processes: ProcessGroup, postgres_ledger: str) -> Iterator[WorkerTrial]:
    """On PostgreSQL, which is the stricter of the two about texts."""
    trial = WorkerTrial(processes, postgres_ledger)
    yield trial
    trial.close()


def placed(value: Any, folder: Path) -> Any:
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


def is_said(error: str, says: str) -> bool:
    """Dots stand for what is left out."""
    rest = error
    for place, part in enumerate(parts := says.split("...")):
        found = rest.find(part)
        if found < 0 or (place == 0 and found != 0):
            return False
        rest = rest[found + len(part) :]
    return not rest or not parts[-1]


def test_each_is_told_in_a_sentence_and_the_worker_lives_on(trial: WorkerTrial, tmp_path: Path) -> None:
    for name, content in (("plain", "echo hi\n"), ("empty", ""), ("lost", "#!/no/such/interpreter\n")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    jobs = {}
    for name, row in TABLE.items():
        target = row.target
        if isinstance(target, CommandTarget):
            target = CommandTarget(tuple(placed(word, tmp_path) for word in target.argv))
        jobs[name] = trial.job(target, **{key: placed(value, tmp_path) for key, value in row.keys.items()})
    worker = trial.start_worker(slots=4)
    eventually(lambda: all(trial.states(job)[0] in ENDED for job in jobs.values()), LONG, "all runs have ended")
    assert {name: told for name, row in TABLE.items() if (told := unlike(trial, jobs[name], row, tmp_path))} == {}
    after = trial.job(TRUE)
    trial.await_states(after, State.SUCCEEDED)
    assert worker.is_running()


def unlike(trial: WorkerTrial, job: int, row: Row, folder: Path) -> list[tuple[State, int | None, str]]:
    """The runs of a job where they are not the one that its row says; one given back unrun is none."""
    runs = [run for run in trial.runs(job) if not (run.error or "").startswith("given back: the worker's slots")]
    told = [(State(run.outcome), run.exit_code, run.error or "") for run in runs]
    is_right = len(told) == 1 and told[0][:2] == (row.state, row.code) and is_said(told[0][2], placed(row.says, folder))
    return [] if is_right else told or [(State.READY, None, "no run")]
