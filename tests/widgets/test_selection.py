from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, UUIDType

import icestats
from icestats.answers.schemas import partitions_schema
from icestats.iceberg.metadata import Field, Schema
from icestats_widgets import Explorer
from icestats_widgets.reading.part_columns import build_part_columns
from icestats_widgets.reading.selected_part import read_part
from icestats_widgets.reading.selection import FieldRange, Selection
from tests.written_deletes import delete_positions, list_data_files

_NAMES = {"FieldRange": FieldRange, "Selection": Selection, "read_part": read_part}
DAYS = tuple(dt.date(2026, 9, 1) + dt.timedelta(days=i) for i in range(30))


def test_of_a_single_partition_the_ndv_and_lengths_are_known() -> None:
    """With the error and the age of its sketch; of more partitions together they are not."""
    row = {
        "partition": {"day": 1}, "spec_id": 0, "data_record_count": 9, "data_file_count": 1,
        **dict.fromkeys(("total_data_file_size_in_bytes", "position_delete_record_count"), 0),
        **dict.fromkeys(("position_delete_file_count", "equality_delete_record_count"), 0),
        **dict.fromkeys(("equality_delete_file_count", "dv_count"), 0),
        "ndvs": [(1, 7_000), (2, 3)], "ndv_relative_errors": [(1, 0.031), (2, 0.0)],
        "ndv_commits_behind": [(1, 0), (2, 2)], "avg_lengths": [(2, 4)], "max_lengths": [(2, 9)],
    }  # fmt: skip
    schema = Schema(0, (Field(1, "id", "long", False, True), Field(2, "text", "string", False, True)))
    kind = partitions_schema(pa.struct([("day", pa.int32())]))
    number, text = build_part_columns(pa.Table.from_pylist([row], kind), schema, 1, has_deletes=False).to_pylist()
    assert (number["ndv"], number["max_length"]) == (7_000, None)
    assert (text["ndv"], text["avg_length"], text["max_length"]) == (3, 4.0, 9)
    said = dict(number["provenance"])
    assert said["ndv"] == "estimate: the partition's Theta sketch, within 3.1% at 95% confidence, this snapshot"
    assert said["max_length"].startswith("not applicable")
    assert dict(text["provenance"])["ndv"].endswith("2 commits behind")
    both = build_part_columns(pa.Table.from_pylist([row, row], kind), schema, 2, has_deletes=False).to_pylist()
    assert [(column["ndv"], column["max_length"]) for column in both] == [(None, None)] * 2


