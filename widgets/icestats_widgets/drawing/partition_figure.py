"""Partitions: a heat map of two partition fields, a calendar of one, or bars."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats_widgets.drawing.axes import AXIS_HEIGHT, draw_legend, draw_row_labels, draw_x_axis, draw_y_axis
from icestats_widgets.drawing.canvas import HEAT_LEVELS, Canvas, Picture, Plot, shorten, text_width
from icestats_widgets.drawing.partition_board import (
    MARGIN,
    VALUES,
    Board,
    CalendarZone,
    Cell,
    Cells,
    CellSums,
    Key,
    Zone,
)
from icestats_widgets.drawing.scales import BandScale, LinearScale, Scale, TimeScale, render_compact
from icestats_widgets.reading.selection import Selection

_SKEWED = 5
"""If the largest value is this many times the median, colours are logarithmic."""
_TOP, _ZONE_GAP = 30, 16
_MOST_PITCH = 26
_BARS_HEIGHT = 200


@dataclass(frozen=True)
class _Colours:
    """Levels of a heat map by value."""

    low: float
    high: float
    is_log: bool

    def level(self, value: float) -> int:
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = (math.log10(max(one, 1.0)) for one in (low, high, value))
        share = (at - low) / (high - low) if high > low else 1.0
        return min(HEAT_LEVELS - 1, max(0, int(share * HEAT_LEVELS)))


def build_partition_figure(
    board: Board,
    cells: Cells,
    value: str,
    *,
    width: float,
    verdicts: Mapping[Key, str] | None = None,
    selection: Selection | None = None,
) -> Picture:
    """Build the figure of the partitions.

    Parameters
    ----------
    board : Board
        Where they are drawn.
    cells : mapping of tuple to CellSums
        What lies there, of all partitions or of a part: as `partition_board.sum_cells` gives it.
    value : {"records", "files", "bytes"}
        What colour or height shows, for data files with deletes not applied. Colours show a partition, on average
        where several share a place; heights show sums.
    width : float
        Pixels.
    verdicts : mapping of tuple to str, optional
        For each partition the empty text if a filter keeps it, or the step of planning that skips it.
    selection : Selection, optional
        What is framed.

    Returns
    -------
    Picture
        A plot a zone of the board, of its name, with places as its scales. The key of a place is its zone, column and
        row.
    """
    has_map = board.is_calendar or len(board.axes) == 2
    height = max(map(_zone_height, board.zones)) if has_map else _BARS_HEIGHT
    canvas = Canvas(width, _TOP + height + AXIS_HEIGHT, f"Partitions: {value} of data files")
    number = list(VALUES).index(value)
    if has_map:
        colours = _find_colours([_mean(cell, number) for cell in cells.values()])
        _draw_legend(canvas, value, colours, has_verdicts=verdicts is not None)
        plots = [canvas.plot(plot) for plot in _place_zones(board, width)]
        for plot, zone in zip(plots, board.zones, strict=True):
            _draw_zone_axes(canvas, plot, zone, board)
        for (which, place), cell in cells.items():
            left, top, wide, tall = _box(plots[which], board.zones[which], place, place)
            gap = 1 if min(wide, tall) > 5 else 0.3
            ramp = "heat" if _is_kept(cell, verdicts) else "cold"
            kind, told = f"{ramp}{colours.level(_mean(cell, number))}", _tell(board.zones[which], place, cell, verdicts)
            canvas.rects([(left, top, wide - gap, tall - gap)], kind, **told)
    else:
        plots = [_draw_bars(canvas, board, cells, number, value, verdicts)]
    _draw_frames(canvas, board, plots, selection)
    return canvas.picture()


def describe_partitions(board: Board, partitions: pa.Table, cells: Cells) -> str:
    """Return what a reader must know about the chart: how many partitions, and what is not drawn one by one.

    Parameters
    ----------
    board : Board
        Where they are drawn.
    partitions : pyarrow.Table
        All partitions.
    cells : mapping of tuple to CellSums
        What is drawn.
    """
    of_spec = sum(1 for spec_id in partitions["spec_id"].to_pylist() if spec_id == board.spec_id)
    text = counted(partitions.num_rows, "partition")
    if of_spec < partitions.num_rows:
        text += f", {partitions.num_rows - of_spec:,} of them in other partition specs and not drawn"
    if board.summed:
        text += f", summed over {', '.join(board.summed)}"
    shared = sum(cell.partition_count for cell in cells.values() if cell.partition_count > 1)
    if shared == of_spec > 0:
        return f"{text}, several in each place"
    return text + (f", {shared:,} of them share a place with others" if shared else "")


def _zone_height(zone: Zone) -> float:
    rows = len(zone.rows)
    return rows * min(18.0, 330 / rows)


def _place_zones(board: Board, width: float) -> list[Plot]:
    names = [_names_width(zone) for zone in board.zones]
    room = width - sum(names) - _ZONE_GAP * (len(names) - 1) - 2
    columns = sum(len(zone.columns) for zone in board.zones)
    pitch = min(_MOST_PITCH, room / columns)
    if not board.is_calendar:
        pitch = min(room / columns, 80)
    plots, left = [], 0.0
    for zone, name_width in zip(board.zones, names, strict=True):
        left += name_width
        wide = pitch * len(zone.columns)
        places = BandScale(zone.columns), BandScale(zone.rows)
        plots.append(Plot(zone.name, left, _TOP, wide, _zone_height(zone), *places))
        left += wide + _ZONE_GAP
    return plots


def _names_width(zone: Zone) -> float:
    return 10 + min(120.0, max(text_width(row) for row in zone.rows))


def _draw_zone_axes(canvas: Canvas, plot: Plot, zone: Zone, board: Board) -> None:
    draw_row_labels(canvas, plot)
    left, name = plot.left - _names_width(zone), board.axes[0].field.name
    if isinstance(zone, CalendarZone):
        draw_x_axis(canvas, replace(plot, x=TimeScale(*zone.span_ms)))
        own = zone.calendar.unit == zone.unit
        title = f"{name}, {zone.calendar.title}" if own else f"{zone.name}, by {zone.calendar.unit}"
    else:
        draw_x_axis(canvas, plot)
        titles = [f"{axis.field.name}{f', {axis.about}' if axis.about else ''}" for axis in board.axes]
        named = [f"across: {titles[0]}", *(f"down: {one}" for one in titles[1:])] if len(titles) > 1 else titles
        title = " · ".join(named) if zone.name != "null" else ""
    canvas.text(left + 4, plot.bottom + 30, shorten(title, plot.right - left + _ZONE_GAP - 8))


def _find_colours(values: Sequence[float]) -> _Colours:
    known = sorted(values) or [0.0]
    largest = max(known[-1], 1.0)
    is_log = largest > _SKEWED * max(known[len(known) // 2], 1.0)
    return _Colours(max(known[0], 1.0) if is_log else 0.0, largest, is_log)


def _draw_legend(canvas: Canvas, value: str, colours: _Colours, *, has_verdicts: bool) -> None:
    def render(number: float) -> str:
        return render_bytes(round(number)) if value == "bytes" else render_compact(number)

    x = 4.0
    ramps = [("heat", "kept, "), ("cold", "skipped, ")] if has_verdicts else [("heat", "")]
    for kind, name in ramps:
        text = f"{name}{value} per partition{', log scale' if colours.is_log else ''}: {render(colours.low)}"
        text = text if kind == "heat" else "skipped"
        canvas.text(x, 14, text)
        x += text_width(text) + 5
        for level in range(HEAT_LEVELS):
            canvas.rect(x + 11 * level, 5, 10, 10, f"{kind}{level}")
        x += 11 * HEAT_LEVELS + 5
        if kind == "heat":
            canvas.text(x, 14, render(colours.high))
            x += text_width(render(colours.high)) + 18


def _mean(cell: CellSums, number: int) -> float:
    return cell.sums[number] / cell.partition_count


def _is_kept(cell: CellSums, verdicts: Mapping[Key, str] | None) -> bool:
    return verdicts is None or _kept(cell, verdicts) > 0


def _kept(cell: CellSums, verdicts: Mapping[Key, str]) -> int:
    return sum(not verdicts.get(key, "") for key in cell.keys)


def _box(plot: Plot, zone: Zone, first: Cell, last: Cell) -> tuple[float, float, float, float]:
    """Return left, top, width and height of the places of a rectangle, in pixels."""
    wide, tall = plot.width / len(zone.columns), plot.height / len(zone.rows)
    size = (last[0] - first[0] + 1) * wide, (last[1] - first[1] + 1) * tall
    return plot.left + first[0] * wide, plot.top + first[1] * tall, *size


def _tell(zone: Zone, place: Cell, cell: CellSums, verdicts: Mapping[Key, str] | None) -> dict[str, str]:
    """Return the key and the title of the mark of a place."""
    records, files, size_bytes, position, equality = cell.sums
    lines = [zone.label(place)]
    if cell.partition_count > 1:
        lines.append(f"{counted(cell.partition_count, 'partition')}, together:")
    lines.append(counted(records, "record"))
    lines.append(f"{counted(files, 'file')}, {render_bytes(size_bytes)}")
    if position + equality:
        lines.append(counted(position + equality, "delete record"))
    if verdicts is not None:
        lines.append(_verdict(cell, verdicts))
    return {"key": f"{zone.name} {place[0]} {place[1]}", "title": "\n".join(lines)}


def _verdict(cell: CellSums, verdicts: Mapping[Key, str]) -> str:
    steps = dict.fromkeys(step for key in cell.keys if (step := verdicts.get(key, "")))
    kept = _kept(cell, verdicts)
    if not steps:
        return "kept"
    skipped = f"skipped: {', '.join(steps)}"
    return f"{kept:,} of {cell.partition_count:,} kept, others {skipped}" if kept else skipped


def _draw_bars(
    canvas: Canvas,
    board: Board,
    cells: Cells,
    number: int,
    value: str,
    verdicts: Mapping[Key, str] | None,
) -> Plot:
    (zone,) = board.zones
    most = max((cell.sums[number] for cell in cells.values()), default=0) or 1
    y: Scale = LinearScale(most * 1.05, 0.0, is_whole=True)
    if value == "bytes":
        y = LinearScale(most * 1.05, 0.0, render=lambda values: [render_bytes(round(one)) for one in values])
    wide = min(canvas.width - MARGIN - 4, 90 * len(zone.columns))
    plot = canvas.plot(Plot(zone.name, MARGIN, _TOP, wide, _BARS_HEIGHT, BandScale(zone.columns), y))
    draw_y_axis(canvas, plot)
    kinds = [("data", value)] + ([("skipped0", "skipped")] if verdicts is not None else [])
    draw_legend(canvas, 4, 14, kinds)
    pitch = plot.width / len(zone.columns)
    for (_, place), cell in cells.items():
        kind = "data" if _is_kept(cell, verdicts) else "skipped0"
        x, top = plot.left + place[0] * pitch, plot.y_at(cell.sums[number])
        told = _tell(zone, place, cell, verdicts)
        canvas.rect(x + pitch * 0.06, top, pitch * 0.88, plot.bottom - top, kind, **told)
    draw_x_axis(canvas, plot, ", ".join(filter(None, (board.axes[0].field.name, board.axes[0].about))))
    return plot


def _draw_frames(canvas: Canvas, board: Board, plots: Collection[Plot], selection: Selection | None) -> None:
    if selection is None or not selection.ranges or selection.spec_id != board.spec_id:
        return
    chosen = {one.name: one for one in selection.ranges}
    for plot, zone in zip(plots, board.zones, strict=True):
        for first, last in zone.boxes(chosen):
            canvas.rect(*_box(plot, zone, first, last), "frame")
