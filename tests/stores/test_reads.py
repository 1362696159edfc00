from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import delete, insert, select, text, update

from sexton.claims import Origin, State
from sexton.cluster_views import LostRun
from sexton.decisions import SkipReason
from sexton.errors import NotFound
from sexton.store import read_cluster, tables
from sexton.store.reads import LedgerReader
from sexton.terms import EndedBy
from sexton.views import ClaimView, JobFilter, RunFilter, SkipView
from tests.support import scene
from tests.support.scene import MINUTE, NOW, SECOND, TAKEOVER_AT
from tests.support.scene_ledger import Ledger


def test_the_overview_says_who_leads_and_how_it_stands(ledger: Ledger) -> None:
    overview = ledger.reader.overview()
    assert (overview.leader, overview.term, overview.leader_since) == ("sched-2", 41, TAKEOVER_AT)
    assert overview.predecessor == "sched-1"
    assert overview.confirmation == "confirmed"
    assert overview.heartbeat_age == timedelta(milliseconds=300)
    assert overview.claims_upto == NOW + MINUTE
    assert [(node.name, node.role) for node in overview.nodes] == [
        ("sched-1", "follower"),
        ("sched-2", "leader"),
        ("sched-3", "follower"),
    ]
    assert overview.nodes[2].clock_offset == timedelta(milliseconds=-3)
    assert overview.takeover_marks == (TAKEOVER_AT,)
    assert (overview.jobs, overview.paused) == (9, 1)
    assert [job.name for job in overview.quarantined] == ["broken-feed"]
    assert [proposal.job for proposal in overview.proposals] == ["gl-export"]
    assert overview.counters["lost_races"] == 3


def test_the_overview_counts_by_state(ledger: Ledger) -> None:
    overview = ledger.reader.overview()
    assert (overview.due, overview.ahead) == (3, 7)
    assert (overview.running, overview.parked) == (3, 1)
    assert overview.failed_last_hour == 7
    assert overview.oldest == NOW.replace(minute=10, second=0, microsecond=0)


def test_a_queue_without_a_worker_shows(ledger: Ledger) -> None:
    overview = ledger.reader.overview()
    assert [queue.name for queue in overview.queues] == ["default", "gpu", "reports"]
    assert [queue.name for queue in overview.queues_without_workers] == ["gpu"]
    default = overview.queues[0]
    assert (default.workers, default.slots, default.busy) == (2, 8, 3)


def test_a_worker_not_seen_for_its_lease_serves_no_queue(ledger: Ledger) -> None:
    with ledger.write() as connection:
        connection.execute(update(tables.workers).values(seen_at=NOW - 31 * SECOND))
    assert [queue.name for queue in ledger.reader.overview().queues_without_workers] == ["default", "gpu"]


def test_catch_up_is_counted_apart_from_live_claims_and_over_priorities(ledger: Ledger) -> None:
    with ledger.write() as connection:
        for number, priority in enumerate((5, -3, 0)):
            tick = NOW - timedelta(days=1) + number * SECOND
            caught_up = scene._claim(2, tick, State.READY, origin=int(Origin.CATCH_UP), priority=priority)
            connection.execute(insert(tables.claims).values(**caught_up))
            connection.execute(insert(tables.claims).values(**scene._claim(5, tick, State.READY, priority=priority)))
    queue = ledger.reader.queues()[0]
    assert (queue.name, queue.catch_up, queue.due, queue.ahead) == ("default", 3, 3, 7)
    assert queue.oldest == NOW - timedelta(days=1)


def test_blocked_claims_wait_for_nobody(ledger: Ledger) -> None:
    with ledger.write() as connection:
        connection.execute(update(tables.claims).where(tables.claims.c.queue == "gpu").values(blocked=True))
    assert ledger.reader.overview().queues_without_workers == ()


