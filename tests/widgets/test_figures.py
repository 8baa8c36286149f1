from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.answers.schemas import MANIFEST_FILES, partition_groups_schema
from icestats.iceberg.metadata import Field, PartitionField, PartitionSpec, Schema
from icestats.stats.histogram import Histogram, Kind, build_histogram
from icestats.stats.kll import KllSketch
from icestats_widgets.histogram_figure import build_histogram_figure
from icestats_widgets.histogram_part import HistogramPart, read_histogram_part
from icestats_widgets.manifest_figure import Key, build_manifest_figure
from icestats_widgets.partition_board import build_board
from icestats_widgets.partition_figure import build_partition_figure, describe_partitions

DAY = PartitionField(1000, 1, "at_day", "day")
BUCKET = PartitionField(1001, 2, "id_bucket", "bucket[4]")
NAME = PartitionField(1002, 3, "name", "identity")
SCHEMA = Schema(
    0,
    (
        Field(1, "at", "timestamptz", False, True),
        Field(2, "id", "long", False, True),
        Field(3, "name", "string", False, True),
    ),
)


def sketch(kind: str, values: pa.Array) -> KllSketch:
    made = KllSketch(kind)
    made.update(values)
    return made


def part_of(made: KllSketch, type_text: str, *, bins: int = 10, kind: Kind = "equi-width", whole: bool = True):
    def read(count: int, how: Kind) -> Histogram:
        return build_histogram(made, column="c", type_text=type_text, bins=count, kind=how)

    return read_histogram_part(read, bins=bins, kind=kind, whole_range=whole)


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=200),
    st.integers(1, 50),
    st.sampled_from(["equi-width", "equi-height"]),
    st.booleans(),
)
def test_no_value_is_lost_between_the_bars_and_what_lies_outside(
    values: list[float], bins: int, kind: Kind, whole: bool
) -> None:
    """Counts that are drawn and counts that are said to lie outside add up to all values."""
    part = part_of(sketch("double", pa.array(values, pa.float64())), "double", bins=bins, kind=kind, whole=whole)
    assert sum(part.histogram.counts) + part.below + part.above == pytest.approx(len(values))
    figure = build_histogram_figure(part)
    positions = [at for trace in figure.data[:3] for at in trace.x]
    if any(math.isfinite(value) for value in values):
        assert all(math.isfinite(at) for at in positions)


def test_bars_of_equal_height_keep_their_area() -> None:
    """Bins of different widths are drawn as densities: width times height is the count."""
    part = part_of(sketch("long", pa.array([i * i for i in range(100)])), "long", kind="equi-height")
    values = build_histogram_figure(part).data[0]
    areas = [width * height for width, height in zip(values.width, values.y, strict=True)]
    assert areas == pytest.approx(list(part.histogram.counts))


def test_the_axis_ends_where_the_middle_does() -> None:
    """Bins of equal height reach to the farthest value; what is shown does not."""
    made = sketch("double", pa.array([*(i / 10 for i in range(1000)), 1e6]))
    part = part_of(made, "double", kind="equi-height", whole=False)
    assert part.is_cut
    figure = build_histogram_figure(part)
    assert figure.data[1].x[-1] == 1e6
    assert figure.layout.xaxis.range[1] < 200
    assert build_histogram_figure(part_of(made, "double", kind="equi-height")).layout.xaxis.range[1] == 1e6


def test_tails_too_far_for_equal_widths_get_bins_of_equal_height() -> None:
    """A single bar says nothing; what is drawn instead is said."""
    made = sketch("double", pa.array([*(i / 10 for i in range(1000)), 1e12]))
    part = part_of(made, "double", whole=False)
    assert (part.asked, part.histogram.kind) == ("equi-width", "equi-height")
    assert len(part.histogram.counts) > 5


@pytest.mark.parametrize(
    ("type_text", "item_type", "items", "first"),
    [
        ("date", "long", [0, 10], 0.0),
        ("timestamptz", "long", [86_400_000_000, 96_400_000_000], 86_400_000.0),
        ("timestamp_ns", "long", [1_000_000, 9_000_000], 1.0),
        ("time", "long", [3_600_000_000, 7_200_000_000], 3_600_000.0),
        ("decimal(9, 2)", "long", [150, 900], 1.5),
        ("double", "double", [-1.5, 2.5], -1.5),
    ],
)
def test_values_lie_where_their_type_puts_them(type_text: str, item_type: str, items: list[Any], first: float) -> None:
    """Times are milliseconds on a time axis, decimals their value."""
    figure = build_histogram_figure(part_of(sketch(item_type, pa.array(items)), type_text))
    assert figure.data[1].x[0] == first
    assert figure.layout.xaxis.type == ("date" if type_text.startswith(("date", "time")) else "linear")


