"""``sexton settings``: the cluster's settings, which live in its database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, NoReturn

import typer

from sexton.errors import InvalidSetting
from sexton.process_setting_views import process_setting_views
from sexton.setting_views import DEFAULT, SettingView
from sexton.settings import SETTING_KEYS, ClusterSettings, setting_text
from sexton_tui.actor import actor
from sexton_tui.cli.completing import words_of
from sexton_tui.cli.invocation import invocation_of, open_cluster
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Column, Output, OutputOption, instant_text, print_record, print_rows
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.records import MEANINGS, setting_lines

settings = typer.Typer(
    help="Read and change the cluster's settings; without a command, list them.",
    add_completion=False,
    rich_markup_mode=None,
)
KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="Such as horizon or catch_up.rate.", autocompletion=words_of(SETTING_KEYS))
]


@settings.callback(invoke_without_command=True)
@watchable
def _list_without_a_command(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    if ctx.invoked_subcommand is None:
        list_settings(ctx, output)


@settings.command("list")
@watchable
def list_settings(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Every setting in force and where it comes from: the cluster's, then those of a process started here.

    A cluster's setting was set by somebody, or has its default. A process takes its own from options, the environment
    (SEXTON_...), ./sexton.toml, ~/.config/sexton/sexton.toml, /etc/sexton/sexton.toml, in this order. Secrets are not
    shown.
    """
    invocation = invocation_of(ctx)
    of_process = process_setting_views(invocation.flags, config=invocation.config)
    with open_cluster(ctx, read_only=True) as store:
        of_cluster = store.reads.settings()
    if output is not Output.TABLE:
        print_rows((*of_cluster, *of_process), output, ())
        return
    for title, views in (("Of the cluster", of_cluster), ("Of a process started here", of_process)):
        print(title if views is of_cluster else f"\n{title}")
        print_rows([_row(view) for view in views], output, _COLUMNS)


_COLUMNS = (
    *(Column("key"), Column("value", folds=True), Column("source", folds=True)),
    Column("default", gives_way=1, folds=True),
)


def _row(view: SettingView) -> dict[str, str | None]:
    source = view.source
    if view.changed_at is not None:
        source = f"set by {view.changed_by} at {instant_text(view.changed_at.replace(microsecond=0))}"
    default = None if view.source == DEFAULT else view.default
    return {"key": view.key, "value": view.value, "source": source, "default": default}


@settings.command("get")
def get_setting(ctx: typer.Context, key: KeyArgument, output: OutputOption = Output.TABLE) -> None:
    """The value of one setting."""
    _check_key(key)
    with open_cluster(ctx, read_only=True) as store:
        value = setting_text(store.edits.settings(), key)
    if output is Output.TABLE:
        print(value)
    else:
        print_record({"key": key, "value": value}, output)


@settings.command("show")
@watchable
def show_setting(ctx: typer.Context, key: KeyArgument, output: OutputOption = Output.TABLE) -> None:
    """One setting of the cluster: what it means, what it is, and its changes, newest first."""
    with open_cluster(ctx, read_only=True) as store:
        found = {view.key: view for view in store.reads.settings()}
        if key not in found:
            _refuse(key, found)
        changed = [
            event
            for event in store.reads.events_page(limit=_EVENTS, action="setting.changed")
            if event.detail.get("key") == key
        ]
        now = store.now()
    if output is not Output.TABLE:
        view = {name: getattr(found[key], name) for name in ("key", "value", "default", "source")}
        by = {"changed_by": found[key].changed_by, "changed_at": found[key].changed_at}
        print_record({**view, **by, "meaning": MEANINGS.get(key, ""), "changes": changed}, output)
        return
    print_lines(setting_lines(found[key], changed, now), coloured=True)


_EVENTS = 200  # the newest changes of all settings, among which its own are looked for


@settings.command("set")
def set_setting(
    ctx: typer.Context,
    key: KeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Such as 30s, 50 or none.")],
) -> None:
    """Change one setting for the whole cluster; recorded with who did it."""
    _check_key(key)
    _check_built(key, value)
    with open_cluster(ctx) as store:
        changed = store.edits.set_setting(key, value, actor())
    print(f"{key} is {setting_text(changed, key)}")
    if key in ("horizon", "failover.database_after") and (warning := changed.warning()):
        print(f"warning: {warning}", file=sys.stderr)


def _check_key(key: str) -> None:
    if key not in SETTING_KEYS:
        _refuse(key, SETTING_KEYS)


def _refuse(key: str, known: Iterable[str]) -> NoReturn:
    raise InvalidSetting(f"there is no setting {key!r}", hint=f"the settings are {', '.join(known)}")


# The store knows these already; what acts on them comes later, and a setting that does nothing would deceive.
_NOT_BUILT = {
    "retention": "pruning comes with a later version; until then the ledger is kept whole",
    "retention.max_runs": "pruning comes with a later version; until then the ledger is kept whole",
}


def _check_built(key: str, value: str) -> None:
    if key in _NOT_BUILT and value != setting_text(ClusterSettings(), key):
        raise InvalidSetting(f"{key}: {_NOT_BUILT[key]}")
