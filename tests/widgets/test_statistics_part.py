"""The matrix of statistics: what a table has, what engines make of it, and what mends a gap."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, LongType, NestedField, UUIDType

import icestats
from icestats.answers.text import render_bytes
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES
from icestats.stats.theta import ThetaSketch
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from icestats_widgets.reading.compute_request import ComputeRequest, describe_cost, list_behind, request_update
from tests.committed_statistics import KLL, THETA, blob, commit
from tests.computed_statistics import compute_here
from tests.kll_sketches import sketch_of
from tests.widgets.blocks_of_parts import click, find_blocks, find_button, find_rows, find_texts
from tests.widgets.conftest import HOSTILE, build_rows

EMPTY = ThetaSketch().to_bytes()


@pytest.fixture
def explorer(hostile_table: icestats.Table) -> Explorer:
    explorer = hostile_table.explore()
    assert explorer.wait()
    return explorer


@pytest.fixture
def part(explorer: Explorer) -> Part:
    return explorer.parts["statistics"]


@pytest.fixture
def stale_table(
    catalog: SqlCatalog, catalog_properties: dict[str, str], hostile_table: icestats.Table
) -> icestats.Table:
    """The NDV and the distribution of price are of the commit before the last one."""
    table = catalog.load_table("db.hostile")
    sketch = sketch_of("double", pa.array(range(100), pa.float64()))
    kll = blob(table, KLL, 3, sketch.to_bytes(), **{"item-type": "double"})
    commit(table, blob(table, THETA, 3, EMPTY, ndv="100"), kll)
    table.append(build_rows(2))
    return icestats.load("db.hostile", catalog=catalog_properties)


def pick(part: Part, column: str, kind: str) -> None:
    key = next(row["key"] for row in find_rows(part, "matrix") if row["column"] == column)
    part.act("matrix.cell", {"key": key, "column": kind})


def test_the_matrix_says_of_each_column_what_there_is(explorer: Explorer, part: Part) -> None:
    """Columns are text; words filter the rows; a cell shows engines, commands and evidence."""
    details = explorer.parts["details"]
    assert (details.document()["blocks"], details.document()["caption"]) == ([], "")
    rows = {row["column"]: row for row in find_rows(part, "matrix")}
    assert list(rows) == ["id", "at", "price", HOSTILE]
    assert [rows["price"][kind] for kind in ("ndv", "histogram", "columns", "frequent_items", "by_partition")] == [
        "missing +"
    ] * 5
    assert {row["statistic"]: row["state"] for row in find_rows(part, "own")} == {
        "row counts": "fresh",
        "partition statistics file": "missing +",
        "manifest statistics": "missing +",
        "statistics files": "0 files, 0 B",
    }
    own = next(block for block in find_blocks(part, "grid") if block["id"] == "own")
    assert own["rows"][0]["cells"][1]["s"] == "4/6 engines"
    assert "ignored by Spark, Presto" in own["rows"][0]["cells"][1]["h"]
    assert "22 missing" in part.document()["caption"]
    pick(part, "price", "columns")
    assert details.document()["caption"] == "column statistics of price"
    states = {(row["engine"], row["statistic"]): row["state"] for row in find_rows(details, "engines")}
    assert {engine: states.get((engine, "min value")) for engine in ("Spark", "Trino", "Presto", "DuckDB")} == {
        "Spark": "ignored", "Trino": "fresh", "Presto": "ignored", "DuckDB": "ignored",
    }  # fmt: skip
    pick(part, HOSTILE, "ndv")
    assert find_rows(details, "blobs") == []
    codes = [one["text"].splitlines() for one in find_blocks(details, "code")]
    call = "icestats.load('db.hostile', catalog=catalog).compute(table=True).commit()"
    assert ['catalog = {"type": ..., "uri": ...}  # put the properties of the table\'s catalog here', call] in codes
    evidence = next(row["evidence"] for row in find_rows(details, "engines") if row["engine"] == "Spark")
    assert ".java" in evidence
    click(part, find_button(details, "statistics.close"))
    assert details.document()["blocks"] == []
    part.act("matrix.search", {"text": "pri missing"})
    assert [row["column"] for row in find_rows(part, "matrix")] == ["price"]
    assert part.to_arrow().schema == icestats.schemas.COVERAGE
    assert part.code() == "table.coverage()"


def test_a_column_without_an_order_lacks_no_distribution(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """No scan makes one of uuids: what is offered there would be missing after it too."""
    schema = Schema(
        NestedField(1, "key", UUIDType()), NestedField(2, "raw", BinaryType()), NestedField(3, "n", LongType())
    )
    table = catalog.create_table("db.orderless", schema)
    rows = {"key": [bytes(16)], "raw": [b"a"], "n": [1]}
    table.append(pa.table(rows, schema=table.schema().as_arrow()))
    loaded = icestats.load("db.orderless", catalog=catalog_properties)
    assert not [row for row in loaded.coverage(columns=["key", "raw"]).to_pylist() if row["statistic"] == "histogram"]
    explorer = loaded.explore()
    assert explorer.wait()
    shown = {row["column"]: row["histogram"] for row in find_rows(explorer.parts["statistics"], "matrix")}
    assert shown == {"key": "–", "raw": "–", "n": "missing +"}


def test_what_is_stale_for_an_engine_takes_two_clicks(stale_table: icestats.Table) -> None:
    """The engine, then gaps alone: the columns that it plans for with what is behind or missing."""
    explorer = stale_table.explore()
    assert explorer.wait()
    part, details = explorer.parts["statistics"], explorer.parts["details"]
    part.act("engine", "Trino")
    part.act("gaps", True)
    rows = {row["column"]: row for row in find_rows(part, "matrix")}
    assert rows["price"]["ndv"] == "1 commit behind +"
    assert (rows["price"]["histogram"], rows["price"]["frequent_items"]) == ("–", "–")
    assert rows["id"]["ndv"] == "missing +"
    assert rows["price"]["by_partition"] == "out of reach"
    assert part.document()["caption"].startswith("For Trino: ")
    assert part.code() == "table.coverage(engines=['Trino'])"
    part.act("engine", "Spark")
    assert next(row for row in find_rows(part, "matrix") if row["column"] == "price")["ndv"] == "ignored"
    pick(part, "price", "ndv")
    assert [row["age"] for row in find_rows(details, "blobs")] == ["1 commit, 6 files, 60 rows behind"]
    assert {row["engine"] for row in find_rows(details, "engines")} == {"Spark"}


def test_a_gap_fills_what_is_to_be_computed(explorer: Explorer, part: Part) -> None:
    """The first gap takes the place of everything, later ones are added; what is fresh adds nothing."""
    pick(part, "price", "ndv")
    assert explorer.state.request == ComputeRequest(("price",))
    pick(part, HOSTILE, "by_partition")
    assert explorer.state.request == ComputeRequest(("price", HOSTILE), by_partition=True)
    part.act("own.cell", {"key": "manifests", "column": "state"})
    part.act("own.cell", {"key": "rows", "column": "state"})
    assert explorer.state.request == ComputeRequest(("price", HOSTILE), by_partition=True, manifests=True)
    explorer.state.request = ComputeRequest(manifests=True)
    pick(part, "id", "by_partition")
    assert explorer.state.request == ComputeRequest(None, by_partition=True, manifests=True), "all columns stay chosen"
    explorer.state.request = None
    part.act("own.cell", {"key": "partitions", "column": "state"})
    assert explorer.state.request.code() == "table.compute(table=False, partitions=True).commit(dry_run=True)"


def test_what_brings_everything_up_to_date(
    catalog: SqlCatalog, hostile_table: icestats.Table, stale_table: icestats.Table
) -> None:
    """Nothing is committed: everything; something is behind: an update; all is fresh: nothing."""
    assert request_update(hostile_table, hostile_table.sketches()) == ComputeRequest()
    behind = request_update(stale_table, stale_table.sketches())
    assert behind == ComputeRequest(updates=True)
    assert behind.code() == "table.refresh_statistics().commit(dry_run=True)"
    table = catalog.load_table("db.hostile")
    commit(table, blob(table, THETA, 3, EMPTY, ndv="100"), blob(table, KLL, 3, EMPTY))
    fresh = stale_table.refresh()
    assert request_update(fresh, fresh.sketches()) is None
    assert request_update(fresh, None) is None
    earlier = table.metadata.snapshots[0]
    parts = blob(table, PARTITION_SKETCHES, 3, EMPTY, earlier)
    commit(catalog.load_table("db.hostile"), parts, snapshot_id=earlier.snapshot_id)
    assert request_update(fresh.refresh(), fresh.refresh().sketches()) == ComputeRequest(updates=True)


def test_a_pair_alone_that_is_behind_is_brought_up_to_date(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    rows = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    created = catalog.create_table("db.pair", rows.schema)
    created.append(rows)
    compute_here(icestats.load("db.pair", catalog=catalog_properties), together=[("a", "b")]).commit()
    created.append(rows)
    for column in ("a", "b"):
        compute_here(icestats.load("db.pair", catalog=catalog_properties), columns=[column], together=()).commit()
    table = icestats.load("db.pair", catalog=catalog_properties)
    (late,) = list_behind(table.schema, table.sketches())
    assert (late["columns"], late["commits_behind"]) == (["a", "b"], 1)
    assert request_update(table, table.sketches()) == ComputeRequest(updates=True)
    explorer = table.explore()
    try:
        assert explorer.wait(60)
        headline = explorer.parts["statistics"].blocks()[1]["text"]
        assert headline.endswith("Behind: 1 statistic.")
        size = render_bytes(int(table.snapshot.summary["added-files-size"]))
        cost = describe_cost(ComputeRequest(updates=True), explorer.state)
        assert cost == f"Reads 2 columns of 1 new file with 3 rows ({size})."
    finally:
        explorer.close()
    table.refresh_statistics().commit()
    assert not list_behind(table.schema, table.refresh().sketches())


def test_the_button_says_what_it_reads(stale_table: icestats.Table) -> None:
    """Only files were added since: these alone would be read, had the column all kinds of statistics."""
    explorer = stale_table.explore()
    assert explorer.wait()
    part = explorer.parts["statistics"]
    assert not find_button(part, "statistics.refresh")["disabled"]
    assert "Reads 1 column of all data files, as what is committed of it cannot be added to." in find_texts(part)


def test_a_table_without_snapshots_has_nothing_to_bring_up_to_date(empty_table: icestats.Table) -> None:
    explorer = empty_table.explore()
    assert explorer.wait()
    part = explorer.parts["statistics"]
    assert [row["column"] for row in find_rows(part, "matrix")] == ["id", "at", "price", HOSTILE]
    refresh = find_button(part, "statistics.refresh")
    assert refresh["disabled"]
    assert "Nothing has been written to the table yet." in find_texts(part)
    click(part, {**refresh, "disabled": False})
    assert (explorer.state.phase, explorer.state.request) == ("idle", None)


@pytest.mark.parametrize(
    ("verb", "value"),
    [
        ("engine", "<img>"),
        ("engine", 7),
        ("gaps", "yes"),
        ("matrix.cell", {"key": "c99", "column": "ndv"}),
        ("matrix.cell", {"key": "rows", "column": "__class__"}),
        ("matrix.cell", {"key": "c3", "column": "rows"}),
        ("matrix.choose", "c1"),
        ("own.cell", None),
        ("no such verb", None),
    ],
)
def test_what_a_page_may_not_say_changes_nothing(explorer: Explorer, part: Part, verb: str, value: object) -> None:
    before = part.document()
    part.act(verb, value)
    assert explorer.state.request is None
    assert part.document()["blocks"][0] == before["blocks"][0]


def test_the_headline_says_what_is_missing_and_what_is_behind(part: Part, stale_table: icestats.Table) -> None:
    """Nothing is up to date above cells that are missing; what takes a kernel is said on the living page alone."""
    headline = next(find_blocks(part, "text"))
    assert headline["text"].startswith(
        "Missing: distinct values (Theta) of 4 columns; distribution (KLL) of 4 columns;"
    )
    assert headline["text"].endswith("; partition statistics file; manifest statistics.")
    assert "Commit" in headline["live"]
    assert find_button(part, "statistics.refresh")["label"] == "Compute everything"
    explorer = stale_table.explore()
    assert explorer.wait()
    stale = explorer.parts["statistics"]
    text = next(find_blocks(stale, "text"))["text"]
    assert "distinct values (Theta) of 3 columns" in text
    assert text.endswith("Behind: 2 statistics.")
    assert find_button(stale, "statistics.refresh")["label"] == "Update what is behind"
