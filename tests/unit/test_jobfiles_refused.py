"""What job files must not say: every case with the place and the words of its refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sexton.errors import InvalidJobFile, Problem
from sexton.jobfiles.load import load_job_text

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "cases" / "refused_definitions.json").read_text(encoding="utf-8")
)


def problems_of(content: bytes | str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(content)
    return refused.value.problems


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_is_refused_at_its_place_with_the_remedy(case: dict[str, Any]) -> None:
    found = problems_of(case["input"].encode(case.get("encoding", "utf-8")))
    assert [(one.line, one.column) for one in found] == [(case["line"], case["column"])], [str(one) for one in found]
    assert case["says"] in found[0].message
    assert found[0].message.isprintable()


def test_case_ids_are_unique() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
