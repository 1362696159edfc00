"""A whole cluster of real processes on this machine: started, watched, restarted, stopped.

Each node and worker is a ``sexton`` process of its own with its log in the data folder.
A process that ends without being asked is started again after ``RESTART_AFTER``, as a
service supervisor would; so the leader can be killed again and again.

Nothing outlives the parent: the children are told to end when it dies, whatever ended
it. That promise hangs on the thread that starts them (Linux sends the signal when the
starting *thread* ends), so one thread starts every process and lives to the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sexton.clock import SystemClock
from sexton.errors import InvalidSetting, Refused
from sexton.http_addresses import HttpAddress
from sexton.service_endpoint import listen

RESTART_AFTER = 5.0
WATCH_EVERY = 0.2
STOP_WITHIN = 40.0  # a worker drains for up to 30 s
_LOG_KEPT = 20_000_000


@dataclass(frozen=True, slots=True)
class Program:
    """One process of the cluster: ``command`` is the ``sexton`` command and its options."""

    name: str
    command: tuple[str, ...]

    @property
    def is_worker(self) -> bool:
        return self.command[0] == "worker"


def programs(schedulers: int, workers: int, http: HttpAddress | None = None) -> tuple[Program, ...]:
    """``node-1`` ... and ``worker-1`` ..., as ``sexton up`` names them. ``http``: where the first serves its metrics;
    each of the others does on the next port. Raises InvalidSetting where there are not so many, or one is taken."""
    names = [f"node-{n}" for n in range(1, schedulers + 1)] + [f"worker-{n}" for n in range(1, workers + 1)]
    places = ["off"] * len(names) if http is None else [str(place) for place in _places(http, len(names))]
    return tuple(
        Program(name, ("scheduler" if name.startswith("node") else "worker", "--name", name, "--http", place))
        for name, place in zip(names, places, strict=True)
    )


def _places(first: HttpAddress, count: int) -> list[HttpAddress]:
    try:
        places = [first.after(number) for number in range(count)]
    except ValueError as error:
        raise InvalidSetting(f"http: {error}", hint="choose a lower port: each process takes the next one") from None
    for place in places:
        listen(place).close()  # what is taken is said here, and not in the logs of processes that cannot start
    return places


def python_path(roots: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH with ``roots`` in front of what it is; nothing where there are none."""
    known = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([*roots, *known]))} if roots else {}


@contextlib.contextmanager
def only_one_here(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; raises Refused while another ``sexton up`` runs in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            other = lock.read().strip() or "unknown"
            raise Refused(
                f"another `sexton up` (pid {other}) runs in {folder}",
                hint="stop it first, or start this one in another folder",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


class LocalCluster:
    """The processes. ``start`` and ``stop`` once each; ``kill`` from any thread."""

    def __init__(
        self,
        folder: Path,
        wanted: tuple[Program, ...],
        environment: Mapping[str, str],
        import_roots: Sequence[str] = (),
    ) -> None:
        """``import_roots``: folders from which the workers can import, before those of this process's PYTHONPATH."""
        self._logs = folder / "logs"
        self._wanted = wanted
        self._environment = {**os.environ, **environment}
        self._worker_environment = {**self._environment, **python_path(import_roots, self._environment)}
        self._clock = SystemClock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._restart_at: dict[str, float] = {}
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="local-cluster", daemon=True)
        self._lock = threading.Lock()
        self._killed: tuple[str, ...] = ()
        self.restarts = 0
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Every process is started when this returns; not yet ready. Raises what starting one raised."""
        self._logs.mkdir(parents=True, exist_ok=True)
        self._keeper.start()
        self._started.wait()
        if self.failure is not None:
            raise self.failure

    def kill(self, name: str) -> int | None:
        """SIGKILL a process of the cluster; its pid, or None if it does not run now."""
        with self._lock:
            process = self._running.get(name)
            if process is None or process.poll() is not None:
                return None
            process.kill()
            return process.pid

    def stop(self) -> tuple[str, ...]:
        """Workers drain, then nodes hand over; the names of those that had to be killed."""
        self._stopping.set()
        self._keeper.join()
        return self._killed

    def hurry(self) -> None:
        """While it stops: workers no longer wait for their runs, but give their claims back."""
        with self._lock:
            for program in self._wanted:
                if program.is_worker and program.name in self._running:
                    _signal(self._running[program.name], signal.SIGTERM)

    def log_tail(self, name: str, lines: int = 3) -> str:
        """The last lines of a process's log."""
        with contextlib.suppress(OSError):
            return "\n".join((self._logs / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])
        return ""

    # --- the keeper's thread ---------------------------------------------------------------------

    def _keep(self) -> None:
        try:
            for program in self._wanted:
                self._launch(program)
        except BaseException as error:  # start() raises it in the caller's thread
            self.failure = error
            return
        finally:
            self._started.set()
        while not self._stopping.wait(WATCH_EVERY):
            self._revive()
        self._killed = (
            *self._end([p.name for p in self._wanted if p.is_worker]),
            *self._end([p.name for p in self._wanted if not p.is_worker]),
        )

    def _revive(self) -> None:
        now = self._clock.elapsed()
        for program in self._wanted:
            if self._running[program.name].poll() is None:
                continue
            due = self._restart_at.setdefault(program.name, now + RESTART_AFTER)
            if now >= due:
                del self._restart_at[program.name]
                self.restarts += 1
                self._launch(program)

    def _launch(self, program: Program) -> None:
        path = self._logs / f"{program.name}.log"
        if path.exists() and path.stat().st_size > _LOG_KEPT:
            path.replace(path.with_suffix(".log.old"))
        with path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "sexton_tui.end_with_parent", str(os.getpid()), *program.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._worker_environment if program.is_worker else self._environment,
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which stops them in order
            )
        with self._lock:
            self._running[program.name] = process

    def _end(self, names: list[str]) -> tuple[str, ...]:
        processes = {name: self._running[name] for name in names if name in self._running}
        for process in processes.values():
            _signal(process, signal.SIGTERM)
        deadline = self._clock.elapsed() + STOP_WITHIN
        killed = []
        for name, process in processes.items():
            try:
                process.wait(max(0.1, deadline - self._clock.elapsed()))
            except subprocess.TimeoutExpired:
                killed.append(name)
                process.kill()
                process.wait()
        return tuple(killed)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
