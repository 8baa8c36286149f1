"""A column's histogram with its error band, quantiles, nulls and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from icestats.answers.text import render_count
from icestats.iceberg.types import parse_type, to_integer
from icestats.stats.histogram import Histogram
from icestats_widgets.drawing.axes import AXIS_HEIGHT, draw_legend, draw_row_labels, draw_x_axis, draw_y_axis
from icestats_widgets.drawing.axis import MS_A_DAY, axis_position, brief_label, is_time_type
from icestats_widgets.drawing.canvas import Canvas, Picture, Plot, shorten, text_width
from icestats_widgets.drawing.scales import BandScale, LinearScale, LogScale, Scale, TimeScale, render_percent
from icestats_widgets.reading.histogram_part import HistogramPart

MARKED_RANKS = {0.5: "median", 0.05: "5%", 0.95: "95%", 0.25: "25%", 0.75: "75%"}
"""Quantiles to draw; they are named in this order while there is room."""
_HEIGHT, _LEFT, _TOP, _GAP, _SIDE = 320, 56, 46, 24, 62
_LONGEST_NAME = 200
_WHOLE = {"int": 1.0, "long": 1.0, "date": float(MS_A_DAY)}
"""How wide a whole number is on the axis, by type."""
_LEAST_WIDTH = 1e-290
"""Of a bin: a count by less is more than a number can be."""
_NARROW = 10
"""Bins of up to this many whole numbers are drawn as wide as these are."""


@dataclass(frozen=True)
class _Bar:
    start: float
    end: float
    height: float
    error: float
    title: str


@dataclass(frozen=True)
class _Note:
    text: str
    x: float
    y: float
    anchor: str
    """`start` or `end`."""

    @property
    def left(self) -> float:
        return self.x - (text_width(self.text) if self.anchor == "end" else 0)

    @property
    def right(self) -> float:
        return self.left + text_width(self.text)


def build_histogram_figure(
    part: HistogramPart,
    *,
    width: float,
    log_count: bool = False,
    log_value: bool = False,
    note: str = "",
) -> Picture:
    """Build the figure of a histogram.

    Parameters
    ----------
    part : HistogramPart
        What to draw, and what lies outside.
    width : float
        Pixels.
    log_count, log_value : bool
        Draw counts, or values, on a logarithmic axis; values only where `has_log_values`.
    note : str
        What must not be overlooked: a line in the picture.

    Returns
    -------
    Picture
        The plot `values`: a bar a bin, whose key is the bin's number. Strings and booleans are bars that lie, named
        at their left; all else stands on an axis of numbers or times. Nulls and NaN are beside, as shares of all rows.
    """
    histogram = part.histogram
    canvas = Canvas(width, _HEIGHT, f"Histogram of {histogram.column}: {histogram.n:,} values")
    top = _TOP + (18 if note else 0)
    if note:
        canvas.text(4, 14, shorten(f"⚠ {note}", width - 8), "note strong")
    missing = _missing(histogram)
    right = width - _SIDE * len(missing) - _GAP
    if _is_labelled(histogram):
        _draw_labelled(canvas, histogram, top - 20, right, _HEIGHT - AXIS_HEIGHT - top + 20, log_count)
    else:
        _draw_numbers(canvas, part, top, right, _HEIGHT - AXIS_HEIGHT - top, (log_count, log_value))
    _draw_missing(canvas, missing, histogram.n, top - 20, _HEIGHT - AXIS_HEIGHT - top + 20)
    return canvas.picture()


def has_log_values(part: HistogramPart) -> bool:
    """Return whether the values of a histogram can lie on a logarithmic axis: numbers, none of them negative."""
    histogram = part.histogram
    if _is_labelled(histogram) or is_time_type(histogram.type) or not histogram.edges:
        return False
    ends = [axis_position(histogram.type, edge) for edge in (histogram.edges[0], histogram.edges[-1])]
    return ends[0] >= 0 and ends[1] > max(ends[0], 0)


def _is_labelled(histogram: Histogram) -> bool:
    return parse_type(histogram.type).name in ("string", "boolean")


def _draw_numbers(
    canvas: Canvas, part: HistogramPart, top: float, right: float, height: float, logs: tuple[bool, bool]
) -> None:
    histogram = part.histogram
    log_value = logs[1] and has_log_values(part)
    bars, unit = _bars(part, log_value)
    ends = part.window or ((bars[0].start, bars[-1].end) if bars else (0.0, 1.0))
    x = _value_scale(histogram, ends, bars, is_log=log_value)
    shown = [bar for bar in bars if bar.end >= ends[0] and bar.start <= ends[1]]
    plot = canvas.plot(Plot("values", _LEFT, top, right - _LEFT, height, x, _count_scale(shown, logs[0], unit)))
    draw_y_axis(canvas, plot)
    _draw_head(canvas, top - 32, f"{unit}, log scale" if logs[0] else unit, histogram)
    for number, bar in enumerate(bars):
        if bar in shown:
            _draw_bar(canvas, plot, number, bar)
    _draw_band(canvas, plot, shown)
    draw_x_axis(canvas, plot, f"{histogram.column}, log scale" if log_value else histogram.column)
    beyond = (bars[0].start < ends[0], bars[-1].end > ends[1]) if bars else (False, False)
    notes = _place_outside(plot, part, beyond)
    _draw_quantiles(canvas, plot, histogram, ends, notes)
    for note in notes:
        canvas.text(note.x, note.y, note.text, "quiet halo", anchor=note.anchor)


def _draw_head(canvas: Canvas, y: float, unit: str, histogram: Histogram) -> None:
    band = [("error soft", f"± {histogram.count_error:,.0f} values at 99% confidence")] if histogram.rank_error else []
    draw_legend(canvas, 4, y, [("data", unit), *band])


def _bars(part: HistogramPart, log_value: bool) -> tuple[list[_Bar], str]:
    histogram, edges = part.histogram, edge_positions(part)
    widths, unit = [1.0] * len(histogram.counts), "values"
    if histogram.kind == "equi-height":
        step, unit = (MS_A_DAY, "values a day") if is_time_type(histogram.type) else (1, "values per unit")
        widths = [max((b - a) / step, _LEAST_WIDTH) if b > a else 1.0 for a, b in pairwise(edges)]
    if log_value and histogram.kind == "equi-height":
        scale, unit = LogScale(1, 10), "values a decade"
        least = _least_positive(edges)
        widths = [scale.position(b) - scale.position(max(a, least)) or 1.0 for a, b in pairwise(edges)]
    titles = _titles(histogram)
    error = histogram.count_error
    ends = zip(pairwise(edges), histogram.counts, widths, titles, strict=True)
    return [_Bar(a, b, count / width, error / width, title) for (a, b), count, width, title in ends], unit


def edge_positions(part: HistogramPart) -> list[float]:
    """Return where the edges of the bins are drawn."""
    histogram = part.histogram
    edges = [axis_position(histogram.type, edge) for edge in histogram.edges]
    whole = _WHOLE.get(histogram.type)
    if whole and len(edges) > 1 and histogram.kind == "equi-width" and edges[1] - edges[0] <= _NARROW * whole:
        # A whole number is as wide as its distance to the next; the last bin has its upper edge too.
        start = 0.0 if histogram.type == "date" else 0.5
        last = edges[-1] + (0.0 if part.above else whole)
        return [edge - start for edge in (*edges[:-1], last)]
    if len(edges) == 2 and edges[0] == edges[1]:
        return [edges[0] - 0.5, edges[0] + 0.5]
    return edges


def _least_positive(edges: Sequence[float]) -> float:
    # A first bin from 0 on has no place on a logarithmic axis: it is drawn half a decade wide.
    positive = min((edge for edge in edges if edge > 0), default=1.0)
    return positive / 3 if edges and edges[0] <= 0 else positive


def _value_scale(histogram: Histogram, ends: tuple[float, float], bars: Sequence[_Bar], *, is_log: bool) -> Scale:
    if is_log:
        least = _least_positive([edge for bar in bars for edge in (bar.start, bar.end)])
        return LogScale(max(ends[0], least), max(ends[1], least))
    if is_time_type(histogram.type):
        return TimeScale(*ends, is_clock=histogram.type == "time")
    return LinearScale(*ends, is_whole=histogram.type in ("int", "long"))


def _count_scale(bars: Sequence[_Bar], is_log: bool, unit: str, *, upwards: bool = True) -> Scale:
    highest = max((bar.height + bar.error for bar in bars), default=1.0) or 1.0
    if is_log:
        lowest = min((bar.height for bar in bars if bar.height > 0), default=1.0)
        least = min(lowest, highest / 10) / 2
        return LogScale(highest * 1.3, least) if upwards else LogScale(least, highest * 1.3)
    is_whole = unit == "values" and highest >= 1
    ends = (highest * 1.05, 0.0) if upwards else (0.0, highest * 1.05)
    return LinearScale(*ends, is_whole=is_whole)


def _draw_bar(canvas: Canvas, plot: Plot, number: int, bar: _Bar) -> None:
    left, right = plot.x_at(bar.start), plot.x_at(bar.end)
    gap = 1 if right - left > 4 else 0
    top = plot.y_at(bar.height) if bar.height else plot.bottom
    canvas.rect(left, top, max(right - left - gap, 0.5), plot.bottom - top, "data", key=str(number), title=bar.title)


def _draw_band(canvas: Canvas, plot: Plot, bars: Sequence[_Bar]) -> None:
    if not bars or not any(bar.error for bar in bars):
        return
    low, middle, high = (_steps(plot, bars, sign) for sign in (-1, 0, 1))
    canvas.path([*high, *reversed(middle)], "error soft", is_closed=True)
    canvas.path(high, "error edge")
    canvas.path(low, "error edge")


def _steps(plot: Plot, bars: Sequence[_Bar], sign: int) -> list[tuple[float, float]]:
    heights = [plot.y_at(max(0.0, bar.height + sign * bar.error)) for bar in bars]
    return [(plot.x_at(at), y) for bar, y in zip(bars, heights, strict=True) for at in (bar.start, bar.end)]


def _draw_quantiles(
    canvas: Canvas, plot: Plot, histogram: Histogram, ends: tuple[float, float], notes: Sequence[_Note]
) -> None:
    taken: list[tuple[float, float]] = []
    for rank, name in MARKED_RANKS.items():
        value = histogram.quantiles.get(rank)
        at = None if value is None else axis_position(histogram.type, value)
        if at is None or not ends[0] <= at <= ends[1]:
            continue
        x, text = plot.x_at(at), _brief(histogram.type, value)
        # The line begins below a note that it would touch.
        top = max([plot.top, *(note.y + 5 for note in notes if note.left - 4 <= x <= note.right + 4)])
        canvas.line((x, top), (x, plot.bottom), "dotted")
        mark = [(x - 4, plot.top - 6), (x + 4, plot.top - 6), (x, plot.top)]
        canvas.path(mark, "quiet", is_closed=True, title=f"{name}: {text}")
        for label in (f"{name} {shorten(text, 120)}", name):
            half = text_width(label) / 2
            middle = min(max(x, half + 2), plot.right + _GAP - half)
            if all(middle - half > b + 8 or middle + half < a - 8 for a, b in taken):
                canvas.text(middle, plot.top - 9, label, anchor="middle")
                taken.append((middle - half, middle + half))
                break


def _place_outside(plot: Plot, part: HistogramPart, beyond: tuple[bool, bool]) -> list[_Note]:
    """Return what is said of values that are not drawn."""
    quantiles, kind, notes = part.histogram.quantiles, part.histogram.type, []
    for count, is_more, rank, anchor, x in (
        (part.below, beyond[0], 0.0, "start", plot.left + 4),
        (part.above, beyond[1], 1.0, "end", plot.right - 4),
    ):
        if count or is_more:
            many = f"{count:,.0f} values " if count else ""
            end = f" to {shorten(_brief(kind, quantiles[rank]), 140)}" if rank in quantiles else ""
            text = f"◂ {many}below,{end}" if anchor == "start" else f"{many}above,{end} ▸"
            y = plot.top + (12 if anchor == "start" else 26)
            notes.append(_Note(shorten(text, plot.width - 8), x, y, anchor))
    return notes


def _draw_labelled(
    canvas: Canvas, histogram: Histogram, top: float, right: float, height: float, log_count: bool
) -> None:
    error, titles = histogram.count_error, _titles(histogram)
    labels = tuple(_name(histogram, number) for number in range(len(histogram.counts)))
    bars = [_Bar(i, i, count, error, titles[i]) for i, count in enumerate(histogram.counts)]
    left = 16 + min(_LONGEST_NAME, max(map(text_width, labels), default=40))
    x = _count_scale(bars, log_count, "values", upwards=False)
    plot = canvas.plot(Plot("values", left, top, right - left, height, x, BandScale(labels)))
    draw_x_axis(canvas, plot, histogram.column, has_grid=True)
    draw_row_labels(canvas, plot)
    _draw_head(canvas, top - 10, "values, log scale" if log_count else "values", histogram)
    pitch = plot.height / max(1, len(bars))
    thick = min(pitch - (1 if pitch > 3 else 0), 26)
    for number, bar in enumerate(bars):
        y = plot.y_at(number) - thick / 2
        length = plot.x_at(bar.height) - plot.left if bar.height else 0
        canvas.rect(plot.left, y, length, thick, "data", key=str(number), title=bar.title)
        if error:
            low, high = plot.x_at(max(0.0, bar.height - error)), plot.x_at(bar.height + error)
            canvas.rect(plot.left + length, y, high - plot.left - length, thick, "error soft")
            canvas.path([(low, y), (low, y + thick)], "error edge")
            canvas.path([(high, y), (high, y + thick)], "error edge")


def _name(histogram: Histogram, number: int) -> str:
    lower, upper = (
        shorten(brief_label(histogram.type, edge), _LONGEST_NAME) for edge in histogram.edges[number : number + 2]
    )
    if histogram.type == "boolean" or number < len(histogram.counts) - 1 or lower == upper:
        return lower or '""'
    return f"{lower} to {upper}"


def _titles(histogram: Histogram) -> list[str]:
    labels = [shorten(brief_label(histogram.type, edge), 600) or '""' for edge in histogram.edges]
    error, last = histogram.count_error, len(histogram.counts) - 1
    # The sketch still holds every value: a bin that begins with one and ends before the next has no other.
    is_listed = histogram.type == "string" and not error and bool(histogram.edges) and labels[-1] == labels[-2]
    titles = []
    for i, count in enumerate(histogram.counts):
        span = f"{labels[i]} to {'' if i == last else 'below '}{labels[i + 1]}"
        edges = histogram.edges[i : i + 2]
        is_next = i < last and histogram.type in _WHOLE and to_integer(edges[1]) - to_integer(edges[0]) == 1
        if histogram.type == "boolean" or is_listed or is_next or labels[i] == labels[i + 1]:
            span = labels[i]
        exact = f"{max(0.0, count - error):,.0f} to {count + error:,.0f} at 99% confidence" if error else "exact"
        titles.append(f"{span}\n{count:,.0f} values ({exact})")
    return titles


def _missing(histogram: Histogram) -> dict[str, int | None]:
    is_float = parse_type(histogram.type).name in ("float", "double")
    return {"null": histogram.null_count} | ({"NaN": histogram.nan_count} if is_float else {})


def _draw_missing(canvas: Canvas, counts: dict[str, int | None], others: int, top: float, height: float) -> None:
    total = others + sum(count or 0 for count in counts.values())
    wide = _SIDE * len(counts)
    plot = Plot("missing", canvas.width - wide, top, wide, height, BandScale(tuple(counts)), LinearScale(1, 0))
    for place, (name, count) in enumerate(counts.items()):
        middle, y = plot.x_at(place), plot.y_at((count or 0) / max(total, 1))
        share = "" if count is None or not total else f", {render_percent(count / total)} of {total:,} rows"
        title = f"{name}: {render_count(count)}{share}"
        canvas.rect(middle - 11, plot.top, 22, plot.height, "line", title=title)
        canvas.rect(middle - 11, y, 22, plot.bottom - y, "missing", title=title)
        canvas.text(middle, plot.bottom + 15, name, anchor="middle")
        text = "unknown" if count is None else render_percent(count / max(total, 1))
        canvas.text(middle, plot.top - 6, text, anchor="middle")
    canvas.text(plot.left + wide / 2, plot.bottom + 30, "of rows", anchor="middle")


def _brief(type_text: str, value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 10_000 else brief_label(type_text, value)
