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
