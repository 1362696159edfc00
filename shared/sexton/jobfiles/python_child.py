"""The process that runs one Python job file: ``python -m sexton.jobfiles.python_child`` with a JSON text of arguments.

It imports the file as the module that a worker will import, reads the list ``jobs``, and writes one JSON answer to the
pipe it was given: jobs with the place of every value, or what is wrong. It trusts nothing about the file: the answer is
written by the process that was started and by no copy of it, what the file prints goes nowhere near it, and
``python_files``, the other side, ends the whole session when the time is over.

    {"file", "module", "root", "answer", "stacks", "memory_bytes"}     arguments; the fourth and fifth are descriptors
    {"problems": [[line, column, sentence]], "jobs": [...], "defaults": value or null}     the answer

Loads the standard library and ``sexton.job_declarations`` alone, so that a file costs little.
"""

from __future__ import annotations

import ast
import faulthandler
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import traceback
from types import ModuleType, TracebackType
from typing import Any

from sexton.job_declarations import DECLARATION, Job
from sexton.jobfiles.python_places import Place, Places, encoded

_LONGEST_SENTENCE = 300
_NOTHING: Any = object()
_TARGETS = frozenset({"command", "shell", "python", "http", "celery"})
_FORKS = frozenset({"os.fork", "os.forkpty"})


def main(arguments: dict[str, Any]) -> None:
    """Read the file and answer. Ends the process: nothing that the file left running is waited for."""
    _limit(arguments["memory_bytes"], arguments["answer"], arguments["stacks"])
    me = os.getpid()
    made: list[Job] = []
    _note_made(made)
    sys.path.insert(0, arguments["root"])
    sys.dont_write_bytecode = True
    file = _File(arguments["file"])
    sys.addaudithook(_refuse_forks)
    answer: dict[str, Any]
    try:
        module = importlib.import_module(arguments["module"])
        answer = _Answer(file, module, made).whole()
    except BaseException as error:  # whatever the file raises, SystemExit and KeyboardInterrupt too
        answer = {"problems": [_raised(error, file, arguments)], "jobs": [], "defaults": None}
    if os.getpid() == me:
        _write(arguments["answer"], json.dumps(answer).encode())
    os._exit(0)


