"""``sexton db``: the database's schema."""

from __future__ import annotations

import typer

from sexton.masked_url import masked_url
from sexton_tui.cli.invocation import ANSWER_WITHIN_SECONDS, checked_database, invocation_of

db = typer.Typer(
    help="Bring the database's schema up to date, or check it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@db.command("upgrade")
def upgrade_database(ctx: typer.Context) -> None:
    """Bring the database to the schema this version needs; safe at any time, and by several at once."""
    from sexton.store.schema import found_version, upgrade

    url = invocation_of(ctx).settings().database
    before = found_version(url, answer_within=ANSWER_WITHIN_SECONDS)  # says within 10 s if nothing is there
    after = upgrade(url, told=lambda sentence: typer.echo(sentence, err=True))
    what = f"has schema {after} already" if before == after else f"now has schema {after} (before: {before or 'none'})"
    print(f"{masked_url(url)} {what}")


@db.command("check")
def check_database(ctx: typer.Context) -> None:
    """Whether the database has a schema this version works with; exit 1 where it needs an upgrade."""
    from sexton.store.schema import found_version

    url = checked_database(ctx)
    found = found_version(url, answer_within=ANSWER_WITHIN_SECONDS)
    print(f"{masked_url(url)} has schema {found}, which this version works with")
