"""One column's statistics, against the values themselves."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestats.iceberg.metadata import Field
from icestats.iceberg.types import decode_value, encode_value, to_arrow_type
from icestats.stats.column_accumulator import ColumnAccumulator, can_sketch
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import ColumnStatistics
from icestats.stats.theta import ThetaSketch

UTC = dt.UTC
LOW_UUID, HIGH_UUID = uuid.UUID(int=5), uuid.UUID(int=2**127 + 5)

# Type, values without repetition, the smallest and the largest of them.
COLUMNS: list[tuple[str, list[Any], Any, Any]] = [
    ("boolean", [True, False], False, True),
    ("int", [3, -1, 2], -1, 3),
    ("long", [3, -(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
    ("float", [1.5, -2.5, float("inf")], -2.5, float("inf")),
    ("double", [1.5, -2.5, float("-inf")], float("-inf"), 1.5),
    ("decimal(9, 2)", [Decimal("1.50"), Decimal("-0.01")], Decimal("-0.01"), Decimal("1.50")),
    ("decimal(38, 2)", [Decimal("-1e30"), Decimal("2e30"), Decimal(0)], Decimal("-1e30"), Decimal("2e30")),
    ("date", [dt.date(2026, 9, 1), dt.date(1, 1, 1)], dt.date(1, 1, 1), dt.date(2026, 9, 1)),
    ("time", [dt.time(1), dt.time(0, 0, 0, 1)], dt.time(0, 0, 0, 1), dt.time(1)),
    ("timestamp", [dt.datetime(2026, 9, 1), dt.datetime(1969, 1, 1)], dt.datetime(1969, 1, 1), dt.datetime(2026, 9, 1)),
    ("timestamptz", [dt.datetime(2026, 9, 1, tzinfo=UTC)], *[dt.datetime(2026, 9, 1, tzinfo=UTC)] * 2),
    ("timestamp_ns", [7, -7], -7, 7),
    ("timestamptz_ns", [7, -7], -7, 7),
    ("string", ["z", "é", "\U0001f600", "\uffff"], "z", "\U0001f600"),
    ("binary", [b"\x80", b"\x7f\xff"], b"\x7f\xff", b"\x80"),
    ("fixed[2]", [b"\x80\x00", b"\x7f\xff"], b"\x7f\xff", b"\x80\x00"),
    ("uuid", [HIGH_UUID, LOW_UUID], LOW_UUID, HIGH_UUID),
]


def column(type_text: str, field_id: int = 1) -> Field:
    return Field(field_id, "c", type_text, required=False, top_level=True)


def arrow(type_text: str, values: list[Any]) -> pa.Array:
    plain = [v.bytes if isinstance(v, uuid.UUID) else v for v in values]
    return pa.array(plain, to_arrow_type(type_text))


def gather(type_text: str, *arrays: pa.Array) -> ColumnStatistics:
    accumulator = ColumnAccumulator(column(type_text))
    for array in arrays:
        accumulator.update(array)
    return accumulator.result()


@pytest.mark.parametrize(("type_text", "values", "low", "high"), COLUMNS, ids=[c[0] for c in COLUMNS])
def test_no_value_of_any_type_is_lost(type_text: str, values: list[Any], low: Any, high: Any) -> None:
    """Counts, bounds, distinct values and the sketch's n are exact over two batches with nulls."""
    result = gather(type_text, arrow(type_text, [*values, None]), arrow(type_text, [None, None, *values]))
    assert (result.field_id, result.type) == (1, type_text)
    assert (result.value_count, result.null_value_count, result.nan_value_count) == (2 * len(values) + 3, 3, 0)
    assert result.min_value == encode_value(type_text, low)
    assert result.max_value == encode_value(type_text, high)
    assert ThetaSketch.from_bytes(result.theta).ndv == len(values)
    if result.kll is None:
        assert type_text in ("binary", "fixed[2]", "uuid")
        assert result.item_type is None
    else:
        assert result.item_type is not None
        assert KllSketch.from_bytes(result.item_type, result.kll).n == 2 * len(values)


