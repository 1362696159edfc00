"""Who belongs to a run: its group and session, all that descends from it, and who carries its mark.

The zygote is the *subreaper* of all it starts: who loses its parent becomes the zygote's child, so nothing that a run
starts leaves the tree below the zygote. A process that left the run's session and lost its parent too is known by the
token in its environment. Only who has also cleaned its environment, before anybody looked, is not found.
"""

from __future__ import annotations

import contextlib
import os
import signal

_TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds; the kernel counts from boot, as the elapsed clock does
_LARGEST_ENVIRONMENT = 1 << 21
_SPARE = 2


class Process:
    """One that is no zombie; ``born`` in elapsed seconds, which tells it from another under the same id."""

    __slots__ = ("born", "group", "parent", "pid", "session")

    def __init__(self, pid: int, parent: int, group: int, session: int, born: float) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.born = born


class Census:
    """All processes below ``root`` at one moment; below nobody in particular if ``root`` is 0."""

    def __init__(self, root: int) -> None:
        everybody = [process for process in map(_look_up, os.listdir("/proc")) if process is not None]
        self._children: dict[int, list[Process]] = {}
        for process in everybody:
            self._children.setdefault(process.parent, []).append(process)
        self._all = self._below([root]) if root else everybody

    def descendants(self, leader: int, since: float) -> list[Process]:
        """Who is below this process, and was born after that."""
        return [process for process in self._below([leader]) if process.born >= since - _TICK]

    def has_group(self, leader: int) -> bool:
        """Whether somebody is in the group of this leader."""
        return any(process.group == leader for process in self._all)

    def _below(self, roots: list[int]) -> list[Process]:
        found: list[Process] = []
        while roots:
            children = self._children.get(roots.pop(), ())
            found += children
            roots += [child.pid for child in children]
        return found

    def members(self, leader: int, known: dict[int, float], marks: set[bytes], since: float) -> list[Process]:
        """Who belongs to the run that this process leads. ``known``: processes known to belong to it, and when they
        were born; ``marks``: what is in the environment of its processes, and of no other since ``since``."""
        found: dict[int, Process] = {}
        for process in self._all:
            if process.born < since - _TICK:
                continue
            if (
                process.group == leader
                or process.session == leader
                or known.get(process.pid) == process.born
                or marks <= _environment(process.pid)
            ):
                found[process.pid] = process
        for process in self._below(list(found)):
            found[process.pid] = process
        return list(found.values())


class Strays:
    """What one run has started in a process that outlives its runs, and that is no descendant of the zygote.

    Who is there when this is made is known by where it stands, whoever its parent is later; who comes after that, by
    the run's token in its environment."""

    def __init__(self, census: Census, leader: int, token: int, worker: int, since: float) -> None:
        self.token = token
        self._leader = leader
        self._since = since
        self._marks = {b"SEXTON_TOKEN=%d" % token, b"SEXTON_WORKER_PID=%d" % worker}
        self._known = {one.pid: one.born for one in census.descendants(leader, since)}

    def present(self, census: Census) -> list[Process]:
        """Who is there now, in the group of the process or out of it; the process itself is not among them."""
        members = census.members(self._leader, self._known, self._marks, self._since)
        self._known |= {one.pid: one.born for one in members}
        return members


class Spare:
    """Descriptors put by, and free within ``with``: a run must be found and ended also where there are no others."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self.__exit__()

    def __enter__(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            while len(self._held) < _SPARE:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def send(process: Process, number: int) -> None:
    """Signal this process and no other under its id; nothing if it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return
    now = _look_up(str(process.pid))
    if now is not None and now.born == process.born:
        with contextlib.suppress(OSError):  # gone, or another user's
            signal.pidfd_send_signal(descriptor, number)
    os.close(descriptor)


def send_group(leader: int, number: int) -> None:
    """Signal every member of the group; its leader must not have been reaped, or others live in it."""
    with contextlib.suppress(OSError):  # gone, or another user's
        os.killpg(leader, number)


def _look_up(name: str) -> Process | None:
    if not name.isdigit():
        return None
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # After the name in parentheses, which may hold anything: state, parent, group, session, ..., start.
    fields = text[text.rfind(b")") + 2 :].split(None, 20)
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(int(name), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]) * _TICK)


def _environment(pid: int) -> set[bytes]:
    """That of its start; nothing if it is gone or another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return set(file.read(_LARGEST_ENVIRONMENT).split(b"\0"))
    except OSError:
        return set()
