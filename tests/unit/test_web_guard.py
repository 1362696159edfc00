"""Who is let into a console that is served to browsers, and what is never served: decided on values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sexton.errors import InvalidOption, NotFound, Refused, SextonError
from sexton_tui.web.console_in_tab import options_from
from sexton_tui.web.guard import CONTENT_POLICY, Guard, Verdict, Visit, host_name, is_loopback
from sexton_tui.web.serving import Serving, read_token
from sexton_tui.web.tab_environment import ASCII, PEER, READ_ONLY, THEME, tab_environment
from sexton_tui.web.tab_process import fitting

TOKEN = "a token of many characters"  # noqa: S105 - of this test
GUARD = Serving({}, token=TOKEN).guard("the ticket")
OWN = Visit(host="127.0.0.1:8420", cookie="the ticket")
SERVED = Serving({}, token=TOKEN)


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("127.0.0.1:8420", Verdict.ADMITTED),
        ("localhost:8420", Verdict.ADMITTED),
        ("LOCALHOST", Verdict.ADMITTED),
        ("[::1]:8420", Verdict.ADMITTED),
        ("localhost:9000", Verdict.ADMITTED),  # the near end of a tunnel
        ("attacker.test:8420", Verdict.FOREIGN_HOST),
        ("127.0.0.1.attacker.test", Verdict.FOREIGN_HOST),
        ("attacker.test@127.0.0.1:8420", Verdict.FOREIGN_HOST),
        ("127.0.0.1:8420, attacker.test", Verdict.FOREIGN_HOST),
        ("10.0.0.7:8420", Verdict.FOREIGN_HOST),
        ("", Verdict.FOREIGN_HOST),
        (None, Verdict.FOREIGN_HOST),
    ],
)
def test_only_our_own_names_are_served_whoever_points_another_here(host: str | None, verdict: Verdict) -> None:
    assert GUARD.verdict(replace(OWN, host=host)) is verdict
    assert replace(GUARD, token=None).verdict(replace(OWN, host=host)) is verdict


@pytest.mark.parametrize(
    ("origin", "verdict"),
    [
        ("http://127.0.0.1:8420", Verdict.ADMITTED),
        ("http://127.0.0.1:3000", Verdict.FOREIGN_ORIGIN),  # another server of this machine, which shares our cookies
        ("http://localhost:8420", Verdict.FOREIGN_ORIGIN),
        ("https://127.0.0.1:8420", Verdict.FOREIGN_ORIGIN),
        ("http://attacker.test", Verdict.FOREIGN_ORIGIN),
        ("http://127.0.0.1", Verdict.FOREIGN_ORIGIN),
        ("file://127.0.0.1:8420", Verdict.FOREIGN_ORIGIN),
        ("null", Verdict.FOREIGN_ORIGIN),
        ("", Verdict.FOREIGN_ORIGIN),
        (None, Verdict.FOREIGN_ORIGIN),  # a browser always names it
    ],
)
def test_only_the_page_we_served_may_open_a_socket(origin: str | None, verdict: Verdict) -> None:
    assert GUARD.verdict(replace(OWN, origin=origin, changes=True)) is verdict
    assert replace(GUARD, token=None).verdict(replace(OWN, origin=origin, changes=True)) is verdict


def test_a_page_that_is_only_looked_at_needs_no_origin() -> None:
    assert GUARD.verdict(replace(OWN, origin=None)) is Verdict.ADMITTED
    assert GUARD.verdict(replace(OWN, origin="http://attacker.test")) is Verdict.FOREIGN_ORIGIN


def test_ports_that_an_address_leaves_out_are_those_of_its_scheme() -> None:
    guard = Guard(frozenset({"sexton.example"}), frozenset({"https"}), None, "")
    assert guard.verdict(Visit("sexton.example", "https://sexton.example:443", changes=True)) is Verdict.ADMITTED
    assert guard.verdict(Visit("sexton.example:443", "https://sexton.example", changes=True)) is Verdict.ADMITTED
    assert guard.verdict(Visit("sexton.example", "https://sexton.example:80", changes=True)) is Verdict.FOREIGN_ORIGIN


@pytest.mark.parametrize(
    ("shown", "cookie", "verdict"),
    [
        (TOKEN, None, Verdict.ENTERED),
        (TOKEN, "old", Verdict.ENTERED),
        ("another", None, Verdict.WRONG_TOKEN),
        ("", None, Verdict.WRONG_TOKEN),
        ("tökén", None, Verdict.WRONG_TOKEN),
        ("\udcff", None, Verdict.WRONG_TOKEN),
        (None, "the ticket", Verdict.ADMITTED),
        (None, "the ticke", Verdict.NO_TOKEN),
        (None, TOKEN, Verdict.NO_TOKEN),  # a cookie holds no token
        (None, None, Verdict.NO_TOKEN),
    ],
)
def test_the_token_is_shown_once_and_the_ticket_from_then_on(
    shown: str | None, cookie: str | None, verdict: Verdict
) -> None:
    assert GUARD.verdict(replace(OWN, shown=shown, cookie=cookie)) is verdict


def test_no_secret_is_in_a_repr() -> None:
    visit = Visit("localhost", shown=TOKEN, cookie="the ticket")
    assert TOKEN not in f"{GUARD} {visit} {SERVED}"
    assert "the ticket" not in f"{GUARD} {visit}"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])
def test_loopback_is_served_without_more(host: str) -> None:
    assert is_loopback(host)
    replace(SERVED, host=host).check()


@pytest.mark.parametrize("host", ["10.0.0.7", "sexton.example", "::2", "localhost.attacker.test"])
def test_other_addresses_need_tls_or_that_it_is_given_up_by_name(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(Refused, match="is reached from other machines"):
        replace(SERVED, host=host).check()
    replace(SERVED, host=host, certificate=Path("c.pem")).check()
    replace(SERVED, host=host, without_tls=True).check()
    assert replace(SERVED, host=host, certificate=Path("c.pem")).guard("").token == TOKEN
    assert replace(SERVED, host=host, without_tls=True).guard("").token == TOKEN
    assert replace(SERVED, host=host, certificate=Path("c.pem"), without_token=True).guard("").token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - refused
def test_every_address_is_none_that_can_be_opened(host: str) -> None:
    open_to_all = replace(SERVED, host=host, certificate=Path("c.pem"))
    with pytest.raises(Refused, match="--public-url"):
        open_to_all.check()
    public = replace(open_to_all, public_url="https://sexton.example")
    public.check()
    assert public.guard("").verdict(Visit("sexton.example")) is Verdict.NO_TOKEN
    assert public.guard("").verdict(Visit("127.0.0.1:8420")) is Verdict.FOREIGN_HOST


@pytest.mark.parametrize(
    "options",
    [
        {"key": Path("k.pem")},
        {"certificate": Path("c.pem"), "without_tls": True},
        {"without_token": True, "is_token_known": True},
        {"public_url": "sexton.example"},
        {"public_url": "ftp://sexton.example"},
        {"public_url": "https://sexton.example/path"},
        {"public_url": "https://user@sexton.example"},
        {"public_url": "https://sexton.example:nine"},
        {"public_url": "https://[::1"},
        {"public_url": "http://sexton.example", "certificate": Path("c.pem")},
    ],
)
def test_options_that_contradict_or_mean_nothing_are_wrong_usage(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        replace(SERVED, **options).check()  # type: ignore[arg-type]  # fields by their names


def test_a_proxy_that_does_tls_is_told_by_the_public_address() -> None:
    proxied = replace(SERVED, public_url="https://sexton.example")
    assert proxied.is_seen_over_tls
    page = Visit("sexton.example", "https://sexton.example", changes=True, cookie="t")
    assert proxied.guard("t").verdict(page) is Verdict.ADMITTED
    assert proxied.url(8420) == "https://sexton.example"
    assert replace(SERVED, host="::1").url(99) == "http://[::1]:99"


def test_a_token_that_is_soon_guessed_or_not_there_is_refused_and_in_no_message(tmp_path: Path) -> None:
    file = tmp_path / "token"
    told: list[SextonError] = []
    for content, error in ((None, NotFound), (b"", Refused), (b"short", Refused), (b"\xff" * 20, Refused)):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(error) as raised:
            read_token(file)
        told.append(raised.value)
    file.write_text("two words that are long\n")
    with pytest.raises(Refused) as raised:
        read_token(file)
    assert not any("short" in str(one) or "two words" in str(one) for one in (*told, raised.value))
    file.write_text("0123456789abcdef\n")
    assert read_token(file) == "0123456789abcdef"


def test_a_tab_gets_its_database_by_one_variable_whatever_the_server_got_it_by() -> None:
    inherited = {"SEXTON_DATABASE_FILE": "/run/secrets/database", "PGSSLMODE": "require"}
    given = tab_environment(inherited, {"SEXTON_DATABASE": "postgresql://u:p@h/n"}, (120, 40))
    assert given["SEXTON_DATABASE"] == "postgresql://u:p@h/n"
    assert given["PGSSLMODE"] == "require"
    assert "SEXTON_DATABASE_FILE" not in given
    assert (given["COLUMNS"], given["ROWS"]) == ("120", "40")


def test_what_the_server_was_told_is_what_a_tabs_console_does() -> None:
    plain = options_from({"SEXTON_DATABASE": "sqlite:///x.db"})
    assert (plain.database_url, plain.read_only, plain.ascii, plain.theme) == ("sqlite:///x.db", False, False, "dark")
    told = {READ_ONLY: "1", ASCII: "1", THEME: "contrast", PEER: "10.0.0.7"}
    given = options_from({"SEXTON_DATABASE": "sqlite:///x.db", **told})
    assert (given.read_only, given.ascii, given.theme) == (True, True, "contrast")
    assert given.actor.startswith("web:10.0.0.7/")


def test_a_screen_has_a_size_that_screens_have() -> None:
    assert fitting(10**9, -4) == (1000, 1)
    assert fitting(80, 24) == (80, 24)


def test_a_host_is_read_as_browsers_write_it() -> None:
    assert host_name("[2001:DB8::1]:80") == "2001:db8::1"
    assert host_name("sexton.example:80a") is None
    assert host_name("a b") is None


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    sources = {word for part in CONTENT_POLICY.split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "'self'", "'unsafe-inline'", "data:"}
    assert "script-src 'self';" in CONTENT_POLICY
