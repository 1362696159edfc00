"""The peers' environments: one for each, made on first use outside this tree, with the versions pinned here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HOMES = Path.home() / ".cache" / "sexton-bench"
_INSTALL_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Peer:
    """One of the others. ``processes``: as many as can share the work without doubling it."""

    name: str
    program: str
    requirements: tuple[str, ...]
    processes: int


PEERS = (
    Peer(
        "Procrastinate 3.10.0",
        "procrastinate_side",
        ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9", "croniter==7.0.0"),
        2,
    ),
    Peer("PgQueuer 1.6.0", "pgqueuer_side", ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"), 2),
    Peer(
        "APScheduler 3.11.3",
        "apscheduler_side",
        ("apscheduler==3.11.3", "sqlalchemy==2.1.9", "psycopg[binary]==3.3.9"),
        1,  # a second one would fire every tick twice
    ),
)


def interpreter(peer: Peer, homes: Path) -> Path | None:
    """The Python of the peer's environment; None, and a line that says why, where it cannot be made."""
    home = homes / peer.program
    python, stamp = home / "bin" / "python", home / "requirements.txt"
    wanted = "\n".join(peer.requirements)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"  installing {', '.join(peer.requirements)} into {home}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    steps = (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements],
    )
    for step in steps:
        try:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            output = str(getattr(error, "stderr", "") or error).strip().splitlines()
            print(f"  {peer.name} is left out, it could not be installed: {output[-1] if output else error}")
            return None
    stamp.write_text(wanted)
    return python
