"""`sexton history`, `revert` and `export`, as someone uses them whose jobs are in git; on both databases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.schedule_specs import schedule_from_spec
from sexton.store import open_store
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange, Store, StoreOptions
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger

EVERY_KEY = """\
version: 1
jobs:
  all-keys:
    schedule: ["0 H(2-4) * * *", {every: 90m, anchor: 2026-01-01T00:00:00Z}]
    timezone: Europe/Berlin
    start: 2026-01-01T00:00:00Z
    end: 2038-01-01T00:00:00Z
    exclude: {dates: [2026-12-25], weekdays: [SAT, SUN], holidays: [DE-BE, 'NO']}
    jitter: 90s
    dst: {gap: skip, overlap: both}
    hash_seed: another
    enabled: false
    python: billing.jobs:nightly
    args: [1, 1.5, "2", null, [true], {a: b}]
    kwargs: {day: "2026-01-01"}
    env: {A: "yes", B: "with\\nlines", "C.d": ""}
    cwd: /srv
    stdin: "a\\nb\\n"
    success_codes: [0, 3]
    limits: {memory: 512MB, cpu_time: 90s, open_files: 64}
    queue: slow
    priority: -1
    overlap: queue
    queue_limit: 5
    concurrency_key: {key: books, limit: 2}
    max_runtime: 2h
    kill_after: 1s
    retries: {max: 3, delay: 1m, factor: 1.5, max_delay: 1h, jitter: false, on: [75, OSError]}
    on_worker_lost: fail
    on_lease_lost: kill
    missed: {policy: hold, grace: 5m, start_within: 10m, within: 2d, max: 7, order: newest, hold_for: 3d}
    description: "Bills: everybody"
    owner: billing
    tags: [money, "08"]
    alert: {late: 5m, failures: 3}
  calendar:
    schedule: {calendar: {months: 2}, at: "02:30", start: 2026-01-31, month_end: skip}
    command: [x]
  listed:
    schedule: {at: ["2027-12-24T18:00:00+01:00"]}
    shell: |
      set -e
      echo "$X" # not a comment
  requested:
    schedule: "0 5 * * *"
    http:
      method: PUT
      url: https://billing.internal/run?day=${tick}
      headers: {Authorization: "Bearer ${secret:billing}", Accept: "*/*"}
      body: '{"night": "${tick}"}'
      expect: [200]
      expect_body: '"ok": *true'
      timeout: 5s
      redirects: none
  handed-over:
    schedule: "0 6 * * *"
    celery: {broker: "redis://:${secret:redis}@b/0", task: billing.mail, queue: mail, wait: true, backend: "redis://b/1"}
    args: [1]
    kwargs: {template: nightly}
  hashed: {schedule: "H H * * *", jitter: 5m, command: [x]}
  paused: {schedule: "0 5 * * *", command: [x]}
  resumed: {schedule: "0 5 * * *", command: [x], enabled: false}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A cluster's empty ledger. What the stores answer is tested on both databases in `stores`."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    (tmp_path / "sexton.toml").write_text(f'database = "{url}"\n')
    opened = open_store(StoreOptions(url))
    yield opened
    opened.close()


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def sexton(command: CommandLine, *arguments: str) -> str:
    done = command.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def apply(command: CommandLine, text: str) -> None:
    (command.folder / "jobs.yaml").write_text(text)
    sexton(command, "apply", "jobs.yaml", "--yes")


def one_job(name: str, schedule: str, more: str = "") -> str:
    return f"version: 1\njobs:\n  {name}: {{schedule: '{schedule}', command: [x]{', ' + more if more else ''}}}\n"


def jobs_of(store: Store) -> dict[str, CurrentJob]:
    return {one.name: one for one in store.edits.current_jobs()}


