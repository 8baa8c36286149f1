"""Common values and pairs of columns as a stranger may have written them: one line, and the other sources answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.scan.pair_sample import MOST_PAIRS
from icestats.spark.statistics_refresh import Refresh
from icestats.stats.frequent_items import MOST_VALUE_BYTES, read_frequent_values
from icestats.stats.joint_statistics import read_joint_statistics
from icestats.stats.kll import KllSketch
from tests.computed_statistics import compute_here

THETA, KLL = "apache-datasketches-theta-v1", "apache-datasketches-kll-v1"
ITEMS, PAIRS = "icestats-frequent-items-v1", "icestats-joint-stats-v1"
ROWS = pa.table(
    {
        "key": pa.array([1, 2, 3, 4] * 50, pa.int64()),
        "name": ["a", "b", "", "d"] * 50,
        "money": pa.array([Decimal(n) for n in (1, 2, 3, 4)] * 50, pa.decimal128(9, 2)),
    }
)
MOST = 2**63 - 1
FILTER = "key = 1 and name = 'a' and money = 1"
Lie = Callable[..., icestats.Table]


@pytest.fixture
def stored(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> dict[tuple[str, tuple[int, ...]], Any]:
    """The blobs of a table whose statistics are right."""
    catalog.create_table("db.right", ROWS.schema).append(ROWS)
    table = icestats.load("db.right", catalog=catalog_properties)
    compute_here(table, together=[("key", "name"), ("name", "money")]).commit()
    path = catalog.load_table("db.right").metadata.statistics[-1].statistics_path
    footer = read_puffin_footer(Storage(), path)
    return {(b.type, b.field_ids): (read_blob(Storage(), b, path), dict(b.properties)) for b in footer.blobs}


@pytest.fixture
def lie(catalog: SqlCatalog, catalog_properties: dict[str, str], stored: Any) -> Lie:
    """Commit these blobs for the same rows, one of them changed, and append more rows if asked for."""

    def make(kind: str, field_ids: tuple[int, ...], change: Any, *, later: bool = False) -> icestats.Table:
        table = catalog.create_table("db.lie", ROWS.schema)
        table.append(ROWS)
        now, payloads = table.current_snapshot(), dict(stored)
        data, properties = payloads[kind, field_ids]
        changed = change if isinstance(change, bytes) else json.dumps(json.loads(data) | change).encode()
        payloads[kind, field_ids] = changed, properties
        blobs = [NewBlob(*key, now.snapshot_id, now.sequence_number, *one) for key, one in payloads.items()]
        commit_statistics(prepare_commit(table, blobs))
        if later:
            table.refresh()
            table.append(ROWS)
        return icestats.load("db.lie", catalog=catalog_properties)

    return make


@pytest.mark.parametrize("type_text", ["foo", "struct", "decimal(99999999999,2)", ["long"]])
def test_items_of_no_known_type_are_named_and_the_others_answer(lie: Lie, type_text: Any) -> None:
    table = lie(ITEMS, (1,), {"type": type_text, "items": []})
    found = table.estimate("key = 1", actual=True)
    assert found["frequent-items"].rows is None
    assert "the frequent items of column 'key'" in found["frequent-items"].reason
    assert "\n" not in found["frequent-items"].reason
    for source in ("data-files", "kll", "combined"):
        assert found[source].rows_lower <= found.actual <= found[source].rows_upper
    with pytest.raises(icestats.MetadataError, match="the frequent items of column 'key'"):
        table.frequent_values("key")


@pytest.mark.parametrize("kind", [pa.uuid(), pa.binary(4)], ids=str)
def test_items_of_bytes_are_of_no_other_type(
    catalog: SqlCatalog, catalog_properties: dict[str, str], kind: pa.DataType
) -> None:
    """A uuid has 16 bytes, which its order takes for granted."""
    width = 16 if isinstance(kind, pa.UuidType) else 4
    keys = pa.array([bytes([n]) * width for n in range(9)], pa.binary(width)).cast(kind)
    rows = pa.table({"key": keys, "data": pa.array([b"", b"a", b"a" * 21] * 3)})
    table = catalog.create_table("db.bytes", rows.schema)
    table.append(rows)
    compute_here(icestats.load("db.bytes", catalog=catalog_properties)).commit()
    path = table.refresh().metadata.statistics[-1].statistics_path
    (data,) = [b for b in read_puffin_footer(Storage(), path).blobs if (b.type, b.field_ids) == (ITEMS, (2,))]
    now = table.current_snapshot()
    payload = read_blob(Storage(), data, path)
    blob = NewBlob(ITEMS, (1,), now.snapshot_id, now.sequence_number, payload, dict(data.properties))
    commit_statistics(prepare_commit(table, [blob]))
    found = icestats.load("db.bytes", catalog=catalog_properties)
    estimates = found.estimate("key is not null")
    assert estimates["frequent-items"].rows is None
    assert estimates["combined"].rows == 9
    with pytest.raises(icestats.StatisticsMissingError, match="are of when its type was binary, and it is"):
        found.frequent_values("key")


@pytest.mark.parametrize(
    ("kind", "field_ids"),
    [(ITEMS, (1,)), (PAIRS, (1, 2)), (THETA, (1,)), (KLL, (1,))],
    ids=["items", "pairs", "theta", "kll"],
)
def test_what_can_be_answered_without_a_damaged_blob_is(lie: Lie, kind: str, field_ids: tuple[int, ...]) -> None:
    """`combined` uses the rest, a finding names what is damaged, and joins and groups have what they need."""
    table = lie(kind, field_ids, b"\xff{")
    found = table.estimate(FILTER, actual=True)
    assert found.actual == 50
    assert 10 < found["combined"].rows <= found["combined"].rows_upper == 50
    (finding,) = [one for one in found.findings if one.title == "committed statistics are not used"]
    assert "\n" not in str(finding)
    assert (found["frequent-items"].rows is None) == (kind in (ITEMS, PAIRS))
    joined = table.estimate_join(table, "key", actual=True)
    assert (joined["join-ndv"].rows is None) == (kind == THETA)
    assert (joined["join-frequent-items"].rows is None) == (kind in (ITEMS, THETA))
    grouped = table.estimate_groups(["key", "name"])
    assert (grouped["groups-independent"].rows is None) == (kind in (ITEMS, THETA))
    assert all("\n" not in one.reason for one in (*joined, *grouped))


@pytest.mark.parametrize(
    ("kind", "field_ids", "change", "reason"),
    [
        (ITEMS, (3,), {"items": [["7f" * 400_000, 5, 0]]}, f"400,000 bytes, expected {MOST_VALUE_BYTES:,} at most"),
        (PAIRS, (2, 3), {"items": [["61", "7f" * 400_000, 5, 0]]}, "400,000 bytes, expected"),
        (ITEMS, (1,), {"items": [[f"{i:016x}", 0, 0] for i in range(100_000)]}, "JSON, expected 65,536 at most"),
        (PAIRS, (1, 2), {"items": [[f"{i:016x}", None, 0, 0] for i in range(100_000)]}, "JSON, expected 65,536"),
    ],
    ids=["a long decimal", "of a pair", "many items", "many pairs"],
)
def test_a_small_file_does_not_cost_minutes(
    lie: Lie, kind: str, field_ids: tuple[int, ...], change: Any, reason: str
) -> None:
    table = lie(kind, field_ids, change)
    assert reason in table.estimate(FILTER)["frequent-items"].reason


@pytest.mark.parametrize("value_count", [5, 201])
def test_counts_of_another_number_of_rows_prove_nothing(lie: Lie, value_count: int) -> None:
    sample = {"row-count": value_count, "seed": 0, "values": []}
    items = {"value-count": value_count, "items": [["01" + "00" * 7, value_count, 0]], "sample": sample}
    found = lie(ITEMS, (1,), items).estimate("key = 1", actual=True)
    assert f"are of {value_count} rows, which the table never had" in found["frequent-items"].reason
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper


@pytest.mark.parametrize("row_count", [5, 201])
def test_pairs_of_another_number_of_rows_prove_nothing(lie: Lie, row_count: int) -> None:
    pairs = {"row-count": row_count, "items": [["01" + "00" * 7, "61", row_count, 0]], "others-at-most": 0, "ndv": 1}
    table = lie(PAIRS, (1, 2), pairs)
    for row_filter in ("key = 1 and name = 'a'", "key = 2 and name = 'b'", "key > 1 and name > 'a'"):
        found = table.estimate(row_filter, actual=True)
        said = f"of columns key and name are of {row_count} rows, which the table never had"
        assert said in found["frequent-items"].reason
        assert any(said in one.evidence for one in found.findings)
        assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper


def test_counts_of_fewer_rows_than_all_values_have_prove_nothing(lie: Lie) -> None:
    found = lie(ITEMS, (1,), {"items": [["01" + "00" * 7, 50, 0]]}).estimate("key > 2", actual=True)
    assert "fewer rows than 200 values have, and no other value" in found["frequent-items"].reason
    assert found["combined"].rows_lower <= found.actual <= found["combined"].rows_upper


def rank(*values: int) -> bytes:
    sketch = KllSketch("long")
    sketch.update(pa.array(values, pa.int64()))
    return sketch.to_bytes()


@pytest.mark.parametrize("value_count", [5, 201])
def test_ranks_of_another_number_of_rows_prove_nothing(lie: Lie, value_count: int) -> None:
    table = lie(KLL, (1,), rank(*range(1_000, 1_000 + value_count)))
    found = table.estimate("key = 1", actual=True)
    assert f"is of {value_count} rows, which the table never had" in found["kll"].reason
    for one in (found["kll"], found["combined"]):
        assert one.rows_lower is None or one.rows_lower <= found.actual <= one.rows_upper
    reported = table.reported_statistics()
    assert reported.row_count_bounds == (200, 200)
    assert any("which the table never had" in note for note in reported.notes)


def test_ranks_that_the_data_files_refute_prove_nothing(lie: Lie) -> None:
    """As of another table's statistics."""
    table = lie(KLL, (1,), rank(*range(1_000, 1_200)))
    for row_filter, count in {"key > 4": 0, "key = 1": 50}.items():
        found = table.estimate(row_filter, actual=True)
        assert (found.actual, found["kll"].rows) == (count, None)
        assert "compute the statistics anew" in found["kll"].reason


