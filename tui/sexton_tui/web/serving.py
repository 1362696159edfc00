"""How the console is served to browsers, and what of that is refused: before a socket is opened."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sexton.errors import InvalidOption, NotFound, Refused
from sexton_tui.web.guard import LOOPBACK_NAMES, Guard, host_name, is_loopback

LOOPBACK = "127.0.0.1"
PORT = 8420
TABS = 8  # a tab is a process of some 60 MB, with two connections to the database
LEAST_TOKEN = 16  # characters; there is no limit on tries
_MOST_TOKEN = 1024
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - recognized, not bound


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and to whom. ``token`` None: to whoever reaches it. ``public_url``: what browsers are given to open, where
    that is not the address itself. ``command``: the program of a tab, which gets the server's PID as its last argument,
    and ``environment`` on top of the server's.
    """

    environment: Mapping[str, str] = field(repr=False)
    command: tuple[str, ...] = (sys.executable, "-P", "-m", "sexton_tui.web.console_in_tab")
    host: str = LOOPBACK
    port: int = PORT
    token: str | None = field(default=None, repr=False)
    is_token_known: bool = False  # to those who are to have it: it is not printed
    certificate: Path | None = None
    key: Path | None = None
    without_tls: bool = False
    without_token: bool = False
    public_url: str | None = None
    tabs: int = TABS

    @property
    def is_tls(self) -> bool:
        return self.certificate is not None

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    @property
    def is_seen_over_tls(self) -> bool:
        """Whether browsers speak TLS: to this process, or to a proxy before it."""
        return self.is_tls or (self.public_url or "").startswith("https://")

    def url(self, port: int) -> str:
        """What to open, once the port is known."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"

    def guard(self, ticket: str) -> Guard:
        """Who is let in, with the ticket that the cookie of this server holds."""
        public = None if self.public_url is None else urlsplit(self.public_url)
        hosts = {self.host.lower(), *(LOOPBACK_NAMES if is_loopback(self.host) else ())}
        if public is not None and public.hostname:
            hosts.add(public.hostname)
        return Guard(
            hosts=frozenset(hosts),
            schemes=frozenset({self.scheme, *(() if public is None else (public.scheme,))}),
            token=None if self.without_token else self.token,
            ticket=ticket,
        )

    def check(self) -> None:
        """Raise InvalidOption where options contradict each other, and Refused where the address is open and what
        protects it is neither there nor given up by name."""
        self._check_options()
        if self.host in _EVERYWHERE and self.public_url is None:
            raise Refused(
                f"--host {self.host} is every address of this machine, and none that a browser can open",
                hint="add --public-url with the address that people open, or name one address",
            )
        if is_loopback(self.host) or self.is_tls or self.without_tls:
            return
        raise Refused(
            f"{self.host} is reached from other machines, and without TLS what passes can be read on the way",
            hint="give --certificate and --key, or --without-tls where a proxy of yours does TLS; for yourself alone, "
            f"serve on {LOOPBACK} and open it through a tunnel (ssh -L {self.port}:{LOOPBACK}:{self.port})",
        )

    def _check_options(self) -> None:
        if self.key is not None and self.certificate is None:
            raise InvalidOption("--key is given, and no --certificate", hint="give both")
        if self.is_tls and self.without_tls:
            raise InvalidOption("--certificate and --without-tls contradict each other", hint="give one of them")
        if self.without_token and self.is_token_known:
            raise InvalidOption("--token-file and --without-token contradict each other", hint="give one of them")
        if self.public_url is not None:
            self._check_public_url(self.public_url)

    def _check_public_url(self, text: str) -> None:
        try:
            url = urlsplit(text)
            is_address = url.scheme in ("http", "https") and host_name(url.netloc) is not None and url.port != 0
        except ValueError:
            is_address = False
        if not is_address or url.path not in ("", "/") or url.query or url.fragment:
            raise InvalidOption(
                f"--public-url {text!r} is not the address of a server",
                hint="write https://NAME or https://NAME:PORT, without a path",
            )
        if self.is_tls and url.scheme != "https":
            raise InvalidOption(
                f"--public-url {text} is without TLS, and --certificate is given", hint="write https://"
            )


def read_token(file: Path) -> str:
    """The token that the file holds on its one line. Its content is in no message.

    Raises NotFound, and Refused where it holds none or one that is soon guessed.
    """
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_TOKEN + 1).decode("utf-8").strip()
    except OSError as error:
        raise NotFound(
            f"the token file {file} cannot be read ({error.strerror})", hint=f"make one: openssl rand -hex 32 > {file}"
        ) from None
    except UnicodeDecodeError:
        text = ""
    if not re.fullmatch(rf"[!-~]{{{LEAST_TOKEN},{_MOST_TOKEN}}}", text):
        raise Refused(
            f"the token file {file} does not hold one line of {LEAST_TOKEN} or more letters, digits and signs",
            hint=f"make one: openssl rand -hex 32 > {file}",
        )
    return text
