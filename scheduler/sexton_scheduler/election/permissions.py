"""Who else may write where candidates line up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import Permissions

_WRITES = Permissions.WRITE | Permissions.CREATE | Permissions.DELETE | Permissions.ADMIN


def open_to_anybody(client: Any, paths: Sequence[str]) -> Iterator[str]:
    """Those of ``paths`` in which anybody may write; a path whose list of permissions may not be read is not."""
    for path in paths:
        try:
            acls, _ = client.get_acls(path)
        except (NoAuthError, NoNodeError):
            continue
        if any(acl.id.scheme == "world" and acl.perms & _WRITES for acl in acls):
            yield path


def warn_of_open_paths(client: Any, paths: Sequence[str], log: Any) -> bool:
    """Say which of ``paths`` were made without the login; whether any was."""
    found = list(open_to_anybody(client, paths))
    for path in found:
        hint = f"it was made without the login; setAcl {path} so that others cannot write there"
        log.warning("zookeeper.path_open_to_anybody", path=path, hint=hint)
    return bool(found)