def as_json(command: CommandLine, *arguments: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(sexton(command, *arguments, "-o", "json"))
    return found


@pytest.fixture
def renamed(store: Store, command: CommandLine) -> Store:
    """A job of three revisions, with another schedule in the second and another name in the third."""
    apply(command, one_job("nightly", "H 2 * * *"))
    apply(command, one_job("nightly", "H 3 * * *", "env: {API_TOKEN: hunter2}"))
    apply(command, one_job("billing", "H 3 * * *", "renamed_from: nightly, env: {API_TOKEN: hunter3}"))
    return store


# --- history ----------------------------------------------------------------------------------------------------------


def test_history_shows_who_when_and_what_newest_first(renamed: Store, command: CommandLine) -> None:
    sexton(command, "pause", "billing", "--reason", "disk full")
    entries = as_json(command, "history", "billing")
    assert [(one["what"], one["job"], one["revision"]) for one in entries] == [
        ("paused", "billing", None),
        ("renamed", "billing", 3),
        ("revised", "nightly", 2),
        ("created", "nightly", 1),
    ]
    assert entries[0]["why"] == "disk full"
    assert entries[2]["in_force_until"] == entries[1]["in_force_since"]
    assert entries[1]["in_force_until"] is None
    changes = entries[2]["changes"]
    assert isinstance(changes, list)
    assert {"key": "schedule", "old": "H 2 * * *", "new": "H 3 * * *"} in changes
    table = sexton(command, "history", "billing").splitlines()
    assert table[0].split() == ["at", "job", "rev", "what", "who", "in", "force", "from", "until", "changed", "why"]
    assert len(table) == 5


def test_history_with_diff_shows_both_values_and_no_secret(renamed: Store, command: CommandLine) -> None:
    for words in (["history", "--diff"], ["history", "-o", "json"], ["history", "billing", "-o", "jsonl"]):
        assert "hunter" not in sexton(command, *words)
    shown = sexton(command, "history", "billing", "--diff")
    assert "    schedule: H 2 * * * → H 3 * * *\n" in shown
    assert "    name: nightly → billing\n" in shown
    assert " until now\n" in shown


def test_history_of_all_jobs_and_its_limit(renamed: Store, command: CommandLine) -> None:
    apply(command, one_job("other", "0 1 * * *"))
    assert [one["job"] for one in as_json(command, "history")] == ["other", "billing", "nightly", "nightly"]
    shown = sexton(command, "history", "--limit", "2").splitlines()
    assert shown[-1] == "... and older ones: --limit 4 shows more"
    assert len(shown) == 4


def test_history_of_nothing(store: Store, command: CommandLine) -> None:
    done = command.run("history")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No job was ever applied.\n")
    assert command.run("history", "nothing").returncode == 1


def test_what_ran_under_the_old_name_is_found_under_the_new_one(renamed: Store, command: CommandLine) -> None:
    apply(command, one_job("nightly", "0 0 * * *"))
    renamed.edits.trigger(renamed.edits.find_job("nightly").job_id, "test")
    apply(command, one_job("night", "0 0 * * *", "renamed_from: nightly"))
    assert len(renamed.reads.ticks_page("night").claims) == 1
    for words in (["history", "nightly"], ["ticks", "nightly"], ["revert", "nightly", "1", "--yes"]):
        done = command.run(*words)
        assert done.returncode == 1
        assert "no job is named 'nightly' any more; it was renamed to night, and has it all" in done.stderr


# --- revert -----------------------------------------------------------------------------------------------------------


def test_revert_adds_a_revision_with_the_definition_of_then(renamed: Store, command: CommandLine) -> None:
    before = jobs_of(renamed)["billing"]
    shown = sexton(command, "revert", "billing", "1", "--yes", "--reason", "too late")
    assert "The name stays billing; it was nightly then (--with-name takes that back too)." in shown
    assert "schedule: H 3 * * * → H 2 * * *" in shown
    after = jobs_of(renamed)["billing"]
    assert (after.job_id, after.revision) == (before.job_id, 4)
    assert after.definition.schedule_parts == ({"cron": "H 2 * * *"},)
    assert (after.hash_seed, after.definition.env) == ("nightly", {})
    newest = as_json(command, "history", "billing")[0]
    assert newest["why"] == "reverted to revision 1: too late"


def test_revert_takes_the_name_back_where_that_is_asked_for(renamed: Store, command: CommandLine) -> None:
    sexton(command, "revert", "billing", "1", "--yes", "--with-name")
    assert list(jobs_of(renamed)) == ["nightly"]


def test_revert_asks_and_no_changes_nothing(renamed: Store, command: CommandLine) -> None:
    done = command.run("revert", "billing", "1", answer=lambda: "n\n")
    assert done.returncode == 1
    assert done.stderr == "Take billing back to revision 1? [y/N] sexton: stopped; nothing was changed\n"
    assert command.run("revert", "billing", "1").returncode == 1
    assert jobs_of(renamed)["billing"].revision == 3


def test_revert_is_refused_where_the_job_moves_on_before_the_answer(renamed: Store, command: CommandLine) -> None:
    def answer() -> str:
        sexton(CommandLine(command.folder), "revert", "billing", "2", "--yes")
        return "y\n"

    done = command.run("revert", "billing", "1", answer=answer)
    assert done.returncode == 1
    assert "job 'billing' is at revision 4, not 3: " in done.stderr
    assert jobs_of(renamed)["billing"].revision == 4


def test_revert_to_what_it_is_changes_nothing(renamed: Store, command: CommandLine) -> None:
    shown = sexton(command, "revert", "billing", "3")
    assert shown.endswith("Nothing to change: billing is what it was in revision 3.\n")
    assert json.loads(sexton(command, "revert", "billing", "3", "--yes", "-o", "json")) == []


def test_revert_to_a_revision_that_hashed_another_seed_hashes_it_again(store: Store, command: CommandLine) -> None:
    apply(command, one_job("a", "H H * * *"))
    apply(command, one_job("a", "H H * * *", "hash_seed: other"))
    sexton(command, "revert", "a", "1", "--yes")
    job = jobs_of(store)["a"]
    assert (job.hash_seed, job.definition.hash_seed) == ("a", "a")


def test_revert_brings_a_retired_job_back_as_a_new_one(renamed: Store, command: CommandLine) -> None:
    old = jobs_of(renamed)["billing"]
    renamed.edits.edit([JobChange(ChangeKind.RETIRE, old.job_id)], "bob@desk")
    shown = sexton(command, "revert", "billing", "2", "--yes")
    assert "The job billing is retired: it comes back as a new job, whose ticks count from now on." in shown
    new = jobs_of(renamed)["billing"]
    assert (new.job_id != old.job_id, new.revision, new.hash_seed) == (True, 1, "nightly")
    assert new.definition.schedule_parts == ({"cron": "H 3 * * *"},)
    told = [(one["what"], one["job_id"]) for one in as_json(command, "history", "billing")]
    assert told[:2] == [("created", new.job_id), ("retired", old.job_id)]


@pytest.mark.parametrize("words", [["billing", "9"], ["nothing", "1"]])
def test_revert_to_what_never_was_is_refused(renamed: Store, command: CommandLine, words: list[str]) -> None:
    assert command.run("revert", *words, "--yes").returncode == 1
    assert jobs_of(renamed)["billing"].revision == 3


# --- export -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def every_key(store: Store, command: CommandLine) -> Store:
    """Jobs with every key there is, one of them renamed, paused and resumed by an operator."""
    apply(command, EVERY_KEY)
    apply(command, EVERY_KEY.replace("  hashed: {", "  hashed-anew: {renamed_from: hashed, "))
    sexton(command, "pause", "paused", "--reason", "test")
    sexton(command, "resume", "resumed")
    return store


def ticks_of(job: CurrentJob) -> tuple[str, str]:
    text = job.definition.schedule_text(job.hash_seed)
    schedule_from_spec(json.loads(text))
    return text, job.definition.firing_text(job.hash_seed)


@pytest.mark.parametrize("to_folder", [True, False])
def test_an_export_gives_an_empty_plan_here_and_the_same_ticks_elsewhere(
    every_key: Store, tmp_path: Path, command: CommandLine, to_folder: bool
) -> None:
    if to_folder:
        sexton(command, "export", "--output-dir", "out")
    else:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "jobs.yaml").write_text(sexton(command, "export"))
    sexton(command, "validate", "out")
    done = command.run("plan", "out", "--prune", "--check")
    assert done.returncode == 0, done.stdout

    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    make_ledger(elsewhere)
    sexton(command, "apply", "out", "--yes", "--database", elsewhere)
    there = open_store(StoreOptions(elsewhere))
    copies = jobs_of(there)
    there.close()
    assert copies.keys() == jobs_of(every_key).keys()
    for name, job in jobs_of(every_key).items():
        assert ticks_of(copies[name]) == ticks_of(job)
        assert copies[name].hash_seed == job.hash_seed


