"""Where a node tells alerts: what is taken, and that no message shows a secret."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sexton.alert_settings import AlertSettings, alert_environment
from sexton.errors import InvalidSetting
from sexton.process_settings import ProcessSettings, load_process_settings


def load(tmp_path: Path, environ: dict[str, str]) -> ProcessSettings:
    return load_process_settings({}, environ=environ, folders=[tmp_path])


def test_without_any_nobody_is_told(tmp_path: Path) -> None:
    settings = load(tmp_path, {}).alerts
    assert settings == AlertSettings()
    assert not settings.tells
    assert (settings.no_leader_after, settings.heartbeat_every) == (timedelta(seconds=30), timedelta(seconds=60))


def test_they_come_from_files_variables_and_files_of_secrets(tmp_path: Path) -> None:
    (tmp_path / "sexton.toml").write_text('alert_command = ["notify", "--to=a b"]\nno_leader_after = "2m"\n')
    (tmp_path / "url").write_text("https://hc.internal/hidden\n")
    settings = load(tmp_path, {"SEXTON_HEARTBEAT_URL_FILE": str(tmp_path / "url")})
    assert settings.alerts.alert_command == ("notify", "--to=a b")
    assert settings.alerts.no_leader_after == timedelta(minutes=2)
    assert alert_environment(settings.alerts) == {"SEXTON_HEARTBEAT_URL": "https://hc.internal/hidden"}
    assert "hidden" not in repr(settings) + repr(settings.alerts)
    told = load(tmp_path / "none", {"SEXTON_ALERT_COMMAND": "notify '--to=a b'"})
    assert told.alerts.alert_command == ("notify", "--to=a b")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SEXTON_ALERT", "hidden.internal/hook", "is not an address; write https://HOST/PATH"),
        ("SEXTON_HEARTBEAT_URL", "ftp://hidden/", "is not an address; write https://HOST/PATH"),
        ("SEXTON_HEARTBEAT_URL", "http://hidden:x@127.0.0.1:abc/x", "has a host or port that cannot be"),
        ("SEXTON_ALERT", "https://:443/hidden", "names no host"),
        ("SEXTON_ALERT_COMMAND", "notify 'hidden", "has a quote without its end"),
        ("SEXTON_ALERT_COMMAND", "''", "names no program"),
        ("SEXTON_NO_LEADER_AFTER", "5", "'5' is not a duration"),
        ("SEXTON_HEARTBEAT_EVERY", "500ms", "'500ms' is too short; the least is 1s"),
        ("SEXTON_HEARTBEAT_EVERY", "400d", "'400d' is too long; the most is 366d"),
    ],
)
def test_what_is_wrong_is_named_without_the_secret(tmp_path: Path, variable: str, value: str, says: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load(tmp_path, {variable: value})
    assert str(refused.value).startswith(f"{variable}: {says}")
    assert "hidden" not in str(refused.value)


def test_an_address_may_be_written_in_capitals(tmp_path: Path) -> None:
    assert load(tmp_path, {"SEXTON_ALERT": "HTTPS://Alerts.internal:8443/hook"}).alerts.tells


def test_two_ways_to_tell_contradict(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="alert and alert_command are both set"):
        load(tmp_path, {"SEXTON_ALERT": "https://a/", "SEXTON_ALERT_COMMAND": "notify"})
