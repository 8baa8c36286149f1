from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.answers.schemas import partition_groups_schema
from icestats.iceberg.metadata import Field, PartitionField, PartitionSpec, Schema
from icestats_widgets.drawing.calendars import CALENDARS, COARSER, convert_time, first_time
from icestats_widgets.drawing.partition_board import Board, CalendarZone, Cells, build_board, sum_cells
from icestats_widgets.drawing.partition_brush import select_key, select_marked
from icestats_widgets.drawing.partition_figure import build_partition_figure, describe_partitions
from icestats_widgets.reading.selection import Selection
from tests.pictures import check_picture, find_box, is_inside, keyed, parse_svg, plot_box, texts

DAY = PartitionField(1000, 1, "at_day", "day")
BUCKET = PartitionField(1001, 2, "id_bucket", "bucket[16]")
NAME = PartitionField(1002, 3, "name", "identity")
DATE = PartitionField(1003, 4, "date", "identity")
REAL = PartitionField(1004, 5, "real", "identity")
TYPES = ("timestamptz", "long", "string", "date", "double")
SCHEMA = Schema(0, tuple(Field(i + 1, f"c{i}", kind, False, True) for i, kind in enumerate(TYPES)))
ARROW = {"at_day": pa.date32(), "id_bucket": pa.int32(), "name": pa.string(), "date": pa.date32(), "real": pa.float64(),
         "at_part": pa.int32()}  # fmt: skip
EPOCH = dt.date(1970, 1, 1)


def day(number: int) -> dt.date:
    return EPOCH + dt.timedelta(days=number)


def partitions(keys: list[tuple[Any, ...]], *fields: PartitionField, spec_ids: list[int] | None = None) -> pa.Table:
    kind = pa.struct([pa.field(field.name, ARROW[field.name]) for field in fields])
    schema = partition_groups_schema(kind)
    zeros = {field.name: 0 for field in schema if pa.types.is_integer(field.type)}
    rows = [
        {
            **zeros,
            "partition": dict(zip([field.name for field in fields], key, strict=True)),
            "spec_id": spec_ids[i] if spec_ids else 0,
            "data_record_count": i + 1,
            "data_file_count": 1,
            "total_data_file_size_in_bytes": 1000 * i,
        }
        for i, key in enumerate(keys)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def board_of(table: pa.Table, *fields: PartitionField, width: float = 900) -> Board:
    board = build_board(table, {0: PartitionSpec(0, fields)}, 0, SCHEMA, width=width)
    assert board is not None
    return board


def draw(table: pa.Table, *fields: PartitionField, width: float = 900, **more: Any) -> tuple[Board, dict[str, str]]:
    """Draw, and hold the picture against what must be so; return the board, and titles by key."""
    board = board_of(table, *fields, width=width)
    cells = sum_cells(table, board)
    assert sum(cell.sums[0] for cell in cells.values()) == sum(table["data_record_count"].to_pylist())
    found = keyed(check_picture(build_partition_figure(board, cells, "records", width=width, **more)))
    assert len(found) == len(cells)
    return board, {key: title for key, (title,) in found.items()}


@pytest.mark.parametrize("width", [640, 900, 1400])
@pytest.mark.parametrize(
    ("count", "fields", "newest"),
    [
        (20_000, (DAY,), 7 * 20),
        (20_000, (DATE,), 7 * 20),
        (20_000, (PartitionField(1000, 1, "at_part", "hour"),), 150),
        (5_000, (PartitionField(1000, 1, "at_part", "month"),), 50),
        (13_026, (DAY, BUCKET), 20 * 16),
        (20_000, (NAME,), 0),
    ],
    ids=["days", "dates", "hours", "months", "days and buckets", "names"],
)
def test_every_partition_is_drawn_or_shares_a_place(
    count: int, fields: tuple[PartitionField, ...], newest: int, width: int
) -> None:
    """Nothing is left out, the newest times have places of their own, and the picture stays small."""
    by_name = {
        "at_day": lambda i: day(1000 + i // (16 if len(fields) == 2 else 1)),
        "date": lambda i: day(i),
        "at_part": lambda i: i if count == 20_000 else i - 4_000,
        "id_bucket": lambda i: i % 16,
        "name": lambda i: f"<name> {i:07} of a partition that is rather long",
    }
    keys = [tuple(by_name[field.name](i) for field in fields) for i in range(count)]
    table = partitions(keys, *fields)
    steps = {key: "" if i % 3 else "files by partition" for i, key in enumerate(keys)}
    board, _ = draw(table, *fields, width=width, verdicts=steps)
    cells = sum_cells(table, board)
    assert sum(cell.partition_count for cell in cells.values()) == count
    alone = {key for cell in cells.values() if cell.partition_count == 1 for key in cell.keys}
    assert alone >= set(keys[count - newest :])


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.just(float("nan"))), min_size=1, max_size=300, unique_by=repr),
    st.integers(320, 1400),
)
def test_numbers_with_nulls_and_nan_have_places(values: list[float | None], width: int) -> None:
    """Null is a value of its own, and so is NaN: both are drawn."""
    draw(partitions([(value,) for value in values], REAL), REAL, width=width)