def test_lateness_keeps_its_peak_by_the_minute(ledger: Ledger) -> None:
    overview = ledger.reader.overview()
    by_minute = {minute.at: minute.lateness for minute in overview.minutes}
    peak = by_minute[TAKEOVER_AT.replace(second=0)]
    assert peak.max is not None
    assert peak.max > timedelta(milliseconds=300)
    quiet = by_minute[TAKEOVER_AT.replace(minute=20, second=0)]
    assert quiet.max is not None
    assert quiet.max < timedelta(milliseconds=50)
    assert overview.lateness.p50 is not None
    assert overview.lateness.p99 is not None
    assert overview.lateness.p50 < overview.lateness.p99 < timedelta(milliseconds=60)
    since = NOW.replace(second=0, microsecond=0) - MINUTE
    newest = ledger.reader.overview(lateness_since=since)
    assert [minute.at for minute in newest.minutes] == [since, since + MINUTE]
    assert newest.lateness == overview.lateness  # of 5 minutes, however few minutes are asked for


def test_a_retry_s_planned_delay_is_no_lateness(ledger: Ledger) -> None:
    before = ledger.reader.overview()
    assert before.lateness.count > 2
    with ledger.write() as connection:
        newest = connection.execute(select(tables.runs).order_by(tables.runs.c.finished_at.desc()).limit(1)).one()
        retry = {**newest._mapping, "token": 10**9, "attempt": 2, "lateness_ms": 3_600_000}
        connection.execute(insert(tables.runs).values(**retry))
    after = ledger.reader.overview()
    assert (after.lateness, after.minutes) == (before.lateness, before.minutes)


@pytest.mark.parametrize(
    ("values", "p50", "p99", "highest"), [([5], 5, 5, 5), ([1, 2, 3, 100], 2, 100, 100), (range(1, 201), 100, 198, 200)]
)
def test_percentiles_are_by_nearest_rank(values: list[int], p50: int, p99: int, highest: int) -> None:
    lateness = read_cluster.summarise(list(values))
    expected = [timedelta(milliseconds=number) for number in (p50, p99, highest)]
    assert [lateness.p50, lateness.p99, lateness.max] == expected


def test_jobs_that_fail_again_and_again_are_named(ledger: Ledger) -> None:
    (failing,) = ledger.reader.failing()
    assert (failing.name, failing.failed) == ("sync-eu", 7)
    assert "connection refused" in failing.error


def test_a_job_whose_last_run_failed_is_named_until_it_succeeds_or_is_retired(ledger: Ledger) -> None:
    def ran(seconds: int, outcome: State, token: int) -> list[tuple[str, int]]:
        with ledger.write() as connection:
            one = connection.execute(select(tables.runs).where(tables.runs.c.job_id == 2).limit(1)).one()
            when = NOW + seconds * SECOND
            values = {"token": token, "scheduled_at": when, "finished_at": when, "outcome": int(outcome)}
            connection.execute(insert(tables.runs).values(**{**one._mapping, **values}))
        return [(job.name, job.failed) for job in ledger.reader.failing() if job.name != "sync-eu"]

    assert ran(1, State.FAILED, 10**9) == [("minutely-sync", 1)]
    assert ran(2, State.READY, 10**9 + 1) == [("minutely-sync", 1)]  # to be tried again
    assert ran(3, State.TIMED_OUT, 10**9 + 2) == [("minutely-sync", 2)]
    assert ran(4, State.SUCCEEDED, 10**9 + 3) == []
    assert ran(5, State.FAILED, 10**9 + 4) == [("minutely-sync", 1)]
    with ledger.write() as connection:
        connection.execute(update(tables.jobs).where(tables.jobs.c.job_id == 2).values(retired_at=NOW))
    assert [job.name for job in ledger.reader.failing()] == ["sync-eu"]


def test_a_term_that_was_handed_over_ended_at_its_hand_over_not_when_the_next_was_taken(ledger: Ledger) -> None:
    takeovers, handed_over = tables.takeovers, TAKEOVER_AT - 5 * SECOND
    with ledger.write() as connection:
        resigned = {"predecessor_ended": "resigned", "gap_from": handed_over}
        connection.execute(update(takeovers).where(takeovers.c.term == 41).values(**resigned))
    _, before, *_ = ledger.reader.takeovers(3)
    assert (before.term, before.until, before.ended_by) == (40, handed_over, EndedBy.RESIGNED)


