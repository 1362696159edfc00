"""The promises of compose/: who runs as whom, what is restarted, checked, read-only and secret. Needs no engine."""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from sexton.process_settings import load_process_settings
from sexton.settings import parse_duration
from tests.support.source_tree import ROOT

COMPOSE = ROOT / "compose"
FILE: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
COMMANDS = {"migrate", "apply", "sexton", "console"}  # they run once
SERVERS = {name for name in SERVICES if name not in COMMANDS}
OWN = {name for name, service in SERVICES.items() if "build" in service}
DOCKERFILE = (COMPOSE / "Dockerfile").read_text()

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
every_server = pytest.mark.parametrize("name", sorted(SERVERS))


def test_the_cluster_is_whole() -> None:
    names = {f"{kind}-{number}" for kind in ("zookeeper", "node") for number in (1, 2, 3)}
    assert names | {"postgres", "worker"} == SERVERS
    assert SERVICES.keys() >= COMMANDS


def test_commands_for_people_start_only_when_asked() -> None:
    profiles = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
    assert profiles == {"console": ["console"], "apply": ["tools"], "sexton": ["tools"]}


@every_service
def test_nothing_has_privileges(service: dict[str, Any]) -> None:
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.keys() & {"privileged", "cap_add", "ports", "network_mode", "pid", "devices"}


@every_service
def test_nothing_runs_as_root(service: dict[str, Any]) -> None:
    user = service.get("user")
    assert user in ("zookeeper", "postgres") if "build" not in service else user is None


def test_the_images_of_sexton_run_as_a_user_of_their_own_by_number() -> None:
    stages = stages_of(DOCKERFILE)
    targets = {service["build"]["target"] for service in SERVICES.values() if "build" in service}
    assert targets == {"node", "worker", "console"}
    for target in targets:
        parent, lines = stages[target]
        assert parent == "runtime"
        assert [line for line in lines if line.startswith("USER")] == []
    users = [line for line in stages["runtime"][1] if line.startswith("USER")]
    assert users == ["USER 10001:10001"]


def test_final_images_install_nothing() -> None:
    stages = stages_of(DOCKERFILE)
    for name in ("runtime", "node", "worker", "console"):
        text = "\n".join(stages[name][1])
        assert not re.search(r"\b(pip|apt-get|gcc|make)\b", text)
        sources = [line.split()[1] for line in stages[name][1] if line.startswith("COPY")]
        assert sources == ([] if name == "runtime" else [f"--from={name}-environment"])


def stages_of(dockerfile: str) -> dict[str, tuple[str, list[str]]]:
    """Each stage's parent and instructions, by its name."""
    found: dict[str, tuple[str, list[str]]] = {}
    current: list[str] = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        if begin := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            current = []
            found[begin[2]] = (begin[1], current)
        elif line and not line.startswith("#"):
            current.append(line)
    return found


@every_service
def test_root_file_systems_are_read_only_but_for_zookeepers(service: dict[str, Any]) -> None:
    assert service.get("read_only", False) == (service.get("user") != "zookeeper")


@every_server
def test_servers_are_restarted_and_checked(name: str) -> None:
    assert SERVICES[name]["restart"] == "unless-stopped"
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert seconds(check["timeout"]) < seconds(check["interval"])


def test_commands_are_not_restarted() -> None:
    assert {SERVICES[name]["restart"] for name in COMMANDS} == {"no"}


@every_server
def test_there_is_time_to_stop_in_order(name: str) -> None:
    assert seconds(SERVICES[name]["stop_grace_period"]) >= 15


def test_a_worker_is_stopped_later_than_its_drain_ends() -> None:
    worker = SERVICES["worker"]
    assert seconds(worker["stop_grace_period"]) >= seconds(worker["environment"]["SEXTON_DRAIN"]) + 10


@every_service
def test_logs_do_not_fill_the_disk(service: dict[str, Any]) -> None:
    assert {"max-size", "max-file"} <= service["logging"]["options"].keys()


@every_server
def test_nobody_starts_before_the_schema_is_there(name: str) -> None:
    if name in OWN:
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_only_nodes_reach_zookeeper_and_only_workers_the_world() -> None:
    members = {
        network: {name for name in SERVICES if network in SERVICES[name]["networks"]} for network in FILE["networks"]
    }
    assert members["coordination"] == {name for name in SERVERS if name.startswith(("node", "zookeeper"))}
    assert members["ledger"] == OWN | {"postgres"}
    assert members["jobs"] == {"worker"}
    assert {name for name, network in FILE["networks"].items() if network.get("internal")} == {"coordination", "ledger"}


@every_service
def test_secrets_are_files_and_no_value_of_one_is_written_here(service: dict[str, Any]) -> None:
    for key, value in service.get("environment", {}).items():
        if re.search("(?i)password|database|login|secret", key) and key != "POSTGRES_DB":
            assert key.endswith("_FILE")
            assert Path(value).parent == Path("/run/secrets")
            assert Path(value).name in service["secrets"]
        assert not re.search(r"://[^/]*@", value)


def test_secrets_come_from_a_folder_that_git_and_builds_ignore(tmp_path: Path) -> None:
    assert {entry["file"] for entry in FILE["secrets"].values()} == {
        f"${{SEXTON_SECRETS:-./secrets}}/{name}" for name in FILE["secrets"]
    }
    assert "secrets/" in (COMPOSE / ".gitignore").read_text().splitlines()
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert not any(fnmatch("compose/secrets", one) or one == "compose" for one in sent)
    assert not any(
        re.search("(?i)password|secret", line) for line in (COMPOSE / ".env").read_text().splitlines() if line[0] != "#"
    )


def test_made_secrets_are_what_the_services_are_told_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    make_secrets(folder)
    assert {file.name for file in folder.iterdir()} == FILE["secrets"].keys()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o444}

    node = SERVICES["node-1"]["environment"]
    environ = {key: value.replace("/run/secrets", str(folder)) for key, value in node.items()}
    settings = load_process_settings({}, environ=environ, folders=())
    password = (folder / "postgres_password").read_text().strip()
    assert settings.database == f"postgresql://sexton:{password}@postgres/sexton"
    assert len(password) == 48
    assert settings.coordinator_access.login
    assert settings.name == "node-1"


def test_secrets_that_are_there_stay(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    before = {file.name: file.read_text() for file in tmp_path.iterdir()}
    (tmp_path / "coordinator_login").unlink()
    make_secrets(tmp_path)
    after = {file.name: file.read_text() for file in tmp_path.iterdir()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"coordinator_login"}


def make_secrets(folder: Path) -> None:
    subprocess.run([COMPOSE / "make-secrets", folder], check=True, stdout=subprocess.DEVNULL)


def test_without_an_engine_the_trial_says_so_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run([COMPOSE / "test"], env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert re.fullmatch(r"make compose-test: no container engine answers [^\n]*\.\n", ended.stderr)


def seconds(text: str) -> float:
    return parse_duration(text).total_seconds()
