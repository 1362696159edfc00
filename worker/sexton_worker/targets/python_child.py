"""The process in which Python jobs run: ``python -m sexton_worker.targets.python_child DESCRIPTOR``.

It says that it is ready, then runs one request after the other until the worker
closes the socket. Whatever a job does to its own process ends this process at
worst; the worker sees that and starts another.

request  {token, reference, args, kwargs, env, cwd, stdin, context}
answer   {token, ending: exited | raised | not started, exit_code, error, exceptions}
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import io
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sexton_worker import context
from sexton_worker.targets.frames import FrameBuffer, encode

READY: dict[str, Any] = {"ready": True}
LONGEST_ERROR = 2000


def main(descriptor: int) -> None:
    """Serve requests until the socket is closed."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)  # a job's own children must not keep it open
    own = os.getpid()
    frames = FrameBuffer()
    with contextlib.suppress(ConnectionError):
        control.sendall(encode(READY))
        while True:
            while (request := frames.take()) is None:
                piece = control.recv(65536)
                if not piece:
                    return
                frames.feed(piece)
            answer = run(request)
            if os.getpid() != own:
                os._exit(0)  # a fork that the job made and let return: the answer is its parent's to give
            control.sendall(encode(answer))


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Call what the request names; its end as a message. Everything written is flushed."""
    with _surroundings(request):
        answer = _call(request)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the job may have closed or replaced it
                stream.flush()
    return {"token": request["token"], **answer}


def _call(request: dict[str, Any]) -> dict[str, Any]:
    reference: str = request["reference"]
    try:
        function = _load(reference)
    except BaseException as error:
        _print_traceback(error)
        return _ending("not started", f"cannot import {reference!r}: {_said(error)}", error)
    try:
        result = function(*request["args"], **request["kwargs"])
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except SystemExit as error:
        return _exit(error)
    except BaseException as error:
        _print_traceback(error)
        return {**_ending("raised", _said(error), error), "exit_code": 1}
    return {"ending": "exited", "exit_code": 0, "error": ""}


def _load(reference: str) -> Any:
    module_name, _, path = reference.partition(":")
    target: Any = importlib.import_module(module_name)
    for name in path.split("."):
        target = getattr(target, name)
    if not callable(target):
        raise TypeError(f"{reference} is no function but {type(target).__name__}")
    return target


def _exit(error: SystemExit) -> dict[str, Any]:
    """As the interpreter takes it: nothing is 0, a number is the code, anything else is said and is 1."""
    code = 0 if error.code is None else error.code
    if not isinstance(code, int):
        with contextlib.suppress(Exception):
            sys.stderr.write(f"{code}\n")
        return {"ending": "exited", "exit_code": 1, "error": f"SystemExit: {code}"[:LONGEST_ERROR]}
    return {"ending": "exited", "exit_code": code & 0xFF, "error": f"SystemExit: {code}" if code else ""}


def _ending(ending: str, error: str, cause: BaseException) -> dict[str, Any]:
    names = [name for kind in type(cause).__mro__[:-1] for name in (kind.__qualname__, _qualified(kind))]
    return {"ending": ending, "exit_code": None, "error": error, "exceptions": names}


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _said(error: BaseException) -> str:
    with contextlib.suppress(Exception):  # an exception's own __str__ may raise
        return f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    return type(error).__name__


def _print_traceback(error: BaseException) -> None:
    with contextlib.suppress(Exception):
        traceback.print_exception(error)


@contextlib.contextmanager
def _surroundings(request: dict[str, Any]) -> Iterator[None]:
    """The run's environment, folder, input and context; the process's own again after it."""
    environment, folder, stdin = dict(os.environ), os.getcwd(), sys.stdin
    told = request["context"]
    context.enter(
        context.RunContext(
            job=told["job"],
            tick=datetime.fromisoformat(told["tick"]),
            attempt=told["attempt"],
            token=request["token"],
            deadline=datetime.fromisoformat(told["deadline"]),
        )
    )
    os.environ.update(request["env"])
    if request["stdin"] is not None:
        sys.stdin = io.StringIO(request["stdin"])
    try:
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        yield
    finally:
        context.enter(None)
        sys.stdin = stdin
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


if __name__ == "__main__":
    main(int(sys.argv[1]))
