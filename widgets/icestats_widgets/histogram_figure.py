"""A column's histogram with its error band, quantiles, nulls and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from icestats.answers.text import render_count
from icestats.iceberg.types import parse_type
from icestats.stats.histogram import Histogram
from icestats_widgets.axis import MS_A_DAY, axis_position, brief_label, is_time_type
from icestats_widgets.figure_style import DATA, ERROR, GRID, MISSING, TEXT, build_axis, build_layout, escape_label
from icestats_widgets.histogram_part import HistogramPart

HEIGHT = 380
MARKED_RANKS = {0.05: "5 %", 0.25: "25 %", 0.5: "median", 0.75: "75 %", 0.95: "95 %"}
"""Quantiles to draw; they are named if there is room."""
_NAME_WIDTH = 0.11
_MOST_TICKS = 16
_SIDE = 0.8
"""Where the nulls start, as a share of the width."""


@dataclass(frozen=True)
class _Bars:
    """The bars as plotly draws them."""

    edges: list[float]
    heights: list[float]
    errors: list[float]
    hovers: list[tuple[str, ...]]
    y_title: str


def build_histogram_figure(part: HistogramPart) -> go.Figure:
    """Build the figure of a histogram.

    Parameters
    ----------
    part : HistogramPart
        What to draw, and what lies outside.

    Returns
    -------
    plotly.graph_objects.Figure
        Always the same traces, so one figure can replace another: `values`, the bars; `at least` and `at most`, the
        bounds of each count; `quantile lines` and `quantiles`; `missing`, nulls and NaN on a separate scale.
    """
    histogram = part.histogram
    bars = _string_bars(histogram) if _is_labelled(histogram) else _number_bars(histogram)
    low = [max(0.0, height - error) for height, error in zip(bars.heights, bars.errors, strict=True)]
    high = [height + error for height, error in zip(bars.heights, bars.errors, strict=True)]
    lines, marks = _quantiles(part, bars)
    return go.Figure(
        [_values(bars), _band("at least", bars, low), _band("at most", bars, high), lines, marks, _missing(histogram)],
        _layout(part, bars, high),
    )


def _is_labelled(histogram: Histogram) -> bool:
    return parse_type(histogram.type).name in ("string", "boolean")


def _number_bars(histogram: Histogram) -> _Bars:
    edges = [axis_position(histogram.type, edge) for edge in histogram.edges]
    if len(edges) == 2 and edges[0] == edges[1]:
        edges = [edges[0] - 0.5, edges[0] + 0.5]
    error = histogram.count_error
    if histogram.kind == "equi-width":
        return _Bars(edges, list(histogram.counts), [error] * len(histogram.counts), _hovers(histogram), "values")
    unit, title = (MS_A_DAY, "values a day") if is_time_type(histogram.type) else (1, "values per unit")
    widths = [(b - a) / unit or 1.0 for a, b in pairwise(edges)]
    heights = [count / width for count, width in zip(histogram.counts, widths, strict=True)]
    return _Bars(edges, heights, [error / width for width in widths], _hovers(histogram), title)


def _string_bars(histogram: Histogram) -> _Bars:
    edges = [i - 0.5 for i in range(len(histogram.counts) + 1)]
    errors = [histogram.count_error] * len(histogram.counts)
    return _Bars(edges, list(histogram.counts), errors, _hovers(histogram), "values")


def _hovers(histogram: Histogram) -> list[tuple[str, ...]]:
    labels = [escape_label(brief_label(histogram.type, edge)) for edge in histogram.edges]
    error = histogram.count_error
    last = len(histogram.counts) - 1
    return [
        (
            _span(histogram, labels, i, is_last=i == last),
            f"{count:,.0f}",
            f"{max(0.0, count - error):,.0f} to {count + error:,.0f}" if error else "exact",
        )
        for i, count in enumerate(histogram.counts)
    ]


def _span(histogram: Histogram, labels: Sequence[str], i: int, *, is_last: bool) -> str:
    if histogram.type == "boolean" or labels[i] == labels[i + 1]:
        return labels[i]
    return f"{labels[i]} to {labels[i + 1]}" if is_last else f"{labels[i]} to below {labels[i + 1]}"


def _values(bars: _Bars) -> go.Bar:
    return go.Bar(
        name="values",
        x=[(a + b) / 2 for a, b in pairwise(bars.edges)],
        width=[b - a for a, b in pairwise(bars.edges)],
        y=bars.heights,
        customdata=bars.hovers,
        hovertemplate="%{customdata[0]}<br><b>%{customdata[1]}</b> values (%{customdata[2]})<extra></extra>",
        marker={"color": DATA, "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"}},
    )


def _band(name: str, bars: _Bars, heights: list[float]) -> go.Scatter:
    return go.Scatter(
        name=name,
        x=bars.edges,
        y=[*heights, *heights[-1:]],
        mode="lines",
        line={"shape": "hv", "width": 1, "color": ERROR},
        fill="none" if name == "at least" else "tonexty",
        fillcolor="rgba(230,159,0,0.25)",
        hoverinfo="skip",
    )


def _quantiles(part: HistogramPart, bars: _Bars) -> tuple[go.Scatter, go.Scatter]:
    histogram = part.histogram
    first, last = part.window or (min(bars.edges, default=0.0), max(bars.edges, default=0.0))
    found: list[tuple[float, float, Any]] = []
    if bars.edges and not _is_labelled(histogram):
        for rank in MARKED_RANKS:
            value = histogram.quantiles.get(rank)
            at = None if value is None else axis_position(histogram.type, value)
            if at is not None and first <= at <= last:
                found.append((rank, at, value))
    lines = go.Scatter(
        name="quantile lines",
        x=[x for _, at, _ in found for x in (at, at, None)],
        y=[y for _ in found for y in (0.0, 1.0, None)],
        yaxis="y3",
        mode="lines",
        line={"width": 1, "dash": "dot", "color": TEXT},
        hoverinfo="skip",
    )
    marks = go.Scatter(
        name="quantiles",
        x=[at for _, at, _ in found],
        y=[1.0] * len(found),
        yaxis="y3",
        mode="markers+text",
        marker={"symbol": "triangle-down", "size": 8, "color": TEXT},
        text=_names([(rank, at) for rank, at, _ in found], last - first),
        textposition="top center",
        cliponaxis=False,
        customdata=[(MARKED_RANKS[rank], escape_label(brief_label(histogram.type, value))) for rank, _, value in found],
        hovertemplate="%{customdata[0]}: <b>%{customdata[1]}</b><extra></extra>",
    )
    return lines, marks


def _names(found: list[tuple[float, float]], span: float) -> list[str]:
    # The median is named first; what would run into a name stays without one.
    room = _NAME_WIDTH * span
    named: dict[float, float] = {}
    for rank, at in sorted(found, key=lambda mark: abs(mark[0] - 0.5)):
        if all(abs(at - other) > room for other in named.values()):
            named[rank] = at
    return [MARKED_RANKS[rank] if rank in named else "" for rank, _ in found]


def _missing(histogram: Histogram) -> go.Bar:
    counts = {"null": histogram.null_count}
    if parse_type(histogram.type).name in ("float", "double"):
        counts["NaN"] = histogram.nan_count
    return go.Bar(
        name="missing",
        x=list(range(len(counts))),
        y=[count or 0 for count in counts.values()],
        text=[render_count(count) for count in counts.values()],
        textposition="outside",
        textangle=0,
        textfont={"size": 11},
        constraintext="none",
        cliponaxis=False,
        customdata=[(name, render_count(count)) for name, count in counts.items()],
        hovertemplate="%{customdata[0]}: <b>%{customdata[1]}</b><extra></extra>",
        xaxis="x2",
        yaxis="y2",
        width=[0.6] * len(counts),
        marker={"color": MISSING},
    )


def _layout(part: HistogramPart, bars: _Bars, high: list[float]) -> dict[str, Any]:
    histogram = part.histogram
    has_nan = parse_type(histogram.type).name in ("float", "double")
    missing = max(histogram.null_count or 0, histogram.nan_count or 0 if has_nan else 0, 1)
    names = ["null", "NaN"] if has_nan else ["null"]
    return build_layout(
        HEIGHT,
        margin={"l": 56, "r": 16, "t": 28, "b": 40},
        bargap=0,
        xaxis=_x_axis(part, bars),
        yaxis=build_axis(bars.y_title, range=[0, max(high, default=1.0) * 1.08 or 1.0], tickformat="~s"),
        xaxis2=build_axis(
            domain=[_SIDE + 0.02, 1.0],
            anchor="y2",
            tickmode="array",
            tickvals=list(range(len(names))),
            tickangle=0,
            ticktext=names,
            range=[-0.6, len(names) - 0.4],
            showgrid=False,
            fixedrange=True,
        ),
        yaxis2=build_axis(anchor="x2", range=[0, missing * 1.25], showticklabels=False, showgrid=False),
        yaxis3={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


def _x_axis(part: HistogramPart, bars: _Bars) -> dict[str, Any]:
    histogram = part.histogram
    span = list(part.window or (bars.edges[:1] + bars.edges[-1:])) or [0.0, 1.0]
    common = {"domain": [0.0, _SIDE], "range": span, "showgrid": False, "ticks": "outside", "tickcolor": GRID}
    title = escape_label(histogram.column)
    if _is_labelled(histogram):
        step = max(1, -(-len(histogram.counts) // _MOST_TICKS))
        places = list(range(0, len(histogram.counts), step))
        labels = [_tick(histogram, i) for i in places]
        return build_axis(
            f"{title}: from … on" if histogram.type == "string" else title,
            type="linear",
            tickmode="array",
            tickvals=places,
            ticktext=labels,
            tickformat="",
            **common,
        )
    kind = "date" if is_time_type(histogram.type) else "linear"
    clock = "%H:%M" if parse_type(histogram.type).name == "time" else ""
    return build_axis(title, type=kind, tickmode="auto", tickvals=[], ticktext=[], tickformat=clock, **common)


def _tick(histogram: Histogram, i: int) -> str:
    lower, upper = (escape_label(brief_label(histogram.type, edge), longest=14) for edge in histogram.edges[i : i + 2])
    is_wide_last = i == len(histogram.counts) - 1 and histogram.type == "string" and lower != upper
    return f"{lower} to {upper}" if is_wide_last else lower
