from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icestats.stats.histogram import Kind, build_histogram
from icestats.stats.kll import KllSketch
from icestats_widgets.drawing.axis import axis_position
from icestats_widgets.drawing.histogram_figure import build_histogram_figure, has_log_values
from icestats_widgets.drawing.spark_figure import build_spark
from icestats_widgets.reading.histogram_part import HistogramPart, read_histogram_part
from tests.pictures import check_picture, find_box, keyed, parse_svg, texts


def sketch(kind: str, values: pa.Array) -> KllSketch:
    made = KllSketch(kind)
    made.update(values)
    return made


def part_of(made: KllSketch, type_text: str, *, bins: int = 10, kind: Kind = "equi-width", whole: bool = True):
    read = partial(build_histogram, made, column="<c>&", type_text=type_text)
    return read_histogram_part(read, bins=bins, kind=kind, whole_range=whole)


def bars(part: HistogramPart, **more: Any) -> dict[str, tuple[tuple[float, float, float, float], str]]:
    elements = check_picture(build_histogram_figure(part, width=800, **more))
    return {
        one.attrib["data-key"]: (find_box(one), one.findtext("title") or "")  # type: ignore[misc]
        for one in elements
        if "data-key" in one.attrib
    }


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=60),
    st.integers(1, 200),
    st.sampled_from(["equi-width", "equi-height"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(320, 1400),
)
@example([0.0, 2.225073858507203e-309], 1, "equi-height", (False, True, False), 320)
@example([0.0, 2.225073858507203e-309], 1, "equi-height", (True, False, False), 320)
def test_any_numbers_are_a_picture(
    values: list[float], bins: int, kind: Kind, choices: tuple[bool, bool, bool], width: int
) -> None:
    """Bars and what lies outside add up to all values; marks lie inside, labels do not collide."""
    part = part_of(sketch("double", pa.array(values, pa.float64())), "double", bins=bins, kind=kind, whole=choices[0])
    assert sum(part.histogram.counts) + part.below + part.above == pytest.approx(len(values))
    part = replace(part, histogram=replace(part.histogram, null_count=3, nan_count=None))
    picture = build_histogram_figure(part, width=width, log_count=choices[1], log_value=choices[2], note="a <note>")
    check_picture(picture)


@given(st.lists(st.text(max_size=300), min_size=1, max_size=40), st.integers(1, 200), st.booleans())
def test_any_strings_are_a_picture(values: list[str], bins: int, is_log: bool) -> None:
    """Whatever the strings are."""
    part = part_of(sketch("string", pa.array(values)), "string", bins=bins)
    check_picture(build_histogram_figure(part, width=700, log_count=is_log))


def test_bars_of_equal_height_keep_their_area() -> None:
    """Bins of different widths are drawn as densities: width times height is the count."""
    part = part_of(sketch("long", pa.array([i * i for i in range(100)])), "long", kind="equi-height")
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1]) for box, _ in bars(part).values()]
    per_value = sum(areas) / 100
    assert [round(area / per_value) for area in areas] == pytest.approx(part.histogram.counts, abs=1)


def test_the_axis_ends_where_the_middle_does_and_says_how_far_the_tail_reaches() -> None:
    """Bins of equal height reach to the farthest value; what is shown does not, unless it is asked for."""
    made = sketch("double", pa.array([*(i / 10 for i in range(1000)), 1e6]))
    part = part_of(made, "double", kind="equi-height", whole=False)
    picture = build_histogram_figure(part, width=800)
    assert picture.plots["values"].x.invert(1.0) < 200
    assert any(text.endswith("above, to 1e+06 ▸") for text in texts(parse_svg(picture.svg)))
    whole = build_histogram_figure(part_of(made, "double", kind="equi-height"), width=800)
    assert whole.plots["values"].x.invert(1.0) == 1e6


