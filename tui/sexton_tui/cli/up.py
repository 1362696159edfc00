"""``sexton up``: a whole cluster of real processes on this machine, until it is left or its time is over."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sexton.clock import SystemClock
from sexton.ending_signals import on_ending_signals
from sexton.errors import DatabaseUnreachable
from sexton.settings import format_duration, parse_duration
from sexton.terms import Strategy
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import invocation_of
from sexton_tui.cli.output import counted, instant_text
from sexton_tui.local_cluster import LocalCluster, only_one_here, programs
from sexton_tui.terminal import tell

if TYPE_CHECKING:
    from sexton.cluster_views import QueueView
    from sexton.http_addresses import HttpAddress
    from sexton.jobfiles.load import LoadedJobs
    from sexton.process_settings import ProcessSettings
    from sexton.store.protocol import Store

FOLDER = Path(".sexton")
_READY_WITHIN = 60.0
_REPORT_EVERY = 5.0
_LAST_RUNS_WITHIN = 15.0
_POLL = 0.2
_FRESH = timedelta(seconds=5)  # what a node said that was silent for longer is no longer told as so
_QUEUES_TOLD = 5
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Running:
    """What the parts of ``up`` share."""

    store: Store
    cluster: LocalCluster
    stop: threading.Event
    began: datetime


def up(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="Job files to apply first.")] = Path("jobs"),
    schedulers: Annotated[int, typer.Option(min=1, max=16, help="How many nodes.")] = 3,
    workers: Annotated[int, typer.Option(min=0, max=64, help="How many workers.")] = 2,
    lasts: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="Stop by itself after this.")] = None,
    console: Annotated[bool, typer.Option(help="Show the console, where there is a terminal.")] = True,
    strategy: Annotated[
        Strategy | None, typer.Option(help="Set the cluster's strategy first.", show_default="as it is set")
    ] = None,
    http: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Serve metrics on this PORT, and on those after it.")
    ] = None,
) -> int:
    """Migrate, apply PATH (nothing is retired), start nodes and workers, and show the console.

    Leaving the console stops all; without it, Ctrl-C does. With --for it stops by itself, prints what happened, and
    exits 1 where the audit finds a difference. Data and logs stay in .sexton/.
    """
    from sexton.jobfiles.load import load_job_files

    duration = _duration(lasts)
    settings = invocation_of(ctx).settings(http=http)
    wanted = load_job_files([path])
    with only_one_here(FOLDER), _opened(settings) as store:
        parts = programs(schedulers, workers, settings.http)
        cluster = LocalCluster(FOLDER, parts, _environment(settings), wanted.import_roots)
        running = _Running(store, cluster, threading.Event(), store.now())
        if strategy is not None and store.terms.cluster().strategy is not strategy:
            store.edits.set_setting("strategy", strategy.value, actor())
        with _stopping_on_signals(running):
            cluster.start()
            try:
                _wait_until_ready(running, schedulers, workers)
                _apply(store, wanted, path)
                _tell_metrics(settings.http, schedulers + workers)
                began = store.now()
                if console and sys.stdin.isatty() and sys.stderr.isatty():
                    _show_console(running, settings, duration)
                else:
                    _watch(running, duration)
                if duration is None:
                    return 0
                ended = _asked_again(store.now)
                if not running.stop.is_set():
                    _wait_for_last_runs(running, ended)
            finally:
                _stop(running)
        return _asked_again(lambda: _sum_up(store, began, ended))


def _duration(text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"--for: {error}") from None


def _environment(settings: ProcessSettings) -> dict[str, str]:
    """By the environment, not by arguments: an address may hold a password, and arguments are for all to see."""
    from sexton.alert_settings import alert_environment
    from sexton.process_settings import SECRETS, access_environment

    files = {f"SEXTON_{key.upper()}_FILE": "" for key in SECRETS}  # read here already
    values = {"SEXTON_DATABASE": settings.database, "SEXTON_COORDINATOR": settings.coordinator}
    return {**files, **values, **access_environment(settings.coordinator_access), **alert_environment(settings.alerts)}


@contextmanager
def _opened(settings: ProcessSettings) -> Iterator[Store]:
    """The store, with the schema brought up to date."""
    from sexton.store.schema import upgrade

    upgrade(settings.database)
    store = _open(settings)
    try:
        yield store
    finally:
        store.close()


def _open(settings: ProcessSettings) -> Store:
    from sexton.store import open_store
    from sexton.store.protocol import StoreOptions

    return open_store(StoreOptions(settings.database, application="sexton up"))


def _apply(store: Store, wanted: LoadedJobs, path: Path) -> None:
    """Once a leader is there, so that the very first ticks are on time. Nothing is retired."""
    from sexton.jobfiles.plan import plan_changes

    current = store.edits.current_jobs()
    plan = plan_changes(wanted, current)
    if plan.changes:
        store.edits.edit(plan.changes, actor())
    tell(f"{path}: {plan.summary()}")
    queues = {job.name: job.definition.queue for job in current}
    _tell_unserved(store, queues | {job.definition.name: job.definition.queue for job in wanted.jobs})


def _tell_metrics(first: HttpAddress | None, count: int) -> None:
    """Where the processes serve their metrics."""
    if first is None:
        return
    if first.port == 0:
        tell(f"metrics: each process says its port in {FOLDER / 'logs'}")
        return
    rest = "" if count == 1 else f", and so on to port {first.after(count - 1).port}, in the order of the names"
    tell(f"metrics: http://{first}/metrics{rest}")


def _tell_unserved(store: Store, queues: Mapping[str, str]) -> None:
    """Which queues of the jobs (by name) no worker serves, here or elsewhere."""
    served = {queue.name for queue in store.reads.queues() if queue.workers}
    unserved = Counter(queue for queue in queues.values() if queue not in served)
    for queue, jobs in sorted(unserved.items())[:_QUEUES_TOLD]:
        waits = f"no worker serves queue {queue}: the claims of {counted(jobs, 'job')} wait"
        tell(f"{waits}; to serve it: sexton worker --queues {queue}")
    if len(unserved) > _QUEUES_TOLD:
        tell(f"... and of {counted(len(unserved) - _QUEUES_TOLD, 'more queue')}")


def _stopping_on_signals(running: _Running) -> AbstractContextManager[None]:
    """Ctrl-C, SIGTERM and a closed terminal stop the cluster in order; a second one does not wait for runs."""

    def act(_: signal.Signals) -> None:
        if running.stop.is_set():
            running.cluster.hurry()
        running.stop.set()

    return on_ending_signals(act)


def _stop(running: _Running) -> None:
    running.stop.set()
    busy = 0
    with suppress(DatabaseUnreachable):  # whatever the database does, the processes are ended in order
        busy = _asked_again(running.store.reads.overview).running
    if busy:
        tell(f"sexton: stopping; {counted(busy, 'run')} still going (Ctrl-C gives back what runs)")
    killed = running.cluster.stop()
    if killed:
        tell(f"sexton: {', '.join(killed)} did not stop in time and was killed")


def _asked_again(ask: Callable[[], _Answer]) -> _Answer:
    """The answer. A connection that died in the database's restart is found dead by the call that uses it next."""
    try:
        return ask()
    except DatabaseUnreachable:
        return ask()


