"""Cluster settings: what no node could work with is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sexton.errors import InvalidSetting
from sexton.settings import SETTING_KEYS, ClusterSettings, with_setting

DURATIONS = ("horizon", "session", "failover.database_after", "lease", "heartbeat", "retention")


def test_the_durations_are_all_of_them() -> None:
    known = ClusterSettings()
    assert set(DURATIONS) == {key for key, name in SETTING_KEYS.items() if isinstance(getattr(known, name), timedelta)}


@pytest.mark.parametrize("key", DURATIONS)
def test_a_duration_beyond_the_calendar_is_refused(key: str) -> None:
    """A leader adds the horizon to now: where that overflows, every node that leads would end."""
    with pytest.raises(InvalidSetting, match="too long"):
        with_setting(ClusterSettings(), key, "999999999h")
    settings = with_setting(ClusterSettings(), key, "366d")
    assert datetime(2026, 3, 2, tzinfo=UTC) + getattr(settings, SETTING_KEYS[key])


def test_a_rate_so_small_that_its_starts_leave_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="too small"):
        with_setting(ClusterSettings(), "catch_up.rate", "1e-300")
    assert with_setting(ClusterSettings(), "catch_up.rate", "0.5").catch_up_rate == 0.5


def test_a_leader_lease_shorter_than_a_session_is_refused() -> None:
    """The leader beats three times a session: it would be taken for dead between two beats."""
    settings = with_setting(ClusterSettings(), "failover.database_after", "5s")
    with pytest.raises(InvalidSetting, match="5s is shorter than session 6s"):
        settings.check()
    with_setting(ClusterSettings(), "failover.database_after", "6s").check()


@pytest.mark.parametrize(
    ("horizon", "after", "is_warned_of"),
    [("1m", "59s", False), ("1m", "1m", True), ("1m", "2m", True), ("0s", "2m", False)],
)
def test_a_leader_lease_that_outlasts_the_horizon_is_warned_of(horizon: str, after: str, is_warned_of: bool) -> None:
    settings = with_setting(with_setting(ClusterSettings(), "horizon", horizon), "failover.database_after", after)
    settings.check()
    assert (settings.warning() is not None) is is_warned_of


@pytest.mark.parametrize(("text", "rate"), [("50", 50.0), ("5/s", 5.0), ("0.5/s", 0.5)])
def test_a_rate_is_written_with_or_without_its_unit(text: str, rate: float) -> None:
    assert with_setting(ClusterSettings(), "catch_up.rate", text).catch_up_rate == rate


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("catch_up.rate", "5/m", "is not a number a second; write e.g. 50 or 0.5"),
        ("catch_up.rate", "nan", "is not a number a second"),
        ("catch_up.rate", "٣", "is not a number a second"),
        ("catch_up.rate", "0", "is not a number above 0"),
        ("catch_up.rate", "1e9", "is too much; it has to be under 1,000,000,000"),
        ("catch_up.hold_above", "1e3", "is not a whole number; write e.g. 1000"),
        ("catch_up.hold_above", "٣", "is not a whole number"),
        ("catch_up.hold_above", "1_000", "is not a whole number"),
        ("catch_up.hold_above", "-1", "is not a number above 0"),
        ("retention.max_runs", "all", "is not a whole number; write e.g. 1000 or none"),
        ("session", "٣s", "is not a duration"),
    ],
)
def test_a_number_that_is_none_is_refused_with_what_to_write(key: str, text: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        with_setting(ClusterSettings(), key, text)
