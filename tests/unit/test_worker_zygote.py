"""What worker and zygote say to each other, and who belongs to a run."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from sexton.job_rules import Limits
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget
from sexton_worker.core.runs import Ending
from sexton_worker.execution import RunOrder
from sexton_worker.targets.board import CUT_WITH_LEASE, RING, Board
from sexton_worker.targets.command import Programs, ended_command, order_for
from sexton_worker.zygote import frames
from sexton_worker.zygote.family import Census, Spare
from sexton_worker.zygote.frames import End, FrameBuffer, FrameTooLarge, Order, Seen
from sexton_worker.zygote.roster import Roster
from tests.support.runs import DEADLINE, a_grant, rules_for
from tests.support.waiting import eventually


def an_order(**keys: object) -> RunOrder:
    return RunOrder(a_grant(7), "nightly", rules_for(CommandTarget(("prog", "a b", "é", "")), **keys), DEADLINE)


def as_values(one: Order | End | Seen) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__slots__}


# --- frames


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"cwd": "/srv", "stdin": ""},
        {"stdin": "text\0\n", "env": {"A": "", "B": "x=y"}},
        {"limits": Limits(1 << 40, timedelta(milliseconds=1500), 64), "max_runtime": 0.25},
    ],
)
def test_an_order_comes_out_as_it_went_in_however_it_is_cut(keys: dict[str, Any]) -> None:
    order = order_for(an_order(**keys), 3, Programs({"PATH": "/bin"}))
    stream = frames.run_frame(order) + frames.stop_frame(9, is_urgent=True) + frames.PING_FRAME
    buffer = FrameBuffer()
    found = [frame for at in range(len(stream)) for frame in buffer.feed(stream[at : at + 1])]
    assert [kind for kind, _ in found] == [frames.RUN, frames.STOP, frames.PING]
    came = frames.order_in(found[0][1])
    assert as_values(came) == as_values(order)
    assert came.argv == [b"prog", b"a b", "é".encode(), b""]
    environment = came.environment()
    assert (environment[b"PATH"], environment[b"SEXTON_TOKEN"]) == (b"/bin", b"7")
    assert all(environment[name.encode()] == value.encode() for name, value in keys.get("env", {}).items())
    assert frames.stop_in(found[1][1]) == (9, True)
    assert FrameBuffer().feed(stream) == found


def test_what_runs_have_in_common_is_made_once_but_anew_for_other_rules_and_secrets() -> None:
    programs = Programs({})
    run = an_order()
    assert programs.of(run) is programs.of(run._replace(deadline=DEADLINE + timedelta(1)))
    other = an_order(env={"A": "1"})
    assert programs.of(other) != programs.of(run)
    hidden = other._replace(secrets=(b"hunter2",))
    assert programs.of(hidden) is not programs.of(hidden)


def test_an_end_comes_out_as_it_went_in() -> None:
    end = End(
        7, frames.RAN, 1.5, 2.5, code=143, why=frames.STOPPED, is_killed=True, stdout=b"\0\xff", stderr=b"",
        stdout_bytes=1 << 40, stdout_spooled=1 << 35, stderr_spooled=3, survivors=(12, 13),
    )  # fmt: skip
    ((kind, body),) = FrameBuffer().feed(frames.end_frame(end))
    assert kind == frames.ENDED
    assert as_values(frames.end_in(body)) == as_values(end)


def test_an_order_carries_what_its_outputs_must_not_show_and_where_they_are_wanted_whole() -> None:
    run = an_order(cwd="/srv", stdin="in")._replace(secrets=(b"hunter2",))
    order = order_for(run, 3, Programs({}), b"/spool/1", 1 << 40)
    ((_, body),) = FrameBuffer().feed(frames.run_frame(order))
    found = frames.order_in(body)
    assert as_values(found) == as_values(order)
    assert (found.spool, found.spool_limit) == (b"/spool/1", 1 << 40)
    assert b"hunter2" in found.secrets
    assert found.cwd == b"/srv"


def test_what_a_run_has_written_so_far_is_asked_and_told() -> None:
    seen = Seen(7, b"out\xff", b"", 1 << 40, 0)
    found = FrameBuffer().feed(frames.look_frame(7) + frames.seen_frame(seen))
    assert [kind for kind, _ in found] == [frames.LOOK, frames.SEEN]
    assert frames.look_in(found[0][1]) == 7
    assert as_values(frames.seen_in(found[1][1])) == as_values(seen)


def test_frames_are_bounded_on_both_sides() -> None:
    order = order_for(an_order(stdin="x" * frames.LARGEST), 0, Programs({}))
    with pytest.raises(FrameTooLarge):
        frames.run_frame(order)
    with pytest.raises(FrameTooLarge):
        FrameBuffer().feed(b"\xff" * 8)


def test_limits_round_up_to_whole_seconds_of_processor_time() -> None:
    order = order_for(an_order(limits=Limits(cpu_time=timedelta(milliseconds=1001))), 0, Programs({}))
    assert (order.memory, order.cpu_time, order.open_files) == (frames.UNLIMITED, 2, frames.UNLIMITED)
    assert order.has_limits
    assert not order_for(an_order(), 0, Programs({})).has_limits


def test_limits_are_kept_with_a_revision_and_old_ones_read_as_none() -> None:
    plain = JobDefinition("a", ({"cron": "* * * * *"},), CommandTarget(("true",)))
    limited = JobDefinition("a", plain.schedule_parts, plain.target, limits=Limits(1024, timedelta(minutes=1)))
    assert "limits" not in plain.to_text()
    for one in (plain, limited):
        assert JobDefinition.from_text(one.to_text()) == one
    assert limited.run_rules().limits == Limits(1024, timedelta(minutes=1))


@pytest.mark.parametrize(
    ("how_far", "number", "limits", "ending", "code"),
    [
        (frames.NO_PROCESS, errno.EMFILE, Limits(), Ending.MACHINE_FAULT, None),
        (frames.NO_PROGRAM, errno.EAGAIN, Limits(), Ending.MACHINE_FAULT, None),
        (frames.NO_PROGRAM, errno.ENOMEM, Limits(cpu_time=timedelta(1)), Ending.MACHINE_FAULT, None),
        (frames.NO_PROGRAM, errno.ENOMEM, Limits(memory=1), Ending.NOT_STARTED, None),
        (frames.NO_PROGRAM, errno.EMFILE, Limits(open_files=1), Ending.NOT_STARTED, None),
        (frames.NO_PROCESS, errno.ENOMEM, Limits(memory=1), Ending.MACHINE_FAULT, None),
        (frames.NO_PROGRAM, errno.ENOENT, Limits(), Ending.NOT_STARTED, 127),
        (frames.NO_PROGRAM, errno.ENOTDIR, Limits(), Ending.NOT_STARTED, 127),
        (frames.NO_PROGRAM, errno.EACCES, Limits(), Ending.NOT_STARTED, 126),
        (frames.NO_PROGRAM, errno.ENOEXEC, Limits(), Ending.NOT_STARTED, None),
        (frames.NO_FOLDER, errno.ENOENT, Limits(), Ending.NOT_STARTED, None),
        (frames.TOO_LATE, 0, Limits(), Ending.LEASE_LOST, None),
    ],
)
def test_what_did_not_run_is_the_jobs_fault_or_the_machines(
    how_far: int, number: int, limits: Limits, ending: Ending, code: int | None
) -> None:
    ended = ended_command(
        an_order(limits=limits, cwd="/w"), End(7, how_far, 1.0, 2.0, errno=number), None, {"PATH": "p"}
    )
    assert (ended.ending, ended.exit_code, ended.started) == (ending, code, None)
    assert ended.error


# --- the roster


def test_a_roster_tells_what_may_have_begun_and_why_a_process_failed() -> None:
    memory = Roster.descriptor(2)
    worker, zygote = Roster(os.dup(memory), 2), Roster(memory, 2)
    assert worker.begun(1, 7) is None
    zygote.note(1, 7, 5.5)
    assert worker.begun(1, 7) == (0, 5.5)
    worker.note_lease(1, 40.0)
    assert (zygote.lease(1), zygote.lease(0)) == (40.0, 0.0)
    zygote.note_process(1, 4711)
    zygote.note_failure(1, frames.NO_FOLDER, errno.ENOENT)
    assert worker.begun(1, 7) == (4711, 5.5)
    assert zygote.failure(1) == (frames.NO_FOLDER, errno.ENOENT)
    assert worker.begun(1, 8) is None
    assert worker.begun(0, 7) is None
    zygote.note(1, 8, 6.5)
    assert zygote.lease(1) == 40.0
    assert zygote.failure(1) == (0, 0)
    worker.close()
    zygote.close()


# --- the board, as the zygote sees it


@pytest.fixture
def board() -> Iterator[tuple[Board, Board, Board]]:
    """The child's, the worker's, the zygote's."""
    memory = Board.descriptor()
    boards = Board(os.dup(memory)), Board(os.dup(memory)), Board(memory)
    yield boards
    for one in boards:
        one.close()


