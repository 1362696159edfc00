"""``sexton console``: the operator's screen, on this terminal or in browsers."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton_tui.actor import actor
from sexton_tui.cli.invocation import checked_database, invocation_of

if TYPE_CHECKING:
    from sexton_tui.web.serving import Serving


def console(
    ctx: typer.Context,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no action.")] = False,
    ascii: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII alone.")] = False,  # noqa: A002 - the option
    theme: Annotated[str, typer.Option("--theme", metavar="NAME", help="dark, light or contrast.")] = "dark",
    web: Annotated[bool, typer.Option("--web", help="Serve it to browsers, until Ctrl-C or SIGTERM.")] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="--web: where to serve; 127.0.0.1 by default.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="--web: 8420 by default; 0 is any that is free."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="--web: what to ask for; by default a new one is printed."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="--web: TLS, with this certificate (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="--web: its key, where that is a file of its own.")
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", metavar="URL", help="--web: what people open, where it is another address."),
    ] = None,
    tabs: Annotated[
        int | None, typer.Option("--tabs", min=1, max=1000, help="--web: how many at once; 8 by default.")
    ] = None,
    without_tls: Annotated[
        bool,
        typer.Option(
            "--without-tls", help="--web: on other addresses, too: keys and the token can be read on the way."
        ),
    ] = False,
    without_token: Annotated[
        bool,
        typer.Option("--without-token", help="--web: ask for none: whoever reaches the address operates the cluster."),
    ] = False,
) -> int:
    """Watch the cluster, and operate it. `?` tells the keys."""
    from sexton_tui.console.themes import THEMES

    given = {
        "host": host,
        "port": port,
        "token_file": token_file,
        "certificate": certificate,
        "key": key,
        "public_url": public_url,
        "tabs": tabs,
        "without_tls": without_tls or None,
        "without_token": without_token or None,
    }
    if theme not in THEMES:
        raise typer.BadParameter(f"--theme: there is no theme {theme!r}; it is one of {', '.join(THEMES)}")
    chosen = {name: value for name, value in given.items() if value is not None}
    if web:
        return _serve(ctx, _serving(chosen, theme, read_only=read_only, ascii_only=ascii))
    if chosen:
        option = next(iter(chosen)).replace("_", "-")
        raise typer.BadParameter(f"--{option} says how to serve browsers; add --web, or leave it out")
    if sys.stdout.isatty() and not sys.stderr.isatty():  # a sentence there would stand in the file
        print("sexton: the console is drawn on standard error, which is no terminal here; leave out what redirects it")
        return 1
    gc.disable()  # until all is loaded: the console sees to that
    try:
        from sexton_tui.console.app import ConsoleOptions, run_console

        url, who = checked_database(ctx), actor()
        return run_console(ConsoleOptions(database_url=url, read_only=read_only, ascii=ascii, theme=theme, actor=who))
    finally:
        gc.enable()


def _serving(chosen: dict[str, Any], theme: str, *, read_only: bool, ascii_only: bool) -> Serving:
    """What these options say, without the tab's program. Raises what ``Serving.check`` and ``read_token`` do."""
    import secrets

    from sexton_tui.web.serving import Serving, read_token
    from sexton_tui.web.tab_environment import ASCII, READ_ONLY, THEME

    file = chosen.pop("token_file", None)
    flags = {name: "1" for name, wanted in ((READ_ONLY, read_only), (ASCII, ascii_only)) if wanted}
    environment = {THEME: theme, **flags}
    serving = Serving(environment=environment, is_token_known=file is not None, **chosen)
    serving.check()
    return replace(serving, token=secrets.token_urlsafe(24) if file is None else read_token(file))


def _serve(ctx: typer.Context, serving: Serving) -> int:
    """Serve it until a signal ends that."""
    import os

    from sexton_tui.cli.processes import start_logging
    from sexton_tui.web.server import serve
    from sexton_tui.web.tab_environment import DATABASE

    database, settings = checked_database(ctx), invocation_of(ctx).settings()
    serving = replace(serving, environment={**serving.environment, DATABASE: database})

    def ready(url: str) -> None:
        start_logging(settings)
        shown = url if serving.without_token or serving.is_token_known else f"{url}/?token={serving.token}"
        print(f"The console is at {shown} (Ctrl-C ends it)", flush=True)
        if serving.without_token:
            print("No token is asked for: whoever reaches this address operates the cluster", file=sys.stderr)

    serve(serving, dict(os.environ), ready)
    return 0