def test_on_a_logarithmic_axis_the_far_tail_is_visible() -> None:
    """Each decade has its room; 0 is in the first bar; negative numbers and times have no such axis."""
    made = sketch("double", pa.array([0.0, *(float(10**i) for i in range(9))]))
    part = part_of(made, "double", kind="equi-height")
    assert has_log_values(part)
    found = [box for box, _ in bars(part, log_value=True).values()]
    assert all(box[2] - box[0] > 20 for box in found)
    for kind, values, type_text in (("long", [-1, 5], "long"), ("long", [1, 5], "date"), ("string", ["a"], "string")):
        assert not has_log_values(part_of(sketch(kind, pa.array(values)), type_text))


def test_few_values_are_seen_on_a_logarithmic_axis_of_counts() -> None:
    """A bar of 1 beside one of 100,000 has a height; a bar of none has none."""
    made = sketch("long", pa.array([0] * 50_000 + [9]))
    heights = [box[3] - box[1] for box, _ in bars(part_of(made, "long"), log_count=True).values()]
    assert heights[-1] > 5
    assert heights[1:-1] == [0] * (len(heights) - 2)


def test_tails_too_far_for_equal_widths_get_bins_of_equal_height() -> None:
    """A single bar says nothing; what is drawn instead is said."""
    made = sketch("double", pa.array([*(i / 10 for i in range(1000)), 1e12]))
    part = part_of(made, "double", whole=False)
    assert (part.asked, part.histogram.kind) == ("equi-width", "equi-height")
    assert len(part.histogram.counts) > 5


@pytest.mark.parametrize(
    ("type_text", "item_type", "items", "first"),
    [
        ("date", "long", [0, 10], dt.date(1970, 1, 1)),
        ("timestamptz", "long", [86_400_000_000, 96_400_000_000], dt.datetime(1970, 1, 2, tzinfo=dt.UTC)),
        ("timestamp_ns", "long", [1_000_000, 9_000_000], 1_000_000),
        ("time", "long", [3_600_000_000, 7_200_000_000], dt.time(1)),
        ("decimal(9, 2)", "long", [150, 900], Decimal("1.50")),
        ("double", "double", [-1.5, 2.5], -1.5),
    ],
)
def test_the_axis_begins_at_the_least_value(type_text: str, item_type: str, items: list[Any], first: Any) -> None:
    """Of each type: the axis's ends are values of the column."""
    picture = build_histogram_figure(part_of(sketch(item_type, pa.array(items)), type_text), width=700)
    check_picture(picture)
    assert picture.plots["values"].x.invert(0.0) == pytest.approx(axis_position(type_text, first))


def test_64_bit_integers_are_whole_in_the_title() -> None:
    """A long beyond 2 ** 53 is shown with its last digit."""
    part = part_of(sketch("long", pa.array([9_007_199_254_740_993, 9_007_199_254_740_997])), "long", bins=2)
    assert bars(part)["0"][1].startswith("9,007,199,254,740,993 to")


def test_decimals_are_read_exactly() -> None:
    """A decimal's edges are decimals in the title."""
    part = part_of(sketch("long", pa.array([10, 20])), "decimal(9, 2)", bins=1)
    assert bars(part)["0"][1].startswith("0.10 to 0.20\n")


def test_few_whole_numbers_are_bars_of_the_same_width() -> None:
    """Twelve months are twelve bars, each around its number; the last one has no other month in it."""
    part = part_of(sketch("long", pa.array(list(range(1, 13)) * 5)), "int", bins=20)
    picture = build_histogram_figure(part, width=900)
    found = bars(part)
    assert [title for _, title in found.values()] == [f"{month}\n5 values (exact)" for month in range(1, 13)]
    widths = [box[2] - box[0] for box, _ in found.values()]
    assert max(widths) - min(widths) < 0.3
    assert [picture.plots["values"].x.invert(end) for end in (0.0, 1.0)] == [0.5, 12.5]


def test_five_strings_are_five_bars() -> None:
    """Each value has its own bar, named by it; the empty string has a name too."""
    part = part_of(sketch("string", pa.array(["<b>", "<b>", "", "m", "y", "z"])), "string")
    elements = check_picture(build_histogram_figure(part, width=700))
    assert set(texts(elements)) >= {'""', "<b>", "m", "y", "z"}
    titles = [title for (title,) in keyed(elements).values()]
    assert titles == [
        f"{name}\n{count} values (exact)" for name, count in zip(('""', "<b>", *"myz"), (1, 2, 1, 1, 1), strict=True)
    ]


