"""Settings of one process: where the database is, what this process is called, how much it takes on.

They come, in rising order, from ``/etc/sexton/sexton.toml``, ``~/.config/sexton/sexton.toml``, ``./sexton.toml``, the
environment (``SEXTON_DATABASE``, ...) and options of the command line; key by key the last one wins. Settings of the
*cluster* are in ``sexton.settings`` and live in the database.

A setting that holds a secret may be a file instead, as containers get theirs: ``SEXTON_DATABASE_FILE``,
``SEXTON_COORDINATOR_LOGIN_FILE``. No message, ``repr`` or option ever holds one.
"""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sexton.alert_settings import ALERT_READINGS, ALERT_SECRETS, AlertSettings
from sexton.errors import InvalidOption, InvalidSetting
from sexton.http_addresses import HttpAddress, http_address
from sexton.masked_url import masked_url
from sexton.settings import parse_duration
from sexton.sizes import bytes_of

FILE_NAME = "sexton.toml"
DEFAULT_DATABASE = "sqlite:///.sexton/sexton.db"
DEFAULT_COORDINATOR = "database:"
SLOTS_PER_CORE = 2
RECYCLE_RUNS = 100_000  # a new process costs as much as thousands of no-ops
RECYCLE_MEMORY = OUTPUT_LIMIT = 1_000_000_000  # bytes
MAX_FILE_BYTES = 1024 * 1024
MAX_SECRET_BYTES = 16 * 1024
SYSTEM_CA = "system"
# Each may be given as a file, and none as an option but an address.
SECRETS = ("database", "coordinator_login", *ALERT_SECRETS)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class LogFormat(StrEnum):
    CONSOLE = "console"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class CoordinatorAccess:
    """How ZooKeeper is entered. ``login``: ``USER:PASSWORD`` of its digest scheme. ``ca``: a file, or ``system`` for
    the machine's own authorities; given, the connection is TLS, with ``certificate`` and ``key`` as the client's.
    """

    login: str | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def is_tls(self) -> bool:
        return self.ca is not None


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Every setting of a process. ``allow``: None for everything; ``python_recycle_...``: runs and bytes, None: off."""

    database: str
    coordinator: str
    name: str
    queues: tuple[str, ...]
    slots: int
    poll: timedelta
    drain: timedelta
    http: HttpAddress | None  # where metrics and health are served
    log: LogFormat
    allow: tuple[str, ...] | None
    secrets: str | None  # a folder of files, of which jobs may name some
    output: str | None  # where outputs of runs are kept whole
    output_limit: int | None  # bytes of each
    python_recycle_runs: int | None
    python_recycle_memory: int | None
    coordinator_access: CoordinatorAccess
    alerts: AlertSettings

    def __repr__(self) -> str:
        return f"ProcessSettings(database={masked_url(self.database)!r}, name={self.name!r}, queues={self.queues!r})"


def default_folders() -> tuple[Path, ...]:
    """Where ``sexton.toml`` is looked for, nearest first."""
    return (Path(), Path.home() / ".config" / "sexton", Path("/etc/sexton"))


def load_process_settings(
    flags: Mapping[str, str],
    *,
    environ: Mapping[str, str] | None = None,
    folders: Sequence[Path] | None = None,
    config: Path | None = None,
) -> ProcessSettings:
    """The settings of this process. ``config`` names the one file to read in place of the folders' files.

    Raises InvalidSetting, naming the file, variable or option that is wrong; for an option, InvalidOption.
    """
    given = given_settings(flags, environ=environ, folders=folders, config=config)
    values: dict[str, Any] = {**_defaults()}
    for key, (value, source) in given.items():
        try:
            values[key] = _READINGS[key](value)
        except ValueError as error:
            kind = InvalidOption if key in flags else InvalidSetting
            raise kind(f"{source}: {error}") from None
    access = CoordinatorAccess(**{name: values.pop(f"coordinator_{name}") for name in _ACCESS})
    _check_access(access)
    alerts = AlertSettings(**{name: values.pop(name) for name in ALERT_READINGS if name in values})
    alerts.check()
    return ProcessSettings(**values, coordinator_access=access, alerts=alerts)


def given_settings(
    flags: Mapping[str, str],
    *,
    environ: Mapping[str, str] | None = None,
    folders: Sequence[Path] | None = None,
    config: Path | None = None,
) -> dict[str, tuple[object, str]]:
    """What is given, not yet read, by its key, and where: ``slots in ./sexton.toml``, ``SEXTON_SLOTS``, ``--slots``.

    Raises InvalidSetting for a file that can't be read, InvalidOption where ``config`` is none.
    """
    files = [config] if config is not None else [folder / FILE_NAME for folder in (folders or default_folders())]
    if config is not None and not config.is_file():
        raise InvalidOption(f"the settings file {config} does not exist", hint="mend --config")
    given: dict[str, tuple[object, str]] = {}
    for file in reversed(files):
        if file.is_file():
            given.update({key: (value, f"{key} in {file}") for key, value in _read_file(file).items()})
    given.update(_from_environment(os.environ if environ is None else environ))
    for key, text in flags.items():
        given[key] = (text, f"--{key.replace('_', '-')}")
    return given


def access_environment(access: CoordinatorAccess) -> dict[str, str]:
    """The variables that give ``access`` to another process."""
    values = {name: getattr(access, name) for name in _ACCESS}
    return {f"SEXTON_COORDINATOR_{name.upper()}": value for name, value in values.items() if value is not None}


def default_name() -> str:
    """``host-pid``: what a process is called unless it is told."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname().partition(".")[0]) or "host"
    return f"{host}-{os.getpid()}"


