"""In which order the files of tests run, so that both cores stay busy to the end.

Files go out whole, one to each free worker (`--dist loadfile`). Those that wait for processes and servers alternate
with those that compute, each kind from its longest file to its shortest, so that both come to their end together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# About how many seconds a test takes, by folder: enough to tell long files from short ones.
WAITING = {"faults": 12.0, "zookeeper": 1.5, "acceptance": 0.8}
COMPUTING = {"simulation": 0.5, "screens": 4.0, "properties": 0.5, "stores": 0.2, "unit": 0.03}

# What files were measured to take that are far from that.
MEASURED = {
    ("simulation", "test_simulation.py"): 150.0,
    ("faults", "test_degraded.py"): 139.0,
    ("faults", "test_services.py"): 68.0,
    ("acceptance", "test_worker_process.py"): 59.0,
    ("acceptance", "test_missed_scenarios.py"): 56.0,
    ("acceptance", "test_scheduler_process.py"): 46.0,
    ("faults", "test_postgres_away.py"): 43.0,
    ("acceptance", "test_worker_zygote.py"): 42.0,
    ("screens", "test_terminal_gone.py"): 41.0,
    ("faults", "test_all_restarted.py"): 37.0,
    ("faults", "test_edits_with_a_leader.py"): 37.0,
    ("acceptance", "test_scheduler_zookeeper.py"): 32.0,
    ("acceptance", "test_node_loop.py"): 29.0,
    ("faults", "test_leader_lost.py"): 28.0,
    ("acceptance", "test_logs_follow.py"): 27.0,
    ("faults", "test_followers_lost.py"): 26.0,
    ("faults", "test_poison.py"): 25.0,
    ("faults", "test_rolling_restart.py"): 25.0,
    ("faults", "test_restore.py"): 25.0,
    ("stores", "test_edit_stress.py"): 24.0,
    ("faults", "test_race.py"): 24.0,
    ("properties", "test_cron_against_oracle.py"): 23.0,
    ("stores", "test_slot_races.py"): 21.0,
    ("stores", "test_stopped_processes.py"): 16.0,
    ("stores", "test_queue_races.py"): 12.0,
    ("unit", "test_tidy.py"): 11.0,
    ("simulation", "test_planted_faults.py"): 9.0,
}


def ordered(files: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each file once, first to last, of the (folder, file) of every test."""
    counts = Counter(files)
    places: dict[tuple[str, str], float] = {}
    for seconds in (WAITING, COMPUTING):
        of_kind = [file for file in counts if file[0] in seconds]
        costs = {file: MEASURED.get(file, counts[file] * seconds[file[0]]) for file in of_kind}
        done = 0.0
        for file in sorted(costs, key=lambda file: (-costs[file], file)):
            places[file] = done / sum(costs.values())  # how much of its kind goes before it
            done += costs[file]
    return sorted(counts, key=lambda file: (places.get(file, 1.0), file))