def test_runs_that_were_lost_lately_are_named_with_job_and_worker(ledger: Ledger) -> None:
    assert ledger.reader.overview().lost == ()
    runs = tables.runs
    with ledger.write() as connection:
        newest = connection.execute(select(runs).order_by(runs.c.finished_at.desc()).limit(1)).one()
        lost = {**newest._mapping, "job_id": 3, "worker_id": 2, "outcome": 6}
        for token, minutes in ((10**9, 59), (10**9 + 1, 61), (10**9 + 2, 1)):
            ended = NOW - minutes * MINUTE
            connection.execute(
                insert(runs).values(**{**lost, "token": token, "scheduled_at": ended - MINUTE, "finished_at": ended})
            )
    assert ledger.reader.overview().lost == tuple(
        LostRun("nightly-billing", NOW - (minutes + 1) * MINUTE, "worker-2", NOW - minutes * MINUTE)
        for minutes in (1, 59)
    )


def test_a_job_page_has_next_ticks_strip_and_total(ledger: Ledger) -> None:
    page = ledger.reader.jobs_page(limit=4)
    assert page.total == 9
    assert [job.name for job in page.jobs] == ["backup-db", "broken-feed", "gl-export", "heartbeat-ping"]
    backup, broken, export, ping = page.jobs
    assert (backup.state, backup.detail, backup.next_ticks) == ("paused", "ana: storage moves tonight", ())
    assert broken.state == "quarantined"
    assert export.next_ticks[0] == NOW.replace(minute=35, second=0, microsecond=0)
    assert len(ping.strip) == 30
    assert ping.last_run is not None
    assert ping.last_run.outcome is State.SUCCEEDED
    rest = ledger.reader.jobs_page(offset=4, limit=50)
    assert len(rest.jobs) == 5


@pytest.mark.parametrize(
    ("which", "names"),
    [
        (JobFilter(text="SYNC"), ["minutely-sync", "sync-eu"]),
        (JobFilter(text="%"), []),
        (JobFilter(state="paused"), ["backup-db"]),
        (JobFilter(state="quarantined"), ["broken-feed"]),
        (JobFilter(queue="gpu"), ["train-model"]),
        (JobFilter(owner="payroll"), ["gl-export", "nightly-billing"]),
        (JobFilter(tag="gpu"), ["train-model"]),
        (JobFilter(tag="gp"), []),
    ],
)
def test_job_filters(ledger: Ledger, which: JobFilter, names: list[str]) -> None:
    page = ledger.reader.jobs_page(which)
    assert [job.name for job in page.jobs] == names
    assert page.total == len(names)


def test_a_strip_tells_the_newest_runs_oldest_first(ledger: Ledger) -> None:
    with ledger.write() as connection:
        newest = select(tables.runs.c.token).where(tables.runs.c.job_id == 2).order_by(tables.runs.c.token.desc())
        token = connection.execute(newest.limit(1)).scalar_one()
        connection.execute(update(tables.runs).where(tables.runs.c.token == token).values(outcome=int(State.LOST)))
    (job,) = ledger.reader.jobs_page(JobFilter(text="minutely")).jobs
    assert job.strip[-1] is State.LOST
    assert set(job.strip[:-1]) == {State.SUCCEEDED}


def test_a_job_opens_into_revisions_pauses_and_claims(ledger: Ledger) -> None:
    detail = ledger.reader.job("Backup-DB")
    assert detail.definition.name == "backup-db"
    assert [pause.why for pause in detail.pauses] == ["storage moves tonight"]
    assert [revision.revision for revision in detail.revisions] == [1]
    with pytest.raises(NotFound, match="backup-db"):
        ledger.reader.job("backup-database")


