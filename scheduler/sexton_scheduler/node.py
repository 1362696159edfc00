"""A scheduler process: threads, connections and signals around one node's loop.

Threads: the loop's and the heartbeat's, the housekeeping's (APScheduler), a
listener for changes of jobs, and whatever the candidate runs; each with a database
connection of its own. The main thread waits for signals: SIGTERM or SIGINT hands
over and stops, a second one ends the process at once. Services that are away end
nothing; a cluster this node does not belong to, or an old schema, does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

import sexton
from sexton.alert_settings import AlertSettings
from sexton.clock import Clock, SystemClock
from sexton.ending_signals import Endings, ending_signals
from sexton.errors import DatabaseUnreachable
from sexton.http_addresses import HttpAddress
from sexton.inputs import own_inputs
from sexton.process_settings import CoordinatorAccess, default_name
from sexton.service_endpoint import Endpoint, serving
from sexton.settings import ClusterSettings
from sexton.store import open_store
from sexton.store.protocol import Channel, Store, StoreOptions
from sexton.store.schema import check_job_format, check_schema
from sexton.zone_files import packed_zone_data
from sexton_scheduler.alerting import AlertThreads, watch_duty
from sexton_scheduler.duty_schedule import schedule_duties
from sexton_scheduler.election import DATABASE, check_coordinator, make_candidate
from sexton_scheduler.election.candidate import NodeIdentity
from sexton_scheduler.election.database import DatabaseCandidate
from sexton_scheduler.heartbeat import HeartbeatLoop
from sexton_scheduler.housekeeping import DUTIES, Housekeeper
from sexton_scheduler.loop import LoopOptions, NodeLoop
from sexton_scheduler.node_state import NodeState

if TYPE_CHECKING:
    from sexton_scheduler.node_metrics import NodeMetrics

HEARTBEAT_ANSWER_SECONDS = FIGURES_ANSWER_SECONDS = 5.0
RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a scheduler process is told. ``poll``: how often it looks for edits that no notification told of."""

    database_url: str = field(repr=False)
    coordinator: str = DATABASE
    name: str = ""  # HOST-PID where empty
    poll: timedelta = timedelta(seconds=5)
    access: CoordinatorAccess = field(default_factory=CoordinatorAccess)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    http: HttpAddress | None = None  # where metrics and health are served


