"""Where a process serves its metrics and health: the setting ``http``."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]{1,253}")


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """A host, by name or number, and a port; port 0 is any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def after(self, places: int) -> HttpAddress:
        """The address so many ports on; any free port stays that. Raises ValueError beyond the last port."""
        port = self.port + places if self.port else 0
        if port > 65535:
            raise ValueError(f"{self} is followed by fewer than {places} ports")
        return HttpAddress(self.host, port)


def http_address(value: object) -> HttpAddress | None:
    """``HOST:PORT``, or a port alone, which is one of this machine's own (127.0.0.1); None for ``off``.

    Raises ValueError with what to write instead.
    """
    text = str(value).strip()
    if text in ("off", ""):
        return None
    host, colon, port = text.rpartition(":")
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address; write a port such as 9464, HOST:PORT, or off")
    if not colon:
        return HttpAddress(LOOPBACK, int(port))
    if not _HOST.fullmatch(host):
        raise ValueError(f"{text!r} is not an address; write HOST:PORT, with a host of IPv6 in brackets ([::1]:9464)")
    return HttpAddress(host.strip("[]"), int(port))
