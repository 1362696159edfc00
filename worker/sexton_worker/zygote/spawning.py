"""The start of one command: a session of its own, its outputs on pipes, nothing left over if it fails.

Most commands start by ``posix_spawn``, which shares this process's memory until the program is there: a third of the
cost of a fork. What needs more than that (a folder, limits) is forked: so a folder on a file system that hangs holds
up its own run and nobody else.
"""

from __future__ import annotations

import errno
import os
import resource
import signal

from sexton_worker.zygote.frames import NO_FOLDER, NO_PROCESS, NO_PROGRAM, UNLIMITED, Order
from sexton_worker.zygote.roster import Roster

# Ignored by every Python interpreter, and so by what it starts, unless this is undone.
_AS_USUAL = (signal.SIGPIPE, signal.SIGXFSZ)
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
CPU_GRACE = 2  # seconds of processor time between SIGXCPU and SIGKILL


class NotStarted(Exception):
    """No process came of it: how far it got, and the errno."""

    def __init__(self, how_far: int, number: int) -> None:
        super().__init__(how_far, number)
        self.how_far = how_far
        self.errno = number


def start(order: Order, roster: Roster) -> tuple[int, int, int]:
    """Process id and the ends of its standard output and error. Raises ``NotStarted``.

    A forked process may still fail to become its command: then it ends, and the roster says why.
    """
    opened: list[int] = []
    try:
        return _start(order, roster, opened)
    except OSError as error:
        for descriptor in opened[:2]:
            os.close(descriptor)
        raise NotStarted(NO_PROCESS, error.errno or 0) from None
    except ValueError:  # an empty program, or whatever else this Python does not hand to the system
        for descriptor in opened[:2]:
            os.close(descriptor)
        raise NotStarted(NO_PROGRAM, errno.EINVAL) from None
    except NotStarted:
        for descriptor in opened[:2]:
            os.close(descriptor)
        raise
    finally:
        for descriptor in opened[2:]:
            os.close(descriptor)


def _start(order: Order, roster: Roster, opened: list[int]) -> tuple[int, int, int]:
    """``opened`` gets the descriptors as they are made: what is the zygote's and what is not."""
    for _ in range(2):
        opened += reversed(os.pipe2(os.O_CLOEXEC))
    # In the order read, read, write, write.
    opened[:] = [opened[1], opened[3], opened[0], opened[2]]
    stdout, stderr, *theirs = opened
    if order.stdin is not None:
        theirs.append(_file_with(order.stdin, opened))
    if order.cwd is not None or order.has_limits:
        return _fork(order, theirs, roster), stdout, stderr
    return _spawn(order, theirs), stdout, stderr


def _file_with(content: bytes, opened: list[int]) -> int:
    """In memory: a pipe would have to be fed while the command runs, or would block it."""
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
    opened.append(descriptor)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _programs(program: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """Where the program may be, best first."""
    if b"/" in program:
        return [program]
    folders = environment.get(b"PATH", os.defpath.encode()).split(b":")
    return [os.path.join(folder, program) for folder in folders]


# --- without a fork ---------------------------------------------------------------------------------------------------


def _spawn(order: Order, theirs: list[int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, stream) for stream, descriptor in zip((1, 2, 0), theirs, strict=False)]
    argv, environment = order.argv, order.environment()
    programs = _programs(argv[0], environment)
    failure = errno.ENOENT
    for program in programs:
        try:
            if len(programs) > 1:
                os.stat(program)  # much cheaper than a process that finds nothing
            return os.posix_spawn(
                program,
                argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_AS_USUAL,
            )
        except OSError as error:
            failure = _worse(failure, error.errno or 0)
            if failure in (errno.EAGAIN, errno.ENOMEM):
                break
    raise NotStarted(NO_PROGRAM, failure)


def _worse(failure: int, number: int) -> int:
    """The error to tell of, of one place where the program may be and the next: as execvp does."""
    return number if failure in _NOT_THERE else failure


# --- with a fork ------------------------------------------------------------------------------------------------------


def _fork(order: Order, theirs: list[int], roster: Roster) -> int:
    pid = os.fork()
    if pid:
        return pid
    how_far, number = NO_PROCESS, 0
    try:
        os.setsid()
        for stream, descriptor in zip((1, 2, 0), theirs, strict=False):
            os.dup2(descriptor, stream)
        for usual in _AS_USUAL:
            signal.signal(usual, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        how_far = NO_FOLDER
        if order.cwd is not None:
            os.chdir(order.cwd)
        how_far = NO_PROGRAM
        argv, environment = order.argv, order.environment()
        programs = _programs(argv[0], environment)
        _limit(order)
        number = _become(programs, argv, environment)
    except OSError as error:
        number = error.errno or 0
    except MemoryError:
        number = errno.ENOMEM
    except ValueError:
        number = errno.EINVAL
    finally:
        roster.note_failure(order.place, how_far, number)
        os._exit(127)


def _become(programs: list[bytes], argv: list[bytes], environment: dict[bytes, bytes]) -> int:
    """Returns only if no program could be executed, with the errno."""
    failure = errno.ENOENT
    for program in programs:
        try:
            os.execve(program, argv, environment)  # noqa: S606 - that is the point of it
        except OSError as error:
            failure = _worse(failure, error.errno or 0)
    return failure


def _limit(order: Order) -> None:
    """What the process and all that it starts must not exceed, each for itself. Never more than the worker's own."""
    for kind, most, grace in (
        (resource.RLIMIT_NOFILE, order.open_files, 0),
        (resource.RLIMIT_CPU, order.cpu_time, CPU_GRACE),
        (resource.RLIMIT_AS, order.memory, 0),
    ):
        if most != UNLIMITED:
            _, hard = resource.getrlimit(kind)
            soft, hard = (
                (most, most + grace) if hard == resource.RLIM_INFINITY else (min(most, hard), min(most + grace, hard))
            )
            resource.setrlimit(kind, (soft, hard))
