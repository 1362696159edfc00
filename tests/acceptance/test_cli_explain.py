"""`sexton explain` over the scene: what it prints for a person, for a program, and for a wrong word."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from sexton_tui.cli.main import run
from tests.support import scene
from tests.support.ledgers import make_ledger

Sexton = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sexton(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Sexton:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection, datetime.now(UTC).replace(microsecond=0), hostile=True)
    engine.dispose()

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["explain", *arguments, "--database", url])
        return code, *capsys.readouterr()

    return call


def test_a_tick_is_told_in_lines_of_80_columns_and_as_one_object(sexton: Sexton) -> None:
    code, out, err = sexton("minutely-sync", "last")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("minutely-sync  20")
    assert "due         `* * * * *` names" in out
    assert "revision    1, applied by ana" in out
    code, out, err = sexton("minutely-sync", "last", "--output", "json")
    found = json.loads(out)
    assert (found["job"], found["is_due"], found["asked"]) == ("minutely-sync", True, "last")
    assert found["tick"].endswith(":00Z")
    assert {"decided", "next", "runs", "refused", "revision", "takeover", "before", "after"} <= found.keys()


def test_a_reading_that_does_not_exist_is_told_with_what_fires_for_it(sexton: Sexton) -> None:
    year = datetime.now(UTC).year + 2
    changed = max(day for day in range(25, 32) if datetime(year, 3, day, tzinfo=UTC).weekday() == 6)
    reading = f"{year}-03-{changed}T02:05"
    code, out, _ = sexton("weekly-report", reading)
    told = " ".join(out.split())
    assert code == 0
    assert f"02:05 on {year}-03-{changed} in Europe/Berlin does not exist" in told
    assert "nothing fires for it" in told
    twice = f"{year}-10-{max(d for d in range(25, 32) if datetime(year, 10, d, tzinfo=UTC).weekday() == 6)}T02:05"
    code, out, _ = sexton("sync-eu", twice)
    assert "comes twice, this is" in " ".join(out.split())


def test_a_local_reading_is_of_the_jobs_zone_or_of_the_one_that_is_named(sexton: Sexton) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    for zone, offset in (((), None), (("--tz", "Asia/Tokyo"), 9)):
        code, out, _ = sexton("weekly-report", f"{tomorrow}T12:00", *zone, "--output", "json")
        tick = datetime.fromisoformat(json.loads(out)["tick"])
        assert code == 0
        assert (tick.hour == 12 - offset) if offset else tick.hour in (10, 11)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("minutely-sync", "soon"), "'soon' is no instant and no reading of a clock"),
        (("minutely-sync", "02:30"), "'02:30' is a reading without its date; write e.g. 20"),
        (("minutely-sync", "2026-01-01T00:00", "--tz", "Mars/X"), "'Mars/X' is not in the zone database"),
        (("minutely-sync", "2026-01-01T00:00Z", "--tz", "UTC"), "says its offset itself"),
        (("minutely-sync", "next", "--tz", "UTC"), "not with next"),
        (("minutely-sync", "0001-01-01T00:00:00+10:00"), "outside the years 1900 to 2199"),
        (("minutely-sync", "9999-12-31T23:59:59"), "outside the years 1900 to 2199"),
    ],
)
def test_a_wrong_word_is_a_sentence_and_no_traceback(sexton: Sexton, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = sexton(*arguments)
    assert code == 2
    assert said in err
    assert "fault of its own" not in err


def test_an_unknown_job_is_not_found(sexton: Sexton) -> None:
    code, _, err = sexton("no-such", "last")
    assert code == 1
    assert "there is no job 'no-such'" in err
