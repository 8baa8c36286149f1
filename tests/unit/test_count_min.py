"""Rows of values and pairs that are not among the common ones: by counters that are never too small."""

from __future__ import annotations

import base64
import json
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import DecimalType

import icestats
from icestats.estimation.formulas.frequent_sources import hash_items
from icestats.iceberg.filters.value_sets import build_item
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import decode_value
from icestats.read.puffin.committed_sketches import find_joint
from icestats.read.puffin.puffin import read_blob
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.column_values import dense_values, encode_dense
from icestats.stats.count_min import CountMin, HashCounter
from icestats.stats.frequent_items import FrequentValues, merge_frequent_items, read_frequent_values
from icestats.stats.joint_statistics import read_joint_statistics
from tests.computed_statistics import compute_here

ROWS = 30_000


def draw(seed: int = 4) -> np.ndarray:
    """Numbers of which some have thousands of rows, a thousand more than others, and thousands a few."""
    return np.random.default_rng(seed).zipf(1.15, ROWS) % 6_000


def to_arrow(type_text: str, numbers: np.ndarray) -> pa.Array:
    made: dict[str, Any] = {
        "long": lambda: pa.array(numbers),
        "int": lambda: pa.array(numbers.astype(np.int32)),
        "date": lambda: pa.array(numbers.astype(np.int32), pa.date32()),
        "timestamp": lambda: pa.array(numbers, pa.timestamp("us")),
        "double": lambda: pa.array(numbers / 8),
        "float": lambda: pa.array((numbers / 8).astype(np.float32)),
        "decimal(9, 2)": lambda: pa.array(numbers.astype(np.int16)).cast(pa.decimal128(9, 2)),
        "decimal(38, 4)": lambda: pa.array(numbers.astype(np.int16)).cast(pa.decimal128(38, 4)),
        "string": lambda: pa.array(["" if n == 7 else f"é{n}" for n in numbers.tolist()]),
        "binary": lambda: pa.array([b"" if n == 7 else b"%d" % n for n in numbers.tolist()]),
        "fixed[4]": lambda: pa.array([int(n).to_bytes(4, "big") for n in numbers], pa.binary(4)),
        "uuid": lambda: pa.array([int(n).to_bytes(16, "big") for n in numbers], pa.binary(16)),
    }
    return made[type_text]()


TYPES = ("long", "int", "date", "timestamp", "double", "float", "decimal(9, 2)", "decimal(38, 4)")
TYPES += ("string", "binary", "fixed[4]", "uuid")


def accumulate(type_text: str, arrays: list[pa.Array]) -> ColumnAccumulator:
    accumulator = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True))
    for array in arrays:
        accumulator.update(array)
    return accumulator


def check(type_text: str, found: FrequentValues, truth: Counter[bytes]) -> None:
    """No other value has more rows than its counters say, and few have fewer."""
    common = {item.value: item.lower for item in found.items}
    others = [value for value in truth if value not in common]
    hashes = hash_items([build_item(type_text, decode_value(type_text, value)) for value in others], type_text)
    assert found.others is not None
    assert hashes is not None
    most, rows = found.others.at_most(hashes), np.array([truth[value] for value in others])
    assert len(others) > 1_000
    assert (most >= rows).all()
    assert (most == rows).mean() > 0.8
    rest = found.value_count - sum(common.values())
    assert found.others.counters.sum(axis=1).tolist() == [rest, rest]


@pytest.mark.parametrize("type_text", TYPES)
def test_a_value_of_any_type_is_found_by_its_literal(type_text: str) -> None:
    numbers = draw()
    arrays = [to_arrow(type_text, part) for part in np.array_split(numbers, 4)]
    singles = accumulate(type_text, [])
    counted = to_arrow(type_text, numbers).value_counts()
    values = encode_dense(dense_values(counted.field("values"), type_text), type_text).to_pylist()
    truth = Counter(dict(zip(values, counted.field("counts").to_pylist(), strict=True)))
    for array in arrays:
        singles.merge(pickle.loads(pickle.dumps(accumulate(type_text, [array]))))
    check(type_text, read_frequent_values(singles.result().frequent_items), truth)
    halves = [accumulate(type_text, part).result() for part in (arrays[:2], arrays[2:])]
    merged = merge_frequent_items(*(half.frequent_items for half in halves), ndv=float(len(truth)))
    check(type_text, read_frequent_values(merged), truth)