@pytest.mark.parametrize(("type_text", "values"), [c[:2] for c in COLUMNS], ids=[c[0] for c in COLUMNS])
def test_merging_equals_one_pass_and_survives_pickling(type_text: str, values: list[Any]) -> None:
    parts = []
    for value in values:
        accumulator = ColumnAccumulator(column(type_text))
        accumulator.update(arrow(type_text, [value, None, value]))
        parts.append(pickle.loads(pickle.dumps(accumulator)))
    left, right = ColumnAccumulator(column(type_text)), ColumnAccumulator(column(type_text))
    for part in parts:
        left.merge(part)
    for part in reversed(parts):
        right.merge(part)
    whole = gather(type_text, arrow(type_text, [v for value in values for v in (value, None, value)]))
    for merged in (left.result(), right.result()):
        for name in ("value_count", "null_value_count", "min_value", "max_value", "avg_length", "max_length", "theta"):
            assert getattr(merged, name) == getattr(whole, name), name
        if whole.kll is not None and whole.item_type is not None and merged.kll is not None:
            ours, theirs = (KllSketch.from_bytes(whole.item_type, data) for data in (merged.kll, whole.kll))
            assert list(ours.items()) == list(theirs.items())


@pytest.mark.parametrize("type_text", [c[0] for c in COLUMNS])
def test_a_column_without_values_has_counts_and_nothing_else(type_text: str) -> None:
    for arrays, count in (((), 0), ((pa.nulls(3),), 3), ((pa.nulls(2, to_arrow_type(type_text)),), 2)):
        result = gather(type_text, *arrays)
        assert (result.value_count, result.null_value_count) == (count, count)
        assert (result.min_value, result.max_value, result.avg_length, result.max_length) == (None,) * 4
        assert ThetaSketch.from_bytes(result.theta).is_empty


@pytest.mark.parametrize("type_text", ["float", "double"])
def test_nan_is_counted_and_kept_out_of_bounds_and_ranks(type_text: str) -> None:
    nan = float("nan")
    result = gather(type_text, arrow(type_text, [nan, 2.0, None]), arrow(type_text, [nan, -1.0]))
    assert (result.value_count, result.null_value_count, result.nan_value_count) == (5, 1, 2)
    assert decode_value(type_text, result.min_value or b"") == -1.0
    assert decode_value(type_text, result.max_value or b"") == 2.0
    assert KllSketch.from_bytes("double", result.kll or b"").n == 2
    only = gather(type_text, arrow(type_text, [nan, nan]))
    assert (only.nan_value_count, only.min_value, only.max_value) == (2, None, None)


@pytest.mark.parametrize("batches", [[[0.0, -0.0]], [[-0.0, 0.0]], [[0.0], [-0.0]], [[-0.0], [0.0]]])
def test_negative_zero_is_below_zero(batches: list[list[float]]) -> None:
    result = gather("double", *map(pa.array, batches))
    assert result.min_value == encode_value("double", -0.0)
    assert result.max_value == encode_value("double", 0.0)
    for zero in (0.0, -0.0):
        alone = gather("double", pa.array([zero]), pa.array([zero]))
        assert alone.min_value == alone.max_value == encode_value("double", zero)


def test_negative_zero_survives_a_merge_beside_other_values() -> None:
    left, right = ColumnAccumulator(column("double")), ColumnAccumulator(column("double"))
    left.update(pa.array([0.0, -3.0]))
    right.update(pa.array([-0.0, -3.0]))
    right.merge(left)
    assert right.result().max_value == encode_value("double", 0.0)


def test_lengths_are_bytes_of_the_values_that_are_not_null() -> None:
    result = gather("string", pa.array(["é", None, "abcd"]), pa.array(["", "x"]).slice(1))
    assert (result.avg_length, result.max_length) == ((2 + 4 + 1) / 3, 4)
    result = gather("binary", pa.array([b"", b"abc"]))
    assert (result.avg_length, result.max_length) == (1.5, 3)
    assert gather("long", pa.array([1])).avg_length is None
    assert gather("fixed[2]", pa.array([b"ab"])).max_length is None


def test_empty_strings_count_as_values_but_not_as_distinct_ones() -> None:
    result = gather("string", pa.array(["", "", "a"]))
    assert (result.value_count, result.min_value) == (3, b"")
    assert ThetaSketch.from_bytes(result.theta).ndv == 1
    assert KllSketch.from_bytes("string", result.kll or b"").n == 3


def test_bounds_of_strings_are_never_cut() -> None:
    long = "x" * 5_000
    assert gather("string", pa.array([long])).max_value == long.encode()


