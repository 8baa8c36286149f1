from __future__ import annotations

import datetime as dt
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icestats.iceberg.types import to_integer
from icestats_widgets.drawing.axes import draw_x_axis, draw_y_axis, fit_ticks
from icestats_widgets.drawing.canvas import Canvas, Plot, shorten, text_width
from icestats_widgets.drawing.scales import BandScale, LinearScale, LogScale, Scale, TimeScale
from tests.pictures import check_labels, check_picture, parse_svg, texts

FINITE = st.floats(-1e300, 1e300)
TIMES = st.integers(-62_135_596_800_000, 253_402_300_799_000)


def scales() -> st.SearchStrategy[Scale]:
    numbers = st.tuples(FINITE, FINITE)
    positive = st.tuples(st.floats(1e-12, 1e12), st.floats(1.1, 1e9)).map(lambda one: (one[0], one[0] * one[1]))
    return st.one_of(
        numbers.map(lambda ends: LinearScale(*ends)),
        numbers.map(lambda ends: LinearScale(*map(round, ends), is_whole=True)),
        positive.map(lambda ends: LogScale(*ends)),
        positive.map(lambda ends: LogScale(*ends[::-1])),
        st.tuples(TIMES, TIMES).map(lambda ends: TimeScale(*map(float, sorted(ends)))),
        st.tuples(st.floats(-1e17, 1e17), st.floats(0, 1e17)).map(lambda one: TimeScale(one[0], one[0] + one[1])),
    )


@given(FINITE, FINITE, st.floats(0, 1))
def test_a_position_is_the_value_again(start: float, end: float, share: float) -> None:
    """invert(position(value)) is the value, but for what a float cannot hold."""
    scale = LinearScale(start, end)
    value = start * (1 - share) + end * share
    if start != end:
        assert scale.invert(scale.position(value)) == pytest.approx(
            value, abs=max(abs(start), abs(end)) * 1e-9 + 1e-300
        )


@given(st.floats(1e-9, 1e9), st.floats(1.01, 1e9), st.floats(0, 1))
def test_a_logarithm_is_the_value_again(start: float, factor: float, share: float) -> None:
    """On a logarithmic axis too; 0 and what is below lie at its smaller end."""
    scale = LogScale(start, start * factor)
    value = start * factor**share
    assert scale.invert(scale.position(value)) == pytest.approx(value, rel=1e-6)
    assert scale.position(0) == scale.position(-5) == 0
    assert LogScale(start * factor, start).position(0) == 1


def test_a_logarithm_of_one_decade_has_round_numbers_all_along() -> None:
    assert [value for value, _ in LogScale(24e3, 250e3).ticks(6)] == [50e3, 100e3, 200e3]
    assert [value for value, _ in LogScale(24e3, 80e3).ticks(6)] == [30e3, 40e3, 50e3, 60e3, 70e3, 80e3]


@given(st.integers(1, 400), st.data())
def test_a_place_is_its_number_again(count: int, data: Any) -> None:
    """The middle of a place, and each end of a drag, give a place there is."""
    scale = BandScale(tuple(map(str, range(count))))
    place = data.draw(st.integers(0, count - 1))
    assert scale.invert(scale.position(place)) == place
    assert (scale.invert(-0.5), scale.invert(1.0)) == (0, count - 1)


@given(scales(), st.integers(1, 20))
@example(TimeScale(0.0, 0.0), 3)
@example(LinearScale(5.0, 5.0), 3)
@example(LinearScale(0.0, 5e-324), 5)
@example(LinearScale(0.0, 2.225073858507e-311), 1)
@example(LinearScale(-1.7e308, 1.7e308), 5)
def test_ticks_lie_within_and_have_labels_of_their_own(scale: Scale, count: int) -> None:
    """Ticks rise, lie on the axis, are about as many as were asked for, and no two read alike."""
    ticks = scale.ticks(count)
    values = [value for value, _ in ticks]
    assert all(a < b for a, b in pairwise(values))
    assert all(-1e-6 <= scale.position(value) <= 1 + 1e-6 for value in values)
    assert len(ticks) <= 3 * count + 3
    if not isinstance(scale, TimeScale):
        assert len({text for _, text in ticks}) == len(ticks)


@given(scales(), st.integers(120, 1400))
def test_labels_of_an_axis_do_not_collide(scale: Scale, width: int) -> None:
    """Below a plot and beside it, whatever its size."""
    canvas = Canvas(width, 200, "an axis")
    plot = canvas.plot(Plot("one", 60, 20, width - 80, 140, scale, scale))
    draw_x_axis(canvas, plot, "a title")
    draw_y_axis(canvas, plot)
    check_labels(parse_svg(canvas.picture().svg))


def test_names_are_thinned_and_cut_short() -> None:
    """Long names take the place of several; what is left out of one is in its middle."""
    scale = BandScale(tuple(f"a name that is rather long {i:03}" for i in range(200)))
    canvas = Canvas(640, 200, "names")
    draw_x_axis(canvas, canvas.plot(Plot("one", 40, 20, 580, 140, scale, scale)))
    elements = check_picture(canvas.picture())
    assert 2 <= len(texts(elements)) <= 6
    assert all("…" in text for text in texts(elements))
    assert len(fit_ticks(scale, 140, 13)) <= 10


@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        (dt.datetime(2026, 9, 1), dt.datetime(2026, 9, 1, 4), ["1 Sep 2026 00:00", "02:00", "04:00"]),
        (dt.datetime(2025, 12, 1), dt.datetime(2026, 2, 1), ["Dec 2025", "Jan 2026", "Feb"]),
        (dt.datetime(2012, 1, 1), dt.datetime(2026, 1, 1), ["2015", "2020", "2025"]),
        (dt.datetime(2026, 9, 1), dt.datetime(2026, 9, 4), ["1 Sep 2026", "2 Sep", "3 Sep", "4 Sep"]),
    ],
)
def test_times_say_what_differs(start: dt.datetime, end: dt.datetime, labels: list[str]) -> None:
    """The year stands once, and so does the day of several hours."""
    scale = TimeScale(*(to_integer(moment) / 1000 for moment in (start, end)))
    assert [text for _, text in scale.ticks(3)] == labels


@given(st.text(max_size=60), st.integers(0, 300))
def test_a_text_is_cut_to_its_width(text: str, width: int) -> None:
    """Nothing is wider than its room, but for the sign that it is cut."""
    shown = shorten(text, width)
    assert text_width(shown) <= max(width, text_width("…"))


@given(st.text(max_size=80))
@example("</title><script>alert(1)</script>\x00\ud800\u202e&\"'")
def test_text_of_a_table_is_no_markup(text: str) -> None:
    """Labels, titles and keys come back as text, whatever is in them."""
    canvas = Canvas(100, 100, text)
    canvas.plot(Plot(text, 0, 0, 100, 100, LinearScale(0, 1), LinearScale(0, 1)))
    canvas.rect(0, 0, 10, 10, "data", key=text, title=text)
    canvas.text(5, 50, text)
    elements = parse_svg(canvas.picture().svg)
    assert [one.tag for one in elements if one.tag not in ("title", "text")] == ["svg", "style", "g", "rect", "rect"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_mark_lies_nowhere(value: float) -> None:
    """A mistake of the kit's own is an error, not `MNaN` in a browser's console."""
    with pytest.raises(ValueError, match="no coordinate"):
        Canvas(10, 10, "").rect(value, 0, 1, 1, "data")
