"""Where a worker finds the secrets that jobs name: in its own variables, or in files of a folder.

``${secret:db-password}`` is the variable ``SEXTON_SECRET_DB_PASSWORD``, or else the file ``db-password`` in the folder
of the setting ``secrets``. They are read anew for every run, so that a changed one counts from the next run on; they
are never written down, and jobs get none but those that they name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

PREFIX = "SEXTON_SECRET_"
USUAL_FOLDER = "/run/secrets"  # where containers find theirs
LARGEST = 64 * 1024  # bytes


class NoSecret(Exception):
    """It cannot be had; the message says which, and where it was looked for, and holds nothing of any."""


class Secrets:
    """Those of one worker. ``folder`` None: the usual one, if it is there."""

    def __init__(self, environ: Mapping[str, str], folder: str | None = None) -> None:
        self._variables = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
        self._folder = folder or (USUAL_FOLDER if os.path.isdir(USUAL_FOLDER) else None)
        # Files that hold settings of the worker itself, which containers keep in the same folder.
        self._own = {
            os.path.realpath(value): name
            for name, value in environ.items()
            if name.startswith("SEXTON_") and name.endswith("_FILE") and value
        }

    def read(self, name: str) -> str:
        """Its value, a file's without its last line end. Raises ``NoSecret``."""
        variable = variable_for(name)
        if (value := self._variables.get(variable)) is not None:
            return _checked(name, value.encode("utf-8", "surrogateescape"), f"the variable {variable}")
        if self._folder is None:
            where = f"this worker has no variable {variable}, and no folder of secrets (its setting `secrets`)"
            raise NoSecret(f"the secret {name!r} is missing: {where}; give the worker one of them")
        path = os.path.join(self._folder, name)
        if setting := self._own.get(os.path.realpath(path)):
            why = f"{path} is the worker's own ({setting}), and given to no job"
            raise NoSecret(f"the secret {name!r}: {why}; give the job one of its own")
        try:
            data = _content(path)
        except FileNotFoundError:
            where = f"this worker has neither the variable {variable} nor the file {path}"
            raise NoSecret(
                f"the secret {name!r} is missing: {where}; give it one of them, or correct the job"
            ) from None
        except OSError as error:
            advice = "let the worker's user read it"
            raise NoSecret(f"the secret {name!r}: {path} cannot be read ({error.strerror}); {advice}") from None
        if data is None:
            raise NoSecret(f"the secret {name!r}: {path} is no file; write the value into a file of this name")
        text = _checked(name, data, path)
        return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def variable_for(name: str) -> str:
    """The variable that holds this secret."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _content(path: str) -> bytes | None:
    """At most one byte more than is allowed; None for what is no file, at which reading could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = b""
        while len(data) <= LARGEST and (piece := os.read(descriptor, LARGEST + 1 - len(data))):
            data += piece
        return data
    finally:
        os.close(descriptor)


def _checked(name: str, data: bytes, where: str) -> str:
    if len(data) > LARGEST:
        raise NoSecret(
            f"the secret {name!r}: {where} holds more than {LARGEST // 1024} KiB, the most a secret may have"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NoSecret(f"the secret {name!r}: {where} holds no UTF-8 text; write it as text, e.g. in Base64") from None
    if not text.strip("\r\n"):
        raise NoSecret(f"the secret {name!r}: {where} is empty; write the value into it")
    if "\0" in text:
        raise NoSecret(f"the secret {name!r}: {where} holds a NUL, which no variable and no request can; remove it")
    return text
