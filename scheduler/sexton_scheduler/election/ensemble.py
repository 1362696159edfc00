"""Where ZooKeeper is and how it is entered: the coordinator's address, its login, its certificates."""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.hosts import collect_hosts
from kazoo.security import ACL, make_digest_acl

from sexton.errors import InvalidSetting
from sexton.process_settings import SYSTEM_CA, CoordinatorAccess

SCHEME = "zookeeper://"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Where ZooKeeper is: ``hosts`` as kazoo takes them, and the path under which all znodes lie."""

    hosts: str
    path: str

    @classmethod
    def parse(cls, coordinator: str) -> Ensemble:
        """Read ``zookeeper://h1:2181,h2:2181/sexton``; raises InvalidSetting."""
        hosts, _, path = coordinator.removeprefix(SCHEME).partition("/")
        names_servers = coordinator.startswith(SCHEME) and hosts and all(hosts.split(","))
        try:
            if names_servers:
                collect_hosts(hosts)
        except ValueError:
            names_servers = False
        if not names_servers:
            raise InvalidSetting(
                f"coordinator {coordinator!r} names no ZooKeeper servers",
                hint="write e.g. zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
            )
        return cls(hosts, "/" + path.strip("/") if path.strip("/") else "/sexton")

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """Host and port of every server, in the order of the setting."""
        return tuple(collect_hosts(self.hosts)[0])

    @property
    def folder(self) -> str:
        """The znode in which candidates line up."""
        return f"{self.path}/election"


@dataclass(frozen=True, slots=True)
class Entrance:
    """What ``CoordinatorAccess`` names, with its files read: ``login`` in clear, ``tls`` None for plain TCP."""

    login: str | None = field(default=None, repr=False)
    tls: Certificates | None = None

    @classmethod
    def open(cls, access: CoordinatorAccess) -> Entrance:
        """Read the certificates; raises InvalidSetting, with a sentence, where they cannot be used."""
        return cls(access.login, Certificates(access) if access.is_tls else None)

    def context(self) -> ssl.SSLContext | None:
        """For the next connection; None for plain TCP."""
        return None if self.tls is None else self.tls.context()

    @property
    def auth_data(self) -> list[tuple[str, str]]:
        return [("digest", self.login)] if self.login is not None else []

    @property
    def acl(self) -> list[ACL] | None:
        """Who may touch what this client makes: its own user alone, and anybody where it has none."""
        if self.login is None:
            return None
        user, _, password = self.login.partition(":")
        return [make_digest_acl(user, password, all=True)]


class Certificates:
    """The TLS context of certificate files; a connection that is made after they were renewed has the new ones.

    Raises InvalidSetting, with a sentence, where they cannot be used at first.
    """

    def __init__(self, access: CoordinatorAccess) -> None:
        self._access = access
        self._stamps = self._read_stamps()
        self._context = _tls(access)

    def context(self) -> ssl.SSLContext:
        """The context of the files as they are now; as they were, where they cannot be used now (being written)."""
        stamps = self._read_stamps()
        if stamps != self._stamps:
            with contextlib.suppress(InvalidSetting):
                self._context = _tls(self._access)
                self._stamps = stamps
        return self._context

    def _read_stamps(self) -> list[tuple[int, int] | None]:
        stamps: list[tuple[int, int] | None] = []
        for file in (self._access.ca, self._access.certificate, self._access.key):
            try:
                stat = Path(file).stat() if file is not None else None
            except OSError:
                stat = None
            stamps.append(None if stat is None else (stat.st_mtime_ns, stat.st_ino))
        return stamps


def address_text(host: str, port: int) -> str:
    """``host:port``, as it is written in the coordinator."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tls(access: CoordinatorAccess) -> ssl.SSLContext:
    """Only the authority that was named is believed, and only for the host that was named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and host name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if access.ca == SYSTEM_CA:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(access.ca)
    except (OSError, ValueError) as error:
        raise InvalidSetting(
            f"coordinator_ca: {access.ca} {_why(error)}",
            hint="name a readable PEM file with the authority's certificate",
        ) from None
    if access.certificate is not None and access.key is not None:
        try:
            context.load_cert_chain(access.certificate, access.key, password=_refuse_to_ask)
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"coordinator_certificate and coordinator_key: {access.certificate} and {access.key} {_why(error)}",
                hint="name readable PEM files, the key unencrypted, that belong to each other",
            ) from None
    return context


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"cannot be used ({(getattr(error, 'reason', None) or 'no PEM').replace('_', ' ').lower()})"
    return f"cannot be read ({error.strerror or error})" if isinstance(error, OSError) else f"cannot be used ({error})"


def _refuse_to_ask() -> str:
    raise ValueError("the key is encrypted")  # OpenSSL would ask the terminal
