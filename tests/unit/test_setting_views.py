"""Settings with where they come from: the cluster's by its rows, a process's by options, environment and files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sexton.process_setting_views import process_setting_views
from sexton.setting_views import SettingChange, cluster_setting_views
from sexton.settings import SETTING_KEYS

AT = datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_a_setting_of_the_cluster_has_its_default_or_who_set_it_and_when() -> None:
    views = cluster_setting_views([SettingChange("horizon", "90s", "ann@desk", AT)], "database:")
    assert [view.key for view in views] == [*SETTING_KEYS, "coordinator"]
    by_key = {view.key: view for view in views}
    horizon, session = by_key["horizon"], by_key["session"]
    assert (horizon.value, horizon.default, horizon.source) == ("1m30s", "1m", "set")
    assert (horizon.changed_by, horizon.changed_at) == ("ann@desk", AT)
    assert (session.value, session.source, session.changed_by) == ("6s", "default", None)
    assert by_key["coordinator"].value == "database:"


def test_a_setting_of_a_process_names_what_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sexton.toml").write_text('slots = 7\npoll = "1s"\nqueues = ["gpu", "mail"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEXTON_POLL", "2s")
    monkeypatch.setenv("SEXTON_HEARTBEAT_URL", "https://beats.example/s3cr3t")
    views = process_setting_views({"database": "postgresql://ann:s3cr3t@db/x"})
    by_key = {view.key: view for view in views}
    said = {key: (by_key[key].value, by_key[key].source) for key in ("slots", "queues", "poll", "database", "drain")}
    assert said == {
        "slots": ("7", "slots in sexton.toml"),
        "queues": ("gpu, mail", "queues in sexton.toml"),
        "poll": ("2s", "SEXTON_POLL"),
        "database": ("postgresql://ann:***@db/x", "--database"),
        "drain": ("30s", "default"),
    }
    assert by_key["poll"].default == "5s"
    assert by_key["heartbeat_url"].source == "SEXTON_HEARTBEAT_URL"
    assert "s3cr3t" not in str(views)
