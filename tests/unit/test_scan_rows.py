"""What executors send is put together on the driver: parts of a partition and what is finished add up to all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from icestats.iceberg.metadata import Field
from icestats.scan.scan_job import ScanJob, Sizes, finish, merge_rows
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import PartitionKey

SIZES = Sizes(200, 12, 100, 8)
JOB = ScanJob((Field(1, "id", "long", required=False, top_level=True),), SIZES, {})
CUT, WHOLE = PartitionKey(0, ((1000, b"\1"),)), PartitionKey(0, ((1000, b"\2"),))


def figures(column):
    """What does not depend on the order in which parts are merged."""
    return replace(column, kll=None, frequent_items=b"")


def gathered(start: int, stop: int):
    found = JOB.new_accumulators()
    found[0].update(pa.array(np.arange(start, stop)))
    return found


def test_the_parts_of_a_partition_are_one_and_every_row_counts_once_in_the_whole():
    """A partition whose files two tasks have read, beside one that a task has finished and put into its own whole."""
    rows = [
        (CUT, False, gathered(0, 3_000)),
        (WHOLE, True, finish(SIZES, gathered(9_000, 9_500))),
        (None, False, gathered(9_000, 9_500)),
        (CUT, False, gathered(3_000, 5_000)),
        (None, False, JOB.new_accumulators()),
    ]
    whole, partitions = merge_rows(JOB, rows)
    (cut,), (finished,) = partitions[CUT], partitions[WHOLE]
    (expected,) = finish(SIZES, gathered(0, 5_000))
    assert figures(cut) == figures(expected)
    assert finished.value_count == 500
    sketch = KllSketch.from_bytes("long", cut.kll)
    assert (sketch.n, sketch.k, sketch.min_value, sketch.max_value) == (5_000, 100, 0, 4_999)
    everything = whole[0].result()
    both = gathered(0, 5_000)
    both[0].merge(gathered(9_000, 9_500)[0])
    assert figures(everything) == figures(both[0].result())
