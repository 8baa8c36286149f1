"""Sizes of partitions, q-errors, bounds against literals."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icestats.answers.schemas import WORKLOAD
from icestats_widgets.drawing.bounds_figure import build_bounds_figure
from icestats_widgets.drawing.canvas import text_width
from icestats_widgets.drawing.pairs_figure import build_pairs_figure
from icestats_widgets.drawing.q_error_figure import build_q_error_figure
from icestats_widgets.drawing.size_figure import build_size_figure, read_span
from icestats_widgets.drawing.values_figure import build_values_figure
from tests.pictures import check_picture, find_box, keyed, parse_svg, texts


@given(
    st.lists(st.integers(0, 2**60), max_size=200),
    st.sampled_from([None, 8_000_000, 3]),
    st.sampled_from([None, 10**9]),
    st.integers(400, 1400),
)
@example([900_000_000, 1_100_000_000], 8_000_000, 10**9, 900)
def test_each_partition_is_in_one_bar(sizes: list[int], small: Any, large: Any, width: int) -> None:
    """Counts add up, the spans of the bars hold what they say, and none reaches across a limit."""
    picture = build_size_figure(sizes, width=width, small=small, large=large)
    marks = keyed(check_picture(picture))
    total = 0
    for key, (title,) in marks.items():
        span = read_span(key)
        assert span is not None
        count = sum(span[0] <= size < span[1] for size in sizes)
        assert title.split("\n")[1] == f"{count:,} partition{'s' if count != 1 else ''}"
        assert not any(limit and span[0] < limit < span[1] and span[0] for limit in (small, large))
        total += count
    assert total == len(sizes)


def test_the_ends_that_are_too_small_or_too_large_stand_out() -> None:
    """In colour, and counted in the legend; a selected bar has a frame."""
    sizes = [10**6] * 3 + [10**8] * 5 + [10**10]
    plain = build_size_figure(sizes, width=800, small=8e6, large=1e9)
    elements = check_picture(plain)
    kinds = [one.attrib["class"] for one in elements if "data-key" in one.attrib]
    assert kinds == ["i-deletes", "i-data", "i-error"]
    assert {"too small, below 8 MB: 3", "too large, from 1 GB on: 1"} <= set(texts(elements))
    framed = build_size_figure(sizes, width=800, small=8e6, large=1e9, selected=read_span(next(iter(keyed(elements)))))
    assert [one.attrib.get("class") for one in check_picture(framed)].count("i-frame") == 1


@pytest.mark.parametrize("key", ["", "1", "a:b", "5:1", "nan:nan"])
def test_a_key_of_no_bar_has_no_span(key: str) -> None:
    """Keys come from a page."""
    assert read_span(key) is None


def workload(*rows: tuple[str, str, float | None, float | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"row_filter": text, "actual": 10, "source": source, "rows": rows_, "q_error": error, "reason": ""}
            for text, source, rows_, error in rows
        ],
        schema=WORKLOAD,
    )


def test_every_answer_is_a_point_and_every_unknown_is_counted() -> None:
    """What a source answers is drawn, what it cannot answer is said beside it, and nothing is drawn as 0."""
    picture = build_q_error_figure(
        workload(("a < 1", "kll", 10.0, 1.0), ("name = '<b>'", "kll", 30.0, 3.0), ("a < 1", "ndv", None, None)),
        width=800,
    )
    elements = check_picture(picture)
    plot = picture.plots["q-errors"]
    points = [(find_box(one), one.findtext("title")) for one in elements if one.tag == "circle"]
    assert [title for _, title in points] == [
        "name = '<b>'\n30 estimated, 10 counted\nq-error 3",
        "a < 1\n10 estimated, 10 counted\nq-error 1",
    ]
    places = [(box[0] + box[2]) / 2 for box, _ in points if box]
    assert [plot.x.invert((at - plot.left) / plot.width) for at in places] == pytest.approx([3.0, 1.0], rel=0.01)
    titles = [one.findtext("title") for one in elements if one.attrib.get("class") == "i-missing"]
    assert titles == ["0 of 2 filters not answered", "1 of 1 filters not answered"]


@given(
    st.lists(
        st.tuples(st.text(max_size=200), st.text(min_size=1, max_size=60), st.none() | st.floats(1, 1e300)), max_size=60
    ),
    st.integers(400, 1400),
)
def test_any_workload_is_a_picture(rows: list[Any], width: int) -> None:
    """No answers at all, and filters and sources of any name."""
    check_picture(
        build_q_error_figure(workload(*((text, name, 1.0, error) for text, name, error in rows)), width=width)
    )


def test_of_very_many_answers_the_worst_are_points() -> None:
    """The picture stays small; boxes are of all."""
    rows = [(f"a < {i}", "kll", 1.0, 1.0 + i) for i in range(20_000)]
    elements = check_picture(build_q_error_figure(workload(*rows), width=900))
    assert any((one.findtext("title") or "").endswith("q-error 2e+04") for one in elements if one.tag == "circle")
    assert any("1 filter in 20 is a point" in text for text in texts(elements))


UTC = dt.UTC
CASES = [
    ("long", 10, 80, [45]),
    ("long", 9_007_199_254_740_992, 9_007_199_254_740_994, [9_007_199_254_740_993]),
    ("double", -float("inf"), 5.5, [float("nan"), 0.5, 1e300]),
    ("decimal(38, 2)", Decimal("1.50"), Decimal("1e30"), [Decimal("7.25")]),
    ("date", dt.date(2026, 9, 1), 5_000_000, [dt.date(2026, 9, 7)]),
    ("timestamptz", dt.datetime(2026, 9, 1, tzinfo=UTC), dt.datetime(2026, 9, 5, tzinfo=UTC), []),
    ("timestamp_ns", 10**18, 10**18 + 1, [10**18]),
    ("time", dt.time(1), dt.time(2), [dt.time(1, 30)]),
    ("boolean", False, True, [True]),
    ("uuid", uuid.UUID(int=1), uuid.UUID(int=2), [uuid.UUID(int=3)]),
    ("binary", b"\x00", b"\xff" * 300, [b"\x01"]),
    ("string", "", "</svg>" * 90, ["b" * 500, "\x00"]),
    ("string", None, None, ["a"]),
    ("long", None, 7, [3, 9]),
    ("long", 7, None, [7]),
    ("int", 1, 9, list(range(40))),
]


@pytest.mark.parametrize("width", [420, 900])
@pytest.mark.parametrize("operator", ["=", "<", ">=", "in", "starts with"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {len(case[3])}")
def test_bounds_of_any_type_are_a_picture(case: tuple[str, Any, Any, list[Any]], operator: str, width: int) -> None:
    """Each type, unknown bounds, literals far away or very close."""
    check_picture(build_bounds_figure(*case, width=width, operator=operator, predicate="<p> " + "x" * 300))


def marks(*case: Any, **more: Any) -> tuple[list[float], tuple[float, float], list[str]]:
    """Return where the literals lie, where the bounds are drawn, and what is written."""
    elements = check_picture(build_bounds_figure(*case, width=900, **more))
    needles = [box[0] for one in elements if one.attrib.get("class") == "i-needle" and (box := find_box(one))]
    bar = next(box for one in elements if one.attrib.get("class", "").split(" ")[0] in ("i-data", "i-missing")
               and (box := find_box(one)))  # fmt: skip
    return needles, (bar[0], bar[2]), texts(elements)


def test_a_literal_lies_where_its_order_puts_it() -> None:
    """Inside or outside of the bounds, also of strings, and of whole numbers that a float cannot tell apart."""
    for case, is_inside in (
        (("long", 10, 80, [45]), True),
        (("string", "apple", "banana", ["cherry"]), False),
        (("long", 9_007_199_254_740_992, 9_007_199_254_740_994, [9_007_199_254_740_993]), True),
        (("date", dt.date(2026, 9, 1), dt.date(2026, 9, 2), [dt.date(2026, 8, 31)]), False),
    ):
        (needle,), (low, high), said = marks(*case)
        assert (low <= needle <= high) == is_inside
        assert ("in order, not to scale" in said) == (case[0] == "string" or case[1] == 9_007_199_254_740_992)


@pytest.mark.parametrize("width", [240, 300, 354, 420, 446, 560, 900])
@pytest.mark.parametrize("literal", [dt.datetime(2026, 9, 5, 9), dt.datetime(2026, 9, 1), dt.datetime(2027, 1, 1)])
def test_bounds_are_written_whole_and_apart_at_every_width(width: int, literal: dt.datetime) -> None:
    """Near their ends where there is room, on two lines where there is not."""
    day = dt.datetime(2026, 9, 5, tzinfo=UTC)
    ends = [day + dt.timedelta(hours=8, seconds=28.134534), day + dt.timedelta(hours=10, seconds=3463.294718)]
    labels = [f"{end:%Y-%m-%d %H:%M:%S.%f} UTC" for end in ends]
    value = literal.replace(tzinfo=UTC)
    picture = build_bounds_figure("timestamptz", *ends, [value], width=width, operator="<")
    elements = [element for element in check_picture(picture) if element.text in labels]
    assert [element.text for element in elements] == labels
    boxes = [(float(e.attrib["x"]), float(e.attrib["y"]), text_width(e.text or "") / 2) for e in elements]
    assert all(half <= x <= width - half for x, _, half in boxes)
    (left, first, half), (right, second, other) = boxes
    assert first != second or left + half < right - other


def test_unknown_bounds_say_so() -> None:
    """They reach to the edge of the picture, and no value is made up."""
    assert "bounds unknown: nothing can be skipped by them" in marks("long", None, None, [3])[2]
    _, (low, _), said = marks("long", None, 7, [3])
    assert low == 0
    assert "unknown" in said


def test_many_literals_are_counted() -> None:
    """Those within the bounds are drawn, the others counted."""
    needles, (low, high), said = marks("int", 35, 37, list(range(40)), operator="in")
    assert sum(low <= at <= high for at in needles) == 3
    assert "in order, not to scale · 35 other literals" in said


def test_names_of_any_length_are_cut_at_once() -> None:
    name = "of many words " * 10_000
    strengths = {(0, 1): (0.5, "0:0", "half")}
    for picture in (
        build_pairs_figure([name, "b"], strengths, chosen=(), width=320),
        build_values_figure([(name, 1, 1)], 2, width=320),
    ):
        assert any("…" in text for text in texts(parse_svg(picture.svg)))


def test_values_that_have_room_are_written_whole() -> None:
    """Their room is their own width with a margin, less the margin."""
    values = [str(number) for number in range(1, 200)]
    for longest in range(1, len(values)):
        shown = values[max(longest - 12, 0) : longest]
        drawn = texts(parse_svg(build_values_figure([(one, 1, 1) for one in shown], 20, width=320).svg))
        assert set(shown) <= set(drawn)