@pytest.mark.parametrize("distinct", [1, 7, 500, 513, 5_000, 50_000])
def test_strings_of_any_repetition_keep_their_counts(distinct: int) -> None:
    """However many distinct strings a batch has, it takes another path; all of them count every value."""
    random = np.random.default_rng(4)
    array = pa.array([f"v{value:06d}" for value in random.integers(0, distinct, 50_000)])
    result = gather("string", array, array.dictionary_encode(), array.slice(10, 20_000))
    sketch = KllSketch.from_bytes("string", result.kll or b"")
    assert sketch.n == 120_000
    exact = ThetaSketch.from_bytes(result.theta)
    assert abs(exact.estimate() / len(set(array.to_pylist())) - 1) < 0.07
    half = f"v{distinct // 2:06d}"
    truth = np.mean([text < half for text in array.to_pylist()])
    assert abs(sketch.ranks([half], inclusive=False)[0] - truth) < 3 * 0.0133


def test_strings_of_few_kinds_are_ranked_without_error() -> None:
    array = pa.array(np.random.default_rng(6).choice(["AIR", "MAIL", "RAIL", "SHIP", "TRUCK"], 50_000))
    sketch = KllSketch.from_bytes("string", gather("string", array).kll or b"")
    assert sketch.ranks(["AIR", "RAIL"]) == [
        np.mean([t <= kind for t in array.to_pylist()]) for kind in ("AIR", "RAIL")
    ]


def test_what_arrow_holds_in_another_way_is_the_same_column() -> None:
    plain = gather("long", pa.array([1, None, 2]))
    for other in (
        pa.array([1, None, 2], pa.int32()),
        pa.array([1, None, 2]).dictionary_encode(),
        pa.array([9, 1, None, 2]).slice(1),
        pa.chunked_array([[1, None], [2]]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array([1, None, 2])),
    ):
        assert gather("long", other) == plain


def test_uuids_that_spark_shows_as_text_are_the_same_column() -> None:
    texts = pa.array([str(HIGH_UUID), str(LOW_UUID)])
    assert gather("uuid", texts) == gather("uuid", arrow("uuid", [HIGH_UUID, LOW_UUID]))


def test_an_accumulator_stays_small() -> None:
    accumulator = ColumnAccumulator(column("string"))
    for start in range(0, 300_000, 50_000):
        accumulator.update(pa.array([f"some text {i}" for i in range(start, start + 50_000)]))
    assert len(pickle.dumps(accumulator)) < 250_000


def test_k_and_lg_k_reach_the_sketches() -> None:
    accumulator = ColumnAccumulator(column("long"), k=400, lg_k=10)
    accumulator.update(pa.array(range(50_000)))
    result = accumulator.result()
    assert KllSketch.from_bytes("long", result.kll or b"").k == 400
    assert len(ThetaSketch.from_bytes(result.theta).hashes) == 1_024


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (Field(1, "c", "list", False, True), "nested"),
        (Field(1, "c.d", "long", False, False), "part of a nested one"),
        (Field(1, "c", "variant", False, True), "variant"),
        (Field(1, "c", "geometry(srid:4326)", False, True), "geometry"),
        (Field(1, "c", "unknown", False, True), "unknown"),
        (Field(1, "c", "tensor", False, True), "not known"),
    ],
)
def test_a_column_that_cannot_be_sketched_says_why(field: Field, said: str) -> None:
    assert said in (can_sketch(field) or "")
    with pytest.raises(ValueError, match="column 'c"):
        ColumnAccumulator(field)


def test_another_column_or_another_type_of_array_is_refused() -> None:
    accumulator = ColumnAccumulator(column("long"))
    with pytest.raises(ValueError, match="field 2"):
        accumulator.merge(ColumnAccumulator(column("long", field_id=2)))
    with pytest.raises(ValueError, match="cannot be read as Iceberg's long"):
        accumulator.update(pa.array(["a"]))
    assert accumulator.result().value_count == 0


@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_text_that_is_not_utf8_is_refused_with_its_column(is_encoded: bool) -> None:
    """Spark writes what a cast of any binary gives."""
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xffb"))
    if is_encoded:
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), texts)
    field = Field(1, "name", "string", required=False, top_level=True)
    with pytest.raises(ValueError, match="column 'name' has a text that is not UTF-8"):
        ColumnAccumulator(field).update(texts)