@given(
    st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=60, unique=True),
    st.sampled_from([DAY, DATE]),
    st.integers(320, 1400),
)
def test_dates_however_far_apart_have_places(values: list[dt.date | None], field: PartitionField, width: int) -> None:
    """From year 1 to year 9999, with or without null."""
    draw(partitions([(value,) for value in values], field), field, width=width)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=40, unique=True), st.data())
def test_names_are_text(names: list[str], data: Any) -> None:
    """Two fields, of which one is any text."""
    keys = [(name, data.draw(st.integers(0, 3))) for name in names]
    draw(partitions(keys, NAME, BUCKET), NAME, BUCKET)


def test_days_alone_are_a_calendar() -> None:
    """From two weeks on, days lie in weeks, Monday first; a day without rows is no place."""
    first = dt.date(2026, 9, 2)
    table = partitions([(first + dt.timedelta(days=i),) for i in range(20) if i != 4], DAY)
    board, titles = draw(table, DAY)
    assert board.is_calendar
    assert len(titles) == 19
    assert titles["newest 0 2"] == "2026-09-02\n1 record\n1 file, 0 B"
    assert not {"newest 0 0", "newest 0 6"} & set(titles)
    assert "Mon" in texts(parse_svg(build_partition_figure(board, {}, "files", width=900).svg))


@pytest.mark.parametrize(("transform", "count", "down"), [("hour", 60, 24), ("month", 40, 12), ("year", 40, 10)])
def test_hours_months_and_years_are_calendars_too(transform: str, count: int, down: int) -> None:
    """Hours lie in days, months in years, years in decades; each has its own place."""
    field = PartitionField(1000, 1, "at_part", transform)
    board, titles = draw(partitions([(4 + i,) for i in range(count)], field), field)
    (zone,) = board.zones
    assert (len(zone.rows), len(titles)) == (down, count)
    assert zone.place((4,)) == (0, 4)


@pytest.mark.parametrize("unit", list(COARSER))
@given(number=st.integers(-20_000, 80_000))
def test_a_time_lies_in_its_coarser_units(unit: str, number: int) -> None:
    """The first time of a unit lies in it, and the one before it does not; a place of a calendar is its time again."""
    number = number if unit in ("day", "hour") else number // 30
    for coarser in COARSER[unit]:
        within = convert_time(number, unit, coarser)
        start, end = (first_time(within + later, unit, coarser) for later in (0, 1))
        assert start <= number < end
        assert convert_time(start, unit, coarser) == within
    calendar = CALENDARS[unit]
    assert calendar.number(*calendar.place(number)) == number


