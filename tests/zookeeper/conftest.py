"""Candidates of an election of the test's own, and a three-server ensemble that each test finds whole."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.elections import Candidates
from tests.support.ensemble import ZooKeeperEnsemble


@pytest.fixture
def path() -> str:
    return f"/tests/{uuid.uuid4().hex}"


@pytest.fixture
def candidate(path: str) -> Iterator[Candidates]:
    """Makes candidates of one election and closes them."""
    made = Candidates(path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def one_ensemble() -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble() as ensemble:
        yield ensemble


@pytest.fixture
def ensemble(one_ensemble: ZooKeeperEnsemble) -> ZooKeeperEnsemble:
    """Three servers that all serve, to be killed, wiped and restored; the next test finds them started again."""
    one_ensemble.start()
    one_ensemble.wait_until_serving(3)
    return one_ensemble
