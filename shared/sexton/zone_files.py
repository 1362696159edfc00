"""The zone data of this process as one text of bytes, to be kept in the ledger: so that its ticks can be computed where
another version is installed, to compare them or to audit what they decided.

A zone of other data goes by its name and the version, `Europe/Berlin@2026b`, and is a zone like any other.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib import resources

from sexton.zones import add_zone, zone_data_version, zone_names


def packed_zone_data() -> bytes:
    """Every zone's file, compressed; equal files once."""
    root = resources.files("tzdata").joinpath("zoneinfo")
    places: dict[bytes, int] = {}
    zones = {
        name: places.setdefault(root.joinpath(*name.split("/")).read_bytes(), len(places))
        for name in sorted(zone_names())
    }
    files = [base64.b85encode(data).decode() for data in places]
    return zlib.compress(json.dumps({"files": files, "zones": zones}).encode())


def add_zone_data(version: str, packed: bytes) -> None:
    """Have every zone of another version be known, as ``zone_of`` names it."""
    if version == zone_data_version():
        return
    content = json.loads(zlib.decompress(packed))
    files = [base64.b85decode(text) for text in content["files"]]
    for name, place in content["zones"].items():
        add_zone(zone_of(name, version), files[place])


def with_zone_data(schedule_text: str, version: str) -> str:
    """A stored schedule as that version's zone data has it (``add_zone_data``)."""
    spec = json.loads(schedule_text)
    zone = str(spec.get("timezone") or "UTC")
    return json.dumps({**spec, "timezone": zone if zone == "UTC" else zone_of(zone, version)}, sort_keys=True)


def zone_of(name: str, version: str) -> str:
    """The name under which a zone of that version's data is known here."""
    return name if version == zone_data_version() else f"{name}@{version}"
