"""What job files may say, and what becomes of it: definitions with everything resolved."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.errors import InvalidJobFile, NotFound
from sexton.job_rules import (
    AlertRules,
    CatchUpOrder,
    ConcurrencyKey,
    DstRules,
    ExcludeRules,
    Limits,
    MissedPolicy,
    MissedRules,
    RetryRules,
)
from sexton.jobfiles import sources
from sexton.jobfiles.keys import JOB_KEYS
from sexton.jobfiles.load import LoadedJob, load_job_files, load_job_text
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget, PythonTarget, ShellTarget
from sexton.wall_clock_ticks import GapRule

MINIMAL = "version: 1\njobs:\n  a: {schedule: '0 5 * * *', command: [x]}\n"

FULL = """\
version: 1
defaults:
  timezone: Europe/Berlin
  queue: slow
  missed: {policy: all, grace: 5m}
  env: {A: from-defaults, B: "1"}
jobs:
  nightly-billing:
    schedule:
      - "0 2 * * *"
      - {every: 1h30m, anchor: 2026-01-01T00:00:00+01:00}
      - {at: ["2026-12-24T18:00:00+01:00", 2026-12-24T17:00:00Z]}
      - {calendar: {months: 1}, at: "02:30", start: 2026-01-31, month_end: skip}
    start: 2026-01-01T00:00:00Z
    end: null
    exclude: {dates: [2026-12-25, 2026-05-01, 2026-12-25], weekdays: [sat, SUN], holidays: [de-be]}
    jitter: 90s
    dst: {gap: skip}
    hash_seed: old-billing
    enabled: false
    python: billing.jobs:nightly
    args: [1, 2.5, true, null, text, [x], {k: z}]
    kwargs: {day: "2026-01-01"}
    env: {B: "2"}
    cwd: /srv
    stdin: "hello"
    success_codes: [0, 3]
    limits: {memory: 512MB, cpu_time: 10m, open_files: 64}
    priority: -2
    overlap: queue
    queue_limit: 7
    concurrency_key: {key: books, limit: 2}
    max_runtime: 1h
    kill_after: 5s
    retries: {max: 3, delay: 1s, factor: 1.5, jitter: false, on: [75, TimeoutError]}
    on_worker_lost: fail
    on_lease_lost: kill
    missed: {grace: 10s, start_within: 1m, within: 2d, max: 7, order: newest, hold_for: 1d}
    description: "Books: all of them"
    owner: billing
    tags: [money, night]
    alert: {late: 5m, failures: 3}
    renamed_from: billing
