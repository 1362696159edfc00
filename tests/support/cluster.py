"""`make cluster`: a ZooKeeper ensemble, PostgreSQL, three nodes, two workers with the example jobs, and the console.

Without a terminal it runs for a while and sums up. However it ends, no process and no folder is left; while it runs,
`cluster.env` in the project's folder tells a second terminal how to reach it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from tests.support import reaper
from tests.support.processes import SEXTON, clean_environment
from tests.support.scratch import make_folder, remove_folder
from tests.support.service_control import describe, obeying
from tests.support.services import Services

ROOT = Path(__file__).parents[2]
ENVIRONMENT_FILE = ROOT / "cluster.env"
JOBS = ROOT / "examples" / "jobs"
LASTS_WITHOUT_TERMINAL = "60s"
ENVIRONMENT = """\
# process {pid}: how to reach what `make cluster` started. In a second terminal: . ./cluster.env
export SEXTON_DATABASE={database}
export SEXTON_COORDINATOR={coordinator}
export PATH={programs}:"$PATH"
# services show; services kill zookeeper 2; services stop zookeeper; services start zookeeper; services freeze postgres
services() {{ (cd {root} && {python} -m tests.support.service_control {socket} "$@"); }}
# Logs of nodes and workers: {folder}/.sexton/logs
"""


def main(file: Path = ENVIRONMENT_FILE, *options: str) -> int:
    """Run it; the exit code of `sexton up`, which gets the options. `file` tells others how to reach it."""
    if other := _running_elsewhere(file):
        print(f"make cluster: process {other} runs one already; . {file} reaches it", file=sys.stderr)
        return 1
    folder = make_folder("cluster")
    try:
        with _ended_by_signals():
            began = time.monotonic()
            with Services() as services:
                print(f"services ready after {time.monotonic() - began:.1f} s:", file=sys.stderr)
                environment = services.environment(services.postgres.create_database("sexton"))
                with _announced(services, environment, folder, file), obeying(services, folder / "control"):
                    return _run_sexton(folder, environment, options)
    finally:
        remove_folder(folder)


def _run_sexton(folder: Path, environment: dict[str, str], more: Sequence[str]) -> int:
    """`sexton up` with the console where there is a terminal. It ends the nodes and workers; the services after it."""
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    options = [] if has_terminal else ["--for", LASTS_WITHOUT_TERMINAL, "--no-console"]
    mark = f"cluster-{os.getpid()}-{secrets.token_hex(8)}"
    reaper.watch("mark", mark)
    process = subprocess.Popen(
        [str(SEXTON), "up", str(JOBS), *options, *more],
        cwd=folder,
        env={**clean_environment(Path.home()), **environment, reaper.MARK: mark},
        start_new_session=not has_terminal,  # with a terminal, the child is to own it
    )

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not has_terminal:  # the terminal sends its Ctrl-C to both
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = process.wait()
    reaper.kill_marked(mark)
    reaper.forget("mark", mark)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _announced(services: Services, environment: dict[str, str], folder: Path, file: Path) -> Iterator[None]:
    """The environment file is there while entered, and what a reader needs is on the screen."""
    text = ENVIRONMENT.format(
        pid=os.getpid(),
        database=shlex.quote(environment["SEXTON_DATABASE"]),
        coordinator=shlex.quote(environment["SEXTON_COORDINATOR"]),
        programs=shlex.quote(str(SEXTON.parent)),
        root=shlex.quote(str(ROOT)),
        python=shlex.quote(sys.executable),
        socket=shlex.quote(str(folder / "control")),
        folder=folder,
    )
    reaper.watch("file", file)
    file.write_text(text)
    for line in describe(services):
        print(f"  {line}", file=sys.stderr)
    name = f"./{file.name}" if file.parent == Path.cwd() else str(file)
    print(
        f"  in a second terminal: . {name}   then `sexton status`, `services show`, `services kill zookeeper 2`",
        file=sys.stderr,
    )
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        reaper.forget("file", file)


def _running_elsewhere(file: Path) -> int | None:
    """The process that announced itself in the environment file and still runs."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid = int(file.read_text().split()[2].rstrip(":"))
        os.kill(pid, 0)
        return pid
    return None


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end it as Ctrl-C does: what was begun is taken down."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]) if sys.argv[1:] else main())
