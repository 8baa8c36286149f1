"""What a measured process says of itself: one line of JSON on its standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
"""The statistics that add up, by the names of their maps in a manifest entry."""
BOUNDS = ("lower_bounds", "upper_bounds")
"""The statistics of which there are extremes."""
Sums = Mapping[str, Mapping[int, tuple[int | str, int]]]
"""Map, field id -> the sum over all live data files (of bounds the extreme, in hex), and the number of files that have
it."""


def report(read: Callable[[], Any], sums: Callable[[Any], Sums] | None = None, *, calls: int = 1) -> None:
    """Time a call, the last of several, and print its seconds and its sums, which are made outside that time.

    What an earlier call has found is let go before the next one begins.
    """
    for _ in range(calls):
        result = None
        cpu, started = time.process_time(), time.perf_counter()
        result = read()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    answer = None if sums is None else {name: sorted(found.items()) for name, found in sums(result).items()}
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "sums": answer}))


def group_sums(rows: Iterable[tuple[str, int, int, int]]) -> Sums:
    """Arrange rows of map, field id, sum and number of files."""
    found: dict[str, dict[int, tuple[int | str, int]]] = {name: {} for name in MAPS}
    for name, field_id, total, file_count in rows:
        found[name][int(field_id)] = (int(total), int(file_count))
    return found


def argument(place: int = 1, default: str = "") -> str:
    """Return an argument of the process; the first is the table's location."""
    return sys.argv[place] if place < len(sys.argv) else default
