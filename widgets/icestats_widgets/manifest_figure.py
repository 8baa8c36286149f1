"""Manifests: what part of the key each covers, and how many records it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from icestats.metadata import PartitionField
from icestats.overview import KeyRange
from icestats.presentation import render_count
from icestats_widgets.axis import is_time_transform, key_interval
from icestats_widgets.figure_style import DATA, DELETES, build_axis, build_layout, escape_label, shorten_path

HEIGHT = 380
MOST_DRAWN = 1_000
_CONTENTS = (("data", DATA), ("deletes", DELETES))


@dataclass(frozen=True)
class Key:
    """The partition field whose ranges are drawn."""

    field: PartitionField
    type: str
    """The Iceberg type of its values."""


@dataclass(frozen=True)
class _Row:
    place: int
    content: str
    interval: tuple[float, float] | None
    record_count: int | None
    hover: tuple[str, ...]


def build_manifest_figure(manifest_files: pa.Table, key_ranges: Sequence[KeyRange], key: Key | None) -> go.Figure:
    """Build the figure of the manifests from the manifest list alone.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    key_ranges : sequence of KeyRange
        Of the manifests that have one.
    key : Key or None
        The field they are of; None draws the records only.

    Returns
    -------
    plotly.graph_objects.Figure
        A line a manifest, those with the smallest keys first; the more bars a vertical line crosses, the more manifests
        a query for that key has to read. Traces: `data` and `deletes`, the key ranges; `data records` and
        `deletes records`.
    """
    rows = _rows(manifest_files, {r.manifest_path: r for r in key_ranges}, key)
    figure = go.Figure()
    for content, colour in _CONTENTS:
        figure.add_trace(_key_bars([row for row in rows if row.content == content], content, colour))
    for content, colour in _CONTENTS:
        figure.add_trace(_record_bars([row for row in rows if row.content == content], content, colour, key is None))
    figure.update_layout(_layout(len(rows), key))
    return figure


def drawn_step(manifest_count: int) -> int:
    """Return n where one manifest in n is drawn.

    Examples
    --------
    >>> drawn_step(31), drawn_step(2_160)
    (1, 3)
    """
    return max(1, -(-manifest_count // MOST_DRAWN))


def _rows(manifest_files: pa.Table, ranges: dict[str, KeyRange], key: Key | None) -> list[_Row]:
    names = ["manifest_path", "content", "partition_spec_id", "manifest_length"]
    counted = ["files", "rows"]
    names += [f"{status}_{what}_count" for what in counted for status in ("added", "existing")]
    found = []
    for manifest in manifest_files.select(names).to_pylist():
        key_range = ranges.get(manifest["manifest_path"])
        interval = None
        if key is not None and key_range is not None:
            interval = key_interval(key.field.transform, key.type, key_range.lower, key_range.upper)
        found.append((interval or (float("inf"), float("inf")), manifest, key_range, interval))
    found.sort(key=lambda row: row[0])
    drawn = found[:: drawn_step(len(found))]
    return [_row(place, *row[1:]) for place, row in enumerate(drawn)]


def _row(
    place: int, manifest: dict[str, Any], key_range: KeyRange | None, interval: tuple[float, float] | None
) -> _Row:
    files, records = (_sum(manifest, what) for what in ("files", "rows"))
    span = "no key range" if key_range is None else _span(key_range)
    is_data = manifest["content"] == "data"
    hover = (
        span,
        f"{render_count(files)} {'data' if is_data else 'delete'} files",
        f"{render_count(records)} {'records' if is_data else 'delete records'}",
        shorten_path(manifest["manifest_path"]),
    )
    return _Row(place, manifest["content"], interval, records, hover)


def _span(key_range: KeyRange) -> str:
    lower, upper = escape_label(key_range.lower_text), escape_label(key_range.upper_text)
    return lower if lower == upper else f"{lower} to {upper}"


def _sum(manifest: dict[str, Any], what: str) -> int | None:
    counts = [manifest[f"{status}_{what}_count"] for status in ("added", "existing")]
    return None if None in counts else sum(counts)


_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}<extra></extra>"


def _key_bars(rows: list[_Row], content: str, colour: str) -> go.Bar:
    drawn = [(row, row.interval) for row in rows if row.interval is not None]
    return go.Bar(
        name=content,
        orientation="h",
        y=[row.place for row, _ in drawn],
        base=[interval[0] for _, interval in drawn],
        x=[interval[1] - interval[0] for _, interval in drawn],
        customdata=[row.hover for row, _ in drawn],
        hovertemplate=_HOVER,
        marker={"color": colour, "line": {"width": 0}},
        width=0.8,
    )


def _record_bars(rows: list[_Row], content: str, colour: str, in_legend: bool) -> go.Bar:
    known = [(row, row.record_count) for row in rows if row.record_count is not None]
    return go.Bar(
        name=content if in_legend else f"{content} records",
        showlegend=in_legend,
        orientation="h",
        y=[row.place for row, _ in known],
        x=[count for _, count in known],
        customdata=[row.hover for row, _ in known],
        hovertemplate=_HOVER,
        marker={"color": colour, "line": {"width": 0}},
        width=0.8,
        xaxis="x2",
    )


def _layout(row_count: int, key: Key | None) -> dict[str, Any]:
    split = 0.0 if key is None else 0.68
    kind = "date" if key is not None and is_time_transform(key.field.transform, key.type) else "linear"
    title = "" if key is None else escape_label(key.field.name)
    return build_layout(
        HEIGHT,
        margin={"l": 12, "r": 12, "t": 28, "b": 40},
        barmode="overlay",
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
        },
        xaxis=build_axis(title, type=kind, domain=[0.0, max(0.0, split - 0.03)], visible=key is not None),
        xaxis2=build_axis("records", domain=[split, 1.0], rangemode="tozero", tickformat="~s", nticks=4),
        yaxis=build_axis(range=[max(row_count, 1) - 0.4, -0.6], showticklabels=False, showgrid=False),
    )