@pytest.mark.parametrize("row_filter", ["key <= 4", "key > 1000", "key = 1", "key != 2"])
def test_counts_that_the_data_files_refute_prove_nothing(lie: Lie, row_filter: str) -> None:
    """As of another table's statistics."""
    items = {"others-at-most": 0, "items": [[f"d{n}07000000000000", 40, 0] for n in range(5)]}
    found = lie(ITEMS, (1,), items).estimate(row_filter, actual=True)
    assert found["frequent-items"].rows is None
    assert "compute the statistics anew" in found["frequent-items"].reason
    for source in ("data-files", "combined"):
        assert found[source].rows_lower <= found.actual <= found[source].rows_upper


def test_counts_that_may_be_true_are_certain_only_if_the_file_is_right(lie: Lie) -> None:
    """No manifest refutes them: what it proves by itself is certain without a condition, and holds the truth."""
    counts = {1: 100, 2: 40, 3: 40, 4: 20}
    items = [[f"{key:02d}" + "00" * 7, count, 0] for key, count in counts.items()]
    table = lie(ITEMS, (1,), {"others-at-most": 0, "items": items})
    found = table.estimate("key = 1", actual=True)
    for source in ("frequent-items", "combined"):
        assert (found[source].rows_lower, found[source].rows_upper, found.actual) == (100, 100, 50)
        assert found[source].bound.startswith("certain if the statistics file is right: ")
    assert found["combined"].assumes.endswith("bounds if the statistics file is right")
    certain = [one for one in found if one.bound.startswith("certain:")]
    assert {one.source for one in certain} == {
        "data-files",
        "manifests",
        "manifests-each",
        "partitions",
        "table",
        "ndv",
    }
    assert all(one.rows_lower <= found.actual <= one.rows_upper for one in certain)
    every = table.estimate("key <= 4")["combined"]
    assert (every.rows_lower, every.bound.startswith("certain:")) == (200, True)


