"""The examples of the documentation and of `examples/` are read as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sexton.jobfiles.load import load_job_files
from sexton.jobfiles.python_files import PythonLimits
from sexton.jobs import JobDefinition
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget

ROOT = Path(__file__).parent.parent.parent
SECTION = (
    (ROOT / "docs" / "job-files.md")
    .read_text(encoding="utf-8")
    .partition("## Files and folders")[2]
    .partition("\n## ")[0]
)
BLOCKS = re.findall(r"^```(toml|python|yaml)\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
LIMITS = PythonLimits(seconds=120)


@pytest.mark.parametrize(("language", "text"), BLOCKS, ids=[language for language, _ in BLOCKS])
def test_what_the_documentation_shows_is_read(tmp_path: Path, language: str, text: str) -> None:
    name = {"toml": "given.toml", "python": "given.py", "yaml": "defaults.yaml"}[language]
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "one.yaml").write_text("version: 1\njobs:\n  one: {schedule: '@daily', shell: x}\n")
    assert len(load_job_files([tmp_path], LIMITS).jobs) == (1 if language == "yaml" else 3)


def test_every_format_is_shown() -> None:
    assert {language for language, _ in BLOCKS} == {"toml", "python", "yaml"}


def test_the_examples_in_toml() -> None:
    jobs = load_job_files([ROOT / "examples" / "toml"]).jobs
    assert [job.name for job in jobs] == ["angelus", "parish-letter", "heating"]


def test_the_examples_of_other_services() -> None:
    jobs = {job.name: job.definition for job in load_job_files([ROOT / "examples" / "services"]).jobs}
    assert {type(job.target) for job in jobs.values()} == {HttpTarget, CeleryTarget, CommandTarget}
    assert all(JobDefinition.from_text(job.to_text()) == job for job in jobs.values())


def test_the_examples_in_python() -> None:
    loaded = load_job_files([ROOT / "examples" / "python-jobs"], LIMITS)
    assert [job.name for job in loaded.jobs] == ["ring", "count-candles", "dust-altar", "dust-organ"]
    assert {(job.definition.timezone, job.definition.owner) for job in loaded.jobs} == {("Europe/Berlin", "parish")}
    assert loaded.import_roots == (str((ROOT / "examples" / "python-jobs").resolve()),)
