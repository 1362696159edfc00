"""The worker process: threads, connections and signals around the loops.

Threads: the loop's and the heartbeat's (each with a connection of its own), one that
ends runs with their leases, and those over the runs (``process_execution``). The main
thread waits for signals: SIGTERM or SIGINT drains, a second one gives the claims back.
A database that is away ends nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

import sexton
from sexton.clock import Clock, SystemClock
from sexton.ending_signals import Endings, ending_signals
from sexton.errors import DatabaseUnreachable
from sexton.http_addresses import HttpAddress
from sexton.output_places import place_at
from sexton.process_settings import RECYCLE_MEMORY, RECYCLE_RUNS
from sexton.service_endpoint import Endpoint, serving
from sexton.settings import ClusterSettings
from sexton.store import open_store
from sexton.store.protocol import Channel, Store, StoreOptions
from sexton.store.schema import check_job_format, check_schema
from sexton_worker.core.wear import WearLimits
from sexton_worker.heartbeat import HeartbeatLoop
from sexton_worker.lease_book import LeaseBook
from sexton_worker.lease_guard import LeaseGuard
from sexton_worker.loop import WorkerLoop, WorkerSettings
from sexton_worker.output_threads import LiveOutputs, WholeOutput, WholeOutputs
from sexton_worker.process_execution import ProcessExecution
from sexton_worker.targets.environment import WORKER_NAME
from sexton_worker.targets.secrets import Secrets

HEARTBEAT_ANSWER_SECONDS = 5.0  # or a lease, where that is shorter: else one lost answer costs a claim
RETRY_SECONDS = 1.0


def default_slots() -> int:
    """Two per core that this process may use."""
    return 2 * len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker process is told. ``allow``: what it may run, None for all; ``secrets``: a folder, see
    ``targets/secrets.py``, None for the usual one."""

    database_url: str
    name: str
    queues: tuple[str, ...] = ("default",)
    slots: int | None = None  # None: two per core
    poll: timedelta = timedelta(seconds=5)
    drain: timedelta = timedelta(seconds=30)
    allow: tuple[str, ...] | None = None
    secrets: str | None = None
    whole_output: WholeOutput | None = None
    python_recycle_runs: int | None = RECYCLE_RUNS
    python_recycle_memory: int | None = RECYCLE_MEMORY  # bytes
    http: HttpAddress | None = None  # where metrics and health are served


