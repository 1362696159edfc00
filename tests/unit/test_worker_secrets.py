"""Where a worker finds secrets, and what it says when it does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sexton_worker.targets.secrets import LARGEST, NoSecret, Secrets, variable_for


def secrets(folder: Path, **named: str) -> Secrets:
    return Secrets({f"SEXTON_SECRET_{name}": value for name, value in named.items()}, str(folder))


def test_a_variable_comes_before_a_file_and_a_file_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "db-pw").write_text("from a file\r\n")
    found = secrets(tmp_path, DB_KEY="from a variable")
    assert found.read("db-key") == "from a variable"
    assert found.read("db-pw") == "from a file"
    (tmp_path / "db-pw").write_text("changed\n\n")
    assert found.read("db-pw") == "changed\n"
    assert variable_for("db.pw-1") == "SEXTON_SECRET_DB_PW_1"


def test_what_is_nowhere_is_told_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoSecret) as caught:
        secrets(tmp_path).read("db")
    where = f"neither the variable SEXTON_SECRET_DB nor the file {tmp_path}/db"
    assert (
        str(caught.value)
        == f"the secret 'db' is missing: this worker has {where}; give it one of them, or correct the job"
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("x" * (LARGEST + 1)), "holds more than 64 KiB"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "holds no UTF-8 text"),
        (lambda path: path.write_text("\n"), "is empty"),
        (lambda path: path.write_text("a\0b"), "holds a NUL"),
        (lambda path: path.mkdir(), "is no file"),
        (os.mkfifo, "is no file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
def test_what_is_no_secret_is_told_without_a_word_of_it(
    tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / "db")
    with pytest.raises(NoSecret, match=says) as caught:
        secrets(tmp_path).read("db")
    assert str(tmp_path / "db") in str(caught.value)
    assert "xxx" not in str(caught.value)


def test_a_variable_is_held_to_the_same(tmp_path: Path) -> None:
    with pytest.raises(NoSecret, match="the variable SEXTON_SECRET_DB is empty"):
        secrets(tmp_path, DB="").read("db")


def test_the_worker_s_own_settings_are_given_to_no_job(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("postgresql://sexton:pw@db/sexton")
    (tmp_path / "alias").symlink_to("database")
    found = Secrets({"SEXTON_DATABASE_FILE": str(tmp_path / "database")}, str(tmp_path))
    for name in ("database", "alias"):
        with pytest.raises(NoSecret, match=r"is the worker's own \(SEXTON_DATABASE_FILE\), and given to no job"):
            found.read(name)
