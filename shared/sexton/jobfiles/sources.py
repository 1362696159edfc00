"""From a path to the texts of job files: which files, and whether their bytes are text at all.

A folder gives its ``*.yaml`` and ``*.yml`` files, sorted, with those of its folders; names that start with a dot are
left out, and what is reached twice is read once. Links are followed within the folder; one that leads out of it is
refused unread, so that a folder of someone else's cannot have this process read and show what only it may read.

Files that a later version will read (TOML, Python files with jobs) are refused, not passed over: a job that is silently
missing would be retired by ``--prune``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sexton.errors import NotFound
from sexton.jobfiles.problems import FileProblems

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_FILES = 10_000
MAX_FOLDER_DEPTH = 32
_SUFFIXES = (".yaml", ".yml")
_LINK_OUT = "is a link out of the folder: name it directly"
_NOT_JOBS = frozenset({"sexton.toml", "pyproject.toml"})
_PYTHON_JOBS = re.compile(rb"^\s*from\s+sexton\s+import\s+.*\b[Jj]ob\b", re.MULTILINE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


@dataclass(frozen=True, slots=True)
class JobFileText:
    """One file's text, or None where it could not be read; ``problems`` says why and collects what follows."""

    problems: FileProblems
    text: str | None


def read_job_files(path: Path) -> list[JobFileText]:
    """The job files at ``path``, a file or a folder, in order. Raises NotFound where there is nothing."""
    if not path.exists():
        raise NotFound(f"{path} does not exist", hint="name a job file or a folder of job files")
    if not path.is_dir():
        return [_read(path)]
    root = os.path.realpath(path)
    paths = list(_walk(path, root, set(), 0))
    if not paths:
        raise NotFound(f"{path} holds no job files", hint="put *.yaml files there, or name another folder")
    if len(paths) > MAX_FILES:
        raise NotFound(f"{path} holds more than {MAX_FILES} job files", hint="name a smaller folder")
    return [_read(one, root) for one in paths]


def decode(data: bytes, problems: FileProblems) -> str | None:
    """The text that ``data`` is in UTF-8, or None with the fault and its place reported."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            problems.add_at(
                1, 1, f"starts with a byte-order mark ({encoding}, byte 0); save the file as UTF-8 without one"
            )
            return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8", errors="replace"))
        byte = data[error.start]
        problems.add_at(
            line,
            column,
            f"byte {error.start} (0x{byte:02x}) is not UTF-8; save the file as UTF-8, not Latin-1 or UTF-16",
        )
        return None
    if match := _CONTROL.search(text):
        line, column = _position(text[: match.start()])
        code = ord(match[0])
        what = "a NUL byte: is the file UTF-16?" if code == 0 else f"the control character U+{code:04X}"
        problems.add_at(line, column, f"holds {what}; remove it or save the file as UTF-8")
        return None
    return text


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _read(path: Path, root: str | None = None) -> JobFileText:
    problems = FileProblems(str(path))
    refusal = _LINK_OUT if root is not None and _leaves(path, root) else _refusal(path)
    if refusal:
        problems.add_at(1, 1, refusal)
        return JobFileText(problems, None)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            problems.add_at(1, 1, "is not a regular file; name a *.yaml file")
            return JobFileText(problems, None)
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        problems.add_at(1, 1, f"cannot be read ({error.strerror}); check the link, or who may read it")
        return JobFileText(problems, None)
    if len(data) > MAX_FILE_BYTES:
        problems.add_at(1, 1, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MB; split it into several files")
        return JobFileText(problems, None)
    return JobFileText(problems, decode(data, problems))


def _refusal(path: Path) -> str | None:
    """Why a file of this name is not read; None for YAML."""
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return "TOML job files come with a later version; write the jobs as YAML"
    if suffix == ".py":
        return "Python job files come with a later version; write the jobs as YAML"
    if suffix not in _SUFFIXES:
        return f"is called {path.name!r}; job files end in .yaml or .yml"
    return None


def _walk(folder: Path, root: str, seen: set[tuple[int, int]], depth: int) -> Iterator[Path]:
    """Job files below ``folder``, sorted by name within it; each file and folder once, by its inode.

    Links that lead out of ``root`` are among them where they are folders or named like job files; nothing is read.
    """
    if depth > MAX_FOLDER_DEPTH or not _is_new(folder, seen):
        return
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if name.startswith("."):
            continue
        if _leaves(path, root):
            if path.is_dir() or (path.suffix.lower() in (*_SUFFIXES, ".toml") and name not in _NOT_JOBS):
                yield path
        elif path.is_dir():
            yield from _walk(path, root, seen, depth + 1)
        elif _is_job_file(path) and _is_new(path, seen):
            yield path


def _leaves(path: Path, root: str) -> bool:
    """Whether ``path`` is a link that ends outside the folder ``root``, which is free of links."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)


def _is_job_file(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return path.name not in _NOT_JOBS
    if suffix == ".py":
        try:
            with path.open("rb") as file:
                return _PYTHON_JOBS.search(file.read(100_000)) is not None
        except OSError:
            return False
    return suffix in _SUFFIXES


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        status = path.stat()
    except OSError:
        return True  # a broken link: reading it says so
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return False
    seen.add(identity)
    return True