def _defaults() -> dict[str, Any]:
    return {
        "database": DEFAULT_DATABASE,
        "coordinator": DEFAULT_COORDINATOR,
        **{f"coordinator_{name}": None for name in _ACCESS},
        "name": default_name(),
        "queues": ("default",),
        "slots": SLOTS_PER_CORE * len(os.sched_getaffinity(0)),
        "poll": timedelta(seconds=5),
        "drain": timedelta(seconds=30),
        "http": None,
        "log": LogFormat.CONSOLE,
        "allow": None,
        "secrets": None,
        "output": None,
        "output_limit": OUTPUT_LIMIT,
        "python_recycle_runs": RECYCLE_RUNS,
        "python_recycle_memory": RECYCLE_MEMORY,
    }


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    """The settings that variables give, each with its source; a secret's may be the path of a file that holds it."""
    given: dict[str, tuple[object, str]] = {}
    for key in _READINGS:
        variable = f"SEXTON_{key.upper()}"
        if environ.get(variable):
            given[key] = (environ[variable], variable)
        path = environ.get(f"{variable}_FILE")
        if not path:
            continue
        if key not in SECRETS:
            raise InvalidSetting(f"{variable}_FILE is no setting", hint=f"write the value itself into {variable}")
        if key in given:
            raise InvalidSetting(f"{variable} and {variable}_FILE are both set", hint="unset one of them")
        given[key] = (_secret_of(Path(path), f"{variable}_FILE"), f"{variable}_FILE ({path})")
    return given


