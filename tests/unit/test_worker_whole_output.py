"""Whole outputs: spooled, carried to where they are kept, noted; and what a store that is away costs."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog.testing

from sexton.clock import SystemClock
from sexton.errors import DatabaseUnreachable, InvalidSetting, NotFound
from sexton.output_places import FolderPlace, place_at, read_whole
from sexton_worker import whole_output
from sexton_worker.core.runs import EndedRun, Ending, Spooled
from sexton_worker.spool_room import SpoolRoom
from sexton_worker.whole_output import Carrier, Keeper, WholeRun
from tests.support.waiting import eventually

LONG = 60.0  # a limit, no expectation
TICK = datetime(2026, 3, 29, 1, tzinfo=UTC)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.room = SpoolRoom(limit=10, below=folder)
        self.notes: dict[int, str] = {}
        self.refuses_notes = False

    def note(self, token: int, place: str) -> bool:
        if self.refuses_notes:
            return False
        self.notes[token] = place
        return True

    def ended(self, token: int, stdout: bytes, stderr: bytes = b"") -> EndedRun:
        out, err = self.room.files()
        out.write(stdout)
        err.write(stderr)
        spooled = Spooled(out.path, err.path, out.close(), err.close())
        return EndedRun(
            token, Ending.EXITED, 1.0, 2.0, 0, stdout_bytes=len(stdout), stderr_bytes=len(stderr), spooled=spooled
        )

    def files(self) -> list[str]:
        return sorted(path.name for path in self.room.folder.iterdir() if path.name != "lock")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.room.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_output, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(whole_output, "LONGEST_PAUSE", 0.02)


@contextmanager
def carrying(scene: Scene, keeper: Keeper, note: Callable[[int, str], bool] | None = None) -> Iterator[Carrier]:
    carrier = Carrier(keeper, 10, note or scene.note, SystemClock())
    try:
        yield carrier
    finally:
        carrier.close(0.0)


def a_run(token: int, job: str = "nightly") -> WholeRun:
    return WholeRun(job, TICK, token)


class Away:
    """A store that is away until ``is_there``."""

    base = "s3://away"

    def __init__(self) -> None:
        self.is_there = False
        self.tries = 0

    def put(self, file: bytes, place: str, note: bytes = b"") -> None:
        self.tries += 1
        if not self.is_there:
            raise ConnectionError("no route")


def test_both_outputs_are_carried_to_a_folder_up_to_the_limit_and_noted(scene: Scene, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with carrying(scene, FolderPlace(str(kept))) as carrier:
        carrier.carry(scene.ended(7, b"0123456789abc", b"err"), a_run(7))
        eventually(lambda: scene.notes, LONG, "it is noted")
    base = kept / "nightly" / "2026-03-29T01-00-00Z"
    assert scene.notes == {7: f"{base}/7"}
    assert (base / "7.stdout").read_bytes() == b"0123456789\n[... 3 bytes not kept, for output_limit ...]\n"
    assert b"".join(read_whole(f"{scene.notes[7]}.stderr")) == b"err"
    assert scene.files() == []


@pytest.mark.parametrize("job", ["a/b", "..", "é ü", "C:\\x"])
def test_no_name_of_a_job_leads_out_of_the_folder(scene: Scene, tmp_path: Path, job: str) -> None:
    kept = tmp_path / "deep" / "kept"
    with carrying(scene, FolderPlace(str(kept))) as carrier:
        carrier.carry(scene.ended(7, b"x"), a_run(7, job))
        eventually(lambda: scene.notes, LONG, "it is noted")
    assert len(list(kept.glob("*/*/7.stdout"))) == 1
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["kept"]


def test_any_store_of_fsspec_takes_them(scene: Scene) -> None:
    with carrying(scene, place_at("memory://logs/of-runs/")) as carrier:
        carrier.carry(scene.ended(7, b"whole"), a_run(7))
        eventually(lambda: scene.notes, LONG, "it is noted")
    assert scene.notes[7] == "memory://logs/of-runs/nightly/2026-03-29T01-00-00Z/7"
    assert b"".join(read_whole(f"{scene.notes[7]}.stdout")) == b"whole"
    with pytest.raises(NotFound, match=r"memory://.*7\.stderr cannot be read from here"):
        list(read_whole(f"{scene.notes[7]}.stderr"))


def test_a_store_that_is_away_is_tried_again_and_told_of_once(scene: Scene) -> None:
    store = Away()
    with structlog.testing.capture_logs() as logs, carrying(scene, store) as carrier:
        carrier.carry(scene.ended(7, b"x"), a_run(7))
        eventually(lambda: store.tries > 3, LONG, "it is tried again")
        assert scene.files() == ["1.stdout"]
        store.is_there = True
        eventually(lambda: scene.notes, LONG, "it is noted")
    assert [entry["event"] for entry in logs] == ["output.store_away", "output.store_answers"]
    assert scene.files() == []


def test_a_store_that_stays_away_costs_whole_outputs_and_nothing_is_left_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_output, "GIVE_UP_AFTER", 0.05)
    with structlog.testing.capture_logs() as logs, carrying(scene, Away()) as carrier:
        carrier.carry(scene.ended(7, b"x"), a_run(7))
        eventually(lambda: not scene.files(), LONG, "it is given up")
    assert [(entry["event"], entry.get("token")) for entry in logs][-1] == ("output.lost", 7)


def test_what_waits_is_bounded_and_the_oldest_goes_first(scene: Scene) -> None:
    with structlog.testing.capture_logs() as logs, carrying(scene, Away()) as carrier:
        for token in range(1, 13):  # ten times the limit of 10 bytes
            carrier.carry(scene.ended(token, b"0123456789"), a_run(token))
        eventually(lambda: len(scene.files()) <= 11, LONG, "the oldest are gone")  # one may be on its way
    lost = [entry["token"] for entry in logs if entry["event"] == "output.lost"]
    assert sorted(lost) == list(range(1, 13))  # the rest when the worker ended
    assert scene.files() == []


def test_a_note_waits_for_its_result_and_for_the_database(scene: Scene, tmp_path: Path) -> None:
    troubles: list[int] = []

    def note(token: int, place: str) -> bool:
        troubles.append(token)
        if len(troubles) == 1:
            raise DatabaseUnreachable("away")
        return len(troubles) > 3 and scene.note(token, place)

    with carrying(scene, FolderPlace(str(tmp_path / "kept")), note) as carrier:
        carrier.carry(scene.ended(7, b"x"), a_run(7))
        eventually(lambda: scene.notes, LONG, "it is noted")
    assert troubles == [7] * 4


def test_an_ending_worker_carries_what_it_has(scene: Scene, tmp_path: Path) -> None:
    carrier = Carrier(FolderPlace(str(tmp_path / "kept")), 10, scene.note, SystemClock())
    for token in range(20):
        carrier.carry(scene.ended(token, b"x"), a_run(token))
    carrier.close(LONG)
    assert scene.notes.keys() == set(range(20))


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nosuch://bucket/x", "Protocol not known: nosuch"),
        ("ftp://user:pass@host/x", "an address with a password would be recorded"),
        ("s3://bucket/x", "the library for s3:// is not installed here"),
    ],
)
def test_what_cannot_be_a_place_is_said_in_one_sentence(address: str, says: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        place_at(address)
    assert says in str(caught.value)
    assert "pass@" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_needs_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    assert place_at(f"file://{tmp_path}").base == str(tmp_path)
    assert place_at(str(tmp_path / "a" / "..")).base == str(tmp_path)
    with pytest.raises(InvalidSetting, match=r"fsspec is not installed here; install sexton\[output\]"):
        place_at("memory://x")


# --- the spool --------------------------------------------------------------------------------------------------------


def test_the_next_worker_deletes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    living, killed = SpoolRoom(10, tmp_path), SpoolRoom(10, tmp_path)
    for room in (living, killed):
        (file, _) = room.files()
        file.write(b"x")
        file.close()
    os.close(killed._lock)  # as its process's end does
    another = SpoolRoom(10, tmp_path)
    assert living.folder.exists()
    assert not killed.folder.exists()
    for room in (living, another):
        room.close()
    assert list(another.folder.parent.iterdir()) == []


def test_a_spool_is_not_made_in_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / f"sexton-output-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        SpoolRoom(10, tmp_path)


def test_a_full_disk_costs_what_does_not_fit(scene: Scene) -> None:
    full, _ = scene.room.files()
    os.symlink("/dev/full", full.path)  # O_EXCL refuses what is there already
    full.write(b"x")
    assert (full.written, full.close()) == (0, 0)


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process grows beyond this size, as on a disk that is full."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_what_did_fit_on_a_full_disk_is_carried_with_a_word_about_the_rest(scene: Scene) -> None:
    kept = place_at("memory://full-disk")  # has room
    with structlog.testing.capture_logs() as logs, files_up_to(4), carrying(scene, kept) as carrier:
        carrier.carry(scene.ended(7, b"0123456"), a_run(7))
        eventually(lambda: scene.notes, LONG, "it is noted")
    whole = b"".join(read_whole(f"{scene.notes[7]}.stdout"))
    assert whole == b"0123\n[... 3 bytes not kept, for this worker's disk took no more ...]\n"
    assert [(entry["event"], entry["token"], entry["kept"]) for entry in logs] == [("output.lost", 7, 4)]
    assert scene.files() == []


def test_what_did_not_fit_at_all_leaves_no_file_and_is_told(scene: Scene) -> None:
    with structlog.testing.capture_logs() as logs, files_up_to(0), carrying(scene, Away()) as carrier:
        ended = scene.ended(7, b"0123456")
        assert scene.files() == []
        carrier.carry(ended._replace(spooled=None), a_run(7))
    assert [(entry["event"], entry["bytes"], entry["kept"]) for entry in logs] == [("output.lost", 7, 0)]


def test_a_file_that_somebody_deleted_is_lost_at_once_and_not_the_store_s_fault(scene: Scene) -> None:
    store = Away()
    with structlog.testing.capture_logs() as logs, carrying(scene, store) as carrier:
        ended = scene.ended(7, b"x")
        shutil.rmtree(scene.room.folder)
        carrier.carry(ended, a_run(7))
        eventually(lambda: logs, LONG, "it is told")
    assert [entry["event"] for entry in logs] == ["output.lost"]
    assert store.tries == 0


@pytest.mark.parametrize("is_known", [False, True])
def test_a_folder_that_who_cleans_up_deleted_is_made_again(scene: Scene, is_known: bool) -> None:
    made_before = scene.room.files()
    shutil.rmtree(scene.room.folder.parent)
    file, _ = scene.room.files() if is_known else made_before
    file.write(b"second\n")
    assert file.close() == len(b"second\n")
    for folder in (scene.room.folder, scene.room.folder.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    if is_known:
        another = SpoolRoom(10, scene.room.folder.parent.parent)  # takes it for no killed worker's
        another.close()
        assert scene.room.folder.exists()


def test_a_worker_that_starts_beside_another_never_works_in_a_folder_that_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[SpoolRoom] = []
    flock = fcntl.flock

    def flock_late(descriptor: int, how: int) -> None:
        if not others:
            monkeypatch.setattr(fcntl, "flock", flock)
            others.append(SpoolRoom(10, tmp_path))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock_late)
    room = SpoolRoom(10, tmp_path)
    file, _ = room.files()
    assert (room.folder / "lock").exists()
    file.write(b"x")
    assert file.close() == 1
    for one in (room, *others):
        one.close()