def test_a_pause_by_an_operator_is_told_and_not_written(every_key: Store, command: CommandLine) -> None:
    text = sexton(command, "export", "paused", "resumed")
    assert text.count("enabled: false") == 1
    assert "  # paused by an operator when this was written; `sexton resume` ends that\n  paused:\n" in text
    assert "  # resumed by an operator when this was written, though the file pauses it\n  resumed:\n" in text


def test_files_with_env_are_private_and_only_own_files_are_written_over(
    every_key: Store, tmp_path: Path, command: CommandLine
) -> None:
    for _ in range(2):  # the second time over the first
        sexton(command, "export", "--output-dir", "out")
    folder = tmp_path / "out"
    modes = {path.name: path.stat().st_mode & 0o077 for path in folder.iterdir()}
    assert len(modes) == 8
    private = sorted(name for name, mode in modes.items() if mode == 0)
    assert private == ["all-keys.yaml", "handed-over.yaml", "requested.yaml"]
    (folder / "listed.yaml").write_text("version: 1\njobs: {}\n")
    done = command.run("export", "--output-dir", "out")
    assert done.returncode == 1
    assert "listed.yaml exists and is not an export that Sexton wrote" in done.stderr
    assert (folder / "listed.yaml").read_text() == "version: 1\njobs: {}\n"