class Worker:
    """A worker in this process, on threads of its own. ``drain`` and ``give_back`` return at once; then ``join``."""

    def __init__(
        self, options: WorkerOptions, clock: Clock | None = None, cluster: ClusterSettings | None = None
    ) -> None:
        clock = clock or SystemClock()
        slots = options.slots or default_slots()
        self._wakeup = clock.wakeup()
        self._book = LeaseBook()
        environment = {**os.environ, WORKER_NAME: options.name}
        wear = WearLimits(options.python_recycle_runs, options.python_recycle_memory)
        secrets = Secrets(os.environ, options.secrets)
        self._wholes: WholeOutputs | None = None
        if options.whole_output is not None:
            self._wholes = WholeOutputs(options.whole_output, self._open(options, " output"), clock)
        self._execution = ProcessExecution(
            clock, self._wakeup, slots, environment, options.allow, wear, self._book.binding, secrets, self._wholes
        )
        self._live = LiveOutputs(
            lambda: self._open(options, " live output"),
            clock,
            self._execution,
            self._book,
            self._execution.seen_wakeup,
        )
        # Each connects at its first call, in the thread that uses it.
        self._store = open_store(
            StoreOptions(options.database_url, application=f"sexton worker {options.name}", stays=True)
        )
        self._heartbeat_store = open_store(
            StoreOptions(
                options.database_url,
                application=f"sexton worker {options.name} heartbeat",
                answer_within=min(HEARTBEAT_ANSWER_SECONDS, (cluster or ClusterSettings()).lease.total_seconds()),
            )
        )
        self._clock = clock
        self._own = settings = WorkerSettings(
            name=options.name,
            queues=options.queues,
            slots=slots,
            poll=options.poll,
            drain=options.drain,
            address=socket.gethostname(),
            version=sexton.__version__,
            pid=os.getpid(),
        )
        draw = random.Random().random  # noqa: S311 - spreads retries, guards nothing
        self._loop = WorkerLoop(self._store, clock, self._execution, self._book, self._wakeup, settings, draw)
        self._stops = clock.wakeup()
        self._heartbeat = HeartbeatLoop(
            self._heartbeat_store,
            clock,
            self._execution,
            self._book,
            self._stops,
            heed_drain=self._loop.heed_drain,
        )
        self._beating = threading.Thread(target=self._beat, name="sexton heartbeat", daemon=True)
        self._working = threading.Thread(target=self._work, name="sexton worker", daemon=True)
        self._guard = LeaseGuard(clock, self._execution, self._book, clock.wakeup())
        self._guarding = threading.Thread(target=self._guard.run, name="sexton leases", daemon=True)
        self._at_end: Callable[[], None] = lambda: None

    def _open(self, options: WorkerOptions, what: str) -> Store:
        return open_store(StoreOptions(options.database_url, application=f"sexton worker {options.name}{what}"))

    def start(self, at_end: Callable[[], None] = lambda: None) -> None:
        """Begin; ``at_end`` is called from a thread of the worker once it has drained."""
        self._at_end = at_end
        self._beating.start()
        self._guarding.start()
        self._live.start()
        self._working.start()

    def serve(self, endpoint: Endpoint) -> None:
        """Have the endpoint tell of this worker."""
        from sexton_worker.worker_metrics import WorkerMetrics  # most workers serve none: nothing of it is loaded

        endpoint.paths = WorkerMetrics(self._own, self._clock, self._loop, self._heartbeat, self._book).paths

    def drain(self) -> None:
        """Take no more claims; end when the runs have ended, or when the drain time is over."""
        self._loop.drain()

    def give_back(self) -> None:
        """Stop the runs, give their claims back, and end."""
        self._loop.give_back()

    def join(self) -> None:
        """Return when everything has ended."""
        self._working.join()

    def _beat(self) -> None:
        with contextlib.closing(self._heartbeat_store):
            self._heartbeat.run()

    def _work(self) -> None:
        try:
            with contextlib.closing(self._store):
                also = {Channel.STOPS: self._stops, Channel.WATCHES: self._live.told}
                listener = self._store.listen([Channel.WORK], self._loop.notice, also)
                try:
                    self._loop.run()
                finally:
                    listener.close()
            # Renewing went on until the last result was written (a run must not lose its lease while it drains).
            self._heartbeat.end()
            self._guard.end()
            self._guarding.join()
            self._live.close()
            self._execution.close()
            if self._wholes is not None:
                self._wholes.close()
            self._beating.join()
        finally:
            self._at_end()


def run_worker(options: WorkerOptions) -> int:
    """Work until SIGTERM or SIGINT has drained this worker, from the main thread; the exit code, 0.

    Waits for a database that is away. Raises ``OldSchema`` if its tables are not this version's, ``InvalidSetting`` if
    outputs cannot be kept where they are to be, the port of ``http`` is taken, or settings of
    leases contradict each other.
    """
    log = structlog.get_logger("sexton.worker").bind(worker=options.name)
    if options.whole_output is not None:
        place_at(options.whole_output.base)  # what cannot be is said before anything is waited for
    with ending_signals() as news, serving(options.http) as endpoint:
        cluster = _await_cluster(options, news)
        if cluster is None:
            return 0
        worker = Worker(options, cluster=cluster)
        if endpoint is not None:
            worker.serve(endpoint)
        worker.start(at_end=lambda: news.put(None))
        log.info("worker.started", queues=options.queues)
        asked = 0
        while (number := news.next()) is not None:
            asked += 1
            if asked == 1:
                log.info("worker.draining", signal=number.name, patience=options.drain.total_seconds())
                worker.drain()
            else:
                log.info("worker.giving_back", signal=number.name)
                worker.give_back()
        worker.join()
        log.info("worker.ended")
    return 0


def _await_cluster(options: WorkerOptions, news: Endings) -> ClusterSettings | None:
    """The cluster's settings, which agree, once the database answers and has the right tables; None: somebody asked
    this worker to end before."""
    is_told = False
    while True:
        try:
            check_schema(options.database_url)
            check_job_format(options.database_url)
            settings = _settings(options)
            settings.check_leases()
            return settings
        except DatabaseUnreachable as error:
            if not is_told:
                structlog.get_logger("sexton.worker").warning("worker.database_unreachable", error=str(error))
                is_told = True
        if news.came(within=RETRY_SECONDS):
            return None


def _settings(options: WorkerOptions) -> ClusterSettings:
    store = open_store(StoreOptions(options.database_url, application=f"sexton worker {options.name}"))
    with contextlib.closing(store):
        return store.edits.settings()