def test_claims_written_ahead_stand_apart_from_what_fell_due(ledger: Ledger) -> None:
    at = NOW.replace(second=0, microsecond=0)
    with ledger.write() as connection:
        for minutes in range(2, 40):
            connection.execute(insert(tables.claims).values(**scene._claim(2, at + minutes * MINUTE, State.READY)))
    page = ledger.reader.ticks_page("minutely-sync", limit=5, upcoming=3)
    assert [claim.scheduled_at for claim in page.ahead] == [at + minutes * MINUTE for minutes in (1, 2, 3)]
    assert [claim.scheduled_at <= NOW for claim in page.claims] == [True] * 5
    assert ledger.reader.ticks_page("minutely-sync", before=page.older, limit=5).ahead == ()
    newest = ledger.reader.job("minutely-sync").claims
    assert newest[0].scheduled_at == page.claims[0].scheduled_at


def test_ticks_interleave_claims_and_skips_page_by_page(ledger: Ledger) -> None:
    whole = ledger.reader.ticks_page("minutely-sync", limit=500)
    assert whole.older is None
    assert all(claim.scheduled_at <= NOW for claim in whole.claims)
    assert [skip.reason for skip in whole.skips] == [SkipReason.MERGED]
    assert whole.skips[0].count == 12
    assert whole.upcoming[0] > NOW + MINUTE
    claims: list[ClaimView] = []
    skips: list[SkipView] = []
    before = None
    for _ in range(100):
        page = ledger.reader.ticks_page("minutely-sync", before=before, limit=7)
        claims += page.claims
        skips += page.skips
        before = page.older
        if before is None:
            break
    assert tuple(claims) == whole.claims
    assert tuple(skips) == whole.skips


def test_runs_page_by_key_and_see_each_once(ledger: Ledger) -> None:
    total = len(scene._runs(NOW))
    tokens, before = [], None
    while True:
        page = ledger.reader.runs_page(before=before, limit=50)
        tokens += [run.token for run in page.runs]
        before = page.older
        if before is None:
            break
    assert len(tokens) == len(set(tokens)) == total
    end = ledger.reader.oldest_runs(limit=50)
    assert ([run.token for run in end.runs], end.older) == (tokens[-50:], None)


def test_run_filters(ledger: Ledger) -> None:
    failed = ledger.reader.runs_page(RunFilter(states=frozenset({State.FAILED})))
    assert {run.job for run in failed.runs} == {"sync-eu"}
    assert len(failed.runs) == 7
    assert ledger.reader.runs_page(RunFilter(queue="gpu")).runs == ()
    of_job = ledger.reader.runs_page(RunFilter(job="SYNC-EU", states=frozenset({State.SUCCEEDED, State.FAILED})))
    assert len(of_job.runs) == 7
    assert ledger.reader.oldest_runs(RunFilter(job="sync-eu"), 3).runs == of_job.runs[-3:]
    assert (
        ledger.reader.oldest_runs(RunFilter(states=frozenset({State.FAILED}), letters="sync"), 3).runs
        == (failed.runs[-3:])
    )
    for which, jobs in ((RunFilter(owner="infra"), set()), (RunFilter(tag="infra"), {"heartbeat-ping"})):
        assert {run.job for run in ledger.reader.runs_page(which).runs} == jobs
        assert {claim.job for claim in ledger.reader.running(which=which)} <= jobs


def test_a_search_that_ends_before_the_ledger_says_where_to_go_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sexton.store.read_runs.SEARCHED_RUNS", 40)
    found, before, pages = 0, None, 0
    while True:
        page = ledger.reader.runs_page(RunFilter(queue="default", states=frozenset({State.FAILED})), before=before)
        found += len(page.runs)
        pages += 1
        before = page.older
        if before is None:
            break
    assert found == 7
    assert pages == 1  # failures have an index: 40 of them hold all
    pages, before, found = 0, None, 0
    which = RunFilter(states=frozenset({State.SUCCEEDED, State.FAILED}), queue="default")
    while True:
        page = ledger.reader.runs_page(which, before=before, limit=100)
        found, pages, before = found + len(page.runs), pages + 1, page.older
        if before is None:
            break
    assert found == len(scene._runs(NOW))
    assert pages > 4


