"""Manifests: the key range that each one covers, and how many records it has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from icestats.answers.text import counted
from icestats.iceberg.metadata import PartitionField
from icestats.table.overview import KeyRange
from icestats_widgets.axis import is_time_transform, key_interval
from icestats_widgets.figure_style import DATA, DELETES, OVERLAP, build_axis, build_layout, escape_label, shorten_path

HEIGHT = 400
MOST_DRAWN = 1_000
FADED = 0.2
"""Opacity of manifests that are not selected."""
_DEPTH_FROM = 0.84
"""Where the number of overlapping manifests is drawn, as a share of the height."""
_CONTENTS = (("data", DATA), ("deletes", DELETES))


@dataclass(frozen=True)
class Key:
    """The partition field whose ranges are drawn."""

    field: PartitionField
    type: str
    """The Iceberg type of its values."""


@dataclass(frozen=True)
class ManifestPicture:
    """A figure, and the manifest that each of its bars stands for."""

    figure: go.Figure
    paths: tuple[tuple[str, ...], ...]
    """For each trace, the manifest path of each of its bars."""
    deepest: int
    """The largest number of data manifests that hold the same key."""


@dataclass(frozen=True)
class _Row:
    path: str
    is_marked: bool
    place: int
    content: str
    interval: tuple[float, float] | None
    record_count: int | None
    hover: tuple[str, ...]


def build_manifest_figure(
    manifest_files: pa.Table,
    key_ranges: Sequence[KeyRange],
    key: Key | None,
    marked: Collection[str] | None = None,
) -> ManifestPicture:
    """Build the figure of the manifests from the manifest list alone.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    key_ranges : sequence of KeyRange
        The ranges of the manifests that have one.
    key : Key or None
        The partition field of the ranges; None draws the records only.
    marked : collection of str, optional
        Paths of the manifests to highlight; by default all.

    Returns
    -------
    ManifestPicture
        One line per manifest, smallest keys first. The more bars a vertical line crosses, the more manifests a query
        for that key has to read. Traces: `data` and `deletes`, the key ranges; `data records` and `deletes records`;
        `overlap`, how many data manifests hold each key, counting also those that are not drawn.
    """
    found = _found(manifest_files, {r.manifest_path: r for r in key_ranges}, key)
    rows = [_row(place, *one, marked) for place, one in enumerate(found[:: drawn_step(len(found))])]
    intervals = [interval for _, manifest, _, interval in found if interval and manifest["content"] == "data"]
    traces, paths = [], []
    for content, colour in _CONTENTS:
        some = [row for row in rows if row.content == content and row.interval is not None]
        traces.append(_key_bars(some, content, colour))
        paths.append(tuple(row.path for row in some))
    for content, colour in _CONTENTS:
        some = [row for row in rows if row.content == content and row.record_count is not None]
        traces.append(_record_bars(some, content, colour, key is None))
        paths.append(tuple(row.path for row in some))
    edges, depths = overlap_depths(intervals)
    traces.append(_overlap(edges, depths))
    return ManifestPicture(go.Figure(traces, _layout(len(rows), key)), (*paths, ()), max(depths, default=0))


def overlap_depths(intervals: Sequence[tuple[float, float]]) -> tuple[list[float], list[int]]:
    """Return where the number of overlapping intervals changes, and the new number.

    Examples
    --------
    >>> overlap_depths([(0.0, 2.0), (1.0, 3.0)])
    ([0.0, 1.0, 2.0, 3.0], [1, 2, 1, 0])
    """
    changes: dict[float, int] = {}
    for start, end in intervals:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    edges = sorted(changes)
    return edges, list(accumulate(changes[edge] for edge in edges))


def drawn_step(manifest_count: int) -> int:
    """Return n, if one manifest in n is drawn.

    Examples
    --------
    >>> drawn_step(31), drawn_step(2_160)
    (1, 3)
    """
    return max(1, -(-manifest_count // MOST_DRAWN))


_Found = tuple[tuple[float, float], dict[str, Any], KeyRange | None, tuple[float, float] | None]


def _found(manifest_files: pa.Table, ranges: dict[str, KeyRange], key: Key | None) -> list[_Found]:
    names = ["manifest_path", "content", "partition_spec_id", "manifest_length"]
    counted = ["files", "rows"]
    names += [f"{status}_{what}_count" for what in counted for status in ("added", "existing")]
    found: list[_Found] = []
    for manifest in manifest_files.select(names).to_pylist():
        key_range = ranges.get(manifest["manifest_path"])
        interval = None
        if key is not None and key_range is not None:
            interval = key_interval(key.field.transform, key.type, key_range.lower, key_range.upper)
        found.append((interval or (float("inf"), float("inf")), manifest, key_range, interval))
    return sorted(found, key=lambda row: row[0])


def _row(
    place: int,
    _: tuple[float, float],
    manifest: dict[str, Any],
    key_range: KeyRange | None,
    interval: tuple[float, float] | None,
    marked: Collection[str] | None,
) -> _Row:
    path = manifest["manifest_path"]
    files, records = (_sum(manifest, what) for what in ("files", "rows"))
    span = "no key range" if key_range is None else _span(key_range)
    is_data = manifest["content"] == "data"
    hover = (
        span,
        counted(files, "data file" if is_data else "delete file"),
        counted(records, "record" if is_data else "delete record"),
        shorten_path(manifest["manifest_path"]),
    )
    return _Row(path, marked is None or path in marked, place, manifest["content"], interval, records, hover)


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
        marker={"color": colour, "line": {"width": 0}, "opacity": [1 if row.is_marked else FADED for row, _ in drawn]},
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
        marker={"color": colour, "line": {"width": 0}, "opacity": [1 if row.is_marked else FADED for row, _ in known]},
        width=0.8,
        xaxis="x2",
    )


def _overlap(edges: list[float], depths: list[int]) -> go.Scatter:
    return go.Scatter(
        name="overlap",
        x=edges,
        y=depths,
        yaxis="y3",
        mode="lines",
        line={"shape": "hv", "width": 1, "color": OVERLAP},
        fill="tozeroy",
        fillcolor="rgba(0,158,115,0.35)",
        hovertemplate="<b>%{y}</b> manifests hold this key<extra></extra>",
        showlegend=False,
    )


def _layout(row_count: int, key: Key | None) -> dict[str, Any]:
    split = 0.0 if key is None else 0.68
    kind = "date" if key is not None and is_time_transform(key.field.transform, key.type) else "linear"
    title = "" if key is None else escape_label(key.field.name)
    return build_layout(
        HEIGHT,
        margin={"l": 40, "r": 12, "t": 28, "b": 40},
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
        xaxis=build_axis(title, type=kind, domain=[0.0, max(0.01, split - 0.03)], visible=key is not None),
        xaxis2=build_axis("records", domain=[split, 1.0], rangemode="tozero", tickformat="~s", nticks=4),
        yaxis=build_axis(
            range=[max(row_count, 1) - 0.4, -0.6],
            domain=[0.0, 1.0 if key is None else _DEPTH_FROM - 0.03],
            showticklabels=False,
            showgrid=False,
        ),
        yaxis3=build_axis(
            "overlap", domain=[_DEPTH_FROM, 1.0], anchor="x", rangemode="tozero", nticks=3, visible=key is not None,
            fixedrange=True, automargin=False,
        ),
    )  # fmt: skip