class _File:
    """The file being read: its path and the places in its source."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as source:
            self.places = Places(source.read())

    def site(self, made: Job) -> Place | None:
        """Where in this file ``made`` was made; None where another file made it."""
        for code, instruction in made.made_at:
            if code.co_filename == self.path:
                return self.places.of_instruction(code, instruction)
            if code.co_filename.startswith("<frozen importlib"):
                return None
        return None


class _Answer:
    """What is to be said of the module, once it is imported."""

    def __init__(self, file: _File, module: ModuleType, made: list[Job]) -> None:
        self._file = file
        self._module = module
        self._made = made
        self._problems: list[tuple[int, int, str]] = []
        self._called: set[int] = set()  # jobs whose fault is that their functions are called

    def whole(self) -> dict[str, Any]:
        """The answer."""
        found = getattr(self._module, "__file__", None)
        if found is None or not os.path.samefile(found, self._file.path):
            self._add(Place(1, 1), f"the name {self._module.__name__} leads to {found}; give this file another name")
            return self._said([])
        listed = self._listed()
        jobs = []
        for job, place in listed:
            try:
                jobs.append(self._job(job, place))
            except ValueError as error:  # of ``encoded``: a value without end
                self._add(place, f"{_shown_name(job)}: {error}; write the value out")
        known = {id(job) for job, _ in listed} | self._called
        for job in self._made:
            site = self._file.site(job)
            if site is not None and id(job) not in known:
                self._add(site, self._unlisted(job))
        return self._said(jobs)

    def _said(self, jobs: list[dict[str, Any]]) -> dict[str, Any]:
        defaults = getattr(self._module, "defaults", None)
        node = self._file.places.assigned("defaults")
        place = self._file.places.of(node) if node is not None else Place(1, 1)
        is_given = isinstance(defaults, dict)
        return {
            "problems": self._problems,
            "jobs": jobs,
            "defaults": encoded(defaults, node, place, self._file.places) if is_given else None,
        }

    def _listed(self) -> list[tuple[Job, Place]]:
        """The jobs of the list ``jobs``, each with the place that names it."""
        jobs = getattr(self._module, "jobs", _NOTHING)
        node = self._file.places.assigned("jobs")
        place = self._file.places.of(node) if node is not None else self._file.places.of_import()
        if jobs is _NOTHING:
            self._add(place, "has no list 'jobs'; write e.g. jobs = [nightly] at its end ('jobs = []' for none)")
            return []
        if not isinstance(jobs, (list, tuple)):
            self._add(place, f"jobs is {_kind(jobs)}; write a list, such as jobs = [nightly]")
            return []
        elements = self._file.places.elements(node, len(jobs))
        listed: dict[int, tuple[Job, Place]] = {}
        for number, value in enumerate(jobs):
            at = self._file.places.of(elements[number]) if elements is not None else place
            job = value if isinstance(value, Job) else getattr(value, DECLARATION, None)
            called = None if isinstance(job, Job) else self._called_function(elements, number)
            if called is not None:
                name = called.function.__name__ if called.function is not None else ""
                self._called.add(id(called))
                self._add(at, f"jobs[{number}] is what {name} returns; write {name} without brackets")
            elif not isinstance(job, Job):
                self._add(at, f"jobs[{number}] is {_kind(value)}; list functions with @job(...) and Job(...) values")
            elif id(job) in listed:
                self._add(at, f"jobs[{number}] is {_shown_name(job)} a second time; remove it")
            else:
                listed[id(job)] = (job, self._file.site(job) or at)
        return list(listed.values())

    def _called_function(self, elements: list[ast.expr] | None, number: int) -> Job | None:
        """The job of the function that is called where it should only be named: ``jobs = [nightly()]``."""
        node = elements[number] if elements is not None else None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        job = getattr(getattr(self._module, node.func.id, None), DECLARATION, None)
        return job if isinstance(job, Job) else None

    def _job(self, job: Job, place: Place) -> dict[str, Any]:
        places = self._file.places
        call = places.call_at(place)
        given = {keyword.arg: keyword for keyword in call.keywords if keyword.arg} if call is not None else {}
        name_node = given["name"].value if "name" in given else next(iter(call.args), None) if call else None
        keys = []
        for key, value in job.keys.items():
            node = given[key].value if key in given else None
            at = places.of(given[key]) if key in given else place
            if job.function is not None and key in _TARGETS:
                self._add(at, f"{key!r} is a target beside the function itself; remove it, or write Job(...) for it")
                continue
            keys.append(
                [key, at.line, at.column, encoded(value, node, at if node is None else places.of(node), places)]
            )
        if job.function is not None:
            keys.append(
                ["python", place.line, place.column, ["text", place.line, place.column, self._target(job, place)]]
            )
        at = places.of(name_node) if name_node is not None and job.function is None else place
        name = encoded(job.name, None, at, places)
        return {"name": name, "line": place.line, "column": place.column, "keys": keys, "own": job.function is not None}

    def _target(self, job: Job, place: Place) -> str:
        """``module:function``; what keeps a worker from calling it is reported."""
        function: Any = job.function
        module = getattr(function, "__module__", None)
        path = getattr(function, "__qualname__", None)
        what = f"the function {path}"
        if not isinstance(module, str) or not isinstance(path, str):
            self._add(place, f"@job decorates {_kind(function)}; decorate a function")
            return "unknown:unknown"
        if "<" in path:
            self._add(place, f"{what} is made inside another and cannot be imported; define it at the top of the file")
            return "unknown:unknown"
        target: Any = sys.modules.get(module)
        for part in path.split("."):
            target = getattr(target, part, None)
        if getattr(target, DECLARATION, None) is not job:
            self._add(place, f"{what} is no longer what {module}.{path} is; give one of the two another name")
        elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            self._add(place, f"{what} is a generator, which does nothing when it is called; use no yield in it")
        elif why := _why_not_callable(target, job):
            self._add(place, f"{what} cannot be called: {why}; give it defaults, or write args and kwargs")
        return f"{module}:{path}"

    def _unlisted(self, job: Job) -> str:
        name = _shown_name(job)
        add = job.function.__name__ if job.function is not None and hasattr(job.function, "__name__") else "it"
        return f"{name} stands in no list and would never run; add {add} to jobs = [...], or remove the job"

    def _add(self, place: Place, sentence: str) -> None:
        self._problems.append((place.line, place.column, sentence))


def _why_not_callable(function: Any, job: Job) -> str | None:
    """Why the job's arguments do not fit the function's; None where they do, or nobody can say."""
    args, kwargs = job.keys.get("args", ()), job.keys.get("kwargs", {})
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, dict):
        return None  # refused elsewhere
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def _raised(error: BaseException, file: _File, arguments: dict[str, Any]) -> tuple[int, int, str]:
    """What the file raised, at the line of it that did."""
    if isinstance(error, SyntaxError) and error.filename == file.path and error.lineno:
        return error.lineno, error.offset or 1, f"this is not Python: {_one_line(error.msg)}; mend it"
    place = _line_at_fault(error.__traceback__, file) or Place(1, 1)
    said = _one_line(f"{type(error).__name__}: {_text_of(error)}").rstrip(": ")
    if isinstance(error, _Forked):
        why = "copies its own process (fork) when it is read; a job file only says what the jobs are, so remove it"
    elif isinstance(error, SystemExit):
        why = "ends its process (SystemExit) when it is read; a job file only says what the jobs are, so remove it"
    elif isinstance(error, MemoryError):
        limit = arguments["memory_bytes"] // 1024 // 1024
        why = f"needs more than {limit} MB of memory when it is read; move the work into the function"
    elif isinstance(error, ImportError):
        why = f"{said} when the file was read; install it here and on the workers, or add its folder to PYTHONPATH"
    elif isinstance(error, SyntaxError):
        why = f"imports {error.filename}, which is not Python (line {error.lineno}: {_one_line(error.msg)}); mend that"
    else:
        why = f"raised {said} when the file was read; mend this line, or move the work into the function"
    return place.line, place.column, why


def _line_at_fault(trace: TracebackType | None, file: _File) -> Place | None:
    """The innermost line of the file that was being executed."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == file.path:
            found = file.places.of_instruction(code, trace.tb_lasti)
        trace = trace.tb_next
    return found


class _Forked(RuntimeError):
    """The file tried to copy its process."""


def _refuse_forks(event: str, _: tuple[object, ...]) -> None:
    if event in _FORKS:
        raise _Forked(event)


def _note_made(made: list[Job]) -> None:
    """Have every ``Job`` noted that is made from here on, so that none can be forgotten in no list."""
    original = Job.__init__

    def noted(self: Job, *args: Any, **keys: Any) -> None:
        original(self, *args, **keys)
        made.append(self)

    Job.__init__ = noted  # type: ignore[method-assign]  # in this process alone


def _limit(memory_bytes: int, answer: int, stacks: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    memory_bytes = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    for descriptor in (answer, stacks):
        os.set_inheritable(descriptor, False)  # what the file starts must not keep them open
    faulthandler.enable(file=stacks, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=False)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"a function without @job ({getattr(value, '__name__', '?')})" if inspect.isroutine(value) else f"a {name}"


def _shown_name(job: Job) -> str:
    return f"the job {job.name!r}"[:100]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception's own __str__ may raise
        return "".join(traceback.format_exception_only(type(error), None))


def _one_line(text: str) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= _LONGEST_SENTENCE else line[:_LONGEST_SENTENCE] + "…"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
