"""Python job files: what they say, where its parts stand, and every way in which running one can end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sexton.errors import InvalidJobFile
from sexton.job_rules import ExcludeRules
from sexton.jobfiles.load import LoadedJobs, load_job_files
from sexton.jobfiles.python_files import PythonLimits
from sexton.jobfiles.python_source import declares_jobs
from sexton.targets import CommandTarget, PythonTarget

HEAD = "from sexton import Job, job\n"
ONE = "jobs = [Job('a', schedule='@daily', shell='x')]"
WHOLE = """\
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from sexton import Job, job

defaults = {"timezone": "Europe/Berlin", "missed": {"grace": timedelta(minutes=5)}}
shared = dict(queue="slow")

@job(
    schedule=[
        "0 2 * * *",
        {"every": timedelta(minutes=90), "anchor": datetime(2026, 1, 1, tzinfo=UTC)},
        {"at": [datetime(2026, 12, 24, 17, tzinfo=UTC)]},
        {"calendar": {"months": 1}, "at": time(2, 30), "start": date(2026, 1, 31)},
    ],
    kwargs={"amount": 2.5, "names": ("a", None, True)},
    max_runtime=timedelta(hours=1, milliseconds=5),
    exclude={"dates": [date(2026, 12, 25)], "weekdays": ["SAT"]},
    missed={"max": 7},
    **shared,
)
def night_shift(amount, names):
    return amount * 2

assert night_shift(2, ()) == 4

@job(name="by-name", schedule="@daily", max_runtime="15m")
async def other(): ...

jobs = [
    night_shift,
    other,
    Job("report", schedule="@weekly", command=["report", "--all"], cwd=Path("/srv")),
]
"""


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def generous(**limits: float) -> PythonLimits:
    """Time for a machine that starves a process."""
    return PythonLimits(**{"seconds": 120.0, **limits})  # type: ignore[arg-type]  # whole numbers where they are asked


def read(folder: Path, content: str, **limits: float) -> LoadedJobs:
    return load_job_files([write(folder / "given.py", content)], generous(**limits))


def problems_of(folder: Path, content: str, **limits: float) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        read(folder, content, **limits)
    return [str(one).removeprefix(f"{folder}/given.py:") for one in refused.value.problems]


class TestWhatAFileSays:
    def test_every_natural_type_and_every_kind_of_job(self, tmp_path: Path) -> None:
        loaded = read(tmp_path, WHOLE)
        night, other, report = (one.definition for one in loaded.jobs)
        assert night.target == PythonTarget("given:night_shift", (), {"amount": 2.5, "names": ["a", None, True]})
        assert night.schedule_parts == (
            {"cron": "0 2 * * *"},
            {"every_ms": 5_400_000, "anchor": "2026-01-01T00:00:00Z"},
            {"at": ["2026-12-24T17:00:00Z"]},
            {"calendar": {"months": 1}, "at": "02:30:00", "start": "2026-01-31", "month_end": "clamp"},
        )
        assert (night.name, night.queue, night.timezone) == ("night_shift", "slow", "Europe/Berlin")
        assert night.max_runtime == timedelta(hours=1, milliseconds=5)
        assert night.exclude == ExcludeRules((date(2026, 12, 25),), (6,), ())
        assert (night.missed.max, night.missed.grace) == (7, timedelta(minutes=5))
        assert (other.name, other.target, other.max_runtime) == (
            "by-name",
            PythonTarget("given:other", (), {}),
            timedelta(minutes=15),
        )
        assert (report.target, report.cwd) == (CommandTarget(("report", "--all")), "/srv")
        assert [(one.line, one.column) for one in loaded.jobs] == [(9, 2), (27, 2), (33, 9)]
        assert loaded.import_roots == (str(tmp_path),)

    def test_the_module_is_the_one_that_python_would_import(self, tmp_path: Path) -> None:
        write(tmp_path / "root" / "billing" / "__init__.py", "")
        write(tmp_path / "root" / "billing" / "tools.py", "RATE = 3\n")
        content = (
            "from billing.tools import RATE\nfrom .. import tools\n@job(schedule='@daily')\ndef f(): ...\njobs = [f]"
        )
        path = write(tmp_path / "root" / "billing" / "jobs" / "__init__.py", HEAD + content)
        loaded = load_job_files([path], generous())
        assert loaded.jobs[0].definition.target == PythonTarget("billing.jobs:f", (), {})
        assert loaded.import_roots == (str(tmp_path / "root"),)

    def test_a_file_without_functions_asks_nothing_of_workers(self, tmp_path: Path) -> None:
        assert read(tmp_path, HEAD + ONE).import_roots == ()

    def test_no_jobs_is_said_by_an_empty_list(self, tmp_path: Path) -> None:
        assert read(tmp_path, HEAD + "jobs = []").jobs == ()

    def test_defaults_of_its_folder_apply(self, tmp_path: Path) -> None:
        write(tmp_path / "defaults.toml", "version = 1\n[defaults]\nqueue = 'team'\ntimezone = 'UTC'\n")
        loaded = read(tmp_path, HEAD + "defaults = {'timezone': 'Asia/Tokyo'}\n" + ONE)
        assert (loaded.jobs[0].definition.queue, loaded.jobs[0].definition.timezone) == ("team", "Asia/Tokyo")

    def test_what_it_prints_is_passed_over(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        content = "print('{}')\nimport sys, os\nos.write(1, b'x' * 1000)\nprint('y', file=sys.stderr)\n"
        assert read(tmp_path, content + HEAD + ONE).jobs[0].name == "a"
        assert capfd.readouterr() == ("", "")

    def test_nothing_is_left_beside_it(self, tmp_path: Path) -> None:
        read(tmp_path, WHOLE)
        assert [one.name for one in tmp_path.iterdir()] == ["given.py"]

    def test_settings_of_sexton_are_not_shown_to_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SEXTON_DATABASE", "postgresql://user:password@host/")
        content = (
            "import os\njobs = [Job('a' if 'SEXTON_DATABASE' not in os.environ else 'b', schedule='@daily', shell='x')]"
        )
        assert read(tmp_path, HEAD + content).jobs[0].name == "a"

    @pytest.mark.parametrize(
        ("source", "is_one"),
        [
            ("from sexton import job", True),
            ("from sexton import (\n    fencing,\n    Job as Task,\n)", True),
            ("from sexton import *", True),
            ("import sexton as s\njobs = [s.Job('a')]", True),
            ("if True:\n    from sexton import job", True),
            ("from sexton import job\ndef broken(:", True),
            ("import sexton\nprint(sexton.__version__)", False),
            ("from sexton.fencing import Guard\njob = 1", False),
            ("# from sexton import job", False),
            ('"""\nfrom sexton import job\n"""', False),
            ("from sextons import job", False),
            ("from .sexton import job", False),
            ("from elsewhere import job  # sexton", False),
            ("sexton = (" + "(" * 5_000, False),
            ("sexton = " + "-" * 200_000 + "1", False),
            ("\x00sexton", False),
        ],
    )
    def test_a_file_is_one_of_jobs_if_it_imports_them(self, source: str, is_one: bool) -> None:
        assert declares_jobs(source.encode()) is is_one

    def test_other_modules_in_a_folder_are_not_run(self, tmp_path: Path) -> None:
        read(tmp_path, HEAD + "jobs = []")
        write(tmp_path / "other.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        (tmp_path / "latin.py").write_bytes("# coding: latin-1\n# caf\xe9\n".encode("latin-1"))
        assert load_job_files([tmp_path], generous()).files == (str(tmp_path / "given.py"),)
        assert not (tmp_path / "ran").exists()
        with pytest.raises(InvalidJobFile, match="imports neither job nor Job from sexton"):
            load_job_files([tmp_path / "other.py"], generous())


FAULTY = """\
from datetime import datetime, timedelta
from sexton import Job, job
shared = {"queue": "a b"}