def seen_in(board: Board) -> tuple[int, float, float, float] | None:
    """Token, deadline, seconds to SIGKILL, and the lease's end of the present run."""
    run = board.present()
    return None if run is None else (run.token, run.deadline, run.kill_after, run.lease)


def test_the_zygote_sees_the_run_that_is_on_and_how_long_it_may_take(board: tuple[Board, Board, Board]) -> None:
    child, worker, zygote = board
    assert seen_in(zygote) is None
    worker.note_hand(10.0, 1.0, leased=False)
    worker.note_lease(130.0)
    worker.note_given(2, 20.0, 2.0, leased=True)
    assert seen_in(zygote) is None
    child.note_begun(1, 100.0)
    assert seen_in(zygote) == (1, 110.0, 1.0, inf)
    child.note_ended(1, 100.0, 101.0)
    assert seen_in(zygote) is None
    child.note_begun(2, 101.0)
    assert seen_in(zygote) == (2, 121.0, 2.0, 130.0)
    worker.note_settled(2)
    assert seen_in(zygote) is None


def test_a_run_with_times_of_its_own_is_known_in_the_fullest_hand(board: tuple[Board, Board, Board]) -> None:
    child, worker, zygote = board
    worker.note_hand(10.0, 1.0, leased=False)
    for token in range(1, RING + 1):
        worker.note_given(token, float(token), 0.0, leased=False)
    for token in (1, RING):
        child.note_begun(token, 5.0)
        assert seen_in(zygote) == (token, 5.0 + token, 0.0, inf)


