"""What screens, listings and the audit read: portable queries, no locks, one short read transaction a call.

Every call's cost is bounded however large the tables are: counts stop, pages go by key, filters that no index serves
look at a stretch of the newest rows. The queries themselves are in the ``read_*`` modules beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from sqlalchemy import Connection, event, func, select

from sexton.catch_up import CatchUp
from sexton.cluster_views import FailingJob, NodeView, Overview, OverviewPart, QueueView, Undecided, WorkerView
from sexton.errors import NotFound
from sexton.history_views import History, PastRevision
from sexton.hold_views import HoldDetail, HoldView
from sexton.holds import Pace
from sexton.job_page_views import DayOfRuns, OpenedJob, OpenedRevision, OpenedRuns, OpenedTicks
from sexton.job_standing import Standings
from sexton.member_views import OpenedQueue, OpenedWorker
from sexton.output_views import LiveOutput
from sexton.setting_views import SettingChange, SettingView, cluster_setting_views
from sexton.settings import settings_from_rows
from sexton.store import (
    read_catch_up,
    read_cluster,
    read_explain,
    read_history,
    read_holds,
    read_job_list,
    read_job_page,
    read_jobs,
    read_members,
    read_overview,
    read_runs,
    read_standing,
    read_takeovers,
    tables,
)
from sexton.store.read_overview import OverviewParts
from sexton.tick_facts import TickFacts
from sexton.views import (
    ClaimDetail,
    ClaimView,
    EventView,
    JobDetail,
    JobFilter,
    JobOrder,
    JobPage,
    RunFilter,
    RunKey,
    RunOutput,
    RunPage,
    TakeoverDetail,
    TakeoverView,
    TickPage,
)


class LedgerReader:
    """Read-only views of the ledger.

    `connect` gives a connection for one read transaction, ended when the block ends; it raises
    ``DatabaseUnreachable`` where the database does not answer. `now`: the ledger's clock, where that is not the
    database's own (SQLite has none; None means the host's).
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Connection]],
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._connecting = connect
        self._clock = now
        self._standing: datetime | None = None
        self.statements = 0
        """How many have been made so far, apart from where transactions begin and end."""

    @contextmanager
    def at(self, now: datetime) -> Iterator[None]:
        """All that is read meanwhile is read as of `now`, which was asked of the database a moment ago."""
        self._standing = now
        try:
            yield
        finally:
            self._standing = None

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._connecting() as connection:
            event.listen(connection, "before_cursor_execute", self._count)
            if connection.dialect.name == "sqlite" and self._clock is None:
                self._clock = lambda: datetime.now(UTC)
            yield connection

    def _count(self, *_: object) -> None:
        self.statements += 1

    def _given_now(self) -> datetime | None:
        return self._standing or (None if self._clock is None else self._clock())

    def _now(self, connection: Connection) -> datetime:
        given = self._given_now()
        if given is not None:
            return given
        return connection.execute(select(func.clock_timestamp(type_=tables.Instant()))).scalar_one()

    def snapshot(self) -> AbstractContextManager[Connection]:
        """One read transaction over the whole ledger, for the audit: one moment of it, however long it takes."""
        return self._connect()

    # --- the cluster ------------------------------------------------------------------------------

    def overview(self, lateness_since: datetime | None = None) -> Overview:
        """The cluster now. Minutes of lateness from `lateness_since` on (None: the last 30 minutes)."""
        return self.overview_parts(frozenset(), None, lateness_since).overview

    def overview_parts(
        self, which: frozenset[OverviewPart], known: OverviewParts | None, lateness_since: datetime | None = None
    ) -> OverviewParts:
        """The overview with who leads as of now, the parts of `which` read anew, the others as `known`; a statement
        each."""
        with self._connect() as connection:
            return read_overview.read_parts(connection, self._given_now(), which, known, lateness_since)

    def settings(self) -> tuple[SettingView, ...]:
        """Every setting of the cluster with its default, and who changed it when."""
        with self._connect() as connection:
            rows = connection.execute(select(tables.settings))
            changes = [SettingChange(row.key, row.value, row.changed_by, row.changed_at) for row in rows]
            coordinator = connection.execute(select(tables.cluster.c.coordinator)).scalar()
            return cluster_setting_views(changes, coordinator)

    def failing(self) -> tuple[FailingJob, ...]:
        """Jobs whose newest run failed within a day, the newest 20 such at most, by name."""
        with self._connect() as connection:
            return read_cluster.read_failing(connection, self._now(connection))

    def undecided(self, limit: int = 20_000) -> Undecided:
        """Ticks that fell due and have no decision; computes next ticks, so it is for a command."""
        with self._connect() as connection:
            return read_jobs.read_undecided(connection, self._now(connection), limit)

    def nodes(self) -> tuple[NodeView, ...]:
        """Nodes heard of in the last 10 minutes, by name."""
        with self._connect() as connection:
            return read_cluster.read_nodes(connection, self._now(connection))

    def workers(self, *, stopped: bool = False) -> tuple[WorkerView, ...]:
        """Workers heard of in the last 10 minutes, by name; with `stopped` also those that stopped cleanly."""
        with self._connect() as connection:
            return read_cluster.read_workers(connection, self._now(connection), stopped=stopped)

    def queues(self) -> tuple[QueueView, ...]:
        """Queues with claims to grant or a worker, by name."""
        with self._connect() as connection:
            now = self._now(connection)
            rows = connection.execute(select(tables.settings))
            lease = settings_from_rows({row.key: row.value for row in rows}).lease
            return read_cluster.read_queues(connection, now, read_cluster.read_workers(connection, now), lease)

    def opened_worker(self, name: str) -> OpenedWorker:
        """The workers of that name and what they run. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_members.read_opened_worker(connection, self._now(connection), name)

    def opened_queue(self, name: str) -> OpenedQueue:
        """A queue by priority, who serves it, what waits longest. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_members.read_opened_queue(connection, self._now(connection), name)

    # --- jobs and ticks ---------------------------------------------------------------------------

    def jobs_page(self, which: JobFilter | None = None, offset: int = 0, limit: int = 50) -> JobPage:
        """Jobs by name, with next ticks and newest runs."""
        with self._connect() as connection:
            return read_jobs.read_job_page(connection, self._now(connection), which or JobFilter(), offset, limit)

    def job_list(
        self,
        which: JobFilter,
        order: JobOrder = JobOrder.NAME,
        offset: int = 0,
        limit: int = 128,
        total: int | None = None,
    ) -> JobPage:
        """A window over the jobs that are not retired, with next tick and newest runs; `total` is counted where it is
        None."""
        with self._connect() as connection:
            return read_job_list.read_job_list(connection, self._now(connection), which, order, offset, limit, total)

    def job_names(self, text: str, limit: int = 20) -> tuple[str, ...]:
        """Jobs whose names hold the letters of `text` in their order, the shortest names first."""
        with self._connect() as connection:
            return read_jobs.read_names(connection, text, limit)

    def job(self, name: str, ticks: int = 5) -> JobDetail:
        """One job opened. Raises ``NotFound`` with near names."""
        with self._connect() as connection:
            now = self._now(connection)
            view, definition = read_jobs.read_job(connection, now, name, ticks)
            return JobDetail(
                job=view,
                definition=definition,
                cursor=read_jobs.read_cursor(connection, view.job_id),
                revisions=read_jobs.read_revisions(connection, view.job_id, 20),
                pauses=read_jobs.read_pauses(connection, view.job_id, 20),
                claims=read_runs.read_job_claims(connection, view.job_id, None, 20, upto=now),
            )

    def ticks_page(self, job: str, before: datetime | None = None, limit: int = 50, upcoming: int = 5) -> TickPage:
        """What was decided about a job's ticks, newest first, and `upcoming` of those to come. Raises ``NotFound``."""
        with self._connect() as connection:
            now = self._now(connection)
            view, _ = read_jobs.read_job(connection, now, job, 0)
            claims = read_runs.read_job_claims(connection, view.job_id, before, limit + 1, upto=now)
            skips = read_runs.read_job_skips(connection, view.job_id, before, limit + 1)
            instants = sorted([c.scheduled_at for c in claims] + [s.upto for s in skips], reverse=True)
            older = instants[limit - 1] if len(instants) > limit else None
            if older is not None:
                claims = tuple(claim for claim in claims if claim.scheduled_at >= older)
                skips = tuple(skip for skip in skips if skip.upto >= older)
            ahead: tuple[ClaimView, ...] = ()
            if before is None:
                ahead = read_runs.read_claims_ahead(connection, view.job_id, now, upcoming)
            ticks: tuple[datetime, ...] = ()
            if view.state == "active" and before is None:
                cursor = read_jobs.read_cursor(connection, view.job_id)
                schedule = read_jobs.read_schedule_text(connection, view.job_id, view.revision)
                ticks = read_jobs.upcoming(schedule, max(cursor or now, now), upcoming)
            earlier = None if older is not None else read_jobs.read_earlier_job(connection, view.job_id)
            return TickPage(view, claims, skips, ahead, ticks, older, earlier)

    def claim(self, job: str, scheduled_at: datetime) -> ClaimDetail:
        """A claim with its runs. Raises ``NotFound``."""
        with self._connect() as connection:
            row = read_jobs.read_job_row(connection, job)
            claim = read_runs.read_claim(connection, row.job_id, scheduled_at)
            if claim is None:
                raise NotFound(
                    f"job {row.name!r} has no claim for {scheduled_at.isoformat()}",
                    hint=f"`sexton ticks {row.name}` lists its ticks",
                )
            return ClaimDetail(claim, read_runs.read_claim_runs(connection, row.job_id, scheduled_at))

    def tick_facts(self, job: str, instant: datetime) -> TickFacts:
        """All that the ledger holds about one instant of a job, a tick or not. Raises ``NotFound`` for the job."""
        with self._connect() as connection:
            return read_explain.read_tick_facts(connection, self._now(connection), job, instant)

    def near_tick(self, job: str, which: str) -> datetime:
        """The job's ``last`` tick that fell due, or its ``next``. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_explain.read_near_tick(connection, self._now(connection), job, which)

    def zone(self, job: str) -> str:
        """The zone of the job's newest revision. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_explain.read_zone(connection, job)

    def standings(self, job_ids: Sequence[int], runs: int = 20) -> Standings:
        """What an edit of these jobs would meet: claims ahead, runs in flight, how long their last runs took."""
        with self._connect() as connection:
            return read_standing.read_standings(connection, self._now(connection), job_ids, runs)

    # --- one job, part by part, as a screen polls it ------------------------------------------------

    def opened_job(self, job: str, ticks: int = 10, runs: int = 150) -> OpenedJob:
        """What the job is, fires next, and how its newest runs went. Raises ``NotFound`` with near names."""
        with self._connect() as connection:
            return read_job_page.read_opened_job(connection, self._now(connection), job, ticks, runs)

    def opened_ticks(
        self, job: str, before: datetime | None = None, limit: int = 100, ahead: int = 5, *, around: bool = False
    ) -> OpenedTicks:
        """A page of its ticks, newest first; with `around` also the skipped ones with which `before` was decided on.
        Raises ``NotFound``."""
        with self._connect() as connection:
            now = self._now(connection)
            return read_job_page.read_opened_ticks(connection, now, job, before, limit, ahead, around=around)

    def opened_runs(self, job: str, before: datetime | None = None, limit: int = 100) -> OpenedRuns:
        """A page of its runs by their ticks, newest first. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_job_page.read_opened_runs(connection, job, before, limit)

    def days_of_runs(self, job: str, bounds: Sequence[datetime]) -> tuple[DayOfRuns, ...]:
        """How many runs it had between each two neighbours of `bounds` (ascending). Raises ``NotFound``."""
        with self._connect() as connection:
            return read_job_page.read_days_of_runs(connection, job, bounds)

    def opened_revision(self, job: str, revision: int) -> OpenedRevision:
        """One revision of a job beside the one before it. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_history.read_opened_revision(connection, job, revision)

    # --- the history of definitions ---------------------------------------------------------------

    def history(self, job: str | None = None, limit: int = 50) -> History:
        """What was done to the jobs of this name, or to all: newest first. Raises ``NotFound``."""
        with self._connect() as connection:
            if job is None:
                return read_history.read_history(connection, limit)
            return read_history.read_job_history(connection, job, limit)

    def past_revision(self, job: str, revision: int) -> PastRevision:
        """One revision of a job as it was. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_history.read_past_revision(connection, job, revision)

    # --- runs -------------------------------------------------------------------------------------

    def runs_page(self, which: RunFilter | None = None, before: RunKey | None = None, limit: int = 50) -> RunPage:
        """Runs that have ended, newest first."""
        with self._connect() as connection:
            return read_runs.read_runs(connection, which or RunFilter(), before, limit)

    def run_key_after(self, at: datetime, count: int) -> RunKey | None:
        """The `count`-th run that ended after `at`, or the last there is: where a window around `at` begins."""
        with self._connect() as connection:
            return read_runs.read_key_after(connection, at, count)

    def running(self, limit: int = 200, which: RunFilter | None = None) -> tuple[ClaimView, ...]:
        """Claims that run now, longest first; the states of `which` are not looked at."""
        with self._connect() as connection:
            return read_runs.read_running(connection, limit, which or RunFilter())

    def run_output(self, token: int) -> RunOutput:
        """A run and the tails of its output. Raises ``NotFound``."""
        with self._connect() as connection:
            output = read_runs.read_output(connection, token)
            if output is None:
                raise NotFound(f"there is no ended run with token {token}", hint="`sexton runs` lists them")
            return output

    def live_output(self, token: int) -> LiveOutput | None:
        """What a run that goes on has written, as its worker last wrote it down; None: it has not."""
        with self._connect() as connection:
            return read_runs.read_live_output(connection, token)

    def running_claim(self, token: int) -> ClaimView | None:
        """The claim that runs under this token; None: it has ended, or the token is another's."""
        with self._connect() as connection:
            return read_runs.read_running_claim(connection, token)

    def current_claim(self, job: str) -> ClaimView | None:
        """The claim of a job that runs now, the newest of them; else the oldest that waits to run, be it ahead of now.
        Raises ``NotFound`` for the job."""
        with self._connect() as connection:
            return read_runs.read_current_claim(connection, read_jobs.read_job_row(connection, job).job_id)

    # --- catch-up and proposals ---------------------------------------------------------------------

    def catch_up(self) -> CatchUp:
        """What waits under the catch-up budget, and when it will be done; counts up to 100,000 claims."""
        with self._connect() as connection:
            return read_catch_up.read_catch_up(connection, self._now(connection))

    def holds(self, job_id: int | None = None, limit: int = 100, *, answered: bool = False) -> tuple[HoldView, ...]:
        """Open proposals, oldest first; with `answered` all of them, the newest first."""
        with self._connect() as connection:
            return read_holds.read_holds(connection, self._now(connection), job_id, limit, answered=answered)

    def pace(self) -> Pace:
        """The catch-up budget as it stands: when what is decided to run now could start."""
        with self._connect() as connection:
            return read_holds.read_pace(connection, self._now(connection))

    def hold(self, proposal_id: int) -> HoldDetail:
        """One proposal with the ticks it holds. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_holds.read_hold(connection, self._now(connection), proposal_id)

    # --- takeovers and events ---------------------------------------------------------------------

    def takeovers(self, limit: int = 20) -> tuple[TakeoverView, ...]:
        """The newest takeovers with the sums of their decisions, newest first."""
        with self._connect() as connection:
            return read_takeovers.read_takeovers(connection, limit)

    def takeover(self, term: int, limit: int = 500) -> TakeoverDetail:
        """One takeover with its decisions by job. Raises ``NotFound``."""
        with self._connect() as connection:
            found = read_takeovers.read_takeovers(connection, 1, term)
            if not found:
                raise NotFound(f"there is no takeover with term {term}", hint="`sexton takeovers` lists them")
            decisions = read_takeovers.read_decisions(connection, term, limit + 1)
            return TakeoverDetail(found[0], decisions[:limit], is_whole=len(decisions) <= limit)

    def events_page(
        self, before: int | None = None, limit: int = 50, job: str = "", action: str = ""
    ) -> tuple[EventView, ...]:
        """The audit log, newest first; give the last event's id as `before` for the next page."""
        with self._connect() as connection:
            return read_takeovers.read_events(connection, before, limit, job, action)
