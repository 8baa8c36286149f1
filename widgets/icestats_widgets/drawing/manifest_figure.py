"""Manifests: the key range that each one covers, how many overlap, and how many records each has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted
from icestats.iceberg.metadata import PartitionField
from icestats.iceberg.types import parse_type
from icestats.table.overview import KeyRange
from icestats_widgets.drawing.axes import AXIS_HEIGHT, draw_legend, draw_x_axis
from icestats_widgets.drawing.axis import is_time_transform, key_interval
from icestats_widgets.drawing.canvas import Canvas, Picture, Plot, shorten
from icestats_widgets.drawing.scales import BandScale, LinearScale, Scale, TimeScale, render_compact

MOST_LANES = 80
_LANE = 4.0
_WIDEST_LANE = 16.0
_MOST_STEPS = 240
_MOST_SEGMENTS = 16
_LEFT, _TOP, _OVERLAP, _GAP = 34, 30, 54, 20
_RECORDS = 0.2
"""The share of the width that records take."""
_ROOMY = 150
"""Pixels that a sentence beside the overlap needs."""
_SKIP_COLOURS = 4
_LONGEST_SPAN = 260

Interval = tuple[float, float]


@dataclass(frozen=True)
class Key:
    """The partition field whose ranges are drawn."""

    field: PartitionField
    type: str
    """The Iceberg type of its values."""


@dataclass(frozen=True)
class ManifestRow:
    """A manifest as it is drawn. None is unknown, never 0."""

    path: str
    content: str
    """`data` or `deletes`."""
    interval: Interval | None
    """Where its keys lie on the axis; None if it has no range of the key."""
    span: str
    file_count: int | None
    record_count: int | None


@dataclass(frozen=True)
class ManifestPicture(Picture):
    """A figure of manifests, and what to say of it."""

    deepest: int
    """The largest number of data manifests that hold the same key."""
    lane_size: int
    """How many manifests share a line of the figure."""


def sort_manifests(
    manifest_files: pa.Table, key_ranges: Sequence[KeyRange], key: Key | None
) -> tuple[ManifestRow, ...]:
    """Return the manifests in the order in which they are drawn: data, then deletes, smallest keys first.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    key_ranges : sequence of KeyRange
        The ranges of the manifests that have one.
    key : Key or None
        The partition field of the ranges.
    """
    ranges = {one.manifest_path: one for one in key_ranges}
    names = ["manifest_path", "content"]
    names += [f"{status}_{what}_count" for what in ("files", "rows") for status in ("added", "existing")]
    rows = [_row(one, ranges.get(one["manifest_path"]), key) for one in manifest_files.select(names).to_pylist()]
    return tuple(sorted(rows, key=lambda row: (row.content != "data", row.interval or (math.inf, math.inf))))


def find_manifests(data_key: str, rows: Sequence[ManifestRow]) -> tuple[str, ...]:
    """Return the paths of the manifests that a mark of the figure stands for; none if it is no such mark.

    Parameters
    ----------
    data_key : str
        The key of a bar, of several manifests in a line, or of a step of the overlap curve.
    rows : sequence of ManifestRow
        What is drawn.
    """
    kind, *texts = data_key.split(" ")
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return ()
    if kind == "over" and len(numbers) == 2:
        return tuple(row.path for row in _touching(rows, (numbers[0], numbers[1])) if row.content == "data")
    if kind == "lane" and len(numbers) in (2, 4) and all(map(math.isfinite, numbers)):
        shown = rows if len(numbers) == 2 else _touching(rows, (numbers[2], numbers[3]))
        return tuple(row.path for row in shown[max(0, int(numbers[0])) : max(0, int(numbers[1]))])
    return ()


def manifests_between(rows: Sequence[ManifestRow], lower: float, upper: float) -> tuple[str, ...]:
    """Return the paths of the manifests whose keys touch a part of the axis."""
    return tuple(row.path for row in _touching(rows, (lower, upper)))


def build_manifest_figure(
    rows: Sequence[ManifestRow],
    key: Key | None,
    *,
    width: float,
    verdicts: Mapping[str, str] | None = None,
    selected: Collection[str] | None = None,
    zoom: Interval | None = None,
) -> ManifestPicture:
    """Build the figure of the manifests.

    Parameters
    ----------
    rows : sequence of ManifestRow
        As `sort_manifests` gives them.
    key : Key or None
        The partition field of the ranges; None draws the records only.
    width : float
        Pixels.
    verdicts : mapping of str to str, optional
        For each manifest path the empty text if a filter keeps it, or the step of planning that skips it.
    selected : collection of str, optional
        Paths of the manifests to highlight; by default all.
    zoom : tuple of float, optional
        A part of the axis of keys: only manifests that touch it are drawn.

    Returns
    -------
    ManifestPicture
        The plots `keys`, a line a manifest, and below it the axis of keys; `overlap` above it, how many data manifests
        hold each key; `records`, beside. The more lines a key crosses, the more manifests a query for it reads. Where
        there are more manifests than lines, neighbours share one.
    """
    shown = list(rows if zoom is None else _touching(rows, zoom))
    size = max(1, -(-len(shown) // MOST_LANES))
    within = "" if zoom is None else f" {zoom[0]!r} {zoom[1]!r}"
    kinds = _Kinds(verdicts, selected)
    lanes = [_Lane(shown, start, min(start + size, len(shown)), kinds, within) for start in range(0, len(shown), size)]
    steps = find_overlaps([row.interval for row in shown if row.interval and row.content == "data"])
    deepest = max((depth for _, _, depth in steps), default=0)
    has_keys = key is not None and any(row.interval for row in shown)
    top = _TOP + (_OVERLAP + 12 if has_keys else 0)
    height = len(lanes) * min(_WIDEST_LANE, max(_LANE, 160 / max(1, len(lanes))))
    canvas = Canvas(width, top + height + AXIS_HEIGHT, f"Key ranges and records of {counted(len(shown), 'manifest')}")
    left = _LEFT + (width - _LEFT) * (1 - _RECORDS) + _GAP / 2 if has_keys else _LEFT
    if key is not None and has_keys:
        scale = _key_scale(shown, key, zoom)
        box = (_LEFT, left - _GAP - _LEFT)
        over = canvas.plot(Plot("overlap", box[0], _TOP, box[1], _OVERLAP, scale, LinearScale(deepest or 1, 0)))
        _draw_overlap(canvas, over, steps, deepest)
        said = f"a key lies in up to\n{counted(deepest, 'data manifest')}"
        if width - left < _ROOMY:
            said = f"up to {deepest:,}\ndata manifests\nhave one key"
        for number, line in enumerate(said.split("\n")):
            canvas.text(left, _TOP + 10 + 15 * number, shorten(line, width - left), "overlap strong")
        keys = canvas.plot(Plot("keys", box[0], top, box[1], height, scale, BandScale(("",) * len(lanes))))
        shared = f", {size:,} in a line" if size > 1 else ""
        draw_x_axis(canvas, keys, f"{key.field.name}: {counted(len(shown), 'manifest')}{shared}", has_grid=True)
        _draw_ranges(canvas, keys, lanes)
    most = max((sum(lane.records.values()) for lane in lanes), default=0)
    records = Plot("records", left, top, width - left - 14, height, LinearScale(0, most or 1, True),
                   BandScale(("",) * len(lanes)))  # fmt: skip
    draw_x_axis(canvas, canvas.plot(records), "records" if has_keys else "records of each manifest", has_grid=True)
    _draw_records(canvas, records, lanes)
    draw_legend(canvas, 4, 14, kinds.legend(shown))
    picture = canvas.picture()
    return ManifestPicture(picture.svg, picture.plots, picture.label, deepest, size)


def find_overlaps(intervals: Sequence[Interval]) -> list[tuple[float, float, int]]:
    """Return the steps of the number of intervals that overlap: from where, up to where, how many.

    Examples
    --------
    >>> find_overlaps([(0.0, 2.0), (1.0, 3.0)])
    [(0.0, 1.0, 1), (1.0, 2.0, 2), (2.0, 3.0, 1)]
    """
    changes: dict[float, int] = {}
    for start, end in intervals:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    edges = sorted(changes)
    depths = accumulate(changes[edge] for edge in edges)
    return [(start, end, depth) for (start, end), depth in zip(pairwise(edges), depths, strict=False)]


class _Kinds:
    """What a manifest looks like: kept or skipped and where, marked or not."""

    def __init__(self, verdicts: Mapping[str, str] | None, selected: Collection[str] | None) -> None:
        self._verdicts = verdicts
        self._selected = None if selected is None else frozenset(selected)
        steps = dict.fromkeys(step for step in (verdicts or {}).values() if step)
        self._steps = {step: f"skipped{min(i, _SKIP_COLOURS - 1)}" for i, step in enumerate(steps)}

    def of(self, row: ManifestRow) -> str:
        step = (self._verdicts or {}).get(row.path, "")
        kind = self._steps[step] if step else row.content
        return kind if self._selected is None or row.path in self._selected else f"{kind} faded"

    def text(self, rows: Sequence[ManifestRow]) -> Iterator[str]:
        if self._verdicts is not None:
            found = [self._verdicts[row.path] for row in rows if row.path in self._verdicts]
            for step in dict.fromkeys(found):
                many = f"{found.count(step):,} " if len(rows) > 1 else ""
                yield f"{many}skipped by {step}" if step else f"{many}kept"

    def legend(self, rows: Sequence[ManifestRow]) -> list[tuple[str, str]]:
        kept = "" if self._verdicts is None else ", kept"
        entries = [("data", f"data manifests{kept}")]
        if any(row.content == "deletes" for row in rows):
            entries.append(("deletes", "delete manifests"))
        if self._selected is not None:
            entries.append(("data faded", "not selected"))
        return entries + [(kind, f"skipped: {step.removeprefix('manifests ')}") for step, kind in self._steps.items()]


class _Lane:
    """A line of the figure: a manifest, or neighbours that share it."""

    def __init__(self, rows: Sequence[ManifestRow], first: int, end: int, kinds: _Kinds, within: str) -> None:
        found: dict[str, list[ManifestRow]] = {}
        for row in rows[first:end]:
            found.setdefault(kinds.of(row), []).append(row)
        # What is kept and what stands out is drawn last, over the others.
        order = sorted(found, key=lambda kind: (not kind.endswith("faded"), not kind.startswith("skipped")))
        self.rows = {kind: found[kind] for kind in order}
        self.records = {kind: sum(row.record_count or 0 for row in found[kind]) for kind in order}
        self.key = f"lane {first} {end}{within}"
        self.title = _title(rows[first:end], kinds)


def _row(manifest: Mapping[str, Any], key_range: KeyRange | None, key: Key | None) -> ManifestRow:
    interval = None
    if key is not None and key_range is not None:
        interval = key_interval(key.field.transform, key.type, key_range.lower, key_range.upper)
    span = "no key range"
    if key_range is not None:
        ends = [shorten(text, _LONGEST_SPAN) for text in (key_range.lower_text, key_range.upper_text)]
        span = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    is_drawable = interval is not None and all(map(math.isfinite, interval))
    files, records = _sum(manifest, "files"), _sum(manifest, "rows")
    return ManifestRow(
        manifest["manifest_path"], manifest["content"], interval if is_drawable else None, span, files, records
    )


def _sum(manifest: Mapping[str, Any], what: str) -> int | None:
    counts = [manifest[f"{status}_{what}_count"] for status in ("added", "existing")]
    return None if None in counts else sum(counts)


def _touching(rows: Sequence[ManifestRow], part: Interval) -> list[ManifestRow]:
    lower, upper = part
    return [row for row in rows if (ends := row.interval) and ends[0] < upper and ends[1] > lower]


def _key_scale(rows: Sequence[ManifestRow], key: Key, zoom: Interval | None) -> Scale:
    intervals = [row.interval for row in rows if row.interval]
    ends = zoom or (min(start for start, _ in intervals), max(end for _, end in intervals))
    if ends[1] <= math.nextafter(ends[0], math.inf):
        ends = (ends[0] - 0.5, ends[1] + 0.5)
    if is_time_transform(key.field.transform, key.type):
        return TimeScale(*ends, is_clock=key.type == "time")
    return LinearScale(*ends, is_whole=parse_type(key.type).name in ("int", "long"))


def _draw_overlap(canvas: Canvas, plot: Plot, steps: Sequence[tuple[float, float, int]], deepest: int) -> None:
    for depth in {0, deepest}:
        canvas.line((plot.left, plot.y_at(depth)), (plot.right, plot.y_at(depth)), "grid")
        canvas.text(plot.left - 5, plot.y_at(depth) + 4, render_compact(depth), anchor="end")
    low, high = plot.x.invert(0), plot.x.invert(1)
    steps = [(max(a, low), min(b, high), depth) for a, b, depth in steps if b > low and a < high]
    if len(steps) > _MOST_STEPS:
        steps = _thin(steps, low, high)
    corners = [(plot.x_at(at), plot.y_at(depth)) for a, b, depth in steps for at in (a, b)]
    if corners:
        ends = [(corners[-1][0], plot.bottom), (corners[0][0], plot.bottom)]
        canvas.path([*corners, *ends], "overlap soft", is_closed=True)
        canvas.path(corners, "overlap edge")
    for a, b, depth in steps:
        if depth:
            left = plot.x_at(a)
            title = f"up to {counted(depth, 'data manifest')} overlap here"
            box = (left, plot.top, max(plot.x_at(b) - left, 0.5), plot.height)
            canvas.rect(*box, "hidden", key=f"over {a!r} {b!r}", title=title)


def _thin(steps: Sequence[tuple[float, float, int]], low: float, high: float) -> list[tuple[float, float, int]]:
    # Each part of the axis shows the most that overlap somewhere in it.
    wide = (high - low) / _MOST_STEPS
    deepest = [0] * _MOST_STEPS
    for a, b, depth in steps:
        first, last = int((a - low) / wide), min(_MOST_STEPS - 1, math.ceil((b - low) / wide) - 1)
        for place in range(min(first, last), last + 1):
            deepest[place] = max(deepest[place], depth)
    return [(low + i * wide, low + (i + 1) * wide, depth) for i, depth in enumerate(deepest)]


def _draw_ranges(canvas: Canvas, plot: Plot, lanes: Sequence[_Lane]) -> None:
    for place, lane in enumerate(lanes):
        top, tall = _line(plot, place, len(lanes))
        for kind, rows in lane.rows.items():
            ends = [(plot.x_at(row.interval[0]), plot.x_at(row.interval[1])) for row in rows if row.interval]
            wide = [(a, max(b - a, 1.5)) for a, b in _segments(ends)]
            boxes = [(min(a, plot.right - size), top, size, tall) for a, size in wide]
            canvas.rects(boxes, kind, key=lane.key, title=lane.title)


def _draw_records(canvas: Canvas, plot: Plot, lanes: Sequence[_Lane]) -> None:
    for place, lane in enumerate(lanes):
        top, tall = _line(plot, place, len(lanes))
        done = 0
        for kind, records in lane.records.items():
            left, right = plot.x_at(done), plot.x_at(done + records)
            if records:
                canvas.rect(left, top, right - left, tall, kind, key=lane.key, title=lane.title)
            done += records


def _line(plot: Plot, place: int, count: int) -> tuple[float, float]:
    pitch = plot.height / count
    return plot.top + place * pitch, pitch * 0.78


def _segments(ends: Sequence[Interval]) -> list[Interval]:
    """Return what some intervals cover together, as few parts as can be seen."""
    gap = 1.0
    while True:
        found: list[Interval] = []
        for start, end in sorted(ends):
            if found and start - found[-1][1] <= gap:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((start, end))
        if len(found) <= _MOST_SEGMENTS:
            return found
        gap *= 2


def _title(lane: Sequence[ManifestRow], kinds: _Kinds) -> str:
    contents = {row.content for row in lane}
    name = "" if len(contents) > 1 else "data " if contents == {"data"} else "delete "
    ranged = [row for row in lane if row.interval]
    span = lane[0].span if len(lane) == 1 else "no key range"
    if len(lane) > 1 and ranged:
        last = max(ranged, key=lambda row: row.interval or (0, 0))
        span = f"from {ranged[0].span.split(' to ')[0]} on, the last {last.span}"
    lines = [counted(len(lane), "manifest"), span] if len(lane) > 1 else [span]
    lines.append(_total([row.file_count for row in lane], f"{name}file"))
    lines.append(_total([row.record_count for row in lane], f"{name}record".removeprefix("data ")))
    lines += kinds.text(lane)
    if len(lane) == 1:
        lines.append("/".join(lane[0].path.split("/")[-1:])[-90:])
    return "\n".join(lines)


def _total(counts: Sequence[int | None], name: str) -> str:
    known = [count for count in counts if count is not None]
    text = counted(sum(known) if known or not counts else None, name)
    return f"{text}, and those of {len(counts) - len(known):,} unknown" if known and len(known) < len(counts) else text