def test_64_bit_integers_are_whole_in_the_hover() -> None:
    """A long beyond 2 ** 53 is shown with its last digit."""
    part = part_of(sketch("long", pa.array([9_007_199_254_740_993, 9_007_199_254_740_997])), "long", bins=2)
    assert build_histogram_figure(part).data[0].customdata[0][0].startswith("9,007,199,254,740,993 to")


def test_strings_are_labelled_and_escaped() -> None:
    """Bars of strings carry their values as text; the last one holds both of its ends."""
    part = part_of(sketch("string", pa.array(["<b>a</b>", "<b>a</b>", "m", "z"])), "string")
    figure = build_histogram_figure(part)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;a&lt;/b&gt;", "m to z")
    assert figure.data[0].customdata[0][0] == "&lt;b&gt;a&lt;/b&gt; to below m"


def test_a_boolean_has_a_bar_for_each_value() -> None:
    """False and True, by name."""
    part = part_of(sketch("long", pa.array([0, 1, 1])), "boolean")
    figure = build_histogram_figure(part)
    assert (list(figure.data[0].y), figure.layout.xaxis.ticktext) == ([1, 2], ("False", "True"))


def test_unknown_nulls_are_not_none() -> None:
    """A null count that nobody has counted says unknown."""
    part = part_of(sketch("long", pa.array([1, 2])), "long")
    assert list(build_histogram_figure(part).data[5].text) == ["unknown"]


def test_every_histogram_has_the_same_traces() -> None:
    """One figure can take the place of any other."""
    parts: list[HistogramPart] = [
        part_of(sketch("long", pa.array([1])), "long"),
        part_of(sketch("string", pa.array(["a", "b"])), "string"),
        part_of(sketch("double", pa.array([math.inf, -math.inf])), "double"),
        part_of(sketch("long", pa.array([], pa.int64())), "date"),
    ]
    kinds = [[trace.type for trace in build_histogram_figure(part).data] for part in parts]
    assert kinds == [kinds[0]] * 4


def manifest(path: str, rows: int | None) -> dict[str, Any]:
    counts = dict.fromkeys((f"{s}_files_count" for s in ("added", "existing", "deleted")), 1)
    counts |= {"added_rows_count": rows, "existing_rows_count": 0, "deleted_rows_count": 0}
    numbers = dict.fromkeys(("manifest_length", "partition_spec_id", "sequence_number", "min_sequence_number"), 0)
    return {"manifest_path": path, "content": "data", **numbers, **counts}


def test_a_manifest_of_unknown_size_has_no_bar_of_0() -> None:
    """Unknown is left out, and said in the hover of the key range."""
    files = pa.Table.from_pylist([manifest("a/b/one", 5), manifest("a/b/two", None)], schema=MANIFEST_FILES)
    figure = build_manifest_figure(files, (), None).figure
    assert [list(trace.x) for trace in figure.data] == [[], [], [5], [], []]
    assert figure.data[2].customdata[0][3] == "b/one"


def test_a_month_is_as_wide_as_the_month() -> None:
    """The key 2013-02 reaches from the first of February to the first of March."""
    from icestats.table.overview import KeyRange

    files = pa.Table.from_pylist([manifest("one", 5)], schema=MANIFEST_FILES)
    ranges = (KeyRange("one", True, 5, 517.0, 517.0, "2013-02", "2013-02"),)
    key = Key(PartitionField(1000, 1, "at_month", "month"), "int")
    picture = build_manifest_figure(files, ranges, key, marked=[])
    figure = picture.figure
    assert (picture.paths[0], picture.deepest) == (("one",), 1)
    assert figure.data[0].marker.opacity[0] < 1
    start = dt.datetime(2013, 2, 1, tzinfo=dt.UTC).timestamp() * 1000
    assert (figure.data[0].base[0], figure.data[0].x[0]) == (start, 28 * 86_400_000)


def partitions(rows: list[tuple[dict[str, Any], int, int]], fields: list[pa.Field]) -> pa.Table:
    schema = partition_groups_schema(pa.struct(fields))
    zeros = {f.name: 0 for f in schema if pa.types.is_integer(f.type)}
    table = [
        {**zeros, "partition": key, "spec_id": spec_id, "data_record_count": count, "data_file_count": 1}
        for key, spec_id, count in rows
    ]
    return pa.Table.from_pylist(table, schema=schema)


def draw(table: pa.Table, *specs: PartitionSpec):
    board = build_board(table, {spec.spec_id: spec for spec in specs}, specs[0].spec_id, SCHEMA)
    return (
        None
        if board is None
        else Picture(build_partition_figure(board, table, "records"), describe_partitions(board, table))
    )


