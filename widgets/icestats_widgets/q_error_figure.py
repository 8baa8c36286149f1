"""How far off each source of statistics is, over a workload of filters."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from icestats_widgets.figure_style import DATA, MISSING, build_axis, build_layout, escape_label

_ROW_HEIGHT = 34
_MARGIN = 110
_PERFECT = 1.0


def build_q_error_figure(workload: pa.Table) -> go.Figure:
    """Build the figure of a workload's q-errors.

    Parameters
    ----------
    workload : pyarrow.Table
        `schemas.WORKLOAD`, as `Workload.to_arrow` gives it.

    Returns
    -------
    plotly.graph_objects.Figure
        Two traces: `q-errors`, one box per source with each filter as a point, on a logarithmic axis; `unknown`, the
        share of filters that each source cannot answer, on a separate scale. The first source is on top.
    """
    rows = workload.to_pylist()
    sources = list(dict.fromkeys(row["source"] for row in rows))
    labels = [escape_label(source) for source in sources]
    return go.Figure(
        [_boxes(rows), _unknown(rows, sources)],
        build_layout(
            _MARGIN + _ROW_HEIGHT * len(sources),
            margin={"l": 130, "r": 12, "t": 30, "b": 44, "autoexpand": True},
            xaxis=build_axis(
                "q-error (1 is perfect)",
                type="log",
                domain=[0.0, 0.8],
                rangemode="normal",
                dtick=1,
                exponentformat="none",
            ),
            xaxis2=build_axis("filters not answered", domain=[0.84, 1.0], range=[0, 1], tickformat=".0%", nticks=3),
            yaxis=build_axis("", type="category", categoryorder="array", categoryarray=labels[::-1], showgrid=False),
            shapes=[_perfect()],
        ),
    )


def _boxes(rows: list[dict[str, Any]]) -> go.Box:
    known = [row for row in rows if row["q_error"] is not None]
    hovers = [
        f"{escape_label(row['row_filter'], longest=120)}<br>{row['rows']:,.0f} estimated, {row['actual']:,} counted"
        for row in known
    ]
    return go.Box(
        name="q-errors",
        x=[row["q_error"] for row in known],
        y=[escape_label(row["source"]) for row in known],
        orientation="h",
        boxpoints="all",
        jitter=0.5,
        pointpos=0,
        marker={"color": DATA, "size": 4, "opacity": 0.6},
        line={"color": DATA, "width": 1},
        fillcolor="rgba(0,114,178,0.12)",
        text=hovers,
        hovertemplate="%{y}: q-error %{x:,.3g}<br>%{text}<extra></extra>",
    )


def _unknown(rows: list[dict[str, Any]], sources: list[str]) -> go.Bar:
    asked = {source: [row for row in rows if row["source"] == source] for source in sources}
    unanswered = [sum(row["q_error"] is None for row in asked[source]) for source in sources]
    return go.Bar(
        name="unknown",
        x=[count / len(asked[source]) for source, count in zip(sources, unanswered, strict=True)],
        y=[escape_label(source) for source in sources],
        orientation="h",
        xaxis="x2",
        marker={"color": MISSING},
        text=[f"{count:,} of {len(asked[source]):,}" for source, count in zip(sources, unanswered, strict=True)],
        hovertemplate="%{y}: %{text} filters not answered<extra></extra>",
        textposition="none",
    )


def _perfect() -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": _PERFECT,
        "x1": _PERFECT,
        "y0": 0,
        "y1": 1,
        "line": {"color": MISSING, "width": 1, "dash": "dot"},
    }