@job(
    schedule="61 * * * *",
    timezon="Europe/Berlin",
    missed={
        "grace": 5,
        "policy": {"a"},
    },
    max_runtime=timedelta(seconds=-3),
    start=datetime(2026, 1, 1),
)
def a(x): ...

@job(schedule="@daily")
def forgotten(): ...

def outer():
    @job(schedule="@daily")
    def inner(): ...
    return inner

jobs = [a, print, Job("é", schedule="@daily", command=["x", 5], env={"A": None}), outer(),
    Job("ok", schedule="@daily", **shared, shell=b"x"), a, dict(ä=1)]
Job("lost", schedule="@daily", shell="x")
"""


class TestFaults:
    def test_all_come_at_once_each_at_its_key(self, tmp_path: Path) -> None:
        found = [one.partition(" ") for one in problems_of(tmp_path, FAULTY)]
        assert [(place, " ".join(rest.split()[:5])) for place, _, rest in found] == [
            ("5:2:", "the function a cannot be"),
            ("6:14:", "schedule: minute field '61': '61'"),
            ("7:5:", "'timezon' is not a key"),
            ("9:18:", "missed.grace: '5' has no unit;"),
            ("10:19:", "missed.policy: \"{'a'}\" is not skip,"),
            ("12:17:", "max_runtime: '-3s' is negative; write"),
            ("13:11:", "start: '2026-01-01T00:00:00' has no offset;"),
            ("17:2:", "the job 'forgotten' stands in"),
            ("21:6:", "the function outer.<locals>.inner is made"),
            ("25:12:", "jobs[1] is a function without"),
            ("25:23:", "the job's name: 'é' is"),
            ("25:61:", "command[1]: 5 is a Python"),
            ("25:75:", "env.A: null is a Python"),
            ("26:5:", "queue: 'a b' is not"),
            ("26:50:", "shell: b'x' is a Python"),
            ("26:57:", "jobs[5] is the job 'a'"),
            ("26:60:", "jobs[6] is a dict; list"),
            ("27:1:", "the job 'lost' stands in"),
        ]

    def test_a_function_that_is_called_and_a_value_without_end_are_told_at_their_jobs(self, tmp_path: Path) -> None:
        text = (
            f"{HEAD}@job(schedule='@daily')\ndef nightly(): ...\n"
            "endless = []\nendless.append(endless)\njobs = [nightly(), Job('a', schedule='@daily', command=endless)]\n"
        )
        called, endless = problems_of(tmp_path, text)
        assert called.startswith("6:9: jobs[0] is what nightly returns; write nightly without brackets")
        assert endless.startswith(
            "6:20: the job 'a': a value of a job is nested deeper than 32 levels, or endless; write"
        )

    @pytest.mark.parametrize(
        "answer", ['{"problems":[],"jobs":[]}', "[1]", '{"problems":[[null,1,"x"]]}', '{"problems":3}', "{", "NaN"]
    )
    def test_an_answer_that_the_file_forged_is_a_fault_of_the_file(self, tmp_path: Path, answer: str) -> None:
        forged = (
            f"import json, os, sys\nto = json.loads(sys.orig_argv[-1])['answer']\nos.write(to, {answer.encode()!r})"
        )
        write(tmp_path / "jobs.py", f"{HEAD}{forged}\nos._exit(0)\n")
        with pytest.raises(InvalidJobFile, match="1:1: gave an answer that is none"):
            load_job_files([tmp_path / "jobs.py"], generous())

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("jobs = [\n", "2:8: this is not Python: '[' was never closed"),
            ("import nowhere_at.all\njobs = []", "2:1: ModuleNotFoundError: No module named 'nowhere_at' when"),
            ("def f():\n    return {}['x']\nf()", "3:12: raised KeyError: 'x' when the file was read; mend this line"),
            ("raise SystemExit('x')", "2:7: ends its process (SystemExit)"),
            ("raise KeyboardInterrupt", "2:1: raised KeyboardInterrupt when the file was"),
            ("import os\nprint('bye')\nos._exit(3)", "4:1: ended its process with exit code 3 when it was read and"),
            ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "1:1: was ended by SIGKILL"),
            ("import os\nos.abort()", "3:1: was ended by SIGABRT"),
            ("import os\nos.fork()", "3:1: copies its own process (fork)"),
            ("import os\nos.closerange(3, 1000)\njobs = []", "1:1: ended its process with exit code"),
            ("x = bytearray(10**10)", "2:5: needs more than 2048 MB of memory"),
            ("while True: print('x' * 1000)", "2:1: printed more than 1024 KiB when it was read"),
            (
                "@job\ndef f(): ...\njobs = [f]",
                "2:2: raised TypeError: job takes its keys by name and in brackets; write @job(",
            ),
            ("x = 1", "1:1: has no list 'jobs'; write e.g. jobs = [nightly]"),
            ("jobs = {'a': 1}", "2:8: jobs is a dict; write a list"),
            ("jobs = (Job(n, schedule='@daily', shell='x') for n in 'ab')", "2:8: jobs is a generator; write a list"),
            ("jobs = [Job('a', schedule='@daily', shell='x')] * 2", "2:8: jobs[1] is the job 'a' a second time"),
            ("jobs = [Job('a', shell='x')]", "2:9: the job a has no schedule"),
            ("jobs = [Job('a', schedule='@daily')]", "2:9: the job a has no target"),
            (
                "jobs = [Job(5, schedule='@daily', shell='x')]",
                "2:13: the job's name: 5 is a Python int, not a text; write a str",
            ),
            ("jobs = [Job(name=None, schedule='@daily', shell='x')]", "2:18: the job's name: null is a Python None"),
            (
                "@job(schedule='@daily', shell='x')\ndef f(): ...\njobs = [f]",
                "2:25: 'shell' is a target beside the function",
            ),
            ("@job(schedule='@daily')\ndef f(): yield\njobs = [f]", "2:2: the function f is a generator"),
            (
                "@job(schedule='@daily', args=[1])\ndef f(): ...\njobs = [f]",
                "2:2: the function f cannot be called: too many",
            ),
            (
                "@job(schedule='@daily')\ndef f(): ...\ng = f\ndef f(): ...\njobs = [g]",
                "2:2: the function f is no longer what given.f is",
            ),
            (
                "@job(schedule='@daily')\nclass C: ...\nx = job(name='x', schedule='@daily')(lambda: 0)\njobs = [C, x]",
                "4:5: the function <lambda> is made inside",
            ),
            ("defaults = {'shell': 'x'}\njobs = []", "2:13: 'shell' is each job's own"),
            (
                "a = []\na += [a]\njobs = [Job('a', schedule='@daily', command=a)]",
                "nested deeper than 32 levels, or endless; write the value out",
            ),
            ("jobs = [Job('a', schedule={'every': 5}, shell='x')]", "2:37: schedule.every: '5' has no unit"),
            ("jobs = [Job('a', schedule='@daily', shell='x', env={1: 'x'})]", "2:53: env: the name 1 is a Python int"),
            ("jobs = [Job('a', schedule='@daily', shell='x', priority=1e999)]", "2:57: priority: 'inf' is not"),
            (
                "from datetime import *\njobs = [Job('a', shell='x', schedule='@daily', jitter=timedelta(0, 0, 1))]",
                "3:55: jitter: 'datetime.timedelta(microseconds=1)' is not a",
            ),
        ],
    )
    def test_each_is_one_sentence_at_its_line(self, tmp_path: Path, content: str, says: str) -> None:
        found = problems_of(tmp_path, HEAD + content)
        assert len(found) == 1, found
        assert found[0].startswith(says) or says in found[0]
        assert found[0].isprintable()

    def test_a_loop_without_end_is_ended_and_its_line_named(self, tmp_path: Path) -> None:
        content = f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nwhile True:\n    pass\n"
        for seconds in (1, 4, 16, 64):  # until the interpreter has had the time to begin
            (found,) = problems_of(tmp_path, HEAD + content, seconds=seconds)
            if not found.startswith("1:1: "):
                break
        assert found.startswith(("4:1: ", "5:1: "))
        assert f"was not read within {seconds} s; move what takes long" in found
        assert is_gone(int((tmp_path / "pid").read_text()))

    def test_what_it_started_ends_with_it(self, tmp_path: Path) -> None:
        content = (
            "import os, subprocess, sys, threading, time\n"
            "p = subprocess.Popen(['sleep', '1000'])\n"
            f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid))\n"
            "os.system('sleep 1000 &')\n"
            "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
            "jobs = [Job('a', schedule='@daily', shell='x')]\n"
        )
        assert read(tmp_path, HEAD + content, seconds=120).jobs[0].name == "a"
        assert is_gone(int((tmp_path / "pid").read_text()))

    def test_an_answer_without_end_is_refused(self, tmp_path: Path) -> None:
        content = "jobs = [Job(f'j{n}', schedule='@daily', shell='x' * 1000) for n in range(10_000)]"
        (found,) = problems_of(tmp_path, HEAD + content, answer_bytes=1_000_000)
        assert "MB of jobs; split it" in found

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("my-jobs.py", "cannot be imported, for 'my-jobs' is no name of a module; rename it, e.g. to my_jobs"),
            ("class.py", "cannot be imported, for 'class' is no name of a module; rename it"),
            ("json.py", "would be imported as json, a module of Python's own; rename it"),
            ("sexton.py", "would be imported as sexton, a module of Sexton's own; rename it"),
        ],
    )
    def test_a_file_that_no_worker_could_import(self, tmp_path: Path, name: str, says: str) -> None:
        path = write(tmp_path / name, HEAD + "jobs = []")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([path], generous())
        assert [str(one) for one in refused.value.problems] == [f"{path}:1:1: {says}"]

    def test_two_modules_of_one_name_in_two_folders(self, tmp_path: Path) -> None:
        """A worker would import the first for both."""
        for name in ("a", "b"):
            write(tmp_path / name / "same.py", f"{HEAD}@job(schedule='@daily')\ndef {name}(): ...\njobs = [{name}]")
        with pytest.raises(InvalidJobFile) as refused:
            load_job_files([tmp_path], generous())
        (problem,) = refused.value.problems
        assert problem.file == f"{tmp_path}/b/same.py"
        assert f"workers would import 'same' from {tmp_path}/a/same.py instead" in problem.message


def is_gone(pid: int) -> bool:
    """Whether a killed process is gone, within a minute."""
    return waited(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def waited(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            return False
        os.sched_yield()
    return True


def test_an_aware_instant_of_any_zone_is_read(tmp_path: Path) -> None:
    content = (
        "from zoneinfo import ZoneInfo\nfrom datetime import datetime\nzone = ZoneInfo('Europe/Berlin')\n"
        "jobs = [Job('a', schedule='@daily', shell='x', start=datetime(2026, 7, 1, 2, tzinfo=zone))]"
    )
    assert read(tmp_path, HEAD + content).jobs[0].definition.start == datetime(2026, 7, 1, tzinfo=UTC)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL  # the time limit is the other process's
