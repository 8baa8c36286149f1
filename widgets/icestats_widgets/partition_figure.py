"""Partitions: a heat map of two partition fields, a calendar of one, or bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats_widgets.figure_style import DATA, GRID, build_axis, build_layout, escape_label
from icestats_widgets.partition_board import VALUES, Board, Key, sum_cells

HEIGHT = 360
COLOURS = "Viridis"
_SKEWED = 5
"""If the largest value is this many times the median, colours are logarithmic."""
_MOST_GAPS = 40
_MOST_TICKS_DOWN = 17


def build_partition_figure(board: Board, partitions: pa.Table, value: str) -> go.Figure:
    """Build the figure of the partitions.

    Parameters
    ----------
    board : Board
        Where they are drawn.
    partitions : pyarrow.Table
        Rows with `partition`, `spec_id` and the sums of `partition_board.SUMMED`: all rows, or those of a part.
    value : {"records", "files", "bytes"}
        What colour or height shows, for data files with deletes not applied.
    """
    cells = sum_cells(partitions, board)
    number = list(VALUES).index(value)
    places = {key: place for key in cells if (place := board.place(key)) is not None}
    if board.calendar is None and len(board.axes) == 1:
        return _bars(board, cells, places, value)
    across, down = board.shape
    grid = np.full((down, across), np.nan)
    hovers = np.full((down, across), "", object)
    for key, (x, y) in places.items():
        grid[y, x] = cells[key][number]
        hovers[y, x] = _hover(board, key, cells[key])
    return go.Figure([_heat(grid, hovers, value)], _map_layout(board))


def describe_partitions(board: Board, partitions: pa.Table) -> str:
    """Return what a reader must know about the chart: how many partitions, and which are not drawn.

    Parameters
    ----------
    board : Board
        Where they are drawn.
    partitions : pyarrow.Table
        All partitions.
    """
    cells = sum_cells(partitions, board)
    of_spec = sum(1 for spec_id in partitions["spec_id"].to_pylist() if spec_id == board.spec_id)
    text = counted(partitions.num_rows, "partition")
    if of_spec < partitions.num_rows:
        text += f", {partitions.num_rows - of_spec:,} of them in other partition specs and not drawn"
    if board.summed:
        text += f", summed over {', '.join(board.summed)}"
    left_out = sum(board.place(key) is None for key in cells)
    return text + (f", {left_out:,} not drawn: only the newest times and the first values are" if left_out else "")


def _hover(board: Board, key: Key, figures: Sequence[int]) -> str:
    records, files, size_bytes, position, equality = figures
    name = " · ".join([axis.hovers[value] for axis, value in zip(board.axes, key, strict=True)])
    return (
        f"<b>{name}</b><br>{counted(records, 'record')}<br>{counted(files, 'file')}, {render_bytes(size_bytes)}"
        f"<br>{counted(position + equality, 'delete record')}"
    )


def _heat(grid: npt.NDArray[np.float64], hovers: npt.NDArray[np.object_], value: str) -> go.Heatmap:
    known = np.sort(grid[~np.isnan(grid)]) if np.isfinite(grid).any() else np.zeros(1)
    largest = max(float(known[-1]), 1.0)
    is_skewed = largest > _SKEWED * max(float(known[len(known) // 2]), 1.0)
    bar: dict[str, Any] = {"thickness": 12, "outlinewidth": 0, "tickformat": "~s", "nticks": 6}
    low, high = 0.0, largest
    if is_skewed:
        # Colours of the logarithm; a partition with nothing in it has the colour of 1.
        grid = np.log10(np.maximum(grid, 1.0))
        low, high = math.floor(math.log10(max(float(known[0]), 1.0))), math.log10(high)
        powers = list(range(math.floor(low), math.floor(high) + 1))
        bar |= {"tickmode": "array", "tickvals": powers, "ticktext": [f"{10**p:,}" for p in powers]}
    else:
        bar |= {"tickmode": "auto", "tickvals": [], "ticktext": []}
    # JSON has no NaN: a partition that is not there is null.
    cells = grid.astype(np.object_)
    cells[np.isnan(grid)] = None
    return go.Heatmap(
        name=value,
        z=cells,
        text=hovers,
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        colorscale=COLOURS,
        zmin=low,
        zmax=high,
        xgap=1 if grid.shape[1] <= _MOST_GAPS else 0,
        ygap=1 if grid.shape[0] <= _MOST_GAPS else 0,
        colorbar=bar | {"title": {"text": f"{value}, log scale" if is_skewed else value, "side": "right"}},
    )


def _map_layout(board: Board) -> dict[str, Any]:
    axis = board.axes[0]
    name = escape_label(axis.field.name)
    if board.calendar is not None:
        calendar = board.calendar
        x = build_axis(
            f"{name}, {calendar.title}", showgrid=False, **_ticks([calendar.label(i) for i in range(board.shape[0])], 6)
        )
        y = build_axis(showgrid=False, autorange="reversed", **_ticks(list(calendar.rows), 12))
    else:
        down = board.axes[1]
        labels = [axis.label(value) for value in axis.values]
        x = build_axis(name, showgrid=False, **_ticks(labels, 4 if len(labels[-1]) > 4 else 8))
        y = build_axis(
            escape_label(down.field.name),
            showgrid=False,
            **_ticks([down.label(v) for v in down.values], _MOST_TICKS_DOWN),
        )
    return build_layout(HEIGHT, dragmode=False, xaxis=x, yaxis=y)


def _ticks(labels: Sequence[str], most: int, longest: int = 18) -> dict[str, Any]:
    step = max(1, -(-len(labels) // most))
    places = list(range(0, len(labels), step))
    texts = [escape_label(labels[place], longest=longest) for place in places]
    return {"type": "linear", "tickmode": "array", "tickvals": places, "ticktext": texts}


def _bars(board: Board, cells: Mapping[Key, list[int]], places: Mapping[Key, tuple[int, int]], value: str) -> go.Figure:
    (axis,) = board.axes
    number = list(VALUES).index(value)
    drawn = sorted((place[0], key) for key, place in places.items())
    heights = [cells[key][number] for _, key in drawn]
    xs = [place for place, _ in drawn]
    bars = go.Bar(
        name=value,
        x=xs,
        y=heights,
        text=[_hover(board, key, cells[key]) for _, key in drawn],
        textposition="none",
        hovertemplate="%{text}<extra></extra>",
        marker={"color": DATA, "line": {"width": 0}},
    )
    labels = [axis.label(v) for v in axis.values]
    return go.Figure(
        [bars],
        build_layout(
            HEIGHT,
            dragmode=False,
            bargap=0.15,
            xaxis=build_axis(
                escape_label(axis.field.name), showgrid=False, range=[-0.6, len(labels) - 0.4], **_ticks(labels, 8)
            ),
            yaxis=build_axis(value, rangemode="tozero", tickformat="~s", gridcolor=GRID),
        ),
    )