def test_running_claims_and_a_claim_with_its_runs(ledger: Ledger) -> None:
    running = ledger.reader.running()
    assert [claim.job for claim in running] == ["weekly-report", "nightly-billing", "heartbeat-ping"]
    run = ledger.reader.runs_page(limit=1).runs[0]
    detail = ledger.reader.claim(run.job, run.scheduled_at)
    assert detail.claim.state is State.SUCCEEDED
    assert [one.token for one in detail.runs] == [run.token]
    with pytest.raises(NotFound, match="sexton ticks"):
        ledger.reader.claim(run.job, run.scheduled_at + timedelta(microseconds=1))


def test_output_tails_come_as_bytes(ledger: Ledger) -> None:
    run = ledger.reader.runs_page(RunFilter(states=frozenset({State.FAILED})), limit=1).runs[0]
    output = ledger.reader.run_output(run.token)
    assert output.stderr == b"connection refused\n"
    with ledger.write() as connection:
        connection.execute(delete(tables.outputs))
    assert ledger.reader.run_output(run.token).stdout is None
    with pytest.raises(NotFound):
        ledger.reader.run_output(1)


def test_takeovers_tell_gap_end_and_sums(ledger: Ledger) -> None:
    newest, before, _ = ledger.reader.takeovers()
    assert (newest.term, newest.until, newest.ended_by) == (41, None, None)
    assert newest.gap == timedelta(minutes=12, seconds=40, milliseconds=40)
    totals = newest.totals
    assert (totals.jobs, totals.missed, totals.fired, totals.merged, totals.held) == (3, 16, 2, 12, 2)
    assert (before.term, before.until, before.ended_by) == (40, TAKEOVER_AT, EndedBy.VANISHED)
    assert before.totals.missed == 0


def test_a_takeover_opens_into_decisions_by_job(ledger: Ledger) -> None:
    detail = ledger.reader.takeover(41)
    assert [decision.job for decision in detail.decisions] == ["gl-export", "minutely-sync", "nightly-billing"]
    assert detail.decisions[1].reason == "latest: 02:13:00 fired, 12 merged into it"
    assert detail.is_whole
    assert not ledger.reader.takeover(41, limit=2).is_whole
    assert ledger.reader.takeover(40).takeover.ended_by is EndedBy.VANISHED
    with pytest.raises(NotFound):
        ledger.reader.takeover(7)


def test_events_page_newest_first(ledger: Ledger) -> None:
    events = ledger.reader.events_page(limit=2)
    assert [event.action for event in events] == ["term.taken", "job.quarantined"]
    older = ledger.reader.events_page(before=events[-1].event_id)
    assert [event.action for event in older] == ["job.paused", "job.applied"]
    assert older[0].detail == {"why": "storage moves tonight"}
    assert [event.job for event in ledger.reader.events_page(action="job.", job="sync-eu")] == ["sync-eu"]


def test_a_tick_that_fell_due_undecided_is_found(ledger: Ledger) -> None:
    assert ledger.reader.undecided().jobs == 0
    with ledger.write() as connection:
        for job_id, behind in ((2, 10 * MINUTE), (7, 30 * MINUTE), (3, MINUTE)):
            cursors = tables.cursors
            connection.execute(update(cursors).where(cursors.c.job_id == job_id).values(at=NOW - behind))
    undecided = ledger.reader.undecided()
    assert (undecided.jobs, undecided.oldest_job) == (1, "minutely-sync")  # backup-db is paused, billing not due
    assert undecided.oldest == NOW.replace(minute=21, second=0, microsecond=0)


def test_the_database_gives_the_time_when_no_clock_is_given(ledger: Ledger) -> None:
    overview = LedgerReader(ledger.engine.connect).overview()
    assert overview.now > NOW
    assert overview.nodes == ()  # silent for years by now


def test_ready_claims_are_found_by_their_indexes(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET enable_seqscan = off"))
            statement = text(f"EXPLAIN {read_cluster._LIVE_QUEUES}").bindparams(now=NOW)
        else:
            statement = text(f"EXPLAIN QUERY PLAN {read_cluster._LIVE_QUEUES}").bindparams(now=0)
        plan = "\n".join(" ".join(map(str, row)) for row in connection.execute(statement))
    assert "claims_ready" in plan
    assert "SCAN claims\n" not in plan
    assert "Seq Scan on claims" not in plan
