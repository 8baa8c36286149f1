"""The explorer computes with Spark, previews, commits, refreshes and undoes: each step is seen in it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.answers.text import render_bytes
from icestats.iceberg.storage import local_path
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from icestats_widgets.reading.selection import FieldRange, Selection
from tests.widgets.blocks_of_parts import click, find_blocks, find_button, find_rows, find_texts

pytestmark = pytest.mark.spark


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "name": [f"n{i % 7}" for i in range(start, stop)]})


def press(explorer: Explorer, part: str, verb: str) -> None:
    shown: Part = explorer.parts[part]
    click(shown, find_button(shown, f"{part}.{verb}"))
    assert explorer.wait(120)
    assert explorer.state.notes.get("compute") is None


def ndv_by_column(explorer: Explorer) -> dict[str, str]:
    return {row["column"]: row["ndv"] for row in find_rows(explorer.parts["statistics"], "matrix")}


def test_a_gap_is_computed_committed_refreshed_and_undone(
    spark: Any, catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    table = catalog.create_table("db.t", rows(0, 1).schema)
    table.append(rows(0, 1_000))
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    state, statistics, panel = explorer.state, explorer.parts["statistics"], explorer.parts["compute"]
    first = state.table.snapshot.snapshot_id

    gap = next(row["key"] for row in find_rows(statistics, "matrix") if row["column"] == "id")
    statistics.act("matrix.cell", {"key": gap, "column": "ndv"})
    press(explorer, "compute", "start")
    assert (state.phase, state.table.metadata.statistics) == ("previewed", ())
    assert "Trino plans with the NDV of id, for this snapshot" in find_texts(panel)
    press(explorer, "compute", "commit")
    assert (state.phase, [file.snapshot_id for file in state.table.metadata.statistics]) == ("committed", [first])
    assert ndv_by_column(explorer) == {"id": "fresh", "name": "missing +"}
    size = render_bytes(state.table.metadata.statistics[0].file_size_in_bytes)
    own = {row["statistic"]: row["state"] for row in find_rows(statistics, "own")}
    assert own["statistics files"] == f"1 file, {size}"
    assert {row["name"]: row["ndv"] for row in state.columns.to_pylist()}["id"] == 1_000

    catalog.load_table("db.t").append(rows(1_000, 1_500))
    state.table = state.table.refresh()
    assert explorer.wait()
    assert ndv_by_column(explorer)["id"] == "1 commit behind +"
    press(explorer, "statistics", "refresh")
    assert [row["ndv_before"] for row in find_rows(panel, "accuracy")] == ["1,000, 1 behind"]
    assert state.statistics.added_row_count == 500
    press(explorer, "compute", "commit")
    assert ndv_by_column(explorer)["id"] == "fresh"
    assert {row["name"]: row["ndv"] for row in state.columns.to_pylist()}["id"] == 1_500

    press(explorer, "compute", "undo")
    assert (state.phase, len(state.table.metadata.statistics)) == ("checked", 2)
    press(explorer, "compute", "undo_now")
    assert (state.phase, [file.snapshot_id for file in state.table.metadata.statistics]) == ("undone", [first])
    assert ndv_by_column(explorer)["id"] == "1 commit behind +"


def test_a_distribution_is_of_what_is_asked_where_partitions_have_sketches(demo_home: Path) -> None:
    """Whole days are; a device is a part of some partitions, and a quantity of all: their other rows are not hidden."""
    explorer = icestats.load("demo.events").explore(column="price")
    assert explorer.wait()
    part, state = explorer.parts["histogram"], explorer.state
    assert part.caption() == "price, double: the whole table."
    whole = state.histogram.histogram.n
    days = "event_time >= '2026-09-03' and event_time < '2026-09-05'"
    state.row_filter = days
    assert explorer.wait()
    assert part.caption() == f"price, double: the partitions where {days}."
    assert 0 < state.histogram.histogram.n < whole
    state.clauses = {"histogram:price": "price < 10"}
    assert explorer.wait()
    assert state.histogram.where == days
    state.row_filter = "device_id = 74"
    assert explorer.wait()
    touched = "price, double: the partitions that device_id = 74 touches, not only the rows that it selects."
    assert part.caption() == touched
    assert 0 < state.histogram.histogram.n < whole
    state.row_filter = "quantity = 3"
    assert explorer.wait()
    assert part.caption() == "price, double: the whole table, not only of the rows that the filter selects."
    assert state.histogram.histogram.n == whole


def test_columns_of_selected_partitions_have_what_their_sketches_say(demo_home: Path) -> None:
    explorer = icestats.load("demo.events").explore()
    assert explorer.wait()
    part, state = explorer.parts["columns"], explorer.state
    fields = {field.name: field.source_id for field in state.table.metadata.specs[0].fields}
    days = [(date(2026, 9, day) - date(1970, 1, 1)).days for day in (3, 4)]
    of_days = FieldRange("event_time_day", fields["event_time_day"], "day", "date", *days)
    state.selection = Selection(0, (of_days,))
    assert explorer.wait()
    files = state.table.files().filter(pc.field("content") == "data")
    days_of_files = pc.struct_field(files["partition"], "event_time_day").cast(pa.int32()).to_pylist()
    paths = [path for path, day in zip(files["file_path"].to_pylist(), days_of_files, strict=True) if day in days]
    truth = [
        pq.read_table(local_path(path), columns=["quantity", "event_type"]) for path in paths if "delet" not in path
    ]
    shown = {row["name"]: row for row in part.to_arrow().to_pylist()}
    for name in ("quantity", "event_type"):
        values = {value for one in truth for value in one[name].to_pylist()} - {None}
        assert shown[name]["ndv"] == len(values) > 1
        assert dict(shown[name]["provenance"])["ndv"].startswith("estimate: Theta of 128 partitions, still holds every")
    assert shown["device_id"]["ndv"] is None
    has_shape = [row["cells"][1]["h"].startswith("median") for row in next(find_blocks(part, "grid"))["rows"]]
    assert has_shape.count(True) == 3, "of the columns whose partitions have sketches"
    figures = ["name", "ndv", "value_count", "lower_bound", "upper_bound"]
    marked = part.to_arrow().select(figures)
    state.selection = None
    state.row_filter = "event_time >= '2026-09-04' and event_time < '2026-09-06'"
    assert explorer.wait()
    assert part.caption().startswith("10 columns, of exactly the 128 partitions that the filter selects.")
    assert not part.to_arrow().select(figures).equals(marked)
    state.row_filter = "event_time >= '2026-09-03' and event_time < '2026-09-05'"
    assert explorer.wait()
    assert part.to_arrow().select(figures).equals(marked)
    state.row_filter = "quantity = 3"
    assert explorer.wait()
    assert part.caption().startswith("10 columns of the whole table, not only of the rows that the filter selects.")
