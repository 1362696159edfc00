"""Zone data as another version would have it: for tests of what such a version changes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping

from sexton.zone_files import packed_zone_data


def zone_data_with(zones: Mapping[str, str]) -> bytes:
    """This process's zone data, but for some zones whose clocks are those of others: `{"Europe/Berlin": "Etc/UTC"}`."""
    content = json.loads(zlib.decompress(packed_zone_data()))
    content["zones"] |= {name: content["zones"][other] for name, other in zones.items()}
    return zlib.compress(json.dumps(content).encode())