@pytest.mark.parametrize("value", ["7f" * 20, "7f" * 16, "0001"])
@pytest.mark.parametrize(("kind", "field_ids"), [(ITEMS, (3,)), (PAIRS, (2, 3))])
def test_a_decimal_that_its_column_cannot_hold_ends_no_refresh_in_a_traceback(
    lie: Lie, kind: str, field_ids: tuple[int, ...], value: str
) -> None:
    item = [value, 5, 0] if kind == ITEMS else ["61", value, 5, 0]
    table = lie(kind, field_ids, {"items": [item]}, later=True)
    if kind == ITEMS:
        with pytest.raises(icestats.MetadataError, match=r"is not (how )?a value of type"):
            table.refresh_statistics()
    else:
        table.refresh_statistics(columns=["key", "name", "money"]).commit()
        assert table.refresh().frequent_values("key")["rows_at_least"].to_pylist() == [100] * 4


def test_pairs_of_another_number_of_rows_are_left_as_they_are(lie: Lie) -> None:
    """Sums of these would not fit 64 bits; and what others have made up is not committed as the kit's own."""
    most = 2**63 - 1
    change = {"row-count": most, "others-at-most": most, "items": [["01" + "00" * 7, "61", most, 0]]}
    refreshed = lie(PAIRS, (1, 2), change, later=True).refresh_statistics()
    assert [one.field_ids for one in refreshed.found.together] == [(2, 3)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"value-count": MOST, "others-at-most": MOST, "items": [["01" + "00" * 7, MOST, 0]]},
            "its frequent items are of 9,223,372,036,854,775,807 values",
        ),
        (
            {"sample": {"row-count": MOST, "seed": 7, "values": []}},
            "its sampled rows are of 9,223,372,036,854,775,807 rows, and its column statistics of 200",
        ),
        ({"sample": {"row-count": 0, "seed": 0, "values": []}}, "its sampled rows are of 0 rows"),
    ],
    ids=["items", "many sampled rows", "no sampled rows"],
)
def test_items_of_another_number_of_values_are_not_added_to(
    lie: Lie, monkeypatch: pytest.MonkeyPatch, change: Any, reason: str
) -> None:
    table, read = lie(ITEMS, (1,), change, later=True), []

    def scan(refresh: Refresh, names: Sequence[str], *_: Any, **__: Any) -> None:
        read.extend(names)
        refresh._columns.update(dict.fromkeys(names, refresh._columns["name"]))

    monkeypatch.setattr(Refresh, "_scan_in_full", scan)
    refreshed = table.refresh_statistics()
    assert read == ["key"]
    assert reason in str(refreshed)


