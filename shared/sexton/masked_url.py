"""Addresses of databases and coordinators, fit to be shown."""

from __future__ import annotations

import re

_SECRET = re.compile(r"(?i)((?:password|passfile|secret|key)[^&=\s]*\s*=\s*)(?:'[^']*'|[^&\s]*)")


def masked_url(url: str) -> str:
    """``url`` with any password in it as ``***``: what may be shown, be it a proper address or only near one."""
    scheme, slashes, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    # To the last @: a password may hold what ought to have been escaped.
    before, at, host = rest.rpartition("@")
    user, colon, _ = before.partition(":")
    shown = f"{user}:***@{host}" if at and colon else rest
    return _SECRET.sub(r"\1***", f"{scheme}{slashes}{shown}")