def test_few_and_many_values_are_counted_alike() -> None:
    """One by one or by counters, in whatever order: the same counters."""
    random = np.random.default_rng(2)
    hashes, counts = random.integers(0, 1 << 63, 30_000).astype(np.uint64), random.zipf(1.5, 30_000) % 1_000
    made = []
    for sizes in ([30_000], [100, 29_900], [20_000, 10_000]):
        parts = []
        for part in np.split(np.arange(30_000), np.cumsum(sizes)[:-1]):
            parts.append(HashCounter())
            parts[-1].update(hashes[part], counts[part])
        whole = HashCounter()
        for one in parts[::-1]:
            whole.merge(one)
        found = whole.count_others(hashes[:50], counts[:50], 30_000)
        assert found is not None
        made.append(found.counters)
    assert all((one == made[0]).all() for one in made)
    assert made[0].sum(axis=1).tolist() == [counts[50:].sum()] * 2


def test_many_values_with_as_many_rows_as_one_another_need_no_counters() -> None:
    found = read_frequent_values(accumulate("long", [pa.array(np.arange(120_000) % 60_000)]).result().frequent_items)
    assert found.others is None
    few = read_frequent_values(accumulate("long", [pa.array(np.arange(60_000) % 900)]).result().frequent_items)
    assert (few.others, few.is_complete) == (None, True)


def spoil(payload: bytes, change: dict[str, Any]) -> bytes:
    document = json.loads(payload)
    document["others"] |= change
    return json.dumps(document).encode()


def frame(data: bytes) -> str:
    return base64.b64encode(zstandard.ZstdCompressor().compress(data)).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 3},
        {"bytes": 16},
        {"bytes": None},
        {"counters": "?"},
        {"counters": ""},
        {"counters": base64.b64encode(b"no frame at all").decode()},
        {"counters": frame(bytes(1 << 30)), "bytes": 1},
        {"counters": frame(bytes(2 << 14)), "bytes": 1},
        {"counters": frame(b"\xff" * (16 << 3)), "bytes": 8},
        {"counters": frame(b"")},
    ],
)
def test_damaged_counters_are_refused(change: dict[str, Any]) -> None:
    payload = accumulate("long", [pa.array(draw())]).result().frequent_items
    with pytest.raises(ValueError, match="not frequent items: "):
        read_frequent_values(spoil(payload, change))


