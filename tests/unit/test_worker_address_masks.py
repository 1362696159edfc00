"""What of an address that is a secret is hidden by itself, and what a run's own encoding makes of its secrets."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from urllib.parse import quote_plus

import pytest
from httpx import URL

from sexton.targets import CeleryTarget, HttpTarget, PythonTarget
from sexton_worker.core.address_masks import logins_of_address, parts_of_address
from sexton_worker.core.secret_masks import SecretMask
from sexton_worker.execution import RunOrder
from sexton_worker.targets.http_request import shown
from sexton_worker.targets.preparation import Preparation
from sexton_worker.targets.secrets import Secrets
from tests.support.runs import TICK, a_grant, rules_for

HOOK = "https://Hooks.example/services/T0/B0/x|y/SECRETPATH?wait=true&key=0123456789abcdef0#frag"


def prepared(target: HttpTarget | CeleryTarget, secret: str) -> tuple[SecretMask, PythonTarget]:
    environ = {"SEXTON_SECRET_S": secret}
    preparation = Preparation(Secrets(environ, "/nowhere"), {}, None)
    order = RunOrder(a_grant(1), "nightly", rules_for(target), datetime(2026, 3, 30, tzinfo=UTC))
    order, call = preparation.of(order)
    assert call is not None
    return SecretMask(order.secrets), call


@pytest.mark.parametrize(
    "said",
    [
        shown(HOOK),
        shown(str(URL(HOOK))),  # as a redirect's address is tidied
        URL(HOOK).raw_path.decode(),
        URL(HOOK).path,
        "/services/T0/B0/x|y/SECRETPATH",
        '{"key": "0123456789abcdef0"}',
    ],
)
@pytest.mark.parametrize("url", ["${secret:s}", "${secret:s}&tick=${tick}"])
def test_no_part_of_an_address_that_is_a_secret_is_shown_by_itself(url: str, said: str) -> None:
    mask, _ = prepared(HttpTarget(url), HOOK)
    hidden = mask.hide_in_text(f"POST {said} answered 503")
    assert "SECRETPATH" not in hidden
    assert "0123456789" not in hidden
    assert hidden.endswith(" answered 503")


def test_what_follows_a_secret_address_is_hidden_with_it() -> None:
    mask, _ = prepared(HttpTarget("${secret:s}/${job}?at=${tick}"), "https://hooks.example/T0")
    path = f"/T0/nightly?at={TICK:%Y-%m-%dT%H:%M:%SZ}"
    assert mask.hide_in_text(f"to https://hooks.example{path}") == "to ***"
    assert mask.hide_in_text(f"GET {path}") == "GET ***"


def test_the_login_of_an_address_is_hidden_as_it_is_sent() -> None:
    mask, call = prepared(HttpTarget("http://bob:${secret:s}@h/"), "p@ss w:rd")
    sent = base64.b64encode(b"bob:p@ss w:rd").decode()
    assert mask.hide_in_text(f"Authorization: Basic {sent}") == "Authorization: Basic ***"
    assert call.kwargs["secrets"] == {"s": "p@ss w:rd"}


def test_a_form_s_way_of_writing_is_known() -> None:
    assert SecretMask([b"pass word+x"]).hide_in_text(f"p={quote_plus('pass word+x')}&a=b") == "p=***&a=b"


def test_the_password_of_a_secret_address_is_hidden_in_any_output() -> None:
    mask = SecretMask([b"postgresql://sexton:hunter%202@db/prod\n"])
    assert mask.hide_in_text("login as sexton with hunter%202, hunter 2 at db/prod") == (
        "login as sexton with ***, *** at db/prod"
    )


def test_a_result_backend_that_is_a_secret_is_not_named() -> None:
    target = CeleryTarget("redis://h/0", "task", backend="${secret:s}", wait=True)
    mask, call = prepared(target, "redis://:hunter22@results.example:6379/1")
    assert (call.kwargs["backend"], call.kwargs["shown_backend"]) == (
        "redis://:hunter22@results.example:6379/1",
        "${secret:s}",
    )
    assert mask.hide_in_text("at redis://results.example:6379/1") == "at ***"


@pytest.mark.parametrize("text", ["", "plain", "https://[::1", "mailto:x", "/path/only/of/many/letters"])
def test_what_is_no_address_has_no_parts(text: str) -> None:
    assert parts_of_address(text) == ()
    assert logins_of_address(text) == ()


def test_what_is_too_short_to_be_secret_spoils_no_output() -> None:
    assert parts_of_address("https://h/api?a") == ("https://h", "https://h/api")
