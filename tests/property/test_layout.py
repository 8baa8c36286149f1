"""Layout: figures that are counted by rank are those of looking each key up in each range, one by one."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icestats.iceberg.metadata import Field, PartitionField, Schema
from icestats.snapshot.evaluation.column_metrics import table_metrics, value_metrics
from icestats.snapshot.layout.clustering import Depth, build_field_layouts, build_spread, find_late_data
from icestats.snapshot.layout.file_set import FileSet, build_ranks

File = tuple[int, float | None, tuple[int, int] | None, int, int]
"""Manifest, partition value, bounds of the column, rows, sequence number."""
FILES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([None, math.nan, -1.5, 0.0, 7.0]),
        st.none() | st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1])),
        st.integers(0, 20),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=24,
)
ENCODINGS: dict[str, Callable[[int], bytes]] = {
    "long": lambda key: struct.pack("<q", key),
    # Far apart, so that ranks come from sorting.
    "timestamp": lambda key: struct.pack("<q", key * 10**15),
    "string": lambda key: f"{key + 10:02d}".encode(),
}
COUNTS = ("value_count", "null_value_count", "nan_value_count")


def build_files(files: list[File], type_text: str) -> FileSet:
    manifests, values, bounds, rows, sequence = zip(*files, strict=True)
    encode = ENCODINGS[type_text]
    schema = Schema(0, (Field(1, "c", type_text, required=False, top_level=True),))
    table = pa.table(
        {
            "record_count": rows,
            **{f"{name}_1": pa.nulls(len(files), pa.int64()) for name in COUNTS},
            "lower_bound_1": pa.array([None if b is None else encode(b[0]) for b in bounds], pa.binary()),
            "upper_bound_1": pa.array([None if b is None else encode(b[1]) for b in bounds], pa.binary()),
        }
    )
    return FileSet(
        manifests=pa.table({"manifest_length": [100] * 4}),
        manifest_index=np.array(manifests),
        spec_ids=np.zeros(len(files), np.int64),
        record_counts=np.array(rows),
        sizes=np.array(rows) * 10,
        sequence_numbers=np.array(sequence),
        partition_fields=(PartitionField(1000, 2, "part", "identity"),),
        partition_metrics={1000: value_metrics(pa.array(values, pa.float64()), "double")},
        column_metrics=table_metrics(table, schema.select([1])),
    )


def look_up(ranges: list[tuple[int, int]], keys: Counter[int], unknown: int) -> tuple[float, int]:
    """Return in how many ranges a key lies, over the weights of the keys, and at most."""
    found = {key: sum(low <= key <= high for low, high in ranges) + unknown for key in keys}
    total = keys.total() or 1
    mean = sum(found[key] * weight for key, weight in keys.items()) / total
    return (mean, max(found.values())) if keys else (unknown, unknown)


def figures_of(depth: Depth) -> tuple[float, int]:
    return pytest.approx(depth.mean), depth.max


@given(files=FILES, type_text=st.sampled_from(sorted(ENCODINGS)))
@example(files=[(0, None, (1, 3), 4, 1), (1, math.nan, (2, 2), 2, 1), (1, 7.0, None, 3, 1)], type_text="string")
def test_depths_are_those_of_looking_each_key_up(files: list[File], type_text: str) -> None:
    """Over files, over manifests, and over the files of the key's own partition; bounds count as half of the rows."""
    schema = Schema(0, (Field(1, "c", type_text, required=False, top_level=True),))
    part, column = build_field_layouts(build_files(files, type_text), schema)
    known = [file for file in files if file[2] is not None]
    keys: Counter[int] = Counter()
    for file in known:
        keys[file[2][0]] += file[3]
        keys[file[2][1]] += file[3]
    # A file without rows has nothing to bound.
    unknown = [file for file in files if file[2] is None and file[3]]
    assert look_up([file[2] for file in known], keys, len(unknown)) == figures_of(column.files)
    assert (column.files.range_count, column.files.unknown_count) == (len(files), len(unknown))
    # A manifest with one file that lacks bounds has none.
    whole = {file[0] for file in known} - {file[0] for file in unknown}
    groups = [
        (min(f[2][0] for f in known if f[0] == number), max(f[2][1] for f in known if f[0] == number))
        for number in whole
    ]
    lacking = len({file[0] for file in unknown})
    assert column.manifests.unknown_count == lacking
    assert column.manifests.range_count == 4
    assert look_up(groups, keys, lacking) == figures_of(column.manifests)
    within: list[tuple[int, float]] = []
    for file in known:
        mates = [other[2] for other in known if repr(other[1]) == repr(file[1])]
        within += [(sum(low <= key <= high for low, high in mates), file[3]) for key in file[2]]
    weight = sum(w for _, w in within) or 1
    expected = (sum(n * w for n, w in within) / weight, max((n for n, _ in within), default=0))
    assert expected == figures_of(column.files_of_partition)
    values = Counter(file[1] for file in files if file[1] is not None and not math.isnan(file[1]))
    assert part.files.max == max(values.values(), default=0)
    assert sum(share for *_, share in column.files.histogram) == pytest.approx(1.0 if keys.total() else 0.0)


@given(files=FILES)
def test_spread_and_late_data_are_those_of_counting(files: list[File]) -> None:
    """Null and NaN are partitions of their own, and neither is late."""
    built = build_files(files, "long")
    spread = build_spread(built, 100)
    pairs = {(repr(file[1]), file[0]) for file in files}
    per_partition, per_manifest = Counter(part for part, _ in pairs), Counter(number for _, number in pairs)
    assert spread.partition_count == len(per_partition)
    assert spread.manifests_per_partition_max == max(per_partition.values())
    assert spread.partitions_per_manifest_max == max(per_manifest.values())
    assert spread.partitions_per_manifest_mean == pytest.approx(len(pairs) / len(per_manifest))
    small = Counter(repr(file[1]) for file in files if file[3] * 10 < 75)
    assert spread.crowded_partition_count == sum(count >= 5 for count in small.values())
    assert find_late_data(built) is None


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40))
@example([-(2**63), 2**63 - 1, 0])
def test_ranks_are_dense_and_order_like_the_values(values: list[int]) -> None:
    ranks, distinct = build_ranks(np.array(values, np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[ranks].tolist() == values