def test_a_folder_that_would_say_something_else_is_refused(
    every_key: Store, tmp_path: Path, command: CommandLine
) -> None:
    sexton(command, "export", "--output-dir", "out")
    every_key.edits.edit([JobChange(ChangeKind.RETIRE, jobs_of(every_key)["listed"].job_id)], "bob@desk")
    done = command.run("export", "--output-dir", "out")
    assert done.returncode == 1
    assert "out holds files that are not of this export (listed.yaml)" in done.stderr


def test_an_unknown_job_is_not_exported(every_key: Store, command: CommandLine) -> None:
    done: subprocess.CompletedProcess[str] = command.run("export", "calendr")
    assert (done.returncode, done.stdout) == (1, "")
    assert "calendar" in done.stderr


def test_a_cluster_without_jobs_is_exported_as_a_file_without_jobs(store: Store, command: CommandLine) -> None:
    assert sexton(command, "export").endswith("version: 1\njobs: {}\n")


def test_every_job_key_is_in_the_exported_example() -> None:
    """A key that comes later has to come into the example above."""
    from sexton.jobfiles.keys import JOB_KEYS
    from sexton.jobs import JobDefinition

    of_definitions = {key.name for key in JOB_KEYS if key.name in JobDefinition.__dataclass_fields__}
    assert {name for name in of_definitions if f"    {name}:" not in EVERY_KEY} == {"renamed_from"}
