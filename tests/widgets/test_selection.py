from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icestats
import icestats_widgets
from icestats.answers.schemas import partitions_schema
from icestats.iceberg.metadata import Field, PartitionField, Schema
from icestats_widgets import Explorer
from icestats_widgets.calendars import CALENDARS
from icestats_widgets.part_columns import build_part_columns, extreme_value
from icestats_widgets.partition_board import Axis, Board
from icestats_widgets.partition_brush import find_box, select_box
from icestats_widgets.selection import FieldRange, Selection

DAYS = tuple(dt.date(2026, 9, 1) + dt.timedelta(days=i) for i in range(30))
DAY = Axis(PartitionField(1000, 1, "at_day", "day"), "date", DAYS)
BUCKET = Axis(PartitionField(1001, 2, "id_bucket", "bucket[4]"), "int", (None, 0, 1, 2, 3))


def boards() -> list[Board]:
    calendar = CALENDARS["day"].of(DAYS[0], DAYS[-1])
    return [Board(0, (DAY, BUCKET), None, ()), Board(0, (DAY,), None, ()), Board(0, (DAY,), calendar, ())]


@given(st.sampled_from(range(3)), st.data())
def test_a_box_comes_back(number: int, data: Any) -> None:
    """What a rectangle has marked is drawn as that rectangle, and marks the same again: no mark grows by itself."""
    board = boards()[number]
    width, height = board.shape
    x = sorted(data.draw(st.tuples(st.integers(0, width - 1), st.integers(0, width - 1))))
    y = sorted(data.draw(st.tuples(st.integers(0, height - 1), st.integers(0, height - 1))))
    selection = select_box(board, {"x": x, "y": y})
    box = find_box(board, selection)
    if box is None:
        assert selection is None or board.calendar is not None
        return
    drawn = {"x": [box[0] - 0.5, box[1] + 0.5], "y": [box[2] - 0.5, box[3] + 0.5]}
    assert select_box(board, drawn) == selection
    if board.calendar is None:
        assert list(box) == [*x, *y]


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
    number, text = build_part_columns(pa.Table.from_pylist([row], kind), schema, 1).to_pylist()
    assert (number["ndv"], number["max_length"]) == (7_000, None)
    assert (text["ndv"], text["avg_length"], text["max_length"]) == (3, 4.0, 9)
    said = dict(number["provenance"])
    assert said["ndv"] == "estimate: the partition's Theta sketch, within 3.1% at 95 % confidence, this snapshot"
    assert said["max_length"].startswith("not applicable")
    assert dict(text["provenance"])["ndv"].endswith("2 commits behind")
    both = build_part_columns(pa.Table.from_pylist([row, row], kind), schema, 2).to_pylist()
    assert [(column["ndv"], column["max_length"]) for column in both] == [(None, None)] * 2


def test_the_whole_picture_is_no_selection() -> None:
    """Marking everything marks nothing; a mark beside the picture does neither."""
    board = boards()[0]
    assert select_box(board, {"x": [-1, 99], "y": [-1, 99]}) is None
    assert select_box(board, {"x": [50, 60], "y": [0, 0]}) is None


def test_a_calendar_marks_a_range_of_days() -> None:
    """Across weeks whole weeks are marked; within a week some of its days."""
    board = boards()[2]
    within = select_box(board, {"x": [1, 1], "y": [2, 4]})
    across = select_box(board, {"x": [1, 2], "y": [3, 3]})
    assert [(one.lower, one.upper) for one in within.ranges] == [(dt.date(2026, 9, 9), dt.date(2026, 9, 11))]
    assert [(one.lower, one.upper) for one in across.ranges] == [(dt.date(2026, 9, 7), dt.date(2026, 9, 20))]