def test_estimates_of_rare_values_and_pairs_are_within_certain_bounds(catalog, catalog_properties) -> None:
    """A key decides where it is, but for some noise; more keys and pairs than are kept one by one."""
    random = np.random.default_rng(9)
    key = draw()
    place = np.where(random.random(ROWS) < 0.1, random.integers(0, 4_000, ROWS), key // 2)
    rows = pa.table({"key": key, "place": pa.array([f"p{one}" for one in place])})
    catalog.create_table("db.t", rows.schema).append(rows)
    compute_here(icestats.load("db.t", catalog=catalog_properties), together="auto").commit()
    table = icestats.load("db.t", catalog=catalog_properties)
    truth = Counter(zip(key.tolist(), place.tolist(), strict=True))
    common = {(int(one["first"]), one["second"]) for one in table.columns_together()["common_pairs"][0].as_py()}
    errors = []
    for one, other in sorted(truth)[::150]:
        found = table.estimate(f"key = {one} and place = 'p{other}'", sources=["combined"])["combined"]
        actual = truth[one, other]
        assert found.rows_lower <= actual <= found.rows_upper
        errors.append(max(found.rows, actual) / max(min(found.rows, actual), 1))
        keys = table.estimate(f"key = {one}", sources=["combined"])["combined"]
        assert keys.rows_lower <= int((key == one).sum()) <= keys.rows_upper
    assert common
    assert np.quantile(errors, 0.9) <= 1.3
    absent = [(one, other) for one in range(3_000, 3_040) for other in range(40) if (one, other) not in truth]
    none = [
        table.estimate(f"key = {one} and place = 'p{other}'", sources=["combined"])["combined"]
        for one, other in absent[::40]
    ]
    assert np.mean([found.rows_upper for found in none]) < 1


def test_pairs_are_found_where_single_values_are_rare(catalog: SqlCatalog, catalog_properties) -> None:
    """Of thousands of prices a sample has each but a few times: neighbours together show what goes with them."""
    random = np.random.default_rng(1)
    rows = pa.table(
        {
            "price": np.round(random.lognormal(3, 0.3, ROWS), 2),
            "pieces": random.integers(1, 9, ROWS),
            "apart": random.integers(0, 5_000, ROWS),
        }
    )
    rows = rows.append_column("amount", pa.array(np.round(rows["price"].to_numpy() * rows["pieces"].to_numpy(), 1)))
    catalog.create_table("db.t", rows.schema).append(rows)
    compute_here(icestats.load("db.t", catalog=catalog_properties), together="auto").commit()
    found = icestats.load("db.t", catalog=catalog_properties).columns_together().to_pylist()
    pairs = {(one["first"], one["second"]) for one in found}
    assert ("pieces", "amount") in pairs
    assert not any("apart" in pair for pair in pairs)


def test_a_blob_of_pairs_says_what_its_counters_count(catalog: SqlCatalog, catalog_properties) -> None:
    random = np.random.default_rng(6)
    rows = pa.table({"a": draw(), "b": random.integers(0, 3, ROWS)})
    catalog.create_table("db.t", rows.schema).append(rows)
    compute_here(icestats.load("db.t", catalog=catalog_properties), together=[("a", "b")]).commit()
    reader = icestats.load("db.t", catalog=catalog_properties)._reader
    (found,) = find_joint(reader.blobs).values()
    payload = read_blob(reader.source.storage, found.blob, found.statistics_path)
    assert read_joint_statistics(payload, (1, 2)).others is not None
    with pytest.raises(ValueError, match="not joint statistics: counters of other than"):
        read_joint_statistics(spoil(payload, {"counters": frame(bytes(2 << 14)), "bytes": 1}), (1, 2))


def test_a_literal_beyond_an_earlier_type_is_asked_of_its_counters(catalog: SqlCatalog, catalog_properties) -> None:
    """A decimal that has got more digits since its values were counted: earlier ones had no such value."""
    made = catalog.create_table("db.t", pa.schema([("money", pa.decimal128(9, 2))]))
    made.append(pa.table({"money": to_arrow("decimal(9, 2)", draw())}))
    compute_here(icestats.load("db.t", catalog=catalog_properties)).commit()
    with made.update_schema() as update:
        update.update_column("money", DecimalType(38, 2))
    table = icestats.load("db.t", catalog=catalog_properties)
    for row_filter in ("money = 12345678901234567890123.00", "money != -12345678901234567890123.00"):
        found = table.estimate(row_filter, actual=True)
        for source in ("frequent-items", "combined"):
            assert found[source].rows_lower <= found.actual <= found[source].rows_upper


def test_the_first_of_two_equal_numbers_of_either_sign_is_the_other() -> None:
    found = CountMin(np.zeros((2, 8), np.int64))
    positive, negative = (hash_items([zero], "double") for zero in (0.0, -0.0))
    assert positive is not None
    assert negative is not None
    found.add(positive, None)
    assert found.at_most(negative).tolist() == [1]
