"""Outputs of real processes: looked at while they run, written down whole, and masked on both ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.targets import PythonTarget, ShellTarget
from sexton_worker.core.runs import EndedRun
from sexton_worker.spool_room import SpoolRoom
from sexton_worker.targets.outputs import discard
from sexton_worker.whole_output import WholeRun
from tests.support.runs import Runs
from tests.support.waiting import eventually

LONG = 60.0  # a limit, no expectation
SECRET = "hunter2 of the night"  # noqa: S105 - the test's own
WITH_SECRET = {"KEY": "${secret:key}"}


class Kept:
    """Takes the whole outputs of runs, by token."""

    def __init__(self, room: SpoolRoom) -> None:
        self.room = room
        self.outputs: dict[int, tuple[bytes, ...]] = {}

    def carry(self, ended: EndedRun, run: WholeRun) -> None:
        if ended.spooled is not None:
            files = (Path(path.decode()) for path in (ended.spooled.stdout, ended.spooled.stderr))
            self.outputs[run.token] = tuple(file.read_bytes() if file.exists() else b"" for file in files)
            discard(ended.spooled)

    def left(self) -> list[Path]:
        return [path for path in self.room.folder.iterdir() if path.name != "lock"]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    room = SpoolRoom(200_000, tmp_path)
    yield Kept(room)
    room.close()


@pytest.fixture
def runs(kept: Kept) -> Iterator[Runs]:
    with Runs(environment={"SEXTON_SECRET_KEY": SECRET}, wholes=kept) as runs:
        yield runs


def test_a_command_is_kept_whole_up_to_the_limit_and_shows_no_secret(runs: Runs, kept: Kept) -> None:
    # In two pieces, and once more where the kept part begins again.
    script = (
        "printf '%s' \"${KEY%night}\"; sleep 0.2; echo night; head -c 150000 /dev/zero | tr '\\0' x; echo;"
        'for i in $(seq 4000); do echo "$KEY"; done; echo "$KEY" >&2'
    )
    ended = runs.run(ShellTarget(script), env=WITH_SECRET)
    stdout, stderr = kept.outputs[ended.token]
    whole = b"***\n" + b"x" * 150_000 + b"\n" + b"***\n" * 4000
    assert (stdout, stderr) == (whole[:200_000], b"***\n")
    assert (ended.stdout_bytes, ended.stderr) == (len(whole), b"***\n")
    assert ended.stdout.startswith(b"***\nxxx")
    assert b"hunter" not in ended.stdout
    assert b"night" not in ended.stdout
    assert kept.left() == []


def test_python_runs_are_kept_whole_each_with_its_own_and_show_no_secret(runs: Runs, kept: Kept) -> None:
    written = {}
    for text in ("one", "two"):
        ended = runs.run(PythonTarget("tests.support.work_module:write_secret", (text,)), env=WITH_SECRET)
        written[text] = kept.outputs[ended.token]
        assert ended.error == f"ValueError: {text} ***"
        assert ended.stdout == f"{text} ***\n".encode()
    assert [out for out, _ in written.values()] == [b"one ***\n", b"two ***\n"]
    for _, errors in written.values():
        assert b"ValueError" in errors
        assert SECRET.encode() not in errors
    # Another job in the same process: a thread that was left behind may still know it.
    other = runs.run(PythonTarget("tests.support.work_module:write_both", (SECRET,)))
    assert b"***" in other.stdout
    quiet = runs.run(PythonTarget("tests.support.work_module:noop"))
    assert quiet.token not in kept.outputs
    died = runs.run(PythonTarget("tests.support.work_module:write_and_die", ("last words",)))
    assert kept.outputs[died.token][0] == b"last words\n"
    assert kept.left() == []


@pytest.mark.parametrize("is_python", [False, True])
def test_a_look_shows_what_a_run_has_written_so_far(runs: Runs, tmp_path: Path, is_python: bool) -> None:
    gate = tmp_path / "gate"
    if is_python:
        target: PythonTarget | ShellTarget = PythonTarget("tests.support.work_module:write_slowly", (str(gate),))
    else:
        target = ShellTarget(f'echo "before $KEY"; while [ ! -e {gate} ]; do sleep 0.05; done; echo after')
    token = runs.start(target, env=WITH_SECRET)

    def seen() -> bytes:
        runs.execution.look(token)
        found = runs.execution.seen().get(token)
        assert found is None or found.stdout_bytes == len(found.stdout)
        return b"" if found is None else found.stdout

    eventually(lambda: seen() == b"before ***\n", LONG, "its line is seen")
    gate.touch()
    assert runs.end_of(token).stdout == b"before ***\nafter\n"
    runs.execution.seen()  # the answer to a look at its end
    runs.execution.look(token)
    assert runs.execution.seen() == {}
