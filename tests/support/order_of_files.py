"""In which order the files of tests run, so that both cores stay busy to the end.

Files go out whole, one to each free worker (`--dist loadfile`). Those that wait for processes and servers alternate
with those that compute, each kind from its longest file to its shortest, so that both come to their end together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# About how many seconds a test takes, by folder: enough to tell long files from short ones.
WAITING = {"faults": 25.0, "zookeeper": 2.5, "acceptance": 1.5}
COMPUTING = {"simulation": 20.0, "screens": 4.0, "properties": 1.5, "stores": 0.5, "unit": 0.04}


def ordered(files: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each file once, first to last, of the (folder, file) of every test."""
    counts = Counter(files)
    places: dict[tuple[str, str], float] = {}
    for seconds in (WAITING, COMPUTING):
        costs = {file: count * seconds[file[0]] for file, count in counts.items() if file[0] in seconds}
        done = 0.0
        for file in sorted(costs, key=lambda file: (-costs[file], file)):
            places[file] = done / sum(costs.values())  # how much of its kind goes before it
            done += costs[file]
    return sorted(counts, key=lambda file: (places.get(file, 1.0), file))
