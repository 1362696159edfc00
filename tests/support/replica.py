"""An asynchronous standby of a `PostgresServer`: copied by pg_basebackup, streaming, promoted when a test says so."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psycopg

from tests.support.postgres import USER, PostgresServer
from tests.support.waiting import eventually

LONG = 60.0


class Replica(PostgresServer):
    """Streams from its primary until that is gone; read-only until `promote`."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self.primary = primary

    def catch_up(self) -> None:
        """Return when it has replayed all that the primary had written when this was called."""
        with psycopg.connect(self.primary.conninfo(), autocommit=True) as connection:
            (written,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            has_replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            eventually(
                lambda: (connection.execute(has_replayed, [written]).fetchone() or (False,))[0],
                within=LONG,
                what=f"the replica replays up to {written}",
            )

    def cut_off(self) -> None:
        """Nothing that the primary writes from now on comes here: who sends it (the walsender) stands still."""
        with psycopg.connect(self.primary.conninfo(), autocommit=True) as connection:
            for (pid,) in connection.execute("SELECT pid FROM pg_stat_replication").fetchall():
                os.kill(pid, signal.SIGSTOP)

    def promote(self) -> None:
        """Have it accept writes, on a timeline of its own."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def _initialise(self) -> Path:
        folder = self._make_folder()
        address = ["-h", "127.0.0.1", "-p", str(self.primary.port), "-U", USER]
        command: list[Path | str] = [self._binaries / "pg_basebackup", "-D", folder / "data", *address]
        command += ["-R", "-X", "stream", "-c", "fast", "--no-sync"]
        done = self._popen(command, folder, subprocess.PIPE)
        output, _ = done.communicate()
        assert done.returncode == 0, output.decode(errors="replace")
        return folder
