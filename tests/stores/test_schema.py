"""The schema: migrated and declared agree, and a process is told what to run where it is not the one it needs."""

from __future__ import annotations

import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from sexton.errors import DatabaseUnreachable, InvalidInput, OldSchema, Refused
from sexton.store import indexes, open_store, schema
from sexton.store.postgres import table_locks
from sexton.store.protocol import Store, StoreOptions
from sexton.store.schema import SCHEMA_VERSION, check_schema, upgrade
from tests.support.postgres import PostgresServer, fresh_database


def test_the_migrations_make_what_the_tables_declare(ledger_url: str) -> None:
    engine = create_engine(ledger_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": connection.dialect.name == "postgresql"}
        )
        assert compare_metadata(context, indexes.metadata) == []
    engine.dispose()


def test_partial_indexes_and_checks_are_the_declared_ones(ledger_url: str) -> None:
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        migrated = _conditions(inspect(connection))
        for table in reversed(indexes.metadata.sorted_tables):
            table.drop(connection)
        indexes.metadata.create_all(connection)
        assert migrated == _conditions(inspect(connection))
        assert len(migrated) > 8
    engine.dispose()


def _conditions(inspector: object) -> set[tuple[str, str, str]]:
    found = set()
    for table in indexes.metadata.tables:
        for index in inspector.get_indexes(table):  # type: ignore[attr-defined]  # SQLAlchemy types it as Any
            where = {str(value) for key, value in index.get("dialect_options", {}).items() if key.endswith("_where")}
            found |= {(table, str(index["name"]), condition) for condition in where}
        for check in inspector.get_check_constraints(table):  # type: ignore[attr-defined]  # likewise
            found.add((table, str(check["name"]), str(check["sqltext"])))
    return found


def test_the_version_that_processes_ask_for_is_the_newest_migration() -> None:
    scripts = ScriptDirectory(str(schema.__file__).replace("schema.py", "migrations"))
    assert scripts.get_heads() == [SCHEMA_VERSION]


def test_an_empty_database_names_the_command_to_run(empty_url: str) -> None:
    with pytest.raises(OldSchema, match="`sexton db upgrade`"):
        check_schema(empty_url)
    assert upgrade(empty_url) == SCHEMA_VERSION
    check_schema(empty_url)


def test_an_upgrade_can_be_repeated_and_keeps_what_is_there(ledger_url: str, store: Store) -> None:
    before = store.terms.cluster()
    assert upgrade(ledger_url) == SCHEMA_VERSION
    assert store.terms.cluster().cluster_id == before.cluster_id


def test_several_upgraders_at_once_make_one_ledger(empty_url: str) -> None:
    failures: list[BaseException] = []

    def upgrade_and_tell() -> None:
        try:
            upgrade(empty_url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=upgrade_and_tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    check_schema(empty_url)


def older_and_read(url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Connection]:
    """A ledger of the schema before, and somebody who has read a table of it and not ended yet, as a backup does."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCHEMA_VERSION", "0002")
        assert upgrade(url) == "0002"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    reader = engine.connect()
    reader.execute(text("SET application_name = 'pg_dump'"))
    reader.execute(text("SELECT count(*) FROM runs"))
    monkeypatch.setattr(table_locks, "_PAUSE_SECONDS", 0)
    return engine, reader


def test_an_upgrade_that_waits_for_a_reader_holds_nobody_up(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_database(postgres_server) as url:
        engine, reader = older_and_read(url, monkeypatch)
        said: list[str] = []

        def look(sentence: str) -> None:
            said.append(sentence)
            with engine.begin() as another:
                another.execute(text("SET LOCAL lock_timeout = '10ms'"))
                for table in ("workers", "cluster", "jobs", "cursors", "runs"):
                    another.execute(text(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE"))
            reader.close()

        assert upgrade(url, answer_within=60, told=look) == SCHEMA_VERSION
        assert [sentence.startswith("waiting for pg_dump (pid ") for sentence in said] == [True]
        engine.dispose()


def test_an_upgrade_names_who_uses_its_tables_for_too_long(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_locks, "_PATIENCE_SECONDS", 0)
    with fresh_database(postgres_server) as url:
        engine, reader = older_and_read(url, monkeypatch)
        with pytest.raises(Refused, match=r"stay in use by pg_dump \(pid .*nothing was changed"):
            upgrade(url)
        assert schema.found_version(url) == "0002"
        reader.close()
        engine.dispose()


@pytest.mark.parametrize(("steps", "is_accepted"), [(-1, False), (0, True), (1, True), (2, False)])
def test_a_process_accepts_its_version_and_the_next(ledger_url: str, steps: int, is_accepted: bool) -> None:
    version = f"{int(SCHEMA_VERSION) + steps:04}"
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    engine.dispose()
    if is_accepted:
        check_schema(ledger_url)
    else:
        with pytest.raises(OldSchema, match=version):
            check_schema(ledger_url)


def test_an_upgrade_refuses_a_schema_that_is_too_new(ledger_url: str) -> None:
    execute(ledger_url, "UPDATE alembic_version SET version_num = '0009'")
    with pytest.raises(OldSchema, match="0009, too new"):
        upgrade(ledger_url)


def test_an_upgrade_refuses_tables_that_are_not_sexton_s_and_names_them(empty_url: str) -> None:
    execute(empty_url, "CREATE TABLE jobs (x int)")
    with pytest.raises(Refused, match=r"not Sexton's \(jobs\); give it a database of its own"):
        upgrade(empty_url)


def test_another_program_s_migrations_are_not_taken_for_sexton_s(empty_url: str) -> None:
    execute(empty_url, "CREATE TABLE alembic_version (version_num text)")
    execute(empty_url, "INSERT INTO alembic_version VALUES ('ae1027a6acf8')")
    for call in (upgrade, check_schema):
        with pytest.raises(Refused, match="another program"):
            call(empty_url)


def execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_a_missing_database_server_is_named_without_the_password() -> None:
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1/ledger") as refusal:
        check_schema("postgresql://sexton:secret@127.0.0.1:1/ledger", answer_within=2)
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_another_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="sqlite:///path"):
        open_store(StoreOptions("mysql://host/database"))
