"""Who acts, for the audit log: the same name from a command and from the console."""

from __future__ import annotations

import os
import pwd
import socket


def actor() -> str:
    """``user@host``, behind sudo as ``caller/user@host``. The process's user, whatever the environment claims."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user without a name
        user = f"uid{os.geteuid()}"
    caller = os.environ.get("SUDO_USER")
    return f"{caller}/{user}@{socket.gethostname()}" if caller else f"{user}@{socket.gethostname()}"
