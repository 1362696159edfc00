"""From a path to the texts of job files: which files, with which defaults of folders, and are their bytes text at all.

A folder gives its ``*.yaml``, ``*.yml`` and ``*.toml`` files and those Python files that import ``job`` or ``Job`` from
sexton, sorted, with those of its folders; names that start with a dot are left out, and what is reached twice is read
once. Links are followed within the folder; one that leads out of it is refused unread, so that a folder of someone
else's cannot have this process read and show what only it may read. What cannot be read is refused, not passed over: a
job that is silently missing would be retired by ``--prune``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sexton.errors import NotFound
from sexton.jobfiles.decoding import decode
from sexton.jobfiles.folder_defaults import DEFAULTS_NAMES, defaults_above, defaults_in
from sexton.jobfiles.problems import FileProblems, printable
from sexton.jobfiles.python_source import declares_jobs

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_PYTHON_BYTES = 1024 * 1024
MAX_FILES = 10_000
MAX_FOLDER_DEPTH = 32
_YAML = (".yaml", ".yml")
_SUFFIXES = (*_YAML, ".toml", ".py")
_LINK_OUT = "is a link out of the folder: name it directly"
_NOT_JOBS = frozenset({"sexton.toml", "pyproject.toml"})


@dataclass(frozen=True, slots=True)
class JobFileText:
    """One file's text, or None where it could not be read; ``problems`` says why and collects what follows.

    ``defaults`` are the files of defaults that apply to it, those of outer folders first.
    """

    problems: FileProblems
    text: str | None
    path: Path
    defaults: tuple[JobFileText, ...] = ()
    is_other_module: bool = False  # a Python file that has nothing to do with jobs

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    @property
    def holds_defaults(self) -> bool:
        """Whether it is a folder's file of defaults, without jobs."""
        return self.path.name in DEFAULTS_NAMES


