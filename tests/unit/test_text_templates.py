"""Texts with gaps: what fills them, what is meant literally, and what is a fault."""

from __future__ import annotations

import pytest

from sexton.text_templates import filled, first_fault, secrets_in


def in_brackets(name: str, position: int) -> str:
    return f"[{name}@{position}]"


def test_a_template_has_gaps_for_what_a_run_is_told_and_for_secrets() -> None:
    text = '{"at": "${tick}", "key": "${secret:db-1}", "cost": "$5", "literal": "$${tick}"}'
    full = '{"at": "[tick@8]", "key": "[secret:db-1@26]", "cost": "$5", "literal": "${tick}"}'
    assert filled(text, in_brackets, is_template=True) == full
    assert secrets_in(text, "${secret:x}${secret:db-1}", is_template=True) == ("db-1", "x")
    assert first_fault(text, is_template=True) is None


def test_elsewhere_only_secrets_are_gaps() -> None:
    text = "${HOME}:${tick}:$${secret:x}:${"
    assert filled(text, in_brackets, is_template=False) == "${HOME}:${tick}:$[secret:x@17]:${"
    assert secrets_in(text, is_template=False) == ("x",)
    assert first_fault(text, is_template=False) is None


def test_what_fills_a_gap_is_not_looked_at_again() -> None:
    assert filled("${secret:x}", lambda name, at: "${tick}$${", is_template=True) == "${tick}$${"


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("a ${secret:x", "${secret:x", "has no closing brace; write ${secret:NAME}"),
        ("${secret:}", "", "is not a secret's name"),
        ("${secret:../etc}", "../etc", "is not a secret's name"),
        ("${secret:a\nb}", "a\nb", "is not a secret's name"),
    ],
)
def test_a_secret_that_cannot_be_is_a_fault_everywhere(text: str, part: str, why: str) -> None:
    for is_template in (True, False):
        fault = first_fault(text, is_template=is_template)
        assert fault is not None
        assert fault.part == part
        assert why in fault.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${tik}", "is nothing that a run is told; there are ${job}, ${tick}"),
        ("x ${tick", "write $${ where ${ is meant"),
    ],
)
def test_in_a_template_every_gap_must_be_known(text: str, why: str) -> None:
    fault = first_fault(text, is_template=True)
    assert fault is not None
    assert why in fault.why
    assert first_fault(text, is_template=False) is None