def test_the_worker_hears_which_run_the_zygote_ended(board: tuple[Board, Board, Board]) -> None:
    _, worker, zygote = board
    assert (worker.cut(7), zygote.is_parting()) == (None, False)
    zygote.note_cut(7, CUT_WITH_LEASE)
    worker.note_parting()
    assert (worker.cut(7), worker.cut(8), zygote.is_parting()) == (CUT_WITH_LEASE, None, True)


# --- who belongs to a run


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, with a mark."""
    with subprocess.Popen(
        ["sleep", "300"], env={"MARK": "mine", "PATH": os.defpath}, start_new_session=True
    ) as process:
        eventually(lambda: b"MARK" in open_environ(process.pid), 30, "it is there")
        yield process
        process.kill()


def open_environ(pid: int) -> bytes:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def test_members_are_known_by_session_by_mark_and_by_earlier_looks(sleeper: subprocess.Popen[bytes]) -> None:
    census = Census(os.getpid())

    def members(
        leader: int = -1, known: dict[int, float] | None = None, mark: bytes = b"M=", since: float = 0.0
    ) -> list[int]:
        return [one.pid for one in census.members(leader, known or {}, {mark}, since)]

    pid = sleeper.pid
    (found,) = census.members(pid, {}, {b"M="}, 0.0)
    assert (found.pid, found.parent, found.group, found.session) == (pid, os.getpid(), pid, pid)
    assert members(mark=b"MARK=mine") == [pid]
    assert members(known={pid: found.born}) == [pid]
    assert members(known={pid: found.born - 1}) == []
    assert members(mark=b"MARK=other") == []
    assert members(pid, since=time.clock_gettime(time.CLOCK_BOOTTIME) + 60) == []
    assert [one.pid for one in Census(pid).members(pid, {}, {b"MARK=mine"}, 0.0)] == []


def test_spare_descriptors_are_there_when_all_others_are_gone() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spare = Spare()
    assert len(os.listdir("/proc/self/fd")) == before + 2
    with spare:
        assert len(os.listdir("/proc/self/fd")) == before
    spare.__enter__()
