"""Definitions side by side: lines of long texts, and secrets that are not shown."""

from __future__ import annotations

import pytest

from sexton.jobfiles.differences import ANOTHER_HIDDEN, Difference, differences_between, keys_of_new_job
from sexton.jobfiles.keys import JOB_KEYS
from sexton.secret_texts import HIDDEN, shown_text
from tests.support.plans import definitions


def between(old: str, new: str) -> dict[str, Difference]:
    (before,), (after,) = definitions(f"a: {old}"), definitions(f"a: {new}")
    return {one.key: one for one in differences_between(before, after)}


def test_a_long_text_is_told_by_its_lines() -> None:
    old, new = "one\ntwo\nthree\nfour\nfive\n", "one\ntwo\n3\nfour\nfive\nsix\n"
    lines = Difference("shell", old, new).lines()
    assert lines == ("  one", "  two", "- three", "+ 3", "  four", "  five", "+ six")


def test_lines_far_from_a_change_are_left_out() -> None:
    old = "\n".join(map(str, range(40)))
    lines = Difference("stdin", old, old.replace("5\n", "five\n", 1).replace("35", "x")).lines()
    assert lines == (
        *("  3", "  4", "- 5", "+ five", "  6", "  7"),
        "...",
        *("  33", "  34", "- 35", "+ x", "  36", "  37"),
    )


def test_a_text_of_many_thousand_lines_is_told_by_their_number() -> None:
    assert Difference("stdin", "x\n" * 9_000, "y\n" * 5).lines() == ("- 9000 lines", "+ 5 lines")


def test_other_instants_of_one_number_are_a_difference() -> None:
    def schedule(last: str) -> str:
        days = [f"'2027-0{month}-01T00:00:00Z'" for month in range(1, 5)]
        return f"{{schedule: {{at: [{', '.join(days)}, '{last}']}}, command: [x]}}"

    one = between(schedule("2027-08-01T00:00:00Z"), schedule("2027-09-01T00:00:00Z"))["schedule"]
    assert one.lines()[-2:] == ("- 2027-08-01T00:00:00Z", "+ 2027-09-01T00:00:00Z")


def test_a_new_job_says_what_is_no_default() -> None:
    (new,) = definitions("a: {schedule: '0 5 * * *', command: [x], env: {A: b}, missed: {grace: 60s}}")
    assert [(one.key, one.new) for one in keys_of_new_job(new)] == [
        ("command", '["x"]'),
        ("env.A", "b"),
        ("schedule", "0 5 * * *"),
    ]


def test_excluded_weekdays_are_named() -> None:
    one = between(
        "{schedule: '0 5 * * *', command: [x]}",
        "{schedule: '0 5 * * *', command: [x], exclude: {weekdays: [SAT, SUN]}}",
    )
    assert one["exclude.weekdays"].new in ('["SAT", "SUN"]', '["SUN", "SAT"]')


REQUEST = (
    "{{schedule: '0 5 * * *', http: {{url: 'https://x/run', method: PUT, headers: {{X-A: b, Authorization: {}}}, "
    "timeout: 1m}}}}"
)


def test_a_request_is_told_by_its_keys() -> None:
    (new,) = definitions(f"a: {REQUEST.format('Bearer abcdefgh')}")
    assert [(one.key, one.new) for one in keys_of_new_job(new)] == [
        ("http.headers.Authorization", HIDDEN),
        ("http.headers.X-A", "b"),
        ("http.method", "PUT"),
        ("http.timeout", "1m"),
        ("http.url", "https://x/run"),
        ("schedule", "0 5 * * *"),
    ]
    (changed,) = between(REQUEST.format("Bearer abcdefgh"), REQUEST.format("Bearer abcdefgi")).values()
    assert (changed.key, changed.new, changed.hides) == ("http.headers.Authorization", ANOTHER_HIDDEN, True)
    plain = "{schedule: '0 5 * * *', http: {url: 'https://x/run'}}"
    told = between(plain, plain.replace("run'", "run', expect: [200]"))
    assert [(one.old, one.new) for one in told.values()] == [("[200, 202, 204]", "[200]")]


def test_whatever_a_definition_holds_is_told_by_keys_of_job_files() -> None:
    keys = "limits: {memory: 1GB}, overlap: replace, queue_limit: 5, concurrency_key: {key: k}, on_lease_lost: kill"
    jobs = definitions(
        f"a: {{schedule: '0 5 * * *', shell: x, timezone: Europe/Berlin, env: {{A: b}}, {keys}}}",
        "b: {schedule: '0 5 * * *', celery: {broker: 'redis://b/0', task: t, wait: true}, args: [1], jitter: 5m}",
        f"c: {REQUEST.format('x')}",
    )
    told = {one.key.partition(".")[0] for job in jobs for one in keys_of_new_job(job)}
    assert told <= {key.name for key in JOB_KEYS}


def test_another_kind_of_target_is_told_without_what_both_leave_unsaid() -> None:
    told = between("{schedule: '0 5 * * *', shell: x}", REQUEST.format("x"))
    assert {(one.sign, key) for key, one in told.items()} == {
        ("-", "shell"),
        *(("+", f"http.{key}") for key in ("url", "method", "timeout", "headers.X-A", "headers.Authorization")),
    }
    task = "{schedule: '0 5 * * *', celery: {broker: 'redis://:pw@b/0', task: t}, args: [1]}"
    assert {(key, one.new) for key, one in between("{schedule: '0 5 * * *', shell: x}", task).items()} == {
        ("shell", None),
        ("celery.broker", f"redis://:{HIDDEN}@b/0"),
        ("celery.task", "t"),
        ("args", "[1]"),
    }


