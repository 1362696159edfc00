"""The zone of this machine, by its name, so that instants of summer and winter are both read right."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

_ZONES = "/zoneinfo/"


def local_zone(environ: Mapping[str, str] = os.environ, link: Path = Path("/etc/localtime")) -> tzinfo:
    """What TZ names, else what /etc/localtime points to; UTC where neither names a zone."""
    try:
        name = environ.get("TZ", "").removeprefix(":") or str(link.readlink()).partition(_ZONES)[2]
        return ZoneInfo(name) if name else UTC
    except (OSError, ValueError, LookupError):
        return UTC