class Picture(NamedTuple):
    figure: Any
    caption: str


def test_a_day_without_rows_is_a_gap() -> None:
    """Days between two that have rows keep their place and stay empty, unlike 0."""
    fields = [pa.field("at_day", pa.date32()), pa.field("id_bucket", pa.int32())]
    days = [dt.date(2026, 9, 1), dt.date(2026, 9, 3)]
    table = partitions([({"at_day": day, "id_bucket": 0}, 0, 0) for day in days], fields)
    picture = draw(table, PartitionSpec(0, (BUCKET, DAY)))
    assert picture.figure.layout.xaxis.ticktext == ("2026-09-01", "2026-09-02", "2026-09-03")
    assert list(picture.figure.data[0].z[0]) == [0, None, 0]
    json.dumps(picture.figure.to_dict()["data"][0]["z"].tolist(), allow_nan=False)


def test_days_alone_are_a_calendar() -> None:
    """From two weeks on, days lie in weeks: a line a weekday, Monday first."""
    fields = [pa.field("at_day", pa.date32())]
    first = dt.date(2026, 9, 2)
    table = partitions([({"at_day": first + dt.timedelta(days=i)}, 0, i + 1) for i in range(20)], fields)
    heat = draw(table, PartitionSpec(0, (DAY,))).figure.data[0]
    assert (len(heat.z), heat.z[2][0], heat.z[0][1], heat.z[0][0]) == (7, 1, 6, None)


@pytest.mark.parametrize(("transform", "count", "down"), [("hour", 60, 24), ("month", 40, 12)])
def test_hours_and_months_are_calendars_too(transform: str, count: int, down: int) -> None:
    """Hours lie in days, months in years; each has its own cell."""
    field = PartitionField(1000, 1, "at_part", transform)
    fields = [pa.field("at_part", pa.int32())]
    table = partitions([({"at_part": 500_004 + i}, 0, i + 1) for i in range(count)], fields)
    heat = draw(table, PartitionSpec(0, (field,))).figure.data[0]
    assert len(heat.z) == down
    assert sorted(cell for line in heat.z for cell in line if cell is not None) == list(range(1, count + 1))


def test_values_of_one_field_are_bars_with_null_first() -> None:
    """An identity partition is a bar a value; null is a value of its own; names are escaped."""
    fields = [pa.field("name", pa.string())]
    table = partitions([({"name": "<b>"}, 0, 7), ({"name": None}, 0, 3)], fields)
    figure = draw(table, PartitionSpec(0, (NAME,))).figure
    assert (list(figure.data[0].y), figure.layout.xaxis.ticktext) == ([3, 7], ("null", "&lt;b&gt;"))


def test_further_fields_are_summed_and_said_so() -> None:
    """Of three fields two are drawn; the caption names the third."""
    fields = [pa.field("at_day", pa.date32()), pa.field("id_bucket", pa.int32()), pa.field("name", pa.string())]
    day = dt.date(2026, 9, 1)
    table = partitions([({"at_day": day, "id_bucket": 1, "name": name}, 0, 2) for name in "ab"], fields)
    picture = draw(table, PartitionSpec(0, (DAY, BUCKET, NAME)))
    assert picture.caption == "2 partitions, summed over name"
    assert picture.figure.data[0].z[0][0] == 4


def test_partitions_of_another_spec_are_not_mixed_in() -> None:
    """Only the default spec's are drawn; how many are not is said."""
    fields = [pa.field("at_day", pa.date32()), pa.field("name", pa.string())]
    day = dt.date(2026, 9, 1)
    table = partitions([({"at_day": day, "name": None}, 0, 2), ({"at_day": None, "name": "a"}, 1, 5)], fields)
    picture = draw(table, PartitionSpec(1, (NAME,)), PartitionSpec(0, (DAY,)))
    assert picture.caption == "2 partitions, 1 of them in other partition specs and not drawn"
    assert list(picture.figure.data[0].y) == [5]


def test_an_unpartitioned_table_has_nothing_to_draw() -> None:
    """No fields, no picture."""
    assert draw(partitions([({}, 0, 2)], []), PartitionSpec(0, ())) is None


def test_decimals_are_read_exactly() -> None:
    """A decimal's edges are decimals in the hover."""
    part = part_of(sketch("long", pa.array([10, 20])), "decimal(9, 2)", bins=1)
    assert part.histogram.edges == (Decimal("0.10"), Decimal("0.20"))
    assert build_histogram_figure(part).data[0].customdata[0][0] == "0.10 to 0.20"
