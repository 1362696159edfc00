"""Python job files: run in a process of their own, within limits, and read from its answer.

Nothing else that a job file says can run code. The process gets a session of its own, no settings of Sexton's in its
environment (they may hold passwords), and a time; when that is over, or the answer is there, everything in the session
is killed. What the file prints is passed over up to a limit. Every way in which it can end becomes one sentence at a
line of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sexton.clock import SystemClock
from sexton.jobfiles.file_content import Content, read_defaults
from sexton.jobfiles.nodes import Mapping, Scalar
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.python_answers import BadAnswer, job_entry, node_of
from sexton.jobfiles.python_modules import Module, ModuleNames

_CHILD = "sexton.jobfiles.python_child"
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in ', re.MULTILINE)
_PIECE = 1 << 16
_STACK_WITHIN = 0.5
# What reading bytes that the file wrote in the answer's place may raise.
_NO_ANSWER = (BadAnswer, ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError, OverflowError)
_EXIT_CALL = re.compile(r"\b_exit\s*\(")


@dataclass(frozen=True, slots=True)
class PythonLimits:
    """What one file may take: seconds until it is read, bytes of memory, of what it prints, of its answer."""

    seconds: float = 10.0
    memory_bytes: int = 2 * 1024**3
    printed_bytes: int = 1024**2
    answer_bytes: int = 256 * 1024**2


@dataclass(slots=True)
class _Run:
    """What came of running one file."""

    answer: bytes = b""
    stacks: bytes = b""
    printed: bytes = b""
    ended_by: str = ""  # "time", "printing" or "answer" where a limit ended it
    exit_code: int | None = None
    chunks: list[bytes] = field(default_factory=list)
    taken: int = 0


def read_python_jobs(
    path: Path, text: str, problems: FileProblems, modules: ModuleNames, limits: PythonLimits
) -> Content:
    """The jobs of a Python job file; every fault goes to ``problems``."""
    module = modules.locate(path, problems)
    if module is None:
        return Content()
    run = _run(module, limits)
    if not run.answer or run.ended_by:
        problems.add_at(*_why_no_answer(run, module, text, limits))
        return Content()
    try:
        return _content(json.loads(run.answer), module, problems, modules)
    except _NO_ANSWER as error:
        problems.add_at(1, 1, f"gave an answer that is none ({error!r}); remove what writes to other descriptors")
        return Content()


def _content(answer: Any, module: Module, problems: FileProblems, modules: ModuleNames) -> Content:
    for line, column, sentence in answer["problems"]:
        problems.add_at(int(line), int(column), str(sentence))
    jobs = [job_entry(one) for one in answer["jobs"]]
    if any(one["own"] for one in answer["jobs"]):
        modules.claim(module, problems)
    defaults: dict[str, Any] = {}
    if answer["defaults"] is not None:
        node = node_of(answer["defaults"])
        root = Mapping(1, 1)
        root.entries["defaults"] = (Scalar(node.line, node.column, "defaults", is_plain=False), node)
        defaults = read_defaults(root, problems)
    return Content(defaults, jobs)


def _run(module: Module, limits: PythonLimits) -> _Run:
    answer, answer_end = os.pipe()
    stacks, stacks_end = os.pipe()
    arguments = {
        "file": module.file,
        "module": module.name,
        "root": module.root,
        "answer": answer_end,
        "stacks": stacks_end,
        "memory_bytes": limits.memory_bytes,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEXTON_")}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", "-m", _CHILD, json.dumps(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(answer_end, stacks_end),
            start_new_session=True,
        )
    finally:
        os.close(answer_end)
        os.close(stacks_end)
    try:
        return _followed(process, answer, stacks, limits)
    finally:
        _kill(process)
        os.close(answer)
        os.close(stacks)
        if process.stdout is not None:
            process.stdout.close()


def _followed(process: subprocess.Popen[bytes], answer: int, stacks: int, limits: PythonLimits) -> _Run:
    """What the process says until it ends, or a limit ends it. Pipes that others hold open are not waited for."""
    run = _Run()
    clock = SystemClock()
    until = clock.elapsed() + limits.seconds
    printed = process.stdout.fileno() if process.stdout is not None else -1
    ended = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            for descriptor in (answer, stacks, printed):
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while not run.ended_by and process.poll() is None:
                left = until - clock.elapsed()
                if left <= 0:
                    run.ended_by = "time"
                    break
                ready = [key.fd for key, _ in selector.select(left)]
                for descriptor in ready:
                    if descriptor != ended and not _take(run, descriptor, answer, stacks):
                        selector.unregister(descriptor)
                _note_excess(run, limits)
    finally:
        os.close(ended)
    if run.ended_by:
        _ask_for_stack(process, run, stacks)
    for descriptor in (answer, stacks, printed):
        while not run.ended_by and _take(run, descriptor, answer, stacks):
            _note_excess(run, limits)
    run.answer = b"".join(run.chunks)
    run.exit_code = process.poll()
    return run


def _take(run: _Run, descriptor: int, answer: int, stacks: int) -> bool:
    """Take what has come; false where nothing more will, or has yet."""
    try:
        piece = os.read(descriptor, _PIECE)
    except BlockingIOError:
        return False
    if descriptor == answer:
        run.chunks.append(piece)
        run.taken += len(piece)
    elif descriptor == stacks:
        run.stacks += piece
    else:
        run.printed += piece
    return bool(piece)


def _note_excess(run: _Run, limits: PythonLimits) -> None:
    if len(run.printed) > limits.printed_bytes:
        run.ended_by = "printing"
    elif run.taken > limits.answer_bytes or len(run.stacks) > limits.printed_bytes:
        run.ended_by = "answer"


def _ask_for_stack(process: subprocess.Popen[bytes], run: _Run, stacks: int) -> None:
    """Where the file is now, so that a loop without end has a line."""
    process.send_signal(signal.SIGUSR1)
    with selectors.DefaultSelector() as selector:
        selector.register(stacks, selectors.EVENT_READ)
        while b"\n" not in run.stacks.rstrip(b"\n") or b"<module>" not in run.stacks:
            if not selector.select(_STACK_WITHIN):
                return
            piece = os.read(stacks, _PIECE)
            if not piece:
                return
            run.stacks += piece


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End all of the session; nothing of it is left when this returns, but what made a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _why_no_answer(run: _Run, module: Module, text: str, limits: PythonLimits) -> tuple[int, int, str]:
    line = _line_of(run.stacks, module.file)
    if run.ended_by == "time":
        why = f"was not read within {limits.seconds:g} s; move what takes long, or waits, into the function"
    elif run.ended_by == "printing":
        why = f"printed more than {limits.printed_bytes // 1024} KiB when it was read; remove what prints"
    elif run.ended_by == "answer":
        why = f"holds more than {limits.answer_bytes // 1024**2} MB of jobs; split it into several files"
    elif run.exit_code is not None and run.exit_code < 0:
        name = signal.Signals(-run.exit_code).name
        why = f"was ended by {name} when it was read{_last_words(run)}; remove what crashes it"
    else:
        exits = _EXIT_CALL.search(text)
        line = line or (text.count("\n", 0, exits.start()) + 1 if exits is not None else None)
        why = (
            f"ended its process with exit code {run.exit_code} when it was read{_last_words(run)}; "
            "a job file only says what the jobs are, so remove it"
        )
    return line or 1, 1, why


def _last_words(run: _Run) -> str:
    lines = run.printed.decode("utf-8", errors="replace").strip().splitlines()
    return f" and last said {shown(lines[-1].strip())}" if lines else ""


def _line_of(stacks: bytes, file: str) -> int | None:
    """The innermost line of the file in what the interpreter said of its stack."""
    for frame in _FRAME.finditer(stacks.decode("utf-8", errors="replace")):
        if frame["file"] == file:
            return int(frame["line"])
    return None
