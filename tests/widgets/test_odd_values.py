"""Values that a calendar, a number or a comparison has no room for: no part of the explorer fails over them."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import DayTransform, IdentityTransform, Transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    NestedField,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

import icestats
from icestats.stats.kll_items import item_type_of, to_item
from icestats_widgets import Explorer
from icestats_widgets.reading.snapshot_comparison import read_comparison
from icestats_widgets.state import TABS
from tests.committed_statistics import KLL, blob, commit
from tests.kll_sketches import sketch_of
from tests.pictures import keyed, parse_svg
from tests.widgets.blocks_of_parts import find_blocks, find_texts


def act(explorer: Explorer, action: str, value: Any) -> None:
    explorer._receive({"kind": "act", "action": action, "value": value, "view": "v", "number": 1})
    assert explorer.wait()


def assert_whole(explorer: Explorer) -> None:
    """Every part is drawn, nothing is still read, and no note is of an error that nobody expected."""
    for tab in TABS:
        act(explorer, "page.tab", {"name": tab})
    assert not explorer.state.loading
    shown = json.dumps([explorer.state.notes, *(part.document() for part in explorer.parts.values())])
    assert "unexpected" not in shown


def choose(explorer: Explorer, place: int) -> int:
    """Choose a place of the chart of partitions; return how many records are selected."""
    act(explorer, "partitions.map.choose", {"key": f"places {place} 0"})
    assert_whole(explorer)
    part = explorer.state.selected_part
    assert part is not None
    return part.record_count


def append(
    table: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, parts: list[tuple[Any, ...]], **bounds: Any
) -> None:
    """Append a file a partition, as Java does it: PyIceberg cannot name the folders of such partitions."""
    monkeypatch.setattr(PartitionSpec, "partition_to_path", lambda *_: "part=1")
    with table.transaction() as transaction, _FastAppendFiles(Operation.APPEND, transaction, table.io) as files:
        for number, part in enumerate(parts):
            path = folder / f"{number}.parquet"
            pq.write_table(pa.table({"value": pa.nulls(1, table.schema().as_arrow()[0].type)}), path)
            file = DataFile.from_args(
                file_path=path.as_uri(), file_format=FileFormat.PARQUET, partition=Record(*part), record_count=1,
                file_size_in_bytes=path.stat().st_size, value_counts={1: 1}, null_value_counts={1: 1}, **bounds,
            )  # fmt: skip
            file.spec_id = 0
            files.append_data_file(file)


def create(catalog: SqlCatalog, kind: PrimitiveType, transform: Transform[Any, Any]) -> Any:
    spec = PartitionSpec(PartitionField(1, 1000, transform, "part"))
    return catalog.create_table("db.t", Schema(NestedField(1, "value", kind, required=False)), partition_spec=spec)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (DecimalType(38, 2), [Decimal("1.00"), Decimal("123456789012345678901234567890123456.78")]),
        (TimestampType(), [struct.pack("<q", 0), struct.pack("<q", 2**63 - 1)]),
        (DateType(), [struct.pack("<i", -(2**31)), struct.pack("<i", 0)]),
    ],
    ids=str,
)
def test_columns_are_drawn_whatever_their_bounds(catalog, catalog_properties, tmp_path, monkeypatch, kind, values):
    table = catalog.create_table("db.t", Schema(NestedField(1, "value", kind, required=False)))
    if isinstance(values[0], Decimal):
        table.append(pa.table({"value": values}, table.schema().as_arrow()))
    else:
        bounds = {"lower_bounds": {1: values[0]}, "upper_bounds": {1: values[1]}}
        append(table, tmp_path, monkeypatch, [()], **bounds)
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert_whole(explorer)
    assert explorer.part_columns["is_busy"] is False


@pytest.mark.parametrize(
    ("kind", "transform", "values"),
    [
        (TimestampType(), DayTransform(), [2**31 - 1, 0]),
        (DateType(), IdentityTransform(), [-(2**31), 2**31 - 1]),
        (TimestampType(), IdentityTransform(), [2**63 - 1, 0]),
    ],
    ids=str,
)
def test_partitions_beyond_the_years_of_python_are_chosen(
    catalog, catalog_properties, tmp_path, monkeypatch, kind, transform, values
):
    append(create(catalog, kind, transform), tmp_path, monkeypatch, [(one,) for one in values])
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert [choose(explorer, place) for place in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("kind", "transform", "values", "later"),
    [
        (TimestampType(), DayTransform(), [2**31 - 1, 0], "2000-01-01T00:00:00"),
        (DateType(), IdentityTransform(), [-(2**31), 2**31 - 1, None], "2000-01-01"),
        (TimestampType(), IdentityTransform(), [2**63 - 1, 0], "2000-01-01T00:00:00"),
        (TimeType(), IdentityTransform(), [-1, 2**62], "12:00:00"),
    ],
    ids=str,
)
def test_files_of_partitions_beyond_the_years_of_python_are_opened(
    catalog, catalog_properties, tmp_path, monkeypatch, kind, transform, values, later
):
    """In the tree, in the list of all files and in the plan."""
    append(create(catalog, kind, transform), tmp_path, monkeypatch, [(one,) for one in values])
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    keys = ["s0/m0", "s0/m0/f0", "s0/m0/f0/c0"]
    for mode, opened in (("tree", keys), ("files", ["f0", "f0/c0"])):
        act(explorer, "outline.mode", mode)
        for key in opened:
            act(explorer, "outline.tree.open", {"key": key, "open": True})
        act(explorer, "outline.tree.sort", {"column": "keys"})
        assert_whole(explorer)
        assert "row group 0" in json.dumps(explorer.parts["outline"].grids["tree"].first_rows(9))
    for row_filter in ("true", f"value > '{later}'"):
        act(explorer, "query.enter", {"text": row_filter})
        act(explorer, "page.tab", {"name": "query"})
        for number in range(2):
            act(explorer, "plan.files.choose", {"key": f"f{number}"})
            assert_whole(explorer)
            assert '"label": "verdict"' in json.dumps(explorer.parts["plan"].document())


def test_partitions_beyond_the_years_of_python_are_the_only_ones_that_changed(
    catalog, catalog_properties, tmp_path, monkeypatch
):
    table = create(catalog, DateType(), IdentityTransform())
    for number, days in enumerate(([0, 1], [2**31 - 1])):
        (tmp_path / f"{number}").mkdir()
        append(table, tmp_path / f"{number}", monkeypatch, [(day,) for day in days])
    loaded = icestats.load("db.t", catalog=catalog_properties)
    snapshots = sorted(loaded.metadata.snapshots.values(), key=lambda one: one.sequence_number)
    found = read_comparison(loaded, *(one.snapshot_id for one in snapshots))
    assert (found.before[0], found.after[0], found.partition_count) == (2, 3, 3)
    assert [(one.before[0], one.after[0]) for one in found.touched] == [(0, 1)]


def test_the_partition_of_nan_has_its_rows(catalog, catalog_properties, tmp_path, monkeypatch):
    append(create(catalog, DoubleType(), IdentityTransform()), tmp_path, monkeypatch, [(1.5,), (math.nan,), (2.5,)])
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert [choose(explorer, place) for place in range(3)] == [1, 1, 1]
    act(explorer, "partitions.map.mark", {"plot": "places", "x": [0.4, 1.0], "y": [0, 1]})
    assert explorer.state.selected_part.record_count == 2


def find_verdicts(explorer: Explorer, row_filter: str) -> dict[str, str]:
    """Return what the chart of partitions says of each while a filter is asked."""
    act(explorer, "query.enter", {"text": row_filter})
    (figure,) = find_blocks(explorer.parts["partitions"], "figure")
    titles = (title.split("\n") for (title,) in keyed(parse_svg(figure["svg"])).values())
    return {lines[0]: lines[-1].partition(":")[0] for lines in titles}


def test_the_partition_of_nan_is_skipped_where_the_plan_skips_it(catalog, catalog_properties, tmp_path, monkeypatch):
    append(create(catalog, DoubleType(), IdentityTransform()), tmp_path, monkeypatch, [(1.5,), (math.nan,), (2.5,)])
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert find_verdicts(explorer, "value is nan")["NaN"] == "skipped"


def test_a_partition_is_not_kept_because_one_of_another_spec_is(catalog, catalog_properties):
    """What was written before the table was partitioned has no key, and is read; the partition of null is not."""
    table = catalog.create_table("db.t", pa.schema([("key", pa.string())]))
    table.append(pa.table({"key": ["a", "b", None]}))
    with table.update_spec() as update:
        update.add_identity("key")
    table.append(pa.table({"key": ["a", "b", None]}))
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert find_verdicts(explorer, "key = 'a'") == {"null": "skipped", "a": "kept", "b": "skipped"}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TimeType(), [dt.time(10), dt.time(11, 0, 0, 5)]),
        (DecimalType(9, 2), [Decimal("1.50"), Decimal("2.50")]),
        (TimestamptzType(), [dt.datetime(2026, 1, 1, 5, tzinfo=dt.UTC), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)]),
        (DoubleType(), [1.5, math.inf]),
        (BinaryType(), [b"a'", b"\xff"]),
    ],
    ids=str,
)
def test_code_gives_the_chosen_partitions(catalog, catalog_properties, kind, values):
    table = create(catalog, kind, IdentityTransform())
    table.append(pa.table({"value": values}, table.schema().as_arrow()))
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    for place in range(2):
        assert choose(explorer, place) == 1
        names: dict[str, Any] = {"table": explorer.state.table}
        code = explorer.code().split("\n")
        exec("\n".join(line for line in code if not line.startswith(("table =", "catalog ="))), names)
        assert names["partitions"].num_rows == 1
        assert names["columns"]["value_count"].to_pylist() == [1]


def sketched(catalog: SqlCatalog, properties: dict[str, str], values: Any) -> Explorer:
    table = catalog.create_table("db.t", pa.schema([("value", values.type)]))
    table.append(pa.table({"value": values}))
    kind = icestats.load("db.t", catalog=properties).schema.find("value").type
    items = pa.array([to_item(kind, value) for value in values.to_pylist()])
    sketch = sketch_of(str(item_type_of(kind)), items)
    commit(table, blob(table, KLL, 1, sketch.to_bytes(), **{"k": "200", "item-type": sketch.item_type}))
    explorer = icestats.load("db.t", catalog=properties).explore(column="value")
    assert explorer.wait()
    return explorer


@pytest.mark.parametrize(
    "values",
    [pa.array([1] * 5 + [2] * 3 + [3] * 4), pa.array(range(43)), pa.array(range(21)), pa.array([7]),
     pa.array([Decimal(i).scaleb(-2) for i in range(21)], pa.decimal128(9, 2)), pa.array([0.5, 1.0, 4.0])],
)  # fmt: skip
def test_a_bar_and_a_drag_ask_for_what_they_have(catalog, catalog_properties, values):
    explorer = sketched(catalog, catalog_properties, values)
    table, counts = explorer.state.table, explorer.state.histogram.histogram.counts
    for place, count in enumerate(counts):
        act(explorer, "histogram.bars.choose", {"key": str(place)})
        (text,) = explorer.state.clauses.values()
        assert table.estimate(text, actual=True).actual == count, text
    explorer.parts["histogram"].document()
    for ends, wanted in (([0.0, 1.0], [len(values)]), ([0.9999, 1.0], [counts[-1], sum(counts[-2:])])):
        act(explorer, "histogram.bars.clear", {})
        act(explorer, "histogram.bars.mark", {"plot": "values", "x": ends, "y": [0, 1]})
        (text,) = explorer.state.clauses.values()
        assert table.estimate(text, actual=True).actual in wanted, text


@pytest.mark.parametrize(("lower", "upper"), [("1000", "2000"), ("0", "1e999"), ("-1e308", "1e308")])
def test_a_range_without_values_is_said_and_left(catalog, catalog_properties, lower, upper):
    explorer = sketched(catalog, catalog_properties, pa.array([float(i) for i in range(100)]))
    act(explorer, "histogram.bars.range", {"lower": lower, "upper": upper})
    part = explorer.parts["histogram"]
    assert "infinity" not in find_texts(part)
    assert "expected" not in find_texts(part)
    actions = [block["action"] for block in find_blocks(part, "button")]
    assert actions == (["histogram.bars.reset"] if lower == "1000" else [])
    act(explorer, "histogram.bars.reset", {})
    assert list(find_blocks(part, "figure"))


def test_a_drag_over_a_picture_that_is_gone_asks_nothing(catalog, catalog_properties):
    explorer = sketched(catalog, catalog_properties, pa.array([float(i) for i in range(100)]))
    explorer.parts["histogram"].document()
    act(explorer, "histogram.bars.range", {"lower": "1000", "upper": "2000"})
    said: list[dict[str, Any]] = []
    explorer.send = lambda message, *_: said.append(message)  # type: ignore[method-assign]
    act(explorer, "page.tab", {"name": "columns"})
    act(explorer, "histogram.bars.mark", {"plot": "values", "x": [0.0, 1.0], "y": [0, 1]})
    assert said == []
    assert explorer.state.clauses == {}


def test_pictures_and_quartiles_say_no_character_that_cannot_be_seen(catalog, catalog_properties):
    """Neither escape sequences nor marks that turn the text around: in tooltips and below the median, too."""
    explorer = sketched(catalog, catalog_properties, pa.array(["a\x1b[2J", "b\u202e", "c\x07"] * 5, pa.string()))
    act(explorer, "page.tab", {"name": "columns"})
    shown = json.dumps(explorer.parts["columns"].document(), ensure_ascii=False)
    assert "�[2J" in shown
    assert not [mark for mark in ("\x1b", "\\u001b", "\u202e", "\\u0007") if mark in shown]