def _wait_until_ready(running: _Running, schedulers: int, workers: int) -> None:
    """A leader, every node and every worker, or a sentence about which is missing."""

    def is_ready() -> bool:
        overview = running.store.reads.overview()
        nodes = [node for node in overview.nodes if node.started_at >= running.began]
        leads = overview.leader in {node.name for node in nodes}
        decides = all(node.role == "racer" for node in nodes) if overview.strategy == Strategy.RACE else leads
        fresh = [worker for worker in overview.workers if worker.started_at >= running.began]
        return decides and len(nodes) >= schedulers and len(fresh) >= workers

    if not _until(is_ready, running.stop, _READY_WITHIN) and not running.stop.is_set():
        tell(f"sexton: not all processes are ready; their logs are in {FOLDER / 'logs'}")
        for name in ("node-1", "worker-1"):
            tell(running.cluster.log_tail(name))
        return
    if not running.stop.is_set():
        overview = running.store.reads.overview()
        nodes = counted(schedulers, "node")
        how = f"{nodes} race" if overview.strategy == Strategy.RACE else f"{overview.leader} leads {nodes}"
        tell(f"sexton is up: {how}, {counted(workers, 'worker')}; `sexton console` shows them")


def _show_console(running: _Running, settings: ProcessSettings, duration: timedelta | None) -> None:
    from sexton_tui.console.app import ConsoleOptions, run_console

    def kill_leader() -> str:
        store = _open(settings)  # the console asks from a thread of its own
        try:
            leader = store.terms.cluster().leader
        finally:
            store.close()
        pid = running.cluster.kill(leader) if leader is not None else None
        return "nobody leads now" if pid is None else f"killed {leader} (pid {pid}) with SIGKILL"

    clock = SystemClock()
    over_at = None if duration is None else clock.elapsed() + duration.total_seconds()
    run_console(
        ConsoleOptions(
            database_url=settings.database,
            kill_leader=kill_leader,
            leaving_ends="The nodes and workers that `sexton up` started are stopped; what runs is waited for.",
            is_over=lambda: running.stop.is_set() or (over_at is not None and clock.elapsed() >= over_at),
        )
    )


