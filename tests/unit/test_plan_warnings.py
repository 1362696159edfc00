"""What a plan warns of, with numbers and a remedy; and of what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from sexton.job_standing import JobStanding, NamedTick
from sexton.jobfiles.plan_warnings import PlanWarning, WarningKind, warnings_of
from sexton.store.protocol import CurrentJob
from tests.support.plans import ALL_QUEUES, cluster, report_of

MINUTE = timedelta(minutes=1)


def job(name: str = "a", schedule: str = "0 5 * * *", more: str = "") -> str:
    return f"{name}: {{schedule: '{schedule}', command: [x]{', ' + more if more else ''}}}"


def warned(
    files: Sequence[str],
    current: Sequence[CurrentJob] = (),
    *standings: JobStanding,
    prune: bool = False,
    queues: frozenset[str] = ALL_QUEUES,
) -> list[PlanWarning]:
    return list(warnings_of(report_of(files, current, *standings, prune=prune, queues=queues)))


def only(warnings: list[PlanWarning], kind: WarningKind) -> PlanWarning:
    (one,) = warnings
    assert one.kind is kind
    return one


def test_a_plain_daily_job_gives_no_warning() -> None:
    assert warned([job()]) == []
    assert warned([job(more="queue: default")], cluster(job(more="priority: 1"))) == []


class TestChangedClocks:
    def test_a_shifted_and_an_ambiguous_tick_are_told_with_a_quiet_hour(self) -> None:
        one = only(warned([job(schedule="30 2 * * *", more="timezone: Europe/Berlin")]), WarningKind.CLOCK_CHANGE)
        assert "2027-03-28 02:30 does not exist and fires at 03:00 CEST (01:00Z)" in one.fact
        assert "2027-10-31 02:30 comes twice and fires the first time, 02:30 CEST (00:30Z)" in one.fact
        assert one.paste == ('schedule: "30 3 * * *"', "dst: {gap: skip, overlap: both}")
        assert one.numbers["count"] == 2

    @pytest.mark.parametrize(
        ("schedule", "more"),
        [
            ("30 2 * * *", "timezone: UTC"),
            ("30 4 * * *", "timezone: Europe/Berlin"),
            ("*/15 * * * *", "timezone: Europe/Berlin"),
            ("30 2 * * *", "timezone: Europe/Berlin, dst: {gap: skip, overlap: both}"),
            ("30 2 * 6 *", "timezone: Europe/Berlin"),
        ],
    )
    def test_other_zones_hours_and_choices_are_as_they_should_be(self, schedule: str, more: str) -> None:
        assert [one for one in warned([job(schedule=schedule, more=more)]) if one.kind == "clock_change"] == []

    def test_where_no_hour_is_given_the_choice_is_offered(self) -> None:
        one = only(warned([job(schedule="30 1-3 * * *", more="timezone: Europe/Berlin")]), WarningKind.CLOCK_CHANGE)
        assert one.paste == ("dst: {gap: skip, overlap: both}",)

    def test_a_change_of_something_else_does_not_tell_it_again(self) -> None:
        old = job(schedule="30 2 * * *", more="timezone: Europe/Berlin")
        new = job(schedule="30 2 * * *", more="timezone: Europe/Berlin, queue: default, priority: 1")
        assert warned([new], cluster(old)) == []

    def test_what_is_the_same_of_many_jobs_is_told_once(self) -> None:
        jobs = [job(f"j{n}", schedule="30 2 * * *", more="timezone: Europe/Berlin") for n in range(5)]
        assert only(warned(jobs), WarningKind.CLOCK_CHANGE).jobs == ("j0", "j1", "j2", "j3", "j4")

    def test_one_schedule_with_h_is_one_warning_whatever_it_draws(self) -> None:
        jobs = [job(f"j{n:03}", schedule="H 2 * * *", more="timezone: Europe/Berlin") for n in range(60)]
        one = only(warned(jobs), WarningKind.CLOCK_CHANGE)
        assert len(one.jobs) == 60
        assert one.fact.startswith("their H draws other times for each, and those of j000 tell of all: 2 ticks meet")
        assert one.paste == ('schedule: "H 3 * * *"', "dst: {gap: skip, overlap: both}")

    def test_zones_and_texts_are_told_apart(self) -> None:
        jobs = [
            job(f"{zone[-2:]}{n}", schedule=f"H {hour} * * *", more=f"timezone: {zone}")
            for zone, hour in (("Europe/Berlin", 2), ("Europe/Paris", 2), ("Europe/London", 1))
            for n in range(3)
        ]
        assert [len(one.jobs) for one in warned(jobs)] == [3, 3, 3]

    def test_the_other_hour_is_one_that_is_quiet_whatever_h_draws(self) -> None:
        """Where clocks change by half an hour, some of the minutes of an hour are touched and others are not."""
        jobs = [job(f"j{n:02}", schedule="H 2 * * *", more="timezone: Australia/Lord_Howe") for n in range(40)]
        one = only(warned(jobs), WarningKind.CLOCK_CHANGE)
        assert 0 < len(one.jobs) < 40
        moved = one.paste[0].split('"')[1]
        files = [job(f"j{n:02}", schedule=moved, more="timezone: Australia/Lord_Howe") for n in range(40)]
        assert warned(files) == []


class TestSparse:
    def test_a_monthly_job_with_skip_loses_a_month(self) -> None:
        one = only(warned([job(schedule="0 3 1 * *", more="missed: {policy: skip}")]), WarningKind.SPARSE)
        assert "28d or more apart, and policy skip makes up none that is more than 1m late" in one.fact
        assert one.paste == ("missed: {policy: all, within: 32d}",)

    def test_a_weekly_job_with_latest_is_made_up_and_a_monthly_one_is_told(self) -> None:
        assert warned([job(schedule="0 3 * * 1")]) == []
        one = only(warned([job(schedule="0 3 1 * *")]), WarningKind.SPARSE)
        assert "policy latest runs the newest missed one" in one.fact

    @pytest.mark.parametrize("policy", ["all", "hold", "latest"])
    def test_a_within_shorter_than_the_period_loses_what_the_policy_would_save(self, policy: str) -> None:
        one = only(
            warned([job(schedule="0 3 * * 1", more=f"missed: {{policy: {policy}, within: 2d}}")]), WarningKind.SPARSE
        )
        assert "expires after within, 2d" in one.fact
        kept = "all" if policy == "latest" else policy
        assert one.paste == (f"missed: {{policy: {kept}, within: 8d}}",)

    def test_the_default_of_within_is_named_as_such(self) -> None:
        (one,) = warned([job(schedule="0 3 1 * *", more="missed: {policy: hold}")])
        assert "1d, its default" in one.fact

    @pytest.mark.parametrize("policy", ["all", "hold"])
    def test_what_is_proposed_is_not_warned_of(self, policy: str) -> None:
        assert warned([job(schedule="0 3 1 * *", more=f"missed: {{policy: {policy}, within: 32d}}")]) == []


class TestSlow:
    @pytest.mark.parametrize(
        ("overlap", "then"),
        [
            ("skip", "overlap skip skips the ticks that find it still running, up to 1 of 2"),
            ("queue", "overlap queue lets them wait, and of more than 100 skips the oldest"),
            ("replace", "overlap replace ends each run before it is done, for the next one"),
            ("allow", "overlap allow has up to 2 of its runs at the same time"),
        ],
    )
    def test_runs_longer_than_the_period_are_told_with_what_happens_then(self, overlap: str, then: str) -> None:
        usual = JobStanding(1, durations=(7 * MINUTE,) * 20)
        files = [job(schedule="*/5 * * * *", more=f"overlap: {overlap}, priority: 1")]
        one = only(warned(files, cluster(job()), usual), WarningKind.SLOW)
        assert "its last 20 runs took 7m (p50) to 7m (p95), usually longer than the 5m between ticks" in one.fact
        assert then in one.fact
        assert one.paste == ("schedule: {every: 10m}",)

    def test_a_few_long_runs_are_told_as_such(self) -> None:
        usual = JobStanding(1, durations=(6 * MINUTE, 6 * MINUTE) + (MINUTE,) * 18)
        one = only(warned([job(schedule="*/5 * * * *")], cluster(job()), usual), WarningKind.SLOW)
        assert "sometimes longer" in one.fact

    def test_short_runs_and_unknown_ones_are_not(self) -> None:
        assert warned([job(schedule="*/5 * * * *")], cluster(job()), JobStanding(1, durations=(MINUTE,) * 20)) == []
        assert warned([job(schedule="*/5 * * * *")], cluster(job())) == []


class TestLikelyRenames:
    def test_it_is_told_with_the_key_to_add(self) -> None:
        one = only(warned([job("new")], cluster(job("old"))), WarningKind.LIKELY_RENAME)
        assert (one.jobs, one.paste) == (("new",), ("renamed_from: old",))
        assert "stays: both would run" in one.fact

    def test_it_is_told_where_prune_would_make_the_loss_final(self) -> None:
        one = only(warned([job("new")], cluster(job("old")), prune=True), WarningKind.LIKELY_RENAME)
        assert (one.jobs, one.paste) == (("new",), ("renamed_from: old",))
        assert "is retired: the new one begins without its cursor and history" in one.fact

    @pytest.mark.parametrize("prune", [False, True])
    def test_several_that_do_the_same_pair_by_their_names_each_once(self, prune: bool) -> None:
        current = cluster(job("backup-a"), job("backup-b"), job("backup-c"))
        one = only(
            warned([job("c-backup"), job("a-backup-full")], current, prune=prune),
            WarningKind.LIKELY_RENAME,
        )
        assert one.jobs == ("c-backup", "a-backup-full")
        assert one.paste == ("renamed_from: backup-c  # in c-backup", "renamed_from: backup-a  # in a-backup-full")


def test_a_queue_that_no_worker_serves_is_told_once_for_all_its_jobs() -> None:
    files = [job("a", more="queue: gpu"), job("b", more="queue: gpu"), job("c")]
    one = only(warned(files), WarningKind.NO_WORKER)
    assert (one.jobs, one.paste) == (("a", "b"), ("sexton worker --queues gpu",))
    assert "those there are serve default" in one.fact
    assert "no worker runs at all" in only(warned(files[2:], queues=frozenset()), WarningKind.NO_WORKER).fact
    assert warned([job("a", more="queue: gpu, priority: 1")], cluster(job("a", more="queue: gpu"))) == []


def test_a_secret_in_a_job_file_is_told_by_its_key_alone() -> None:
    one = only(warned([job(more="env: {DB_PASSWORD: hunter2}")]), WarningKind.SECRET)
    assert "env.DB_PASSWORD" in one.fact
    assert "hunter2" not in str(one)


def test_an_operators_pause_that_stays_is_told() -> None:
    current = cluster(job(), paused=["a"])
    one = only(warned([job(schedule="0 6 * * *")], current, JobStanding(1, pause_reason="storage")), WarningKind.PAUSED)
    assert one.paste == ("sexton resume a",)
    by_file = JobStanding(1, pause_reason="enabled: false")
    assert warned([job(schedule="0 6 * * *", more="enabled: false")], current, by_file) == []


def test_a_skip_next_that_the_edit_takes_back_is_told_with_how_to_have_it_again() -> None:
    named = tuple(NamedTick(datetime(2026, 12, day, 5, tzinfo=UTC), "ana") for day in (1, 2))
    standing = JobStanding(1, named=named)
    one = only(warned([job(schedule="0 6 * * *")], cluster(job()), standing), WarningKind.TAKEN_BACK)
    assert "takes back a skip-next: 2026-12-01T05:00:00Z and 1 more (ana) would run again" in one.fact
    assert one.paste == ("sexton skip-next a 2026-12-01T05:00:00Z", "sexton skip-next a 2026-12-02T05:00:00Z")
    assert warned([job()], cluster(job()), standing) == []  # no edit


def test_a_schedule_that_is_over_is_told() -> None:
    over = f"a: {{schedule: '0 5 * * *', end: '{datetime(2026, 1, 1, tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}', command: [x]}}"
    assert only(warned([over], cluster(job())), WarningKind.NEVER).jobs == ("a",)


def test_other_inputs_than_the_clusters_are_told_once_and_the_same_ones_never() -> None:
    """Invariant 8: ticks are a function of the revision and the inputs; here they are shown for other ones."""
    files = [job("a"), job("b")]
    one = only(list(warnings_of(report_of(files, inputs=("2026a/1/0.109", "2026b/1/0.109")))), WarningKind.OTHER_INPUTS)
    assert one.jobs == ()
    assert "computed with the inputs 2026b/1/0.109" in one.fact
    assert "of the cluster with 2026a/1/0.109" in one.fact
    for same in (("2026b/1/0.109", "2026b/1/0.109"), ("", "2026b/1/0.109"), ("2026b/1", "2026b/1/0.109")):
        assert warnings_of(report_of(files, inputs=same)) == ()
    assert warnings_of(report_of(files, cluster(*files), inputs=("2026a/1", "2026b/1"))) == ()


def test_a_crowd_is_told_with_what_to_paste_into_each() -> None:
    files = [job(f"j{n:03}", schedule="0 2 * * *") for n in range(200)]
    one = only(warned(files), WarningKind.CROWD)
    assert "at 02:00 UTC 200 jobs of the cluster fall due in one minute, more than 20" in one.fact
    assert one.paste == ('schedule: "H 2 * * *"  # instead of "0 2 * * *"',)
    assert one.numbers["schedules"] == {f"j{n:03}": "H 2 * * *" for n in range(200)}
    assert "in each of these" in one.remedy
    assert "`jitter: 15m`" in one.remedy


def test_a_crowd_in_an_hour_whose_clock_changes_gets_one_proposal_that_ends_both_warnings() -> None:
    def files(schedule: str) -> list[str]:
        return [job(f"j{n:03}", schedule=schedule, more="timezone: Europe/Berlin") for n in range(300)]

    clock, crowd = warned(files("0 2 * * *"))
    assert clock.paste[0] == 'schedule: "H 3 * * *"'
    assert crowd.paste[0].startswith('schedule: "H 3 * * *"  # instead of "0 2 * * *"')
    assert warned(files("H 3 * * *")) == []


def test_what_to_paste_names_its_jobs_where_the_same_text_becomes_two() -> None:
    moved = [job(f"b{n:02}", schedule="0 1 * * *", more="timezone: Europe/London") for n in range(30)]
    stays = [job(f"u{n:02}", schedule="0 1 * * *") for n in range(30)]
    (one,) = (one for one in warned([*moved, *stays]) if one.kind is WarningKind.CROWD)
    assert one.paste == (
        'schedule: "H 2 * * *"  # instead of "0 1 * * *", in b00, b01, b02 and 27 more',
        'schedule: "H 1 * * *"  # instead of "0 1 * * *", in u00, u01, u02 and 27 more',
    )


def test_a_crowd_whose_jobs_have_chosen_what_a_changed_clock_does_keeps_its_hour() -> None:
    more = "timezone: Europe/Berlin, dst: {gap: skip, overlap: both}"
    one = only(warned([job(f"j{n:03}", schedule="0 2 * * *", more=more) for n in range(60)]), WarningKind.CROWD)
    assert one.paste[0].startswith('schedule: "H 2 * * *"')


class TestIdleKeys:
    @pytest.mark.parametrize("more", ["", "overlap: skip", "overlap: replace", "overlap: allow"])
    def test_a_queue_limit_where_nothing_waits(self, more: str) -> None:
        told = only(warned([job(more=f"queue_limit: 5{', ' if more else ''}{more}")]), WarningKind.IDLE_KEY)
        word = more.removeprefix("overlap: ") or "skip"
        assert told.fact.startswith(f"queue_limit says nothing under overlap: {word}")
        assert told.paste == ("overlap: queue",)

    @pytest.mark.parametrize("more", ["queue_limit: 5, overlap: queue", "queue_limit: 100", "overlap: replace"])
    def test_nothing_is_said_where_it_has_its_effect(self, more: str) -> None:
        assert warned([job(more=more)]) == []

    def test_a_job_that_stays_as_it_is_is_not_warned_of_again(self) -> None:
        assert warned([job(more="queue_limit: 5, priority: 1")], cluster(job(more="queue_limit: 5"))) == []
        assert len(warned([job(more="queue_limit: 5")], cluster(job(more="queue_limit: 5, overlap: queue")))) == 1

    def test_a_task_that_is_not_waited_for(self) -> None:
        task = "a: {{schedule: '0 5 * * *', celery: {{broker: 'redis://b/0', task: t{}}}, {}}}"
        for keys, key in (
            ("concurrency_key: {key: k}", "concurrency_key"),
            ("overlap: queue", "overlap: queue"),
            ("overlap: replace", "overlap: replace"),
        ):
            told = only(warned([task.format("", keys)]), WarningKind.IDLE_KEY)
            assert told.fact.endswith(f"so {key} holds nothing back while the task runs")
            assert warned([task.format(", wait: true", keys)]) == []
        assert warned([task.format("", "overlap: skip")]) == []

    def test_a_post_that_may_be_repeated_gives_no_noise(self) -> None:
        assert warned(["a: {schedule: '0 5 * * *', http: {url: 'https://x/'}, retries: {max: 3}}"]) == []


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ("command: [x], env: {API_TOKEN: abc}", "write ${secret:NAME} in its place, which the worker fills in"),
        ("http: {url: 'https://me:pw@h/'}", "write ${secret:NAME} in its place, which the worker fills in"),
        ("celery: {broker: 'redis://:pw@h/', task: t}", "write ${secret:NAME} in its place, which the worker fills in"),
        ("shell: 'PGPASSWORD=hunter2 psql'", "take it out of the job file"),
        ("python: 'a:b', kwargs: {password: hunter2}", "take it out of the job file"),
    ],
)
def test_a_secret_is_to_be_written_where_a_worker_fills_it_in(keys: str, remedy: str) -> None:
    told = only(warned([f"a: {{schedule: '0 5 * * *', {keys}}}"]), WarningKind.SECRET)
    assert told.remedy.startswith(remedy)
    assert "hunter2" not in str(told)
