"""Settings of a process: where they come from, which one wins, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sexton.errors import InvalidSetting
from sexton.http_addresses import HttpAddress
from sexton.masked_url import masked_url
from sexton.process_settings import (
    CoordinatorAccess,
    LogFormat,
    ProcessSettings,
    access_environment,
    load_process_settings,
)


def load(
    flags: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    folders: list[Path] | None = None,
    config: Path | None = None,
) -> ProcessSettings:
    return load_process_settings(
        flags or {}, environ=environ or {}, folders=folders or [Path("/nonexistent")], config=config
    )


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = load()
    assert settings.database == "sqlite:///.sexton/sexton.db"
    assert settings.coordinator == "database:"
    assert settings.queues == ("default",)
    assert (settings.poll, settings.drain) == (timedelta(seconds=5), timedelta(seconds=30))
    assert (settings.log, settings.allow) == (LogFormat.CONSOLE, None)
    assert settings.slots >= 2
    assert (settings.python_recycle_runs, settings.python_recycle_memory) == (100_000, 1_000_000_000)


def test_the_recycling_of_python_processes_is_set_by_runs_and_size_or_turned_off() -> None:
    settings = load({}, {"SEXTON_PYTHON_RECYCLE_RUNS": "50", "SEXTON_PYTHON_RECYCLE_MEMORY": "2GiB"})
    assert (settings.python_recycle_runs, settings.python_recycle_memory) == (50, 2 << 30)
    settings = load({}, {"SEXTON_PYTHON_RECYCLE_RUNS": "off", "SEXTON_PYTHON_RECYCLE_MEMORY": "off"})
    assert (settings.python_recycle_runs, settings.python_recycle_memory) == (None, None)


def test_nearer_files_environment_and_flags_win_key_by_key(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    for folder, text in (
        (near, 'name = "near"\nslots = 3\nqueues = ["a", "b"]\n'),
        (far, 'name = "far"\npoll = "9s"\n'),
    ):
        folder.mkdir()
        (folder / "sexton.toml").write_text(text)
    settings = load({"slots": "5"}, {"SEXTON_SLOTS": "4", "SEXTON_DRAIN": "1m"}, [near, far])
    assert (settings.name, settings.poll, settings.queues) == ("near", timedelta(seconds=9), ("a", "b"))
    assert (settings.slots, settings.drain) == (5, timedelta(minutes=1))


def test_a_named_file_is_the_only_one(tmp_path: Path) -> None:
    (tmp_path / "sexton.toml").write_text('name = "default"\n')
    other = tmp_path / "other.toml"
    other.write_text("slots = 7\n")
    settings = load(folders=[tmp_path], config=other)
    assert settings.slots == 7
    assert settings.name != "default"
    with pytest.raises(InvalidSetting, match="does not exist"):
        load(config=tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        ({}, {"SEXTON_PYTHON_RECYCLE_RUNS": "0"}, "'0' is not a number of runs from 1 to 999999999; or write off"),
        ({}, {"SEXTON_PYTHON_RECYCLE_MEMORY": "512"}, "'512' is not a size such as 512MB or 2GiB; or write off"),
        ({"database": "mysql://x"}, {}, "--database: 'mysql://x' is not the address of a database"),
        ({"database": "postgresql+asyncpg://x/y"}, {}, "write sqlite:///PATH or postgresql://"),
        ({"coordinator": "zookeeper://zk1:2181/a/../b"}, {}, "has a relative path; write the path of ZooKeeper out"),
        ({"coordinator": "zookeeper://zk1:2181/./b"}, {}, "has a relative path"),
        ({}, {"SEXTON_COORDINATOR": "etcd://x"}, "SEXTON_COORDINATOR: 'etcd://x' is not a coordinator"),
        ({"slots": "0"}, {}, "--slots: '0' is not a number of slots"),
        ({"name": "a b"}, {}, "--name: 'a b' is not a name"),
        ({"queues": ","}, {}, "--queues: is empty"),
        ({"poll": "5"}, {}, "--poll: '5' is not a duration"),
        ({"poll": "1ms"}, {}, "too short"),
        ({"http": "localhost"}, {}, "--http: 'localhost' is not an address; write a port such as 9464, HOST:PORT"),
        ({}, {"SEXTON_HTTP": "::1:9464"}, "SEXTON_HTTP: '::1:9464' is not an address; write HOST:PORT, with a host of"),
        ({"http": "127.0.0.1:65536"}, {}, "--http: '127.0.0.1:65536' is not an address"),
        ({"log": "xml"}, {}, "neither console nor json"),
    ],
)
def test_what_is_wrong_is_named_with_its_source(flags: dict[str, str], environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load(flags, environ)
    assert said in str(refused.value)
    assert refused.value.exit_code == (2 if flags else 1)  # an option is usage; a variable is not


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"slot = 3\n", "there is no setting 'slot'"),
        (b"slots = \n", "is not TOML"),
        (b"name = '\xe9'\n", "is not TOML"),
        (b"name = 3\n", "name in "),
        (b"slots = true\n", "slots in "),
        (b"queues = [1]\n", "not a list of texts"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "sexton.toml"
    file.write_bytes(content)
    with pytest.raises(InvalidSetting) as refused:
        load(folders=[tmp_path])
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p%40ss@h:5432/d?sslmode=require", "postgresql://u:***@h:5432/d?sslmode=require"),
        ("postgresql://u@h/d?password=secret&x=1", "postgresql://u@h/d?password=***&x=1"),
        ("postgresql:///d?host=/run&password=secret", "postgresql:///d?host=/run&password=***"),
        ("postgresql://u:a@b@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:a#b@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:a/b?c@h/d", "postgresql://u:***@h/d"),
        ("postgresql:u:pw@h", "postgresql:***@h"),
        ("postgresql:/u:pw@h", "postgresql:***@h"),
        ("u:pw@h/d", "u:***@h/d"),
        ("host=h user=u password = 'a b' port=1", "host=h user=u password = *** port=1"),
        ("postgresql://u:x://y@h/d", "postgresql:***@h/d"),
        ("postgresql://[::1]:5432/d", "postgresql://[::1]:5432/d"),
        ("sqlite:///.sexton/sexton.db", "sqlite:///.sexton/sexton.db"),
        ("database:", "database:"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert masked_url(url) == shown


def test_neither_messages_nor_representations_hold_the_password() -> None:
    with pytest.raises(InvalidSetting) as refused:
        load({"database": "mysql://u:secret@h/d"})
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(load({"database": "postgresql://u:secret@h/d"}))


@pytest.mark.parametrize(
    "url", ["postgresql://u:s3@cret@h/db", "postgres://u:s3/cret@h/db", "postgresql://u:s3?cret@h"]
)
def test_an_unescaped_password_is_refused_with_the_remedy_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidSetting, match="escape @ in the password as %40") as refused:
        load({"database": url})
    assert "cret" not in str(refused.value)
    assert "s3" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3%40cret@h/db",
        "postgresql://h:5432/a@b",
        "postgresql://[::1]/a@b",
        "postgresql://h1:5432,h2:5433/d?user=a@b",
        "postgresql:///d?user=a@b",
    ],
)
def test_an_at_sign_elsewhere_is_no_part_of_a_password(url: str) -> None:
    assert load({"database": url}).database == url


@pytest.mark.parametrize("text", ["postgresql:u:pw@h", "u:pw@h", "host=h password=pw"])
def test_what_is_near_an_address_is_refused_without_its_password(text: str) -> None:
    for key in ("database", "coordinator"):
        with pytest.raises(InvalidSetting) as refused:
            load({key: text})
        assert "pw" not in str(refused.value)


def test_a_secret_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("postgresql://u:pw@h/d\n")
    (tmp_path / "login").write_text("sexton:a:b\r\n")
    settings = load(
        environ={
            "SEXTON_DATABASE_FILE": str(tmp_path / "database"),
            "SEXTON_COORDINATOR_LOGIN_FILE": str(tmp_path / "login"),
        }
    )
    assert settings.database == "postgresql://u:pw@h/d"
    assert settings.coordinator_access.login == "sexton:a:b"


def test_an_option_wins_over_the_file_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("postgresql://u:pw@h/d\n")
    settings = load({"database": "sqlite:///x"}, {"SEXTON_DATABASE_FILE": str(tmp_path / "database")})
    assert settings.database == "sqlite:///x"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is not one line"),
        (b"\n\n", "is not one line"),
        (b"postgresql://u:secret@h/d\nmore\n", "is not one line"),
        (b"x" * 20_000, "is not one line"),
        (b"\xff\xfe", "is not text"),
        (b"mysql://u:secret@h/d", "is not the address of a database"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused_and_not_shown(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "database"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidSetting) as refused:
        load(environ={"SEXTON_DATABASE_FILE": str(file)})
    assert said in str(refused.value)
    assert "SEXTON_DATABASE_FILE" in str(refused.value)
    assert str(file) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_secret_given_twice_and_a_file_for_what_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="SEXTON_DATABASE and SEXTON_DATABASE_FILE are both set"):
        load(environ={"SEXTON_DATABASE": "sqlite:///x", "SEXTON_DATABASE_FILE": str(tmp_path)})
    with pytest.raises(InvalidSetting, match="SEXTON_NAME_FILE is no setting"):
        load(environ={"SEXTON_NAME_FILE": str(tmp_path)})


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"LOGIN": "hunter2"}, "is not USER:PASSWORD"),
        ({"LOGIN": ":hunter2"}, "is not USER:PASSWORD"),
        ({"CERTIFICATE": "c", "CA": "a"}, "belong together"),
        ({"CERTIFICATE": "c", "KEY": "k"}, "no coordinator_ca"),
    ],
)
def test_access_to_the_coordinator_that_is_incomplete_is_refused(environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load(environ={f"SEXTON_COORDINATOR_{key}": value for key, value in environ.items()})
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_login_in_the_coordinator_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidSetting, match="coordinator_login") as refused:
        load({"coordinator": "zookeeper://sexton:hunter2@zk1:2181/sexton"})
    assert "hunter2" not in str(refused.value)


def test_access_is_handed_on_by_the_environment_and_the_login_is_in_no_representation() -> None:
    access = CoordinatorAccess("sexton:hunter2", "ca.pem", "cert.pem", "key.pem")
    assert load(environ=access_environment(access)).coordinator_access == access
    assert "hunter2" not in repr(access)
    assert access_environment(CoordinatorAccess()) == {}
    assert not CoordinatorAccess("a:b").is_tls


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        ("10.0.0.7:80", "10.0.0.7", 80),
        ("[::1]:9464", "::1", 9464),
        ("vm-1.lan:0", "vm-1.lan", 0),
    ],
)
def test_metrics_are_served_to_this_machine_alone_unless_a_host_is_given(text: str, host: str, port: int) -> None:
    address = load({"http": text}).http
    assert address == HttpAddress(host, port)
    assert str(address).endswith(f":{port}")


def test_no_metrics_are_served_unless_asked_for(tmp_path: Path) -> None:
    assert load().http is None
    assert load({"http": "off"}).http is None
    (tmp_path / "sexton.toml").write_text("http = 9464\n")
    assert load(folders=[tmp_path]).http == HttpAddress("127.0.0.1", 9464)