def test_a_sketch_of_another_number_of_values_is_not_added_to(lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = lie(KLL, (1,), rank(*range(50)), later=True), []

    def scan(refresh: Refresh, names: Sequence[str], *_: Any, **__: Any) -> None:
        read.extend(names)
        refresh._columns.update(dict.fromkeys(names, refresh._columns["name"]))

    monkeypatch.setattr(Refresh, "_scan_in_full", scan)
    assert "its KLL sketch is of 50 values, and its column statistics of 200" in str(table.refresh_statistics())
    assert read == ["key"]


def test_a_table_does_not_decide_how_many_pairs_are_computed(
    catalog: SqlCatalog, catalog_properties: dict[str, str], stored: Any
) -> None:
    wide = pa.table({f"c{i}": np.arange(3) for i in range(16)})
    table = catalog.create_table("db.wide", wide.schema)
    table.append(wide)
    now = table.current_snapshot()
    payload = json.dumps(json.loads(stored[PAIRS, (1, 2)][0]) | {"types": ["long", "long"], "items": []}).encode()
    pairs = [*combinations(range(1, 17), 2), (1, 1)]
    blobs = [NewBlob(PAIRS, pair, now.snapshot_id, now.sequence_number, payload, {}) for pair in pairs]
    commit_statistics(prepare_commit(table, blobs))
    opened = icestats.load("db.wide", catalog=catalog_properties)
    assert opened.columns_together().num_rows == len(pairs) - 1
    assert len(compute_here(opened).found.together) == MOST_PAIRS


def test_times_that_no_day_has_are_counted(catalog: SqlCatalog, catalog_properties: dict[str, str], tmp_path) -> None:
    """Some writers have 24:00:00 at the end of a day."""
    moments = pa.array([86_400_000_000, -1, 5, 5], pa.int64()).view(pa.time64("us"))
    rows = pa.table({"at": moments, "key": pa.array([1, 2, 3, 3], pa.int64())})
    table = catalog.create_table("db.times", rows.schema)
    pq.write_table(rows, tmp_path / "t.parquet", write_statistics=False)
    table.add_files([f"file://{tmp_path / 't.parquet'}"])
    opened = icestats.load("db.times", catalog=catalog_properties)
    compute_here(opened, together=[("at", "key")]).commit()
    common = opened.refresh().frequent_values("at").to_pylist()
    assert [(one["value"], one["rows_at_least"]) for one in common] == [
        ("00:00:00.000005", 2), ("86400000000", 1), ("-1", 1)
    ]  # fmt: skip
    found = opened.refresh().estimate("at = '00:00:00.000005' and key = 3", actual=True)
    assert found["frequent-items"].rows == found.actual == 2


@pytest.mark.parametrize("read", [read_frequent_values, lambda data: read_joint_statistics(data, (1, 2))])
@pytest.mark.parametrize("payload", [b"[" * 60_000, b'{"type":' * 9_000, b"[]," * 30_000, b"\xff", b"null", b"3"])
def test_other_bytes_are_refused_in_one_line(read: Callable[[bytes], Any], payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"not (frequent items|joint statistics)") as raised:
        read(payload)
    assert "\n" not in str(raised.value)


def test_so_many_columns_that_go_together_are_no_number_too_large(
    catalog: SqlCatalog, catalog_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 64 keys decides the next: how much more than independent that is, no float holds."""
    count, width = 1_000, 64
    rows = pa.table({f"c{i}": np.arange(count) for i in range(width)})
    table = catalog.create_table("db.keys", rows.schema)
    table.append(rows)
    opened = icestats.load("db.keys", catalog=catalog_properties)
    compute_here(opened, together=[(f"c{i}", f"c{i + 1}") for i in range(width - 1)]).commit()
    opened = opened.refresh()
    monkeypatch.setattr("icestats.estimation.formulas.joint_sources._log_factor", lambda both, shares: 13.8)
    found = opened.estimate(" and ".join(f"c{i} = 5" for i in range(width)), sources=["frequent-items", "combined"])
    assert 0 <= found["frequent-items"].rows <= 1
    assert 0 <= found["combined"].rows <= 1


@pytest.mark.parametrize("width", [1, 3, 5, 8, 40, 90])
def test_groups_by_many_columns_are_no_fewer_than_by_one(
    catalog: SqlCatalog, catalog_properties: dict[str, str], width: int
) -> None:
    rng = np.random.default_rng(width)
    rows = pa.table({f"c{i}": rng.integers(0, 100_000, 3_000) for i in range(width)})
    table = catalog.create_table("db.groups", rows.schema)
    table.append(rows)
    opened = icestats.load("db.groups", catalog=catalog_properties)
    compute_here(opened, together=[("c0", "c1"), ("c1", "c2")] if width > 2 else ()).commit()
    found = opened.refresh().estimate_groups(rows.column_names, actual=width < 10)
    for source in ("groups-independent", "groups-together"):
        assert math.isclose(found[source].rows, found.actual or 3_000, rel_tol=0.03)


def test_decimals_of_other_scales_are_joined_by_their_values(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """1.00 is not 0.100, though both are kept as 100."""
    sides = []
    for name, kind in (("coarse", pa.decimal128(9, 2)), ("fine", pa.decimal128(9, 3))):
        unscaled = [Decimal(n).scaleb(-kind.scale) for n in range(100, 200)] * 10
        rows = pa.table({"key": pa.array(unscaled, kind)})
        catalog.create_table(f"db.{name}", rows.schema).append(rows)
        compute_here(icestats.load(f"db.{name}", catalog=catalog_properties)).commit()
        sides.append(icestats.load(f"db.{name}", catalog=catalog_properties))
    found = sides[0].estimate_join(sides[1], "key", actual=True)
    assert found.actual == 0
    assert found["join-frequent-items"].rows is None
    assert "decimal(9, 2)" in found["join-frequent-items"].reason
