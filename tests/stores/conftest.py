"""The behavioural suite's databases: every test of `store` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from tests.support.ledgers import make_ledger
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.scene_ledger import Ledger, scene_file, write_scene

OpenAnother = Callable[..., Store]


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> str:
    """The url of a fresh SQLite file with an empty ledger."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """The url of a fresh database with an empty ledger: on SQLite, then on PostgreSQL."""
    name = "sqlite_ledger" if request.param == "sqlite" else "postgres_ledger"
    return str(request.getfixturevalue(name))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer) -> Iterator[str]:
    """The url of a database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.db"
        return
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def open_another(ledger_url: str) -> Iterator[OpenAnother]:
    """Open a further store on the test's database; closed at its end. Keywords are those of ``StoreOptions``."""
    opened: list[Store] = []

    def open_one(**options: object) -> Store:
        store = open_store(StoreOptions(ledger_url, **options))  # type: ignore[arg-type]  # checked by the dataclass
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_another: OpenAnother) -> Store:
    """A store on an empty ledger, on SQLite and on PostgreSQL."""
    return open_another()


@pytest.fixture(scope="session")
def scene_template(postgres_server: PostgresServer) -> str:
    """The name of a PostgreSQL database with the scene, to be copied."""
    write_scene(postgres_server.create_database("scene_template"))
    return "scene_template"


@pytest.fixture
def postgres_scene(postgres_server: PostgresServer, scene_template: str) -> Iterator[str]:
    """The url of a fresh PostgreSQL database with the scene."""
    url = postgres_server.create_database(template=scene_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """The scene on each database, with a reader whose now is the scene's."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_scene")
    else:
        (tmp_path / "ledger.db").write_bytes(scene_file())
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = Ledger(url)
    yield ledger
    ledger.engine.dispose()
