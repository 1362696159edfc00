"""The names that an import gives to jobs: what they run, and never another line's."""

from __future__ import annotations

import pytest

from sexton.jobfiles.importers.findings import Verdict
from tests.support.crontabs import found, imported, the_job


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/srv/shop/bin/daily-report --to a", "daily-report"),
        ("cd /srv && ./bin/console orders:import >> log 2>&1", "console-orders-import"),
        ("flock -n /tmp/l /srv/bin/feed.sh", "feed"),
        ("[ -x /usr/lib/clean ] && if [ ! -d /run ]; then /usr/lib/clean; fi", "clean"),
        ("command -v sa1 > /dev/null && sa1 1 1", "sa1"),
        ("A=1 nice -n 19 ionice -c 3 timeout -k 5 60 sudo -u x backup", "backup"),
        ("php /srv/artisan queue:prune", "artisan-queue-prune"),
        ("python3 -u /opt/sync_users.py", "sync_users"),
        ("'unclosed", "unclosed"),
        ('flock -w 20 /l -c "/x/feed2.sh --all"', "feed2"),
        ("sleep $((RANDOM % 600)); /bin/x", "x"),
        ("[ $(hostname) = web01 ] && /bin/x", "x"),
        ("bash -lc 'cd /srv && ./sync.sh'", "sync"),
        ("su - deploy -c /srv/go.sh", "go"),
        ("for f in /a/*; do gzip $f; done", "gzip"),
        ("if grep -q a b; then /bin/mend; fi", "mend"),
        ("> /tmp/log 2>&1 /bin/x", "x"),
        ("rsync -v /a/b && mail me", "rsync-b"),
        ("$(which x)", "which"),
        ("ünïcode", "n-code"),
        ("%%%", "job"),
    ],
)
def test_a_name_says_what_the_command_runs(command: str, name: str) -> None:
    assert the_job(f"@daily {command}\n".replace("%", "\\%")).name == name


def test_names_are_unique_whatever_the_case() -> None:
    text = "@daily find /a\n@daily find /b\n@daily FIND /b\n@daily find /a\n@daily x\n"
    names = [job.name for job in imported(text, prefix="web01-").jobs]
    assert names == ["web01-find-a", "web01-find-b", "web01-find-b-2", "web01-find-a-2", "web01-x"]
    assert [f.job for f in found(text, Verdict.NOTE) if "number" in f.message] == ["find-b-2", "find-a-2"]


@pytest.mark.parametrize(
    ("commands", "names"),
    [
        (["/srv/a/run.sh", "/srv/b/run.sh"], ["a-run", "b-run"]),
        (["/srv/a/bin/run.sh x", "/srv/a/bin/run.sh y", "/srv/b/run.sh"], ["run-x", "run-y", "b-run"]),
        (["/srv/shop/bin/stock --quick", "/srv/shop/bin/stock --full"], ["stock-quick", "stock-full"]),
        (["cd /srv/a && ./run.sh", "cd /srv/b && ./run.sh"], ["a-run", "b-run"]),
        (["cd /srv/a && php artisan prune", "cd /srv/b && php artisan prune"], ["a-artisan-prune", "b-artisan-prune"]),
        (["find /a/log -delete", "find /b/log -delete"], ["find-a-log-delete", "find-b-log-delete"]),
        (["/srv/a/run.sh", "/opt/a/run.sh", "/bin/a-run"], ["srv-a-run", "opt-a-run", "bin-a-run"]),
    ],
)
def test_names_that_would_collide_say_more(commands: list[str], names: list[str]) -> None:
    text = "".join(f"@daily {command}\n" for command in commands)
    assert [job.name for job in imported(text).jobs] == names


def test_long_commands_that_differ_at_their_end_are_told_apart_by_themselves() -> None:
    def named(*ends: str) -> dict[str, str]:
        jobs = imported("".join(f"@daily x {'a' * 200}{end}\n" for end in ends)).jobs
        return {str(job.keys["shell"])[-1]: job.name for job in jobs}

    assert named("1", "2", "3").items() >= named("2", "3").items()
    assert max(map(len, named("1", "2").values())) <= 100


LINES = [
    *(
        "/srv/a/run.sh",
        "/srv/b/run.sh",
        "/srv/b/run.sh x",
        "/bin/a-run",
        "php /srv/a/artisan x",
        "php /srv/b/artisan x",
    ),
    *("find /a/log", "find /b/log", "stock --quick", "stock --full", "/opt/stock", "x-2", "x", "cd /x && ./x"),
]


@pytest.mark.parametrize("place", range(len(LINES)))
def test_a_line_that_is_added_never_gets_the_name_of_another(place: int) -> None:
    def named(commands: list[str]) -> dict[str, str]:
        jobs = imported("".join(f"@daily {command}\n" for command in commands)).jobs
        return {job.name: str(job.keys["shell"]) for job in jobs}

    before, after = named([*LINES[:place], *LINES[place + 1 :]]), named(LINES)
    assert {name for name in before.keys() & after.keys() if before[name] != after[name]} == set()