def test_limits_and_groups_are_told_as_files_write_them() -> None:
    job = "{{schedule: '0 5 * * *', shell: x{}}}"
    keys = ", limits: {memory: 512MB, cpu_time: 90s}, concurrency_key: {key: tape, limit: 2}, overlap: replace"
    told = {(one.sign, key, one.new) for key, one in between(job.format(""), job.format(keys)).items()}
    assert told == {
        ("+", "limits.memory", "512MB"),
        ("+", "limits.cpu_time", "1m30s"),
        ("+", "concurrency_key.key", "tape"),
        ("+", "concurrency_key.limit", "2"),
        ("~", "overlap", "replace"),
    }
    (one,) = between(job.format(keys), job.format(keys.replace("512MB", "1GiB"))).values()
    assert (one.key, one.old, one.new) == ("limits.memory", "512MB", "1GiB")


class TestSecrets:
    def test_one_that_changes_is_seen_to_change_and_not_shown(self) -> None:
        job = "{{schedule: '0 5 * * *', command: [x], env: {{DB_PASSWORD: {}}}}}"
        one = between(job.format("hunter2"), job.format("hunter3"))["env.DB_PASSWORD"]
        assert (one.old, one.new, one.hides) == (HIDDEN, ANOTHER_HIDDEN, True)

    def test_one_inside_an_address_is_hidden_and_the_rest_shown(self) -> None:
        job = "{{schedule: '0 5 * * *', command: [x], env: {{URL: '{}'}}}}"
        one = between(job.format("postgres://me:one@db/x"), job.format("postgres://me:two@db/x"))["env.URL"]
        assert (one.old, one.new) == (f"postgres://me:{HIDDEN}@db/x", f"postgres://me:{HIDDEN}@db/x {ANOTHER_HIDDEN}")

    @pytest.mark.parametrize(
        ("key", "text", "shown"),
        [
            ("env.API_TOKEN", "abc", HIDDEN),
            ("env.MY_SECRETS", "abc", HIDDEN),
            ("env.GITHUB_PAT", "ghp_" + "a" * 36, HIDDEN),
            ("env.AWS_ACCESS_KEY", "x", HIDDEN),
            ("env.PASSWORD", "", ""),
            ("env.PASSWORD", "$OTHER", "$OTHER"),
            ("env.PASSWORD", "${secret:db}", "${secret:db}"),
            ("http.headers.Authorization", "Bearer abcdefghij", HIDDEN),
            ("http.headers.Authorization", "Bearer ${secret:api}", "Bearer ${secret:api}"),
            ("http.headers.X-Api-Key", "k1", HIDDEN),
            ("http.headers.Cookie", "a=b", HIDDEN),
            ("http.url", "https://me:pw@h/run?token=abc&n=1", f"https://me:{HIDDEN}@h/run?token={HIDDEN}&n=1"),
            ("http.url", "https://hooks.slack.com/services/T0/B0/xyz", f"https://hooks.slack.com/services/{HIDDEN}"),
            ("celery.broker", "redis://:pw@b/0", f"redis://:{HIDDEN}@b/0"),
            ("celery.broker", "redis://:${secret:redis}@b/0", "redis://:${secret:redis}@b/0"),
            ("shell", "curl -H 'Authorization: Bearer abcdefghijkl' x", f"curl -H 'Authorization: Bearer {HIDDEN}' x"),
            ("shell", "PGPASSWORD=hunter2 psql", f"PGPASSWORD={HIDDEN} psql"),
            ("shell", "PGPASSWORD=$PW psql", "PGPASSWORD=$PW psql"),
            ("shell", "mysql --password=x1 -u me", f"mysql --password={HIDDEN} -u me"),
            ("command", '["x", "--api-key", "k1"]', f'["x", "--api-key", "{HIDDEN}"]'),
            ("kwargs", '{"password": "k1", "n": 2}', f'{{"password": "{HIDDEN}", "n": 2}}'),
            ("stdin", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", f"{HIDDEN}\nrest"),
        ],
    )
    def test_what_looks_like_one_is_hidden(self, key: str, text: str, shown: str) -> None:
        assert shown_text(key, text) == shown

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("env.KEYBOARD", "de"),
            ("http.headers.Accept", "application/json"),
            ("http.url", "https://h/run?monkey=12345678&page=2"),
            ("env.AUTHOR", "me"),
            ("env.MONKEY", "x"),
            ("env.URL", "https://example.org:8080/a@b"),
            ("description", "rotates the secret: see the wiki"),
            ("shell", "echo tokens are counted"),
            ("python", "billing.tokens:refresh"),
        ],
    )
    def test_what_does_not_is_shown(self, key: str, text: str) -> None:
        assert shown_text(key, text) == text

    @pytest.mark.parametrize("piece", ["a", "://", "password", "-----BEGIN ", "--a", "x://y:", "eyJ"])
    def test_a_hostile_text_takes_no_time(self, piece: str) -> None:
        assert shown_text("stdin", piece * (200_000 // len(piece)))