def test_figures_of_a_part_say_what_those_of_the_table_say(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """That deletes are not applied, and that writers disagree in the order of uuids."""
    schema = IcebergSchema(
        NestedField(1, "day", LongType(), required=False),
        NestedField(2, "key", UUIDType(), required=False),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    made = catalog.create_table("db.days", schema, partition_spec=spec)
    rows = pa.table({"day": [1, 1, 2], "key": pa.array([bytes([i]) * 16 for i in range(3)], pa.binary(16))})
    made.append(rows.cast(made.schema().as_arrow()))
    for has_deletes in (False, True):
        if has_deletes:
            delete_positions(made, [(list_data_files(made)[0], 0)])
        table = icestats.load("db.days", catalog=catalog_properties)
        for part in (read_part(table), read_part(table, row_filter="day = 1")):
            day, key = (dict(row["provenance"]) for row in part.columns.to_pylist())
            for name in ("value_count", "null_value_count", "lower_bound", "upper_bound"):
                assert ("deletes not applied" in day[name]) == has_deletes
            assert {key[name].partition(":")[0] for name in ("lower_bound", "upper_bound")} == {"estimate"}


@pytest.mark.parametrize(
    ("transform", "source", "kind", "lower", "upper", "text"),
    [
        ("day", "timestamp", "date", DAYS[0], DAYS[1], "at >= '2026-09-01' and at < '2026-09-03'"),
        ("month", "date", "int", 516, 516, "at >= '2013-01-01' and at < '2013-02-01'"),
        ("hour", "timestamp", "int", 23, 24, "at >= '1970-01-01T23:00:00' and at < '1970-01-02T01:00:00'"),
        ("identity", "string", "string", "O'Hare", "z", "at >= 'O''Hare' and at <= 'z'"),
        ("bucket[4]", "long", "int", 1, 2, None),
    ],
)  # fmt: skip
def test_a_selection_as_a_row_filter(transform: str, source: str, kind: str, lower: Any, upper: Any, text: Any) -> None:
    """Times and values become conditions on the column; buckets cannot be said."""
    from icestats.iceberg.metadata import Field, Schema

    one = FieldRange("at_part", 1, transform, kind, lower, upper)
    schema = Schema(0, (Field(1, "at", source, False, True),))
    assert Selection(0, (one,)).row_filter(schema) == text


def act(explorer: Explorer, action: str, value: object) -> None:
    explorer._receive({"kind": "act", "action": action, "value": value, "view": "v", "number": 1})
    assert explorer.wait()


def tree_rows(explorer: Explorer) -> list[dict[str, Any]]:
    explorer.parts["outline"].document()
    return explorer.parts["outline"].grids["tree"].first_rows(1000)


def test_a_marked_manifest_filters_every_part(hostile_table: icestats.Table) -> None:
    """Of two manifests one is marked: partitions, columns, figures and code are of that one only."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    parts = explorer.parts
    path = explorer.state.manifests["manifest_path"][0].as_py()
    key = next(row["key"] for row in tree_rows(explorer) if path in row["cells"][0]["h"])
    act(explorer, "outline.tree.choose", {"key": key})
    assert explorer.state.part.record_count == 60
    assert sum(parts["partitions"].to_arrow()["data_record_count"].to_pylist()) == 60
    names: dict[str, Any] = {"table": hostile_table, **_NAMES}
    assert eval(parts["partitions"].code(), names).equals(parts["partitions"].to_arrow())
    assert eval(parts["outline"].code(), names)["manifest_path"].to_pylist() == [path]
    assert parts["columns"].to_arrow()["value_count"].to_pylist() == [60] * 4
    assert [row["key"] for row in tree_rows(explorer) if row["key"] in parts["outline"].grids["tree"].selected] == [key]
    assert [chip["text"] for chip in explorer.query["chips"]] == ["1 manifest"]
    act(explorer, "outline.tree.choose", {"key": key, "is_selected": True})
    assert explorer.state.selection is None
    assert parts["columns"].to_arrow()["value_count"].to_pylist() == [120] * 4


def test_marked_partitions_filter_every_part(hostile_table: icestats.Table) -> None:
    """A day is marked: the roll-up is that of its partitions, the tree shows files of that day only."""
    explorer = Explorer(hostile_table, column="id")
    assert explorer.wait()
    parts = explorer.parts
    day = FieldRange("at_day", 2, "day", "date", dt.date(2025, 9, 2), dt.date(2025, 9, 2))
    explorer.state.selection = Selection(0, (day,))
    assert explorer.wait()
    rows = eval(parts["partitions"].code(), {"table": hostile_table})
    part = eval(parts["columns"].code(), {"table": hostile_table, **_NAMES, "datetime": dt})
    assert part.equals(parts["columns"].to_arrow())
    assert {row["at_day"] for row in rows["partition"].to_pylist()} == {day.lower}
    assert explorer.state.part.record_count == sum(rows["data_record_count"].to_pylist())
    held = eval(parts["outline"].code(), {"table": hostile_table})["manifest_path"].to_pylist()
    assert held == parts["outline"].to_arrow()["manifest_path"].to_pylist()
    assert len(held) < len(explorer.state.manifests)
    explorer.state.row_filter = "price > 0"
    assert explorer.wait()
    typed = "(price > 0) and at >= '2025-09-02T00:00:00+00:00' and at < '2025-09-03T00:00:00+00:00'"
    steps = [plan.to_arrow().select(["kept", "skipped"]) for plan in (explorer.state.plan, hostile_table.plan(typed))]
    assert steps[0].equals(steps[1])
    first = next(row["key"] for row in tree_rows(explorer) if row["depth"] == 1)
    act(explorer, "outline.tree.open", {"key": first, "open": True})
    shown = [row["cells"][1]["t"] for row in tree_rows(explorer) if row["depth"] == 2]
    assert shown
    assert all(text.startswith("2025-09-02") for text in shown)


def test_the_python_of_what_is_seen_loads_the_snapshot_that_is_seen(hostile_location: str) -> None:
    """A table that was loaded at a snapshot or a ref is loaded there again."""
    current = icestats.load(hostile_location).snapshot
    assert current is not None
    snapshot_id, name = current.snapshot_id, hostile_location
    for pin, argument in ((None, ""), (snapshot_id, f", snapshot={snapshot_id}"), ("main", ", ref='main'")):
        table = icestats.load(name, **({} if pin is None else {"ref" if pin == "main" else "snapshot": pin}))
        explorer = Explorer(table)
        assert explorer.wait()
        assert f"table = icestats.load({table.name!r}{argument})" in explorer.code().splitlines()


def test_partitions_of_null_and_those_written_before_the_table_was_partitioned_are_chosen_by_a_click(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    made = catalog.create_table("db.regions", IcebergSchema(NestedField(1, "region", StringType(), required=False)))
    made.append(pa.table({"region": ["eu"] * 30}))
    with made.update_spec() as update:
        update.add_field("region", IdentityTransform(), "region")
    made.append(pa.table({"region": ["us"] + [None] * 2}))
    explorer = icestats.load("db.regions", catalog=catalog_properties).explore()
    assert explorer.wait()
    parts = explorer.parts
    parts["sizes"].document()
    for row in parts["sizes"].grids["list"].first_rows(9):
        act(explorer, "sizes.list.choose", {"key": row["key"]})
        count = {"not partitioned": 30, "null": 2, "us": 1}[row["cells"][0]["t"]]
        assert explorer.state.part.record_count == count
        assert set(parts["columns"].to_arrow()["value_count"].to_pylist()) == {count}
        held = parts["outline"].to_arrow()
        assert held["partition_spec_id"].to_pylist() == [0 if count == 30 else 1]
        assert len(explorer.state.part.manifest_paths) == 1
        assert eval(parts["outline"].code(), {"table": explorer.state.table}).num_rows == 1
