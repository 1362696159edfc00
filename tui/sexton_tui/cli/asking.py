"""The question before something is changed, the same for every command that asks one."""

from __future__ import annotations

import sys

import typer

from sexton.errors import Refused

_TRIES = 3


def ask(question: str, *, instead: str = "add --yes") -> None:
    """Return where a person says yes at the terminal; a bare Enter is no.

    Raises typer.Abort for no, KeyboardInterrupt for Ctrl-C (once it is said that nothing was changed), and Refused
    where there is no terminal to ask on; ``instead`` says what to do then.
    """
    if not sys.stdin.isatty():
        raise Refused("there is no terminal to ask on, so nothing was changed", hint=instead)
    sys.stdout.flush()
    try:
        for _ in range(_TRIES):
            print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline()
            word = answer.strip().lower()
            if word in ("y", "yes"):
                return
            if word in ("n", "no", ""):
                if not answer:  # the terminal's end of file
                    print(file=sys.stderr)
                break
            print("Answer y or n.", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nsexton: stopped; nothing was changed", file=sys.stderr)
        raise
    raise typer.Abort
