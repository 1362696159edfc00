"""A plan as a file: what comes back, and what is refused."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sexton.errors import InvalidInput, NotFound, Refused
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.plan import ApplyPlan, plan_changes
from sexton.jobfiles.saved_plans import SavedPlan, read_plan, save_plan
from sexton.store.protocol import CurrentJob

JOB = "{schedule: '0 5 * * *', command: [x], env: {PASSWORD: hunter2}}"


def file_of(*names: str, more: str = "") -> str:
    return "version: 1\njobs:\n" + "".join(f"  {name}: {JOB}\n" for name in names) + more


def cluster(*names: str) -> list[CurrentJob]:
    loaded = load_job_text(file_of(*names)).jobs
    return [
        CurrentJob(number, job.name, number + 1, job.definition, "seed", is_paused=number == 1, is_quarantined=False)
        for number, job in enumerate(loaded)
    ]


def a_plan() -> ApplyPlan:
    more = f"  renamed: {JOB[:-1]}, renamed_from: old, queue: q}}\n"
    return plan_changes(
        load_job_text(file_of("new", "same", more=more)), cluster("same", "old", "gone"), prune=True, prune_limit=5
    )


def saved(plan: ApplyPlan | None = None) -> SavedPlan:
    made_at = datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC)
    return SavedPlan(plan or a_plan(), "c1", "2026b/1/0.109", made_at, "alice@desk", ("jobs",), 5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_plan(tmp_path / "p.plan", saved())
    return tmp_path / "p.plan"


def test_a_plan_comes_back_as_it_was(file: Path) -> None:
    assert read_plan(file) == saved()
    assert len(read_plan(file).plan.changes) == 3


def test_a_plan_stands_on_all_jobs_that_its_files_name_and_it_retires(file: Path) -> None:
    read = read_plan(file)
    assert dict(read.conditions.unchanged) == {0: 1}
    assert dict(read.stands_on.unchanged) == {0: 1, 1: 2, 2: 3}
    assert (read.conditions.cluster_id, read.conditions.inputs_id) == ("c1", "2026b/1/0.109")


def test_a_plan_is_its_owners_alone(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    save_plan(file, saved())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_what_jobs_that_stay_are_told_is_none_of_the_plan_s(tmp_path: Path) -> None:
    plan = plan_changes(load_job_text("version: 1\njobs: {}\n"), cluster("others"))
    save_plan(tmp_path / "p", saved(plan))
    assert "hunter2" not in (tmp_path / "p").read_text()
    assert [job.name for job in read_plan(tmp_path / "p").plan.kept] == ["others"]


@pytest.mark.parametrize("text", ["version: 1\njobs: {}\n", "", '{"format": "else"}'])
def test_a_file_that_is_no_plan_is_not_written_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    with pytest.raises(Refused, match="exists and is not a plan that Sexton wrote; name another file"):
        save_plan(path, saved())
    assert path.read_text() == text


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not a regular file"):
        save_plan(tmp_path, saved())


def test_a_plan_goes_where_a_link_points(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    save_plan(link, saved(plan_changes(load_job_text("version: 1\njobs: {}\n"), [])))
    assert link.is_symlink()
    assert read_plan(file).plan.is_empty


def test_a_file_someone_edited_is_refused_whatever_was_edited(file: Path) -> None:
    content = json.loads(file.read_text())
    for key in content:
        others: tuple[object, ...] = (None, [], "other", 0)
        for value in others:
            if key in ("format", "version", "checksum") or content[key] == value:
                continue
            file.write_text(json.dumps({**content, key: value}))
            with pytest.raises(InvalidInput, match="was changed after it was written"):
                read_plan(file)
    file.write_text(json.dumps({**content, "extra": 1}))
    with pytest.raises(InvalidInput, match="was changed after it was written"):
        read_plan(file)
    file.write_text(json.dumps(content))  # written another way, but says the same
    assert read_plan(file) == saved()


@pytest.mark.parametrize("length", [30, 200, 1000])
def test_a_file_cut_short_is_refused(file: Path, length: int) -> None:
    file.write_text(file.read_text()[:length])
    with pytest.raises(InvalidInput, match="damaged or cut short"):
        read_plan(file)


@pytest.mark.parametrize("text", ["", "[]", "version: 1\n", "{}", "[" * 100_000])
def test_a_file_that_is_something_else_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidInput, match="is not a saved plan"):
        read_plan(file)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="is not a saved plan"):
        read_plan(file)


def test_a_plan_of_a_later_format_is_refused_before_its_content_is_looked_at(file: Path) -> None:
    file.write_text(json.dumps({"format": "sexton-plan", "version": 2, "other": "things"}))
    with pytest.raises(Refused, match="is a plan of format 2, and this Sexton reads format 1; apply it with the"):
        read_plan(file)


def test_a_file_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist; `sexton plan PATH --out FILE`"):
        read_plan(tmp_path / "none")