def test_values_of_one_field_are_bars_with_null_first() -> None:
    """An identity partition is a bar a value; its height is the sum."""
    table = partitions([("<b>",), (None,), ("z",)], NAME)
    board = board_of(table, NAME)
    elements = check_picture(build_partition_figure(board, sum_cells(table, board), "records", width=900))
    assert [one for one in texts(elements) if one in ("null", "<b>", "z")] == ["null", "<b>", "z"]
    heights = [box[3] - box[1] for one in elements if "data-key" in one.attrib and (box := find_box(one))]
    assert [round(height / min(heights)) for height in heights] == [1, 2, 3]


def test_further_fields_are_summed_and_said_so() -> None:
    """Of three fields two are drawn; the caption names the third."""
    table = partitions([(day(20_000), 1, name) for name in "ab"], DAY, BUCKET, NAME)
    board, titles = draw(table, DAY, BUCKET, NAME)
    assert describe_partitions(board, table, sum_cells(table, board)) == "2 partitions, summed over name"
    assert [title.split("\n")[:2] for title in titles.values()] == [["2024-10-04 · id_bucket 1", "3 records"]]


def test_partitions_of_another_spec_are_not_mixed_in() -> None:
    """Only the default spec's are drawn; how many are not is said."""
    table = partitions([(day(9), None), (None, "a")], DAY, NAME, spec_ids=[0, 1])
    specs = {0: PartitionSpec(0, (DAY,)), 1: PartitionSpec(1, (NAME,))}
    board = build_board(table, specs, 1, SCHEMA, width=900)
    assert board is not None
    cells = sum_cells(table, board)
    said = describe_partitions(board, table, cells)
    assert said == "2 partitions, 1 of them in other partition specs and not drawn"
    assert [cell.sums[0] for cell in cells.values()] == [2]


def test_an_unpartitioned_table_has_nothing_to_draw() -> None:
    """No fields, no board."""
    assert build_board(partitions([()]), {0: PartitionSpec(0, ())}, 0, SCHEMA, width=900) is None


def test_what_a_filter_skips_says_by_which_step() -> None:
    """A place that has several partitions is kept if one of them is, and says how many are."""
    table = partitions([(day(i),) for i in range(20_000)], DAY)
    kept, step = day(0), "manifests by partition summaries"
    board, titles = draw(table, DAY, verdicts={(day(i),): "" if day(i) == kept else step for i in range(20_000)})
    assert titles["older 0 0"].endswith(f"1 of 31 kept, others skipped: {step}")
    assert titles["older 0 1"].endswith(f"\nskipped: {step}")
    assert isinstance(board.zones[0], CalendarZone)
    kinds = {
        one.attrib["data-key"]: one.attrib["class"]
        for one in parse_svg(
            build_partition_figure(board, sum_cells(table, board), "files", width=900, verdicts={(kept,): step}).svg
        )
        if "data-key" in one.attrib
    }
    assert kinds["older 0 0"].startswith("i-heat")


BOARDS = {
    "two fields": (DAY, BUCKET),
    "a calendar": (DAY,),
    "a calendar beside null": (DAY,),
    "bars": (NAME,),
    "older and newest": (DATE,),
}


@cache
def board_called(name: str) -> tuple[Board, pa.Table, Cells]:
    keys: list[tuple[Any, ...]] = {
        "two fields": [(day(20_000 + i), bucket) for i in range(30) for bucket in (None, 0, 1, 2, 3)],
        "a calendar": [(day(20_000 + i),) for i in range(30)],
        "a calendar beside null": [(None,), *((day(20_000 + i),) for i in range(30))],
        "bars": [(f"{i:03}",) for i in range(400)],
        "older and newest": [(day(i),) for i in range(6_000)],
    }[name]
    table = partitions(keys, *BOARDS[name])
    board = board_of(table, *BOARDS[name])
    return board, table, sum_cells(table, board)