def _secret_of(file: Path, variable: str) -> str:
    """What the file holds, without the line end that editors add. Its content is in no message."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_SECRET_BYTES + 1)
        text = data.decode("utf-8").strip()
    except OSError as error:
        raise InvalidSetting(
            f"{variable}: {file} cannot be read ({error.strerror})",
            hint="let the user this process runs as read the file, or name another",
        ) from None
    except UnicodeDecodeError:
        raise InvalidSetting(f"{variable}: {file} is not text", hint="write one line of UTF-8 into it") from None
    if not text or len(data) > MAX_SECRET_BYTES or len(text.splitlines()) > 1:
        raise InvalidSetting(f"{variable}: {file} is not one line of text", hint="write the value alone into it")
    return text


def _check_access(access: CoordinatorAccess) -> None:
    """Whether what was given belongs together. The files are read by nodes alone: other users may not be able to."""
    if (access.certificate is None) != (access.key is None):
        raise InvalidSetting(
            "coordinator_certificate and coordinator_key belong together", hint="give both, or neither"
        )
    if access.certificate is not None and access.ca is None:
        raise InvalidSetting(
            "coordinator_certificate is given, and no coordinator_ca",
            hint="name the file of the authority that signed ZooKeeper's certificates, or write system",
        )


def _read_file(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InvalidSetting(f"{file} is larger than 1 MB", hint="it holds a dozen keys at most")
        values = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be read ({error.strerror})", hint="mend its permissions") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"{file} is not TOML: {error}", hint="write lines such as slots = 4") from None
    for key in values:
        if key not in _READINGS:
            raise InvalidSetting(
                f"{file}: there is no setting {key!r}", hint=f"the settings are {', '.join(_READINGS)}"
            )
    return values


def _database(value: object) -> str:
    text = _text(value)
    scheme, separator, rest = text.partition("://")
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return text
    if separator and scheme in ("postgresql", "postgres", "postgresql+psycopg") and rest:
        _refuse_unescaped(rest)
        return text
    raise ValueError(
        f"{masked_url(text)!r} is not the address of a database; "
        "write sqlite:///PATH or postgresql://USER@HOST:PORT/NAME"
    )


def _refuse_unescaped(rest: str) -> None:
    """libpq ends a password at its first @ or /, and would take what follows for the host, and show it as such."""
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    port = authority.rpartition(":")[2]
    is_cut = "@" not in authority and "@" in rest and ":" in authority and not port.rstrip("]").isdecimal()
    if authority.count("@") > 1 or is_cut:
        raise ValueError(
            "the password has characters that end it early; escape @ in the password as %40, / as %2F and ? as %3F"
        )


def _coordinator(value: object) -> str:
    text = _text(value)
    if text.startswith("zookeeper://") and "@" in text:
        raise ValueError(
            "a coordinator is recorded in the database and shown, and takes no user or password; "
            "write them into coordinator_login"
        )
    if not {".", ".."}.isdisjoint(text.split("/")):
        raise ValueError(f"{masked_url(text)!r} has a relative path; write the path of ZooKeeper out, without . and ..")
    if text == DEFAULT_COORDINATOR or re.fullmatch(r"zookeeper://[^/\s]+(/[^\s]*)?", text):
        return text
    raise ValueError(
        f"{masked_url(text)!r} is not a coordinator; write database: or zookeeper://HOST:2181,HOST:2181/sexton"
    )


def _login(value: object) -> str:
    text = _text(value)
    user, colon, password = text.partition(":")
    if not user or not colon or not password:
        raise ValueError("is not USER:PASSWORD; write the user's name, a colon and the password")
    return text


def _path(value: object) -> str:
    text = _text(value)
    if not text or "\0" in text:
        raise ValueError("is empty; name a file")
    return text


def _name(value: object) -> str:
    text = _text(value)
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a name; use letters, digits, '.', '_' and '-', at most 100")
    return text


def _names(value: object) -> tuple[str, ...]:
    names = _list(value)
    for name in names:
        _name(name)
    if not names:
        raise ValueError("is empty; name at least one queue")
    return tuple(dict.fromkeys(names))


def _list(value: object) -> tuple[str, ...]:
    """A TOML list of texts, or one text with commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError(f"{value!r} is not a list of texts; write e.g. default,mail")


def _slots(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise ValueError(f"{value!r} is not a number of slots from 1 to 9999")
    return int(text)


def _recycle_runs(value: object) -> int | None:
    text = str(value)
    if text == "off":
        return None
    if isinstance(value, bool) or not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ValueError(f"{value!r} is not a number of runs from 1 to 999999999; or write off")
    return int(text)


def _size(value: object) -> int | None:
    text = _text(value)
    if text == "off":
        return None
    size = bytes_of(text)
    if not size:
        raise ValueError(f"{value!r} is not a size such as 512MB or 2GiB; or write off")
    return size


def _duration(least: timedelta) -> Callable[[object], timedelta]:
    def read(value: object) -> timedelta:
        duration = parse_duration(_text(value))
        if duration < least:
            raise ValueError(f"{value!r} is too short; the least is {least.total_seconds():g}s")
        return duration

    return read


def _log(value: object) -> LogFormat:
    try:
        return LogFormat(_text(value))
    except ValueError:
        raise ValueError(f"{value!r} is neither console nor json") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text; put it in quotes")
    return value.strip()


_ACCESS = ("login", "ca", "certificate", "key")
_READINGS: dict[str, Callable[[object], Any]] = {
    "database": _database,
    "coordinator": _coordinator,
    "coordinator_login": _login,
    "coordinator_ca": _path,
    "coordinator_certificate": _path,
    "coordinator_key": _path,
    "name": _name,
    "queues": _names,
    "slots": _slots,
    "poll": _duration(timedelta(milliseconds=50)),
    "drain": _duration(timedelta(0)),
    "http": http_address,
    "log": _log,
    "allow": _list,
    "secrets": _path,
    "output": lambda value: None if value == "off" else _path(value),
    "output_limit": _size,
    "python_recycle_runs": _recycle_runs,
    "python_recycle_memory": _size,
    **ALERT_READINGS,
}