class Node:
    """A node in this process, on threads of its own: ``start``, then ``stop`` (returns at once), then ``join``."""

    def __init__(self, options: NodeOptions, settings: ClusterSettings, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self._options, self._clock = options, clock
        name = options.name or default_name()
        self.identity = NodeIdentity(name, socket.gethostname(), sexton.__version__, os.getpid())
        inputs_id = own_inputs().inputs_id
        self.state = NodeState(clock.wakeup(), clock.wakeup())
        self.state.settings = settings
        self._store = _open(options, name)
        self._beat_store = _open(options, f"{name} heartbeat", HEARTBEAT_ANSWER_SECONDS)
        self._keeper = Housekeeper(_open(options, f"{name} housekeeping"), clock, self.state, self.identity, inputs_id)
        candidate = make_candidate(
            options.coordinator,
            self._store,
            clock,
            self.state.wakeup,
            self.identity,
            settings.session,
            options.access,
            self.state.saw_servers,
        )
        lease = None
        if options.coordinator != DATABASE:
            lease = DatabaseCandidate(self._store, clock, settings.failover_database_after, empty_seat_at_once=False)
        self._loop = NodeLoop(
            self._store, clock, self.state, candidate, lease, LoopOptions(name, inputs_id, options.poll)
        )
        self._heartbeat = HeartbeatLoop(self._beat_store, clock, self.state)
        self._keeping_thread = ThreadPoolExecutor(1, thread_name_prefix="sexton housekeeping")
        self._keeping = schedule_duties(self._keeper, self._keeping_thread, (*DUTIES, watch_duty(options.alerts)))
        self._alerting = AlertThreads(options.alerts, clock, self.state, name, lambda: _open(options, f"{name} alerts"))
        self._looping = threading.Thread(target=self._run_loop, name="sexton loop", daemon=True)
        self._beating = threading.Thread(target=self._run_heartbeat, name="sexton heartbeat", daemon=True)
        self._at_end: Callable[[], None] = lambda: None
        self._metrics: NodeMetrics | None = None
        self.fault: BaseException | None = None  # what ended the loop, if it was not asked to end

    def serve(self, endpoint: Endpoint) -> None:
        """Have the endpoint tell of this node. To be called before ``start``."""
        from sexton_scheduler.node_metrics import NodeMetrics  # most nodes serve none: nothing of it is loaded

        options, name = self._options, self.identity.name
        self._metrics = NodeMetrics(
            self.state,
            self._clock,
            name,
            options.poll,
            lambda: _open(options, f"{name} figures", FIGURES_ANSWER_SECONDS),
        )
        endpoint.paths = self._metrics.paths

    def start(self, at_end: Callable[[], None] = lambda: None) -> None:
        """Begin; ``at_end`` is called from a thread of the node once it has ended."""
        self._at_end = at_end
        self._keeping.start()
        self._beating.start()
        self._alerting.start()
        if self._metrics is not None:
            self._metrics.start()
        self._looping.start()

    def stop(self) -> None:
        """Hand over, if leading, and end."""
        self.state.stop()
        self._wake_others()

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it came."""
        self._looping.join(seconds)
        return not self._looping.is_alive()

    def _run_loop(self) -> None:
        try:
            with contextlib.closing(self._store):
                listener = self._store.listen([Channel.JOBS], self.state.wakeup)
                try:
                    self._loop.run()
                finally:
                    listener.close()
                self._end_housekeeping()  # else its report would bring back the row that is deleted next
                with contextlib.suppress(DatabaseUnreachable):
                    self._store.terms.forget(self.identity.name)
        except BaseException as fault:  # a fault of Sexton's own: the process ends with it, and its successor goes on
            self.fault = fault
        finally:
            self.state.stop()
            self._wake_others()
            self._end_housekeeping()
            self._at_end()

    def _wake_others(self) -> None:
        self._alerting.wake()
        if self._metrics is not None:
            self._metrics.wake()

    def _end_housekeeping(self) -> None:
        if not self._keeping.running:
            return
        self._keeping.pause()
        self._keeping_thread.submit(self._keeper.store.close)  # in the thread that opened it
        self._keeping.shutdown(wait=True)

    def _run_heartbeat(self) -> None:
        with contextlib.closing(self._beat_store):
            self._heartbeat.run()


def run_node(options: NodeOptions) -> None:
    """Run a node until SIGTERM, SIGINT or SIGHUP; call it from the main thread.

    Waits for services that are away. Raises ``WrongCluster`` where the database belongs to a cluster with another
    coordinator, ``OldSchema`` where its tables are not this version's, ``InvalidSetting`` (the
    port of ``http`` is taken, for one); and whatever fault of Sexton's own ended the node.
    """
    check_coordinator(options.coordinator, options.access)
    log = structlog.get_logger("sexton.scheduler").bind(node=options.name)
    with ending_signals() as news, serving(options.http) as endpoint:
        settings = _await_enrollment(options, news)
        if settings is None:
            return
        node = Node(options, settings)
        if endpoint is not None:
            node.serve(endpoint)
        node.start(at_end=lambda: news.put(None))
        log.info("node.started", coordinator=options.coordinator)
        asked = 0
        while (number := news.next()) is not None:
            asked += 1
            if asked > 1:
                log.warning("node.ends_at_once", signal=number.name)
                os._exit(128 + number)
            log.info("node.stopping", signal=number.name)
            node.stop()
        if node.fault is not None:
            raise node.fault
        log.info("node.stopped")


def enroll(store: Store, coordinator: str) -> None:
    """Make this node known to its cluster, or be refused by it (``WrongCluster``)."""
    inputs = own_inputs()
    store.terms.enroll(coordinator, inputs.inputs_id, inputs.zone_data, inputs.engine)
    # So that these ticks can be compared with those of other zone data, and audited where that is installed.
    if store.restores.zone_data(inputs.zone_data) is None:
        store.restores.keep_zone_data(inputs.zone_data, packed_zone_data())


def _await_enrollment(options: NodeOptions, news: Endings) -> ClusterSettings | None:
    """The cluster's settings, once the database has answered; None where a signal came first."""
    log = structlog.get_logger("sexton.scheduler").bind(node=options.name)
    is_said = False
    while True:
        try:
            check_schema(options.database_url)
            check_job_format(options.database_url)
            with contextlib.closing(_open(options, options.name)) as store:
                enroll(store, options.coordinator)
                return store.edits.settings()
        except DatabaseUnreachable as error:
            if not is_said:
                log.warning("database.unreachable", error=str(error), hint="trying again until it answers")
                is_said = True
        if news.came(within=RETRY_SECONDS):
            return None


def _open(options: NodeOptions, part: str, answer_within: float = 10.0) -> Store:
    return open_store(
        StoreOptions(
            options.database_url, application=f"sexton scheduler {part}", answer_within=answer_within, stays=True
        )
    )
