"""What docs/fencing.md shows is run here, block by block."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text

from sexton import fencing
from sexton.errors import StaleToken
from tests.support.source_tree import ROOT

DOCUMENT = (ROOT / "docs" / "fencing.md").read_text()
RUN = {"SEXTON_JOB": "settle", "SEXTON_TICK": "2026-03-29T01:00:00Z"}


def block(language: str, beginning: str) -> str:
    """The one code block in this language that has this in it."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE)
    (found,) = [one for one in blocks if beginning in one]
    return str(found)


def test_the_example_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block("python", "def settle"), names)  # noqa: S102 - our own document
    with names["engine"].begin() as connection:
        connection.execute(text(block("sql", "CREATE TABLE")))
        connection.execute(text("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)"))
        connection.execute(text("INSERT INTO accounts VALUES (1, 0)"))
    for name, value in RUN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SEXTON_TOKEN", "42")
    names["settle"]()
    monkeypatch.setenv("SEXTON_TOKEN", "41")
    with names["engine"].begin() as connection:
        assert connection.execute(text("SELECT balance FROM accounts")).scalar() == 1200
        connection.execute(text("UPDATE accounts SET balance = 7"))
    with pytest.raises(StaleToken):
        names["settle"]()
    with names["engine"].begin() as connection:
        assert connection.execute(text("SELECT balance FROM accounts")).scalar() == 7
    names["engine"].dispose()


@pytest.fixture
def plain_url(postgres_url: str) -> str:
    """Of PostgreSQL, as its own programs take it."""
    return postgres_url.replace("postgresql+psycopg://", "postgresql://")


def test_the_command_in_another_language(plain_url: str) -> None:
    with psycopg.connect(plain_url) as connection:
        connection.execute(block("sql", "CREATE TABLE"))
        connection.execute("CREATE TABLE accounts (id int, balance int)")
        connection.execute("INSERT INTO accounts VALUES (1, 0)")
    first = settle(plain_url, 42)
    assert first.returncode == 0, first.stderr
    assert balance(plain_url) == 1200
    with psycopg.connect(plain_url) as connection:
        connection.execute("UPDATE accounts SET balance = 7")
    refused = settle(plain_url, 41)
    assert refused.returncode != 0
    assert "division by zero" in refused.stderr
    assert balance(plain_url) == 7


def settle(url: str, token: int) -> subprocess.CompletedProcess[str]:
    script = block("sh", "psql").replace("psql --quiet", f"psql --no-psqlrc --quiet --dbname='{url}'")
    environment = {**os.environ, **RUN, "SEXTON_TOKEN": str(token)}
    return subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False)


def balance(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT balance FROM accounts").fetchone()
    assert row is not None
    return int(row[0])


def test_the_statement_for_any_driver_and_the_guard_are_the_same_fence(postgres_url: str, plain_url: str) -> None:
    statement = block("sql", "ON CONFLICT").replace(":'fence'", "%(fence)s").replace(":token", "%(token)s")
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        fencing.create_table(connection)
    with engine.begin() as connection:
        fencing.enter(connection, "settle@2026-03-29T01:00:00Z", token=42)
    engine.dispose()
    with psycopg.connect(plain_url) as connection:
        found = [
            connection.execute(statement, {"fence": "settle@2026-03-29T01:00:00Z", "token": token}).rowcount
            for token in (41, 42, 43, 42)
        ]
    assert found == [0, 1, 1, 0]