"""


def only(content: str) -> JobDefinition:
    (job,) = load_job_text(content).jobs
    return job.definition


def test_the_smallest_job_has_every_default_of_the_documentation() -> None:
    assert only(MINIMAL) == JobDefinition(
        name="a", schedule_parts=({"cron": "0 5 * * *"},), target=CommandTarget(("x",)), retries=RetryRules()
    )


def test_every_key_reaches_the_definition_and_defaults_merge_by_key() -> None:
    assert only(FULL) == JobDefinition(
        name="nightly-billing",
        schedule_parts=(
            {"cron": "0 2 * * *"},
            {"every_ms": 5_400_000, "anchor": "2025-12-31T23:00:00Z"},
            {"at": ["2026-12-24T17:00:00Z"]},
            {"calendar": {"months": 1}, "at": "02:30:00", "start": "2026-01-31", "month_end": "skip"},
        ),
        target=PythonTarget(
            "billing.jobs:nightly", (1, 2.5, True, None, "text", ["x"], {"k": "z"}), {"day": "2026-01-01"}
        ),
        timezone="Europe/Berlin",
        start=datetime(2026, 1, 1, tzinfo=UTC),
        exclude=ExcludeRules((date(2026, 5, 1), date(2026, 12, 25)), (0, 6), ("DE-BE",)),
        jitter=timedelta(seconds=90),
        dst=DstRules(GapRule.SKIP),
        hash_seed="old-billing",
        enabled=False,
        env={"A": "from-defaults", "B": "2"},
        cwd="/srv",
        stdin="hello",
        success_codes=(0, 3),
        limits=Limits(512_000_000, timedelta(minutes=10), 64),
        queue="slow",
        priority=-2,
        overlap=Overlap.QUEUE,
        queue_limit=7,
        concurrency_key=ConcurrencyKey("books", 2),
        max_runtime=timedelta(hours=1),
        kill_after=timedelta(seconds=5),
        retries=RetryRules(max=3, delay=timedelta(seconds=1), factor=1.5, jitter=False, on=(75, "TimeoutError")),
        on_worker_lost=OnWorkerLost.FAIL,
        on_lease_lost=OnLeaseLost.KILL,
        missed=MissedRules(
            policy=MissedPolicy.ALL,
            grace=timedelta(seconds=10),
            start_within=timedelta(minutes=1),
            within=timedelta(days=2),
            max=7,
            order=CatchUpOrder.NEWEST,
            hold_for=timedelta(days=1),
        ),
        description="Books: all of them",
        owner="billing",
        tags=("money", "night"),
        alert=AlertRules(timedelta(minutes=5), 3),
        renamed_from="billing",
    )


def test_a_definition_survives_its_canonical_text() -> None:
    definition = only(FULL)
    again = JobDefinition.from_text(definition.to_text())
    assert again.to_text() == definition.to_text()


def test_a_job_s_own_value_wins_over_the_default() -> None:
    content = (
        "version: 1\ndefaults: {queue: q, enabled: false}\njobs:\n  a: {schedule: '0 5 * * *', shell: x, queue: own}\n"
    )
    assert only(content).queue == "own"
    assert not only(content).enabled
    assert only(content).target == ShellTarget("x")


@pytest.mark.parametrize("written", ["* * * * *", "0 5 * * MON-FRI", "H H * * *", "@daily", "0 0 L * *"])
def test_a_quoted_cron_text_is_kept_as_it_stands(written: str) -> None:
    assert only(f"version: 1\njobs: {{a: {{schedule: '{written}', shell: x}}}}\n").schedule_parts == (
        {"cron": written},
    )


def test_an_anchor_shares_one_value_between_jobs() -> None:
    content = "version: 1\njobs:\n  a: &a {schedule: '0 5 * * *', shell: x}\n  b: *a\n"
    assert [job.name for job in load_job_text(content).jobs] == ["a", "b"]


def test_no_jobs_is_said_by_an_empty_mapping() -> None:
    assert load_job_text("version: 1\njobs: {}\n").jobs == ()


def test_windows_line_ends_do_not_move_places() -> None:
    content = MINIMAL.replace("command", "comand").replace("\n", "\r\n")
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(content)
    assert (refused.value.problems[0].line, refused.value.problems[0].column) == (3, 30)


def test_five_mistakes_are_five_problems_in_one_go() -> None:
    content = (
        "version: 1\njobs:\n"
        "  a:\n    schedule: */5 * * * *\n    command: [x]\n"
        "  b:\n    schedule: '61 * * * *'\n    comand: [x]\n    shell: echo\n"
        "  c:\n    schedule: {every: 5}\n    shell: echo\n    timezone: Mars/Olympus\n"
    )
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(content, "five.yaml")
    assert [str(one).split(" ")[0] for one in refused.value.problems] == [
        "five.yaml:4:15:",
        "five.yaml:7:15:",
        "five.yaml:8:5:",
        "five.yaml:11:23:",
        "five.yaml:13:15:",
    ]


def test_a_faulty_default_is_reported_once_and_not_per_job() -> None:
    jobs = "".join(f"  j{number}: {{schedule: '0 5 * * *', shell: x}}\n" for number in range(3))
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(f"version: 1\ndefaults: {{queue: 'a b'}}\njobs:\n{jobs}")
    assert len(refused.value.problems) == 1


def test_every_key_of_the_table_is_named_once() -> None:
    names = [key.name for key in JOB_KEYS]
    assert len(set(names)) == len(names)


class TestFolders:
    def write(self, path: Path, name: str, **more: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"version: 1\njobs:\n  {name}: {{schedule: '0 5 * * *', shell: x}}\n")
        return path

    def names(self, *paths: Path) -> list[str]:
        return [job.name for job in load_job_files(paths).jobs]

    def test_a_folder_is_read_with_its_folders_in_order(self, tmp_path: Path) -> None:
        self.write(tmp_path / "b.yml", "b")
        self.write(tmp_path / "a.yaml", "a")
        self.write(tmp_path / "c" / "z.yaml", "z")
        self.write(tmp_path / ".hidden.yaml", "hidden")
        (tmp_path / "notes.txt").write_text("not a job file")
        assert self.names(tmp_path) == ["a", "b", "z"]

    def test_links_that_lead_back_end(self, tmp_path: Path) -> None:
        self.write(tmp_path / "in" / "a.yaml", "a")
        (tmp_path / "in" / "loop").symlink_to(tmp_path)
        (tmp_path / "in" / "same.yaml").symlink_to(tmp_path / "in" / "a.yaml")
        assert self.names(tmp_path) == ["a"]

    def test_one_name_in_two_files_is_refused_with_both_places(self, tmp_path: Path) -> None:
        first = self.write(tmp_path / "1.yaml", "Backup")
        second = self.write(tmp_path / "2.yaml", "backup")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([tmp_path])
        (problem,) = refused.value.problems
        assert (problem.file, problem.line, problem.column) == (str(second), 3, 3)
        assert f"{first}:3:3" in problem.message

    def test_of_an_imported_file_the_name_is_changed_where_it_comes_from(self, tmp_path: Path) -> None:
        self.write(tmp_path / "1.yaml", "backup")
        second = self.write(tmp_path / "2.yaml", "backup")
        header = "# Imported by: sexton import crontab web.crontab\n"
        second.write_text(header + second.read_text(encoding="utf-8"), encoding="utf-8")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([tmp_path])
        (problem,) = refused.value.problems
        assert problem.message.endswith(
            f"{second} was written by 'sexton import': import it again with another --prefix"
        )

    def test_problems_of_all_files_come_together(self, tmp_path: Path) -> None:
        (tmp_path / "1.yaml").write_text("version: 1\njobs:\n\ta: 1\n")
        (tmp_path / "2.yaml").write_text("")
        (tmp_path / "3.yaml").write_bytes(b"version: 1\n# caf\xe9\n")
        self.write(tmp_path / "4.yaml", "good")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([tmp_path])
        assert [(Path(one.file).name, one.line) for one in refused.value.problems] == [
            ("1.yaml", 3),
            ("2.yaml", 1),
            ("3.yaml", 2),
        ]

    def test_a_broken_link_and_a_pipe_are_refused_not_waited_for(self, tmp_path: Path) -> None:
        (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere.yaml")
        os.mkfifo(tmp_path / "pipe.yaml")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([tmp_path])
        assert [Path(one.file).name for one in refused.value.problems] == ["gone.yaml", "pipe.yaml"]

    def test_a_link_out_of_the_folder_is_refused_unread(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "shadow").write_text("root:$secret:1\n")
        self.write(outside / "jobs" / "there.yaml", "there")
        given = tmp_path / "given"
        self.write(given / "good.yaml", "good")
        (given / "chain.yaml").symlink_to(given / "x.yaml")
        (given / "folder").symlink_to(outside / "jobs")
        (given / "notes.txt").symlink_to(outside / "shadow")
        (given / "x.yaml").symlink_to(outside / "shadow")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([given])
        assert [Path(one.file).name for one in refused.value.problems] == ["chain.yaml", "folder", "x.yaml"]
        assert {one.message for one in refused.value.problems} == {"is a link out of the folder: name it directly"}

    def test_a_link_to_python_jobs_outside_is_refused_and_one_to_any_other_module_left_alone(
        self, tmp_path: Path
    ) -> None:
        given, outside = tmp_path / "given", tmp_path / "outside"
        self.write(given / "good.yaml", "good")
        outside.mkdir()
        (outside / "jobs.py").write_text("from sexton import Job\njobs = []\n")
        (outside / "tool.py").write_text("def tool() -> None: ...\n")
        (given / "tool.py").symlink_to(outside / "tool.py")
        assert self.names(given) == ["good"]
        (given / "gone.py").symlink_to(outside / "nowhere.py")
        (given / "jobs.py").symlink_to(outside / "jobs.py")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([given])
        assert [Path(one.file).name for one in refused.value.problems] == ["gone.py", "jobs.py"]

    def test_a_link_that_is_named_itself_is_read(self, tmp_path: Path) -> None:
        self.write(tmp_path / "outside" / "a.yaml", "a")
        given = tmp_path / "given"
        given.mkdir()
        (given / "x.yaml").symlink_to(tmp_path / "outside" / "a.yaml")
        (given / "folder").symlink_to(tmp_path / "outside")
        assert self.names(given / "x.yaml") == ["a"]
        assert self.names(given / "folder") == ["a"]

    def test_a_module_without_jobs_may_stand_beside_them(self, tmp_path: Path) -> None:
        self.write(tmp_path / "a.yaml", "a")
        (tmp_path / "billing.py").write_text("def nightly() -> None: ...\n")
        assert self.names(tmp_path) == ["a"]

    def test_a_file_larger_than_the_limit_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.write(tmp_path / "a.yaml", "a")
        monkeypatch.setattr(sources, "MAX_FILE_BYTES", 10)
        with pytest.raises(InvalidJobFile, match="is larger than"):
            load_job_files([path])

    def test_nothing_there_is_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match="does not exist"):
            load_job_files([tmp_path / "nowhere"])
        with pytest.raises(NotFound, match="holds no job files"):
            load_job_files([tmp_path])


def test_a_loaded_job_knows_where_it_stands() -> None:
    (job,) = load_job_text(FULL, "full.yaml").jobs
    assert isinstance(job, LoadedJob)
    assert (job.file, job.line, job.column) == ("full.yaml", 8, 3)
    assert job.renamed_from_at == (43, 19)


def test_reading_goes_on_after_what_is_no_yaml_and_nothing_is_said_that_only_follows_from_it() -> None:
    content = (
        "version: 1\njobs:\n"
        "  a:\n    schedule: '0 5 * * *'\n    command [x]\n    queue: slow\n"
        "  b:\n    schedule: '61 * * * *'\n    description: 'it's'\n    command: [x]\n"
        "  c\n    schedule: '0 5 * * *'\n    command: [x]\n"
        "  d:\n    schedule: '61 * * * *'\n    command: [x]\n    tags: [a, b\n"
        "  e:\n    shell: echo: a: b\n    schedule: */5 * * * *\n"
    )
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(content)
    places = [(one.line, one.column) for one in refused.value.problems]
    assert places == [(5, 5), (8, 15), (9, 22), (11, 3), (15, 15), (17, 11), (19, 16), (20, 15)]


def test_more_faults_than_can_be_told_end_the_reading() -> None:
    jobs = "".join(f"  j{number}:\n    shell: x\n    command [x]\n" for number in range(200))
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(f"version: 1\njobs:\n{jobs}")
    assert "more faults like this one follow" in refused.value.problems[-1].message
    assert len(refused.value.problems) < 100
