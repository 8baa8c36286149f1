"""Partitions: a heat map of two partition fields, a calendar of days, or bars."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc

from icestats.metadata import PartitionField, PartitionSpec, Schema
from icestats.partition_values import display_partition_value, partition_field_type
from icestats.presentation import render_bytes, render_count
from icestats_widgets.figure_style import DATA, build_axis, build_layout, escape_label

HEIGHT = 380
MOST_PLACES = 400
"""Places along an axis; further partitions are left out, which the caption says."""
COLOURS = "Viridis"
_SKEWED = 5
"""Where the largest is so many times the middle one, colours stand for the logarithm."""
_MOST_GAPS = 40
TIME_TRANSFORMS = ("year", "month", "day", "hour")
VALUES = {
    "records": "data_record_count",
    "files": "data_file_count",
    "bytes": "total_data_file_size_in_bytes",
}
_SUMMED = (*VALUES.values(), "position_delete_record_count", "equality_delete_record_count")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOVER = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]} records<br>%{customdata[2]} files<br>%{customdata[3]}"
    "<br>%{customdata[4]} delete records<extra></extra>"
)


@dataclass(frozen=True)
class PartitionPicture:
    """A figure, and what a person has to know of it."""

    figure: go.Figure
    caption: str


@dataclass(frozen=True)
class _Axis:
    """The places along an axis, in order: the values as stored, and as a person reads them."""

    field: PartitionField
    type: str
    values: list[Any]

    def label(self, value: Any) -> str:
        return display_partition_value(self.field.transform, self.type, value)

    def ticks(self, most: int, longest: int = 18) -> dict[str, Any]:
        step = max(1, -(-len(self.values) // most))
        places = list(range(0, len(self.values), step))
        texts = [escape_label(self.label(self.values[i]), longest=longest) for i in places]
        return {"type": "linear", "tickmode": "array", "tickvals": places, "ticktext": texts}


def build_partition_figure(
    partitions: pa.Table, specs: Mapping[int, PartitionSpec], default_spec_id: int, schema: Schema, value: str
) -> PartitionPicture | None:
    """Build the figure of the partitions.

    Parameters
    ----------
    partitions : pyarrow.Table
        `schemas.partitions_schema`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    default_spec_id : int
        The spec whose partitions are drawn where it has any; else the newest that has.
    schema : Schema
        Types the partition fields.
    value : {"records", "files", "bytes"}
        What colour, or height, stands for: of data files, deletes not applied.

    Returns
    -------
    PartitionPicture or None
        None where there is nothing to draw: no partitions, or no partition fields.
    """
    found = sorted({spec for spec in partitions["spec_id"].to_pylist() if _fields(specs[spec], schema)})
    if not found:
        return None
    spec_id = default_spec_id if default_spec_id in found else found[-1]
    fields = _fields(specs[spec_id], schema)
    rows = partitions.filter(pc.equal(partitions["spec_id"], spec_id))
    shown = _shown(fields)
    cells = _cells(rows, [field for field, _ in shown])
    axes = [_axis(field, kind, [key[i] for key in cells]) for i, (field, kind) in enumerate(shown)]
    caption = _caption(partitions.num_rows, rows.num_rows, [f for f, _ in fields if f not in [s for s, _ in shown]])
    caption += "".join(_left_out(axis, [key[i] for key in cells]) for i, axis in enumerate(axes))
    if len(axes) == 2:
        return PartitionPicture(_heat_map(axes[0], axes[1], cells, value), caption)
    if axes[0].field.transform == "day" and len(axes[0].values) > 14:
        return PartitionPicture(_calendar(axes[0], cells, value), caption)
    return PartitionPicture(_bars(axes[0], cells, value), caption)


def _fields(spec: PartitionSpec, schema: Schema) -> list[tuple[PartitionField, str]]:
    typed = ((field, partition_field_type(field, schema)) for field in spec.fields if field.transform != "void")
    return [(field, kind) for field, kind in typed if kind is not None]


def _shown(fields: list[tuple[PartitionField, str]]) -> list[tuple[PartitionField, str]]:
    return sorted(fields[:2], key=lambda pair: pair[0].transform not in TIME_TRANSFORMS)


def _cells(rows: pa.Table, fields: Sequence[PartitionField]) -> dict[tuple[Any, ...], list[int]]:
    cells: dict[tuple[Any, ...], list[int]] = {}
    for row in rows.select(["partition", *_SUMMED]).to_pylist():
        key = tuple(_stored(row["partition"].get(field.name)) for field in fields)
        figures = [row[name] for name in _SUMMED]
        cells[key] = [a + b for a, b in zip(cells[key], figures, strict=True)] if key in cells else figures
    return cells


def _stored(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.time) else value


def _axis(field: PartitionField, kind: str, values: Sequence[Any]) -> _Axis:
    known = sorted({value for value in values if value is not None})
    filled = _with_gaps(known, field.transform)
    nulls = [None] if any(value is None for value in values) else []
    newest = field.transform in TIME_TRANSFORMS
    return _Axis(field, kind, nulls + (filled[-MOST_PLACES:] if newest else filled[:MOST_PLACES]))


def _with_gaps(values: list[Any], transform: str) -> list[Any]:
    # A day without rows is a gap that a person wants to see.
    if not values or not (transform in TIME_TRANSFORMS or transform.startswith("bucket")):
        return values
    first, last = values[0], values[-1]
    if isinstance(first, dt.date):
        days = (last - first).days
        return [first + dt.timedelta(days=i) for i in range(days + 1)] if days < MOST_PLACES else values
    return list(range(first, last + 1)) if last - first < MOST_PLACES else values


def _caption(partition_count: int, drawn: int, summed: Sequence[PartitionField]) -> str:
    text = f"{partition_count:,} partitions"
    if drawn < partition_count:
        text += f", {partition_count - drawn:,} of them of other partition specs and not drawn"
    if summed:
        text += f", summed over {', '.join(field.name for field in summed)}"
    return text


def _left_out(axis: _Axis, values: Sequence[Any]) -> str:
    lacking = len(set(values)) - len(set(values) & set(axis.values))
    return f", {lacking:,} values of {axis.field.name} not drawn" if lacking else ""


def _hover(axes: Sequence[_Axis], key: tuple[Any, ...], figures: Sequence[int]) -> tuple[str, ...]:
    records, files, size_bytes, position, equality = figures
    name = " · ".join(
        f"{escape_label(axis.field.name)} = {escape_label(axis.label(value))}"
        for axis, value in zip(axes, key, strict=True)
    )
    return name, render_count(records), render_count(files), render_bytes(size_bytes), render_count(position + equality)


def _heat_map(across: _Axis, down: _Axis, cells: Mapping[tuple[Any, ...], list[int]], value: str) -> go.Figure:
    number = list(VALUES).index(value)
    grid: list[list[Any]] = [[None] * len(across.values) for _ in down.values]
    hovers: list[list[Any]] = [[("", "", "", "", "")] * len(across.values) for _ in down.values]
    columns = {v: i for i, v in enumerate(across.values)}
    lines = {v: i for i, v in enumerate(down.values)}
    for key, figures in cells.items():
        if key[0] in columns and key[1] in lines:
            grid[lines[key[1]]][columns[key[0]]] = figures[number]
            hovers[lines[key[1]]][columns[key[0]]] = _hover((across, down), key, figures)
    return go.Figure(
        [_heat(list(range(len(across.values))), list(range(len(down.values))), grid, hovers, value)],
        build_layout(
            HEIGHT,
            xaxis=build_axis(
                escape_label(across.field.name),
                showgrid=False,
                **across.ticks(3 if len(across.label(across.values[-1])) > 4 else 8),
            ),
            yaxis=build_axis(escape_label(down.field.name), showgrid=False, **down.ticks(17)),
        ),
    )


def _heat(x: list[int], y: list[int], z: list[list[Any]], hovers: list[list[Any]], value: str) -> go.Heatmap:
    known = sorted(figure for line in z for figure in line if figure is not None)
    is_skewed = known[-1] > _SKEWED * max(known[len(known) // 2], 1)
    bar: dict[str, Any] = {"thickness": 12, "outlinewidth": 0, "tickformat": "~s", "nticks": 6}
    low, high = 0.0, float(max(known[-1], 1))
    if is_skewed:
        # Colours of the logarithm; a partition with nothing in it has the colour of 1.
        z = [[None if figure is None else math.log10(max(figure, 1)) for figure in line] for line in z]
        low, high = math.floor(math.log10(max(known[0], 1))), math.log10(high)
        powers = list(range(math.floor(low), math.floor(high) + 1))
        bar |= {"tickmode": "array", "tickvals": powers, "ticktext": [f"{10**p:,}" for p in powers]}
    return go.Heatmap(
        name=value,
        x=x,
        y=y,
        z=z,
        customdata=hovers,
        hovertemplate=_HOVER,
        hoverongaps=False,
        colorscale=COLOURS,
        zmin=low,
        zmax=high,
        xgap=1 if len(x) <= _MOST_GAPS else 0,
        ygap=1 if len(y) <= _MOST_GAPS else 0,
        colorbar=bar | {"title": {"text": f"{value}, log scale" if is_skewed else value, "side": "right"}},
    )


def _calendar(axis: _Axis, cells: Mapping[tuple[Any, ...], list[int]], value: str) -> go.Figure:
    days = [day for day in axis.values if isinstance(day, dt.date)]
    monday = days[0] - dt.timedelta(days=days[0].weekday())
    weeks = (days[-1] - monday).days // 7 + 1
    number = list(VALUES).index(value)
    grid: list[list[Any]] = [[None] * weeks for _ in _WEEKDAYS]
    hovers: list[list[Any]] = [[("", "", "", "", "")] * weeks for _ in _WEEKDAYS]
    for key, figures in cells.items():
        if key[0] in days:
            week, weekday = divmod((key[0] - monday).days, 7)
            grid[weekday][week] = figures[number]
            hovers[weekday][week] = _hover((axis,), key, figures)
    step = max(1, -(-weeks // 8))
    places = list(range(0, weeks, step))
    labels = [(monday + dt.timedelta(weeks=week)).isoformat() for week in places]
    heat = _heat(list(range(weeks)), list(range(7)), grid, hovers, value)
    return go.Figure(
        [heat],
        build_layout(
            HEIGHT,
            xaxis=build_axis(f"{escape_label(axis.field.name)}, weeks from Monday", showgrid=False, tickmode="array",
                             tickvals=places, ticktext=labels),
            yaxis=build_axis(showgrid=False, tickmode="array", tickvals=list(range(7)), ticktext=_WEEKDAYS,
                             autorange="reversed"),
        ),
    )  # fmt: skip


def _bars(axis: _Axis, cells: Mapping[tuple[Any, ...], list[int]], value: str) -> go.Figure:
    number = list(VALUES).index(value)
    places = [(i, v) for i, v in enumerate(axis.values) if (v,) in cells]
    bars = go.Bar(
        name=value,
        x=[i for i, _ in places],
        y=[cells[(v,)][number] for _, v in places],
        customdata=[_hover((axis,), (v,), cells[(v,)]) for _, v in places],
        hovertemplate=_HOVER,
        marker={"color": DATA, "line": {"width": 0}},
    )
    return go.Figure(
        [bars],
        build_layout(
            HEIGHT,
            bargap=0.15,
            xaxis=build_axis(escape_label(axis.field.name), showgrid=False, **axis.ticks(12)),
            yaxis=build_axis(value, rangemode="tozero", tickformat="~s"),
        ),
    )
