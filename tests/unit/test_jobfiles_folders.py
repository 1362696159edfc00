"""Which files a path means, which defaults apply to them, and what is refused of files that are no plain text."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sexton.errors import InvalidJobFile, NotFound
from sexton.jobfiles import sources
from sexton.jobfiles.load import LoadedJobs, load_job_files
from sexton.jobfiles.python_files import PythonLimits
from sexton.jobs import JobDefinition

JOB = "version: 1\njobs:\n  {}: {{schedule: '0 5 * * *', shell: x}}\n"
DEFAULTS = "version: 1\ndefaults: {}\n"


AS_ANOTHER = """
import os, sys
from pathlib import Path
from sexton.errors import SextonError
from sexton.jobfiles.load import load_job_files
if os.geteuid() == 0:
    os.setuid(4321)
for path in sys.argv[1:]:
    try:
        load_job_files([Path(path)])
    except SextonError as error:
        print(error)
"""


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def job(path: Path, name: str) -> Path:
    return write(path, JOB.format(name))


def loaded(*paths: Path) -> dict[str, JobDefinition]:
    return {one.name: one.definition for one in load_job_files(paths).jobs}


def problems_of(*paths: Path) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_files(paths, PythonLimits(seconds=120))
    return [str(one) for one in refused.value.problems]


class TestDefaultsOfFolders:
    @pytest.fixture
    def jobs(self, tmp_path: Path) -> Path:
        top = tmp_path / "jobs"
        write(
            top / "defaults.yaml", DEFAULTS.format("{timezone: Europe/Berlin, queue: all, missed: {grace: 5m, max: 7}}")
        )
        write(top / "team" / "defaults.toml", 'version = 1\n[defaults]\nqueue = "team"\nmissed.max = 8\nenv.A = "1"\n')
        write(
            top / "team" / "deep" / "own.yaml",
            "version: 1\ndefaults: {env: {B: '2'}}\njobs:\n"
            "  own: {schedule: '0 5 * * *', shell: x, queue: own, missed: {max: 9}}\n",
        )
        job(top / "top.yml", "top")
        return top

    def test_apply_to_the_folder_and_all_below_and_the_nearer_wins(self, jobs: Path) -> None:
        found = loaded(jobs)
        assert set(found) == {"top", "own"}
        top, own = found["top"], found["own"]
        assert (top.timezone, top.queue, top.missed.max, top.env) == ("Europe/Berlin", "all", 7, {})
        assert (own.timezone, own.queue, own.missed.max, own.env) == ("Europe/Berlin", "own", 9, {"A": "1", "B": "2"})
        assert own.missed.grace == top.missed.grace

    def test_are_the_same_whichever_path_is_named(self, jobs: Path) -> None:
        """Else naming one file would change its jobs."""
        write(jobs.parent / ".git" / "HEAD", "")
        whole = loaded(jobs)
        assert loaded(jobs / "team") == {"own": whole["own"]}
        assert loaded(jobs / "team" / "deep") == {"own": whole["own"]}
        assert loaded(jobs / "team" / "deep" / "own.yaml") == {"own": whole["own"]}
        assert loaded(jobs / "top.yml") == {"top": whole["top"]}

    def test_reach_over_a_folder_without_any_within_a_repository_alone(self, tmp_path: Path) -> None:
        write(tmp_path / "top" / "defaults.yaml", DEFAULTS.format("{queue: far}"))
        path = job(tmp_path / "top" / "a" / "b" / "x.yaml", "x")
        assert loaded(tmp_path / "top")["x"].queue == "far"
        assert loaded(path)["x"].queue == "default"
        (tmp_path / ".git").mkdir()
        assert loaded(path)["x"].queue == "far"

    def test_of_the_nearer_of_two_folders_above_the_path_win(self, tmp_path: Path) -> None:
        write(tmp_path / "defaults.yaml", DEFAULTS.format("{queue: outer, priority: 1}"))
        write(tmp_path / "a" / "defaults.yaml", DEFAULTS.format("{queue: inner}"))
        definition = loaded(job(tmp_path / "a" / "b" / "x.yaml", "x"))["x"]
        assert (definition.queue, definition.priority) == ("inner", 1)

    def test_stop_at_the_repository(self, tmp_path: Path) -> None:
        write(tmp_path / "defaults.yaml", DEFAULTS.format("{queue: outside}"))
        path = job(tmp_path / "repository" / "x.yaml", "x")
        assert loaded(path)["x"].queue == "outside"
        (tmp_path / "repository" / ".git").mkdir()
        assert loaded(path)["x"].queue == "default"
        assert loaded(job(tmp_path / "repository" / "jobs" / "z.yaml", "z"))["z"].queue == "default"

    def test_above_the_path_leave_alone_what_is_not_theirs(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        write(tmp_path / "defaults.yaml", "colour: blue\n")
        assert loaded(job(tmp_path / "jobs" / "x.yaml", "x"))["x"].queue == "default"
        os.remove(tmp_path / "defaults.yaml")
        os.mkfifo(tmp_path / "defaults.yaml")
        assert loaded(tmp_path / "jobs")["x"].queue == "default"

    def test_of_a_stranger_above_the_path_change_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        outside = write(tmp_path / "defaults.yaml", DEFAULTS.format("{queue: planted}"))
        path = job(tmp_path / "mine" / "x.yaml", "x")
        assert loaded(path)["x"].queue == "planted"
        original = Path.stat

        def stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
            found = original(self, follow_symlinks=follow_symlinks)
            return os.stat_result((*found[:4], 4321, *found[5:])) if self.name == outside.name else found

        monkeypatch.setattr(Path, "stat", stat)
        assert loaded(path)["x"].queue == "default"

    def test_with_jobs_or_without_defaults_are_refused(self, tmp_path: Path) -> None:
        job(tmp_path / "a" / "x.yaml", "x")
        first = write(tmp_path / "a" / "defaults.yaml", "version: 1\njobs: {}\n")
        second = write(tmp_path / "b" / "defaults.yml", "")
        third = write(tmp_path / "c" / "defaults.yml", "version: 1\ndefaults: {queue: 'a b', shell: x}\n")
        assert [one.partition("; ")[0] for one in problems_of(tmp_path)] == [
            f"{first}:1:1: has no 'defaults'",
            f"{first}:2:1: a file of defaults holds no jobs",
            f"{second}:1:1: is empty",
            f"{third}:2:19: defaults.queue: 'a b' is not a name: ASCII letters, digits, '.', '_' and '-', at most 100, "
            "the first a letter or digit",
            f"{third}:2:26: 'shell' is each job's own and cannot stand in defaults",
        ]

    def test_in_two_files_of_one_folder_are_refused(self, tmp_path: Path) -> None:
        path = job(tmp_path / "in" / "x.yaml", "x")
        write(tmp_path / "in" / "defaults.yaml", DEFAULTS.format("{}"))
        write(tmp_path / "in" / "defaults.yml", DEFAULTS.format("{}"))
        expected = (
            f"{tmp_path}/in/defaults.yml:1:1: is a second file of defaults beside defaults.yaml; keep one of them"
        )
        assert problems_of(path) == problems_of(tmp_path) == problems_of(tmp_path / "in") == [expected]

    def test_that_are_faulty_are_told_once_and_not_for_each_job(self, tmp_path: Path) -> None:
        write(tmp_path / "defaults.yaml", DEFAULTS.format("{queue: 'a b', timezone: Mars}"))
        for number in range(3):
            job(tmp_path / f"{number}.yaml", f"j{number}")
        assert len(problems_of(tmp_path)) == 2

    def test_are_checked_when_they_are_named_themselves(self, tmp_path: Path) -> None:
        path = write(tmp_path / "defaults.yaml", DEFAULTS.format("{queue: q}"))
        assert load_job_files([path]) == LoadedJobs((), ())
        assert problems_of(write(path, DEFAULTS.format("{queue: 'a b'}")))[0].startswith(f"{path}:2:19: ")

    def test_alone_are_no_folder_of_jobs(self, tmp_path: Path) -> None:
        write(tmp_path / "defaults.yaml", DEFAULTS.format("{}"))
        with pytest.raises(NotFound, match="holds no job files"):
            load_job_files([tmp_path])


class TestHostileFiles:
    def test_a_folder_may_be_called_as_a_file_is(self, tmp_path: Path) -> None:
        job(tmp_path / "x.yaml" / "z.yaml", "z")
        assert set(loaded(tmp_path)) == set(loaded(tmp_path / "x.yaml")) == {"z"}

    def test_links_that_lead_to_themselves(self, tmp_path: Path) -> None:
        loop = tmp_path / "loop.yaml"
        loop.symlink_to(loop)
        (tmp_path / "ring").symlink_to(tmp_path / "gnir")
        (tmp_path / "gnir").symlink_to(tmp_path / "ring")
        assert problems_of(tmp_path) == [
            f"{loop}:1:1: cannot be read (Too many levels of symbolic links); check the link, or who may read it"
        ]
        with pytest.raises(NotFound, match="is a link that leads nowhere; mend the link"):
            load_job_files([loop])

    def test_pipes_sockets_and_devices_are_not_waited_for(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe.toml"
        os.mkfifo(pipe)
        assert "is not a regular file" in problems_of(tmp_path)[0]
        assert "is not a regular file" in problems_of(pipe)[0]
        (tmp_path / "null.yaml").symlink_to("/dev/zero")
        assert "is not a regular file" in problems_of(tmp_path / "null.yaml")[0]

    def test_files_and_folders_that_may_not_be_read_are_named(self) -> None:
        """As another user, for root reads everything; in a folder of their own, for pytest's are its user's alone."""
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            top.chmod(0o755)
            job(top / "a.yaml", "a").chmod(0o000)
            write(top / "b.py", "x = 1\n").chmod(0o000)
            job(top / "c" / "c.yaml", "c")
            (top / "c").chmod(0o000)
            job(top / "d" / "d.yaml", "d")
            (top / "d").chmod(0o444)  # its names may be read, and nothing more
            done = subprocess.run(
                [sys.executable, "-c", AS_ANOTHER, str(top), str(top / "c" / "c.yaml")],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            for name in ("c", "d"):
                (top / name).chmod(0o755)
        assert [one.partition("; ")[0] for one in done.stdout.splitlines()] == [
            f"{top}/a.yaml:1:1: cannot be read (Permission denied)",
            f"{top}/b.py:1:1: cannot be read (Permission denied)",
            f"{top}/c:1:1: cannot be read (Permission denied)",
            f"{top}/d:1:1: cannot be entered (Permission denied)",
            f"{top}/c/c.yaml cannot be read (Permission denied)",
        ], done.stderr

    def test_a_file_that_is_written_to_while_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = job(tmp_path / "a.yaml", "a")
        original = os.fdopen

        def writes_first(descriptor: int, *args: str, **keys: bool) -> object:
            path.write_text(JOB.format("a-longer-name"))
            return original(descriptor, *args, **keys)  # type: ignore[call-overload]  # as it was called

        monkeypatch.setattr(os, "fdopen", writes_first)
        assert problems_of(path) == [f"{path}:1:1: was written to while it was read; try again when it is whole"]

    def test_names_that_would_act_on_a_terminal(self, tmp_path: Path) -> None:
        write(tmp_path / "a\x1b[31m\nb.yaml", "")
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml"))).write_text("")
        found = problems_of(tmp_path)
        assert [one.partition(": ")[0] for one in found] == [
            f"{tmp_path}/\\xff.yaml:1:1",
            f"{tmp_path}/a\\x1b[31m\\nb.yaml:1:1",
        ]
        "\n".join(found).encode("utf-8")

    def test_more_folders_in_folders_than_anyone_has(self, tmp_path: Path) -> None:
        folder = tmp_path
        for _ in range(sources.MAX_FOLDER_DEPTH + 1):
            folder = folder / "d"
        job(folder / "a.yaml", "a")
        assert "is nested deeper than 32 folders" in problems_of(tmp_path)[0]

    def test_a_virtual_environment_is_passed_over(self, tmp_path: Path) -> None:
        job(tmp_path / "a.yaml", "a")
        write(tmp_path / "venv" / "pyvenv.cfg", "")
        write(tmp_path / "venv" / "lib" / "b.yaml", "something: else\n")
        assert set(loaded(tmp_path)) == {"a"}

    def test_every_kind_at_once(self, tmp_path: Path) -> None:
        """All faults of all files come together, whatever their format."""
        write(tmp_path / "1.yaml", "version: 1\njobs:\n  a: {schedule: '61 * * * *', shell: x}\n")
        write(tmp_path / "2.toml", "version = 1\n[jobs.b]\nschedule = 'x'\nshell = 'x'\n")
        write(tmp_path / "three.py", "from sexton import Job\njobs = [Job('c', schedule='x', shell='x')]\n")
        (tmp_path / "4.yaml").write_bytes("version: 1\n".encode("utf-16"))
        (tmp_path / "5.toml").write_bytes(b"\xef\xbb\xbfversion = 1\n")
        (tmp_path / "6.yaml").write_bytes(b"version: 1\n# caf\xe9\n")
        assert [one.split(": ")[0] for one in problems_of(tmp_path)] == [
            f"{tmp_path}/1.yaml:3:17",
            f"{tmp_path}/2.toml:3:12",
            f"{tmp_path}/4.yaml:1:1",
            f"{tmp_path}/5.toml:1:1",
            f"{tmp_path}/6.yaml:2:6",
            f"{tmp_path}/three.py:2:27",
        ]