def read_job_files(path: Path) -> list[JobFileText]:
    """The job files at ``path``, a file or a folder, in order. Raises NotFound where there is nothing."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if os.path.islink(path):
            raise NotFound(f"{path} is a link that leads nowhere", hint="mend the link, or name the file") from None
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise NotFound(f"{path} {why}", hint="name a job file or a folder of job files") from None
    if not stat.S_ISDIR(mode):
        return _read_named_file(path)
    walk = _Walk(path)
    files = list(walk.files())
    if len(files) > MAX_FILES:
        raise NotFound(f"{path} holds more than {MAX_FILES} job files", hint="name a smaller folder")
    if all(file.holds_defaults for file in files):
        raise NotFound(
            f"{path} holds no job files", hint="put *.yaml, *.toml or *.py files there, or name another folder"
        )
    return files


def _read_named_file(path: Path) -> list[JobFileText]:
    beside = [one for one in defaults_in(path.parent) if not _is_same(one, path)]
    return [_read(path, _read_defaults([*defaults_above(path.parent), *beside]))]


def _read_defaults(paths: list[Path]) -> tuple[JobFileText, ...]:
    """The files of defaults, read; a second one in a folder is reported."""
    found: dict[Path, JobFileText] = {}
    for path in paths:
        file = _read(path)
        first = found.setdefault(path.parent, file)
        if first is not file:
            file.problems.add_at(1, 1, f"is a second file of defaults beside {first.path.name}; keep one of them")
            found[path] = file
    return tuple(found.values())


class _Walk:
    """One folder, read with all that is in it."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._root = os.path.realpath(top)
        self._seen: set[tuple[int, int]] = set()
        self._count = 0

    def files(self) -> Iterator[JobFileText]:
        """Job files with the defaults that apply to them; what may not or cannot be read with its problem."""
        yield from self._folder(self._top, _read_defaults(defaults_above(self._top)), 0)

    def _folder(self, folder: Path, outer: tuple[JobFileText, ...], depth: int) -> Iterator[JobFileText]:
        if not self._is_new(folder):
            return
        if depth > MAX_FOLDER_DEPTH:
            yield _refused(folder, f"is nested deeper than {MAX_FOLDER_DEPTH} folders; name it directly")
            return
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            yield _refused(folder, f"cannot be read ({error.strerror}); see who may read the folder")
            return
        if not os.access(folder, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            yield _refused(folder, "cannot be entered (Permission denied); see who may read the folder")
            return
        if "pyvenv.cfg" in names:  # a virtual environment: other people's modules
            return
        given = [name for name in names if name in DEFAULTS_NAMES]
        leaving = [name for name in given if _leaves(folder / name, self._root)]
        yield from (_refused(folder / name, _LINK_OUT) for name in leaving)
        found = _read_defaults([folder / name for name in given if name not in leaving])
        yield from found  # so that their faults are told, whether there are jobs or not
        defaults = (*outer, *found)
        for name in names:
            if name.startswith(".") or name in DEFAULTS_NAMES:
                continue
            yield from self._entry(folder / name, defaults, depth)

    def _entry(self, path: Path, defaults: tuple[JobFileText, ...], depth: int) -> Iterator[JobFileText]:
        is_named_so = path.suffix.lower() in _SUFFIXES and path.name not in _NOT_JOBS
        if _leaves(path, self._root):
            # A Python file is looked at, not shown: most links to one have nothing to do with jobs.
            if os.path.isdir(path) or (is_named_so and not (_is_python(path) and _read(path).is_other_module)):
                yield _refused(path, _LINK_OUT)
        elif os.path.isdir(path):
            yield from self._folder(path, defaults, depth + 1)
        elif is_named_so and self._is_new(path):
            self._count += 1
            if self._count > MAX_FILES:
                return
            file = _read(path, defaults)
            if not file.is_other_module:
                yield file

    def _is_new(self, path: Path) -> bool:
        try:
            status = path.stat()
        except OSError:
            return True  # a broken link: reading it says so
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def _is_python(path: Path) -> bool:
    return path.suffix.lower() == ".py"


def _read(path: Path, defaults: tuple[JobFileText, ...] = ()) -> JobFileText:
    problems = FileProblems(shown_path(path))
    if path.suffix.lower() not in _SUFFIXES:
        problems.add_at(1, 1, f"is called {path.name!r}; job files end in .yaml, .yml, .toml or .py")
        return JobFileText(problems, None, path, defaults)
    data = _bytes_of(path, problems)
    if data is not None and _is_python(path):
        is_large = len(data) > MAX_PYTHON_BYTES
        if not declares_jobs(data, by_words=is_large):
            return JobFileText(problems, None, path, defaults, is_other_module=True)
        if is_large:
            problems.add_at(1, 1, f"is larger than {MAX_PYTHON_BYTES // 1024 // 1024} MB; split it into several files")
            data = None
    text = None if data is None else decode(data, problems)
    return JobFileText(problems, text, path, defaults)


def _bytes_of(path: Path, problems: FileProblems) -> bytes | None:
    """All of a regular file; None, reported, where it is none, is too large, or changes under the reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        problems.add_at(1, 1, f"cannot be read ({error.strerror}); check the link, or who may read it")
        return None
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            problems.add_at(1, 1, "is not a regular file; name a *.yaml, *.toml or *.py file")
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
        after = os.fstat(descriptor)
    except OSError as error:
        problems.add_at(1, 1, f"cannot be read ({error.strerror}); check the disk and try again")
        return None
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_BYTES:
        problems.add_at(1, 1, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MB; split it into several files")
        return None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        problems.add_at(1, 1, "was written to while it was read; try again when it is whole")
        return None
    return data


def _refused(path: Path, why: str) -> JobFileText:
    problems = FileProblems(shown_path(path))
    problems.add_at(1, 1, why)
    return JobFileText(problems, None, path)


def _leaves(path: Path, root: str) -> bool:
    """Whether ``path`` is a link that ends outside the folder ``root``, which is free of links."""
    return os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(root)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def shown_path(path: Path) -> str:
    """A path as messages say it: bytes that are no text, and characters that act on a terminal, are written out."""
    text = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    return text if text.isprintable() else printable(text)
