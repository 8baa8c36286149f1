"""Samples of columns that were scanned together are of the same rows, whatever batches and merges."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.iceberg.metadata import Field
from icestats.iceberg.types import decode_value
from icestats.scan.scan_job import ScanJob, Sizes, merge_into
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.frequent_items import merge_frequent_items, read_frequent_values
from icestats.stats.row_sample import SAMPLED_ROWS, RowSample, draw_numbers

FIELDS = (
    Field(1, "id", "long", required=False, top_level=True),
    Field(2, "text", "string", required=False, top_level=True),
)


def scan(sizes, start=0, length=1):
    """Scan batches of rows, each in an accumulator of its own: a number, and the text of the same number or null."""
    made = []
    for size in sizes:
        ids = np.arange(start, start + size)
        texts = [None if one % 7 == 0 else f"{one}".rjust(length, "x") for one in ids.tolist()]
        start, numbers = start + size, draw_numbers(size, seed=start)
        made.append([ColumnAccumulator(field) for field in FIELDS])
        for accumulator, column in zip(made[-1], (pa.array(ids), pa.array(texts, pa.string())), strict=True):
            accumulator.update(column, numbers)
    for part in made[1:]:
        for one, other in zip(made[0], part, strict=True):
            one.merge(other)
    return [one.result().frequent_items for one in made[0]]


def check(payloads):
    first, second = (read_frequent_values(payload).sample for payload in payloads)
    assert (first.seed, first.row_count) == (second.seed, second.row_count)
    ids = [decode_value("long", value) for value in first.values]
    assert len(set(ids)) == len(ids)
    for one, text in zip(ids, second.values, strict=False):
        assert text is None if one % 7 == 0 else int(text.lstrip(b"x")) == one
    return first, second


SIZES = st.lists(st.sampled_from([0, 1, 30, 3_000, 6_000]), min_size=1, max_size=3)


@given(SIZES, SIZES)
def test_samples_are_of_the_same_rows_after_any_merges(before, after):
    base, added = scan(before), scan(after, start=sum(before))
    merged = [merge_frequent_items(*parts) for parts in zip(base, added, strict=True)]
    for payloads, count in ((base, sum(before)), (merged, sum(before) + sum(after))):
        first, second = check(payloads)
        assert first.row_count == count
        assert len(first.values) == len(second.values) == min(count, SAMPLED_ROWS)


def test_a_row_is_as_likely_as_another():
    base, added = scan([30_000, 10_000]), scan([40_000], start=40_000)
    first, _ = check([merge_frequent_items(*parts) for parts in zip(base, added, strict=True)])
    ids = np.array([decode_value("long", value) for value in first.values])
    counts = np.histogram(ids, bins=8, range=(0, 80_000))[0]
    assert abs(counts - SAMPLED_ROWS / 8).max() < 6 * np.sqrt(SAMPLED_ROWS / 8)


def test_long_values_leave_fewer_rows_and_these_are_still_the_same():
    base, added = scan([5_000], length=60), scan([5_000], start=5_000, length=60)
    for payloads in (base, [merge_frequent_items(*parts) for parts in zip(base, added, strict=True)]):
        first, second = check(payloads)
        assert 500 < len(second.values) < len(first.values) == SAMPLED_ROWS
        assert len(json.dumps(json.loads(payloads[1])["sample"])) < 160_000


@pytest.mark.parametrize(
    "sample",
    [
        None,
        {"row-count": 1, "seed": 5, "values": ["00", None]},
        {"row-count": -1, "seed": 5, "values": []},
        {"row-count": 1 << 63, "seed": 5, "values": []},
        {"row-count": 10, "seed": -5, "values": []},
        {"row-count": 10, "seed": 5, "values": ["zz"]},
        {"row-count": 10, "seed": 5, "values": ["00"]},
        {"row-count": 10_000, "seed": 5, "values": [None] * (SAMPLED_ROWS + 1)},
        {"row-count": 10, "values": []},
        {"row-count": [], "seed": 5, "values": []},
    ],
)
def test_a_damaged_sample_is_refused_in_one_line(sample):
    document = json.loads(scan([10])[0])
    with pytest.raises(ValueError, match="not frequent items: ") as raised:
        read_frequent_values(json.dumps(document | {"sample": sample}).encode())
    assert "\n" not in str(raised.value)


def test_an_empty_sample_adds_nothing():
    sample = RowSample()
    sample.merge(RowSample())
    assert (sample.row_count, sample.values, sample.seed) == (0, [], 0)


def scan_parts(*, is_limited):
    """Scan 40 parts of 500 rows, each by accumulators of its own, into those of the whole."""
    job = ScanJob(FIELDS, Sizes(200, 12, 200, 12), None)
    whole = job.new_accumulators()
    for start in range(0, 20_000, 500):
        part = job.new_accumulators(whole if is_limited else None)
        job.update(
            part, [pa.array(range(start, start + 500)), pa.array([str(one) for one in range(start, start + 500)])]
        )
        merge_into(whole, part)
    return [read_frequent_values(one.result().frequent_items).sample for one in whole]


def test_a_part_leaves_out_the_rows_that_the_whole_does_not_keep():
    for limited, free in zip(scan_parts(is_limited=True), scan_parts(is_limited=False), strict=True):
        assert (limited.values, limited.seed, limited.row_count) == (free.values, free.seed, 20_000)
        assert len(limited.values) == SAMPLED_ROWS


@pytest.mark.parametrize(
    ("type_text", "array", "kept"),
    [
        ("boolean", pa.array([True, None, False]), ["01", None, "00"]),
        ("int", pa.array([-5, None], pa.int16()), ["fbffffff", None]),
        ("date", pa.array([None, -1], pa.date32()), [None, "ffffffff"]),
        ("long", pa.array([None, None], pa.null()), [None, None]),
        ("timestamptz_ns", pa.array([-2, None], pa.timestamp("ns", "UTC")), ["feffffffffffffff", None]),
        ("float", pa.array([-0.0, None, 1.5], pa.float32()), ["00000000", None, "0000c03f"]),
        ("double", pa.array([float("-inf"), -0.0, None]), ["000000000000f0ff", "0000000000000000", None]),
        ("decimal(9, 2)", pa.array([Decimal("-1.29"), None, Decimal("1.28")]), ["ff7f", None, "0080"]),
        ("decimal(38, 0)", pa.array([-(2**64), 2**64 - 1], pa.decimal128(38)), ["ff" + "00" * 8, "00" + "ff" * 8]),
        ("string", pa.array(["é" * 40, None, ""]).dictionary_encode(), ["c3a9" * 32, None, ""]),
        ("string", pa.array(["x" + "é" * 32]), ["78" + "c3a9" * 31]),
        ("binary", pa.array([b"\xff" * 65, b"", None]), ["ff" * 64, "", None]),
        ("fixed[2000]", pa.array([b"a" * 2_000], pa.binary(2_000)), ["61" * 64]),
        ("fixed[2]", pa.array([b"ab", None], pa.binary(2)), ["6162", None]),
        ("uuid", pa.array([bytes(range(16)), None], pa.binary(16)), [bytes(range(16)).hex(), None]),
    ],
)
def test_values_of_each_type_are_kept_as_their_single_value_bytes(type_text, array, kept):
    accumulator = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True))
    accumulator.update(array, np.linspace(0.1, 0.2, len(array)))
    accumulator.update(array, np.linspace(0.3, 0.4, len(array)))
    values = read_frequent_values(accumulator.result().frequent_items).sample.values
    assert [None if value is None else value.hex() for value in values] == kept * 2
