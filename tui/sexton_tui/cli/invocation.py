"""One call of ``sexton``: the options every command takes, the process settings, and the way to the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of

from sexton.errors import NotFound, Refused, Unreachable

if TYPE_CHECKING:
    from sexton.process_settings import ProcessSettings
    from sexton.store.protocol import CurrentJob, Store

ANSWER_WITHIN_SECONDS = 7.0  # a call's limit: connecting and one call stay within the 10 s that exit code 3 promises


@dataclass(slots=True)
class Invocation:
    """What the command line said; ``flags`` are the process settings given as options, by their key."""

    debug: bool = False
    config: Path | None = None
    flags: dict[str, str] = field(default_factory=dict)
    is_watched: bool = False
    is_kept_open: bool = False
    _store: Store | None = None

    @contextmanager
    def keeping_open(self) -> Iterator[None]:
        """Within, ``open_cluster(read_only=True)`` gives the same store each time."""
        self.is_kept_open = True
        try:
            yield
        finally:
            self.is_kept_open = False
            self.let_go()

    def let_go(self) -> None:
        """Close the store that is kept open, if there is one; the next one asked for is new."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(Unreachable):
                store.close()

    def kept_store(self, opened: Callable[[], Store]) -> Store:
        """The store that is kept open; ``opened`` opens the first."""
        if self._store is None:
            self._store = opened()
        return self._store

    def settings(self, **flags: str | None) -> ProcessSettings:
        """The process settings: files, environment, then the options (and ``flags``). Raises InvalidSetting."""
        from sexton.process_settings import load_process_settings

        given = {**self.flags, **{key: value for key, value in flags.items() if value is not None}}
        return load_process_settings(given, config=self.config)


def invocation_of(ctx: typer.Context) -> Invocation:
    """The invocation that ``run`` put into the context."""
    found = ctx.find_root().obj
    assert isinstance(found, Invocation)  # noqa: S101 - run() sets it
    return found


@contextmanager
def open_cluster(ctx: typer.Context, *, read_only: bool = False) -> Iterator[Store]:
    """The cluster's store for one command; closed afterwards, unless the command is repeated.

    Raises what ``checked_database`` does.
    """
    invocation = invocation_of(ctx)
    if invocation.is_kept_open and read_only:
        yield invocation.kept_store(lambda: _opened(ctx, read_only=True))
        return
    store = _opened(ctx, read_only=read_only)
    try:
        yield store
    finally:
        store.close()


def _opened(ctx: typer.Context, *, read_only: bool) -> Store:
    from sexton.store import open_store
    from sexton.store.protocol import StoreOptions

    url = checked_database(ctx)
    return open_store(
        StoreOptions(url=url, application="sexton cli", answer_within=ANSWER_WITHIN_SECONDS, read_only=read_only)
    )


def checked_database(ctx: typer.Context) -> str:
    """The database's address, once it has answered and has this version's tables.

    Raises DatabaseUnreachable within 10 s, OldSchema, and NotFound where none was named and none is in this folder.
    """
    from sexton.process_settings import DEFAULT_DATABASE
    from sexton.store.schema import check_schema

    url = invocation_of(ctx).settings().database
    if url == DEFAULT_DATABASE and not Path(url.removeprefix("sqlite:///")).exists():
        raise NotFound(
            f"there is no {url.removeprefix('sqlite:///')} here",
            hint="call this where `sexton up` runs, or name the cluster's database with --database",
        )
    check_schema(url, answer_within=ANSWER_WITHIN_SECONDS)
    return url


def find_job(store: Store, name: str) -> CurrentJob:
    """The job of this name, case aside. Raises NotFound with near names, or that it is retired."""
    try:
        return store.edits.find_job(name)
    except NotFound:
        with suppress(NotFound):
            if (job := store.reads.job(name, 0).job).state == "retired":
                raise Refused(
                    f"the job {job.name} is retired", hint="apply a job file that has it, to have it again"
                ) from None
        raise


def _keep_debug(ctx: typer.Context, value: bool) -> None:
    if value:
        invocation_of(ctx).debug = True


def _keep_config(ctx: typer.Context, value: Path | None) -> None:
    if value is not None:
        invocation_of(ctx).config = value


def _keep_watch(ctx: typer.Context, value: bool) -> None:
    if value:
        invocation_of(ctx).is_watched = True


def _keep_database(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        invocation_of(ctx).flags["database"] = value


def _keep_coordinator(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        invocation_of(ctx).flags["coordinator"] = value


def _shared(
    database: Annotated[
        str | None,
        typer.Option(
            expose_value=False,
            callback=_keep_database,
            metavar="URL",
            help="sqlite:///PATH or postgresql://USER@HOST/NAME.",
        ),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            expose_value=False,
            callback=_keep_coordinator,
            metavar="URL",
            help="database: or zookeeper://H1:2181,.../P.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(expose_value=False, callback=_keep_config, metavar="FILE", help="A sexton.toml to read."),
    ] = None,
    debug: Annotated[
        bool,
        typer.Option("--debug", expose_value=False, callback=_keep_debug, help="Show tracebacks."),
    ] = False,
) -> None:
    """The options that every command takes, before or after its name."""


def _watched(
    watch: Annotated[
        bool,
        typer.Option("--watch", expose_value=False, callback=_keep_watch, help="Again every 2 s, until interrupted."),
    ] = False,
) -> None:
    """The option of every listing."""


def with_shared_options(command: TyperCommand | TyperGroup) -> TyperCommand | TyperGroup:
    """``command`` (and all below it) with the shared options added; an option of its own by that name wins."""
    for one in _with_subcommands(command):
        taken = {parameter.name for parameter in one.params}
        one.params.extend(parameter for parameter in _parameters_of(_shared) if parameter.name not in taken)
        if getattr(one.callback, "is_watchable", False):
            one.params.extend(_parameters_of(_watched))
    return command


def _parameters_of(function: Callable[..., None]) -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return list(command_of(app).params)


def _with_subcommands(command: Any) -> Iterator[Any]:
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from _with_subcommands(below)