@pytest.mark.parametrize("name", list(BOARDS))
@given(data=st.data())
def test_a_mark_comes_back(name: str, data: Any) -> None:
    """What a drag has marked is framed, and a drag over the frame marks the same: no mark grows by itself."""
    board, *_ = board_called(name)
    zone = data.draw(st.sampled_from(board.zones))
    picture = build_partition_figure(board, {}, "records", width=900)
    ends = data.draw(st.tuples(*(st.floats(-0.1, 1.1) for _ in range(4))))
    selection = select_marked(board, picture, zone.name, ends[:2], ends[2:])
    if selection is None:
        return
    boxes = zone.boxes({one.name: one for one in selection.ranges})
    first = tuple(min(box[0][i] for box in boxes) for i in (0, 1))
    last = tuple(max(box[1][i] for box in boxes) for i in (0, 1))
    across, down = len(zone.columns), len(zone.rows)
    again = select_marked(
        board, picture, zone.name, (first[0] / across, (last[0] + 1) / across), (first[1] / down, (last[1] + 1) / down)
    )
    if not isinstance(zone, CalendarZone) or first[0] != last[0]:
        assert again == selection
    framed = parse_svg(build_partition_figure(board, {}, "files", width=900, selection=selection).svg)
    frames = [box for one in framed if one.attrib.get("class") == "i-frame" and (box := find_box(one))]
    assert frames
    assert all(any(is_inside(box, plot_box(picture, name)) for name in picture.plots) for box in frames)


@pytest.mark.parametrize("name", list(BOARDS))
def test_a_click_selects_what_is_drawn_there(name: str) -> None:
    """The partitions of the place, all of them and no other."""
    board, table, cells = board_called(name)
    for (number, place), cell in cells.items():
        zone = board.zones[number]
        selection = select_key(board, f"{zone.name} {place[0]} {place[1]}")
        assert selection is not None
        if table.num_rows < 500:
            mask = selection.mask(table)
            assert sum(mask.to_pylist()) == cell.partition_count
            assert sum(table.filter(mask)["data_record_count"].to_pylist()) == cell.sums[0]


@pytest.mark.parametrize(
    "key", ["", "newest", "newest 1", "newest 99 0", "newest -1 0", "older 0 0", "newest ٣ 0", "x 0 0"]
)
def test_a_key_that_is_none_selects_nothing(key: str) -> None:
    """Keys come from a page."""
    assert select_key(board_called("a calendar")[0], key) is None


def test_the_whole_picture_is_no_selection() -> None:
    """Marking everything marks nothing."""
    board, *_ = board_called("two fields")
    picture = build_partition_figure(board, {}, "records", width=900)
    assert select_marked(board, picture, "places", (-1, 2), (-1, 2)) is None
    assert select_marked(board, picture, "nowhere", (0, 0.1), (0, 0.1)) is None


def test_a_calendar_marks_a_range_of_days() -> None:
    """Across weeks whole weeks are marked; within a week some of its days."""
    first = dt.date(2026, 9, 1)
    table = partitions([(first + dt.timedelta(days=i),) for i in range(30)], DAY)
    board = board_of(table, DAY)
    picture = build_partition_figure(board, {}, "records", width=900)

    def ends(x: tuple[float, float], y: tuple[float, float]) -> Any:
        found = select_marked(board, picture, "newest", [at / 5 for at in x], [at / 7 for at in y])
        return found and [(one.lower, one.upper) for one in found.ranges]

    assert ends((1.2, 1.8), (2.5, 4.5)) == [(dt.date(2026, 9, 9), dt.date(2026, 9, 11))]
    assert ends((1.2, 2.8), (3.0, 3.5)) == [(dt.date(2026, 9, 7), dt.date(2026, 9, 20))]


def test_a_selection_of_manifests_frames_nothing() -> None:
    """Nor does one of another spec."""
    board, *_ = board_called("bars")
    plain = build_partition_figure(board, {}, "records", width=900)
    for selection in (Selection(manifest_paths=("a",)), Selection(7, select_key(board, "places 0 0").ranges)):
        assert build_partition_figure(board, {}, "records", width=900, selection=selection).svg == plain.svg
