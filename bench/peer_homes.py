"""The peers' environments: one for each, made on first use outside this tree, with the versions pinned here.

A Python peer has a virtual environment, one of Node.js a folder of npm's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
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


PROCRASTINATE = Peer(
    "Procrastinate 3.10.0",
    "procrastinate_side",
    ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9", "croniter==7.0.0"),
    2,
)
PGQUEUER = Peer("PgQueuer 1.6.0", "pgqueuer_side", ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"), 2)
APSCHEDULER = Peer(
    "APScheduler 3.11.3",
    "apscheduler_side",
    ("apscheduler==3.11.3", "sqlalchemy==2.1.9", "psycopg[binary]==3.3.9"),
    1,  # a second one would fire every tick twice
)
PEERS = (PROCRASTINATE, PGQUEUER, APSCHEDULER)
GRAPHILE = "graphile-worker@0.17.3"


def interpreter(peer: Peer, homes: Path) -> Path | None:
    """The Python of the peer's environment; None, and a line that says why, where it cannot be made."""
    home = homes / peer.program
    python = home / "bin" / "python"
    steps = (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements],
    )
    return python if _is_installed(home, peer.name, peer.requirements, steps) else None


def node_modules(package: str, homes: Path) -> Path | None:
    """The folder from which Node.js loads ``package`` (name@version); None, and a line, where it cannot be made."""
    home = homes / package
    steps = (["npm", "install", "--silent", "--no-audit", "--no-fund", "--save-exact", "--prefix", str(home), package],)
    return home / "node_modules" if _is_installed(home, package, (package,), steps) else None


def _is_installed(home: Path, name: str, requirements: Sequence[str], steps: Sequence[list[str]]) -> bool:
    """Whether ``home`` holds exactly these, now or after the steps that make it."""
    stamp, wanted = home / "requirements.txt", "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    print(f"  installing {', '.join(requirements)} into {home}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for step in steps:
        try:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            output = str(getattr(error, "stderr", "") or error).strip().splitlines()
            print(f"  {name} is left out, it could not be installed: {output[-1] if output else error}")
            return False
    stamp.write_text(wanted)
    return True