def test_many_strings_share_bars() -> None:
    """The title of a bar says from where to where it goes."""
    part = part_of(sketch("string", pa.array([f"{i:03}" for i in range(100)])), "string", bins=4)
    assert bars(part)["0"][1].startswith("000 to below 024\n24 values")


def test_a_boolean_has_a_bar_for_each_value() -> None:
    """False and True, by name."""
    found = bars(part_of(sketch("long", pa.array([0, 1, 1])), "boolean"))
    assert [title.split("\n")[0] for _, title in found.values()] == ["False", "True"]
    lengths = [box[2] - box[0] for box, _ in found.values()]
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.2)


def test_unknown_nulls_are_not_none() -> None:
    """A null count that nobody has counted says unknown; one that is known is a share of all rows."""
    part = part_of(sketch("double", pa.array([1.0, 2.0])), "double")
    assert texts(parse_svg(build_histogram_figure(part, width=600).svg)).count("unknown") == 2
    part = replace(part, histogram=replace(part.histogram, null_count=6, nan_count=0))
    shown = texts(parse_svg(build_histogram_figure(part, width=600).svg))
    assert {"75.0%", "0%"} <= set(shown)


def test_the_band_is_named_with_its_error() -> None:
    """An estimate never stands alone: the picture says how far off a count may be, and at which confidence."""
    part = part_of(sketch("long", pa.array(range(100_000))), "long")
    assert part.histogram.count_error > 0
    shown = texts(parse_svg(build_histogram_figure(part, width=900).svg))
    assert f"± {part.histogram.count_error:,.0f} values at 99% confidence" in shown
    assert not any("confidence" in text for text in texts(parse_svg(build_histogram_figure(
        part_of(sketch("long", pa.array([1, 2])), "long"), width=900).svg)))  # fmt: skip


def test_what_must_not_be_overlooked_stands_in_the_picture() -> None:
    """The whole table's distribution says so where a part is selected."""
    part = part_of(sketch("long", pa.array([1, 2])), "long")
    picture = build_histogram_figure(part, width=600, note="whole table's distribution")
    assert "⚠ whole table's distribution" in texts(check_picture(picture))


@pytest.mark.parametrize("values", [[], [math.inf, -math.inf]])
def test_no_finite_values_are_a_picture_without_bars(values: list[float]) -> None:
    """Nothing to draw is drawn as nothing."""
    assert bars(part_of(sketch("double", pa.array(values, pa.float64())), "double")) == {}


def test_a_picture_of_a_cell_is_small_and_well_formed() -> None:
    """A bar a bin, a column each for nulls and NaN where they are known."""
    svg = build_spark([0.1, 1.0, 0.0], label="<shape>\x00", missing=(0.25, None))
    elements = parse_svg(svg)
    assert [one.tag for one in elements] == ["svg", "path", "rect", "rect"]
    assert len(build_spark([0.5] * 18, label="")) < 1_500
    assert parse_svg(build_spark([], label=""))[1:] == []


@pytest.mark.parametrize("width", range(380, 1400, 60))
def test_no_dotted_line_touches_a_note(width: int) -> None:
    """What lies outside is said in the plot; the lines of quantiles begin below it."""
    values = pa.array([*(i**2 / 100 for i in range(1_000)), *([1e6] * 4), *([-1e6] * 4)], pa.float64())
    part = part_of(sketch("double", values), "double", whole=False)
    assert part.above
    elements = check_picture(build_histogram_figure(part, width=width))
    notes = [find_box(one) for one in elements if one.tag == "text" and "halo" in one.attrib["class"]]
    lines = [find_box(one) for one in elements if one.tag == "line" and "dotted" in one.attrib["class"]]
    assert notes
    assert len(lines) == 5
    for line in lines:
        for note in notes:
            assert line[2] < note[0] or line[0] > note[2] or line[1] >= note[3], (line, note)  # type: ignore[index]