@pytest.mark.parametrize(
    ("transform", "source", "kind", "lower", "upper", "text"),
    [
        ("day", "timestamp", "date", DAYS[0], DAYS[1], "at >= '2026-09-01T00:00:00' and at < '2026-09-03T00:00:00'"),
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


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_extremes_are_those_of_the_values(values: list[int]) -> None:
    """The smallest and the largest of single values are compared as numbers, not as bytes."""
    items = pa.array([value.to_bytes(8, "little", signed=True) for value in values])
    found = [int.from_bytes(extreme_value("long", items, largest=big), "little", signed=True) for big in (False, True)]
    assert found == [min(values), max(values)]


def test_a_marked_manifest_filters_every_part(hostile_table: icestats.Table) -> None:
    """Of two manifests one is marked: partitions, columns, figures and code are of that one only."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    path = explorer.state.manifests["manifest_path"][0].as_py()
    key = next(row["key"] for row in explorer.tree.grid.page["rows"] if path in row["cells"][0]["h"])
    explorer.tree.choose(key)
    assert explorer.wait()
    assert explorer.state.part.record_count == 60
    assert sum(explorer.partitions.to_arrow()["data_record_count"].to_pylist()) == 60
    assert explorer.columns.to_arrow()["value_count"].to_pylist() == [60] * 4
    assert explorer.tree.grid.selected == [key]
    assert "60 records" in explorer.selection.text.value
    files = eval(explorer.selection.code(), {"table": hostile_table})
    assert set(files["manifest_path"].to_pylist()) == {path}
    explorer.tree.choose(key)
    assert explorer.wait()
    assert explorer.state.selection is None
    assert explorer.columns.to_arrow()["value_count"].to_pylist() == [120] * 4


def test_a_cleared_selection_leaves_no_frame(hostile_table: icestats.Table) -> None:
    """The map is told what is marked, and that nothing is once that is cleared, each time in answer to the brush."""
    explorer = Explorer(hostile_table, column="id")
    assert explorer.wait()
    figure = explorer.partitions.figure
    figure.receive({"kind": "brush", "places": [1, 1, 0, 0], "number": 1})
    assert explorer.wait()
    assert figure.mark == {"places": [1, 1, 0, 0], "number": 1}
    figure.receive({"kind": "brush", "places": [], "number": 2})
    assert explorer.wait()
    assert explorer.partitions.figure is figure
    assert figure.mark == {"places": [], "number": 2}
    figure.receive({"kind": "brush", "places": [99, 99, 0, 0], "number": 3})
    assert explorer.wait()
    assert figure.mark == {"places": [], "number": 3}


def test_marked_partitions_filter_every_part(hostile_table: icestats.Table) -> None:
    """A brush over a day: the roll-up is that of its partitions, the tree shows files of that day only."""
    explorer = Explorer(hostile_table, column="id")
    assert explorer.wait()
    explorer.partitions.figure.receive({"kind": "brush", "places": [1, 1, 0, 9], "number": 1})
    assert explorer.wait()
    (marked,) = explorer.state.selection.ranges
    assert (marked.name, marked.lower) == ("at_day", dt.date(2025, 9, 2))
    rows = eval(explorer.partitions.code(), {"table": hostile_table})
    part = eval(explorer.columns.code(), {"table": hostile_table, **vars(icestats_widgets), "datetime": dt})
    assert part.equals(explorer.columns.to_arrow())
    assert {row["at_day"] for row in rows["partition"].to_pylist()} == {marked.lower}
    assert explorer.state.part.record_count == sum(rows["data_record_count"].to_pylist())
    explorer.state.row_filter = "price > 0"
    assert explorer.wait()
    assert explorer.state.plan.row_filter == str(
        hostile_table.plan(
            "(price > 0) and at >= '2025-09-02T00:00:00+00:00' and at < '2025-09-03T00:00:00+00:00'"
        ).row_filter
    )
    first = next(row["key"] for row in explorer.tree.grid.page["rows"] if row["depth"] == 1)
    explorer.tree.toggle(first)
    assert explorer.wait()
    shown = [row["cells"][1]["t"] for row in explorer.tree.grid.page["rows"] if row["depth"] == 2]
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