def _watch(running: _Running, duration: timedelta | None) -> None:
    """A line every few seconds, until the time is over or a signal comes."""
    clock = SystemClock()
    until = None if duration is None else clock.elapsed() + duration.total_seconds()
    while not running.stop.is_set():
        now = clock.elapsed()
        if until is not None and now >= until:
            return
        if not running.stop.wait(_REPORT_EVERY if until is None else min(_REPORT_EVERY, until - now)):
            try:
                _asked_again(lambda: _report(running))
            except DatabaseUnreachable as error:  # the processes wait for it, and so does this
                tell(f"sexton: {error}")


def _report(running: _Running) -> None:
    overview = running.store.reads.overview()
    leader = f"{overview.leader} leads, term {overview.term}" if overview.leader else "nobody leads"
    if overview.strategy == Strategy.RACE:
        racers = sum(node.role == "racer" and node.age <= _FRESH for node in overview.nodes)
        leader = f"{counted(racers, 'node')} race{'s' if racers == 1 else ''}, term {overview.term}"
    late = overview.lateness
    told = f"p50 {_shown(late.p50)}, p99 {_shown(late.p99)}" if late.count else "nothing ran yet"
    print(
        f"{overview.now:%H:%M:%S}  {leader}; {overview.ahead} claims ahead, {overview.running} running; "
        f"late {told}; failed {overview.failed_last_hour}{_unserved_words(overview.queues_without_workers)}",
        flush=True,
    )


def _unserved_words(queues: Sequence[QueueView]) -> str:
    """The end of a report's line: what waits where no worker serves it; empty where all are served."""
    if not queues:
        return ""
    names = ", ".join(queue.name for queue in queues[:_QUEUES_TOLD]) + (", ..." if len(queues) > _QUEUES_TOLD else "")
    due = counted(sum(queue.due for queue in queues), "claim")
    return f"; no worker serves queue{'s' if len(queues) > 1 else ''} {names}: {due} due"


def _wait_for_last_runs(running: _Running, ended: datetime) -> None:
    """What fell due before the end is run before the workers are stopped."""

    def all_started() -> bool:
        oldest = running.store.reads.overview().oldest
        return oldest is None or oldest > ended

    _until(all_started, running.stop, _LAST_RUNS_WITHIN)


def _until(condition: Callable[[], bool], stop: threading.Event, seconds: float) -> bool:
    for _ in range(int(seconds / _POLL)):
        if condition():
            return True
        if stop.wait(_POLL):
            return False
    return condition()


def _sum_up(store: Store, began: datetime, ended: datetime) -> int:
    from sexton.store.ledger_snapshot import audit_ledger
    from sexton.store.read_span import read_span
    from sexton_tui.cli.audit import show_report
    from sexton_tui.cli.output import Output

    with store.reads.snapshot() as connection:
        span = read_span(connection, began, ended, ran_upto=store.now())
    takeovers = [takeover for takeover in store.reads.takeovers() if takeover.taken_at >= began]
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(span.runs.items())) or "none"
    print(f"From {instant_text(began)} to {instant_text(ended)}:")
    print(f"  ticks decided  {span.ticks_decided} ({span.ticks_fired} to run, {span.ticks_skipped} not)")
    print(f"  runs           {outcomes}")
    print(f"  lateness       p50 {_shown(span.lateness_p50)}, p99 {_shown(span.lateness_p99)}")
    print(f"  takeovers      {len(takeovers)}")
    report = audit_ledger(store, began, ended)
    print("  audit          ", end="")
    show_report(report, Output.TABLE)
    return 0 if report.is_clean else 1


def _shown(lateness: timedelta | None) -> str:
    return "-" if lateness is None else format_duration(lateness)
