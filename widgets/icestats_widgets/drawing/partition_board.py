"""Where each partition is drawn: in a calendar, on two axes, or in a line; with others where there is no room."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_values
from icestats.iceberg.metadata import PartitionField, PartitionSpec, Schema
from icestats.iceberg.partition_columns import display_partition_value
from icestats_widgets.drawing.axis import MS_A_DAY, MS_AN_HOUR, is_time_transform
from icestats_widgets.drawing.calendars import (
    CALENDARS,
    COARSER,
    LONGEST_YEARS,
    Calendar,
    convert_time,
    count_time,
    first_time,
    time_label,
    time_unit,
    time_value,
)
from icestats_widgets.drawing.canvas import shorten
from icestats_widgets.reading.partition_names import find_typed_fields
from icestats_widgets.reading.selection import FieldRange, field_range

MOST_CELLS = 900
"""Most cells of a chart; more would make a slow page."""
LEAST_PITCH = 4.5
"""Least width of a place, in pixels."""
MOST_ROWS = 32
MARGIN = 70
_LONGEST_LABEL = 180
_NAMES = 14
"""The places that the names of the rows of a second calendar take."""
VALUES = {
    "records": "data_record_count",
    "files": "data_file_count",
    "bytes": "total_data_file_size_in_bytes",
}
SUMMED = (*VALUES.values(), "position_delete_record_count", "equality_delete_record_count")
Key = tuple[Any, ...]
Cell = tuple[int, int]
"""Across and down."""


@dataclass(frozen=True)
class Run:
    """Neighbouring values that share a place; both ends are None for null."""

    lower: Any
    upper: Any
    label: str


@dataclass(frozen=True)
class Axis:
    """The places along an axis, in order."""

    field: PartitionField
    type: str
    runs: tuple[Run, ...]
    about: str = ""
    """How values share places."""

    @cached_property
    def _starts(self) -> tuple[int, list[Any]]:
        known = [run.lower for run in self.runs if run.lower is not None and run.lower == run.lower]
        return sum(run.lower is None for run in self.runs), known

    def place(self, value: Any) -> int | None:
        """Return the place of a value; None if it has none."""
        nulls, starts = self._starts
        if value is None:
            return 0 if nulls else None
        if value != value:  # NaN is the last
            return len(self.runs) - 1
        number = nulls + bisect_right(starts, value) - 1
        return number if number >= nulls and value <= self.runs[number].upper else None

    def range(self, first: int, last: int) -> FieldRange | None:
        """Return the values from a first to a last place; None if these are all."""
        runs = self.runs[first : last + 1]
        known = [run for run in runs if run.lower is not None]
        # Null alone stands beside a calendar.
        if known and runs == self.runs:
            return None
        lower, upper = (known[0].lower, known[-1].upper) if known else (None, None)
        return field_range(self.field, self.type, lower, upper, with_null=len(known) < len(runs))

    def span(self, chosen: FieldRange | None) -> tuple[int, int] | None:
        """Return the first and the last place that has some of the chosen values; None if no place has."""
        if chosen is None:
            return 0, len(self.runs) - 1
        places = [
            place
            for place, run in enumerate(self.runs)
            if (run.lower is None and (chosen.with_null or chosen.lower is None))
            or (None not in (run.lower, chosen.lower) and run.lower <= chosen.upper and run.upper >= chosen.lower)
        ]
        return (places[0], places[-1]) if places else None


@dataclass(frozen=True)
class GridZone:
    """A part of the chart: places of one field across and of another one down, or of one field alone."""

    name: str
    axes: tuple[Axis, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the places across."""
        return tuple(run.label for run in self.axes[0].runs)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Names of the places down; one without a name if there is one field."""
        return tuple(run.label for run in self.axes[1].runs) if len(self.axes) == 2 else ("",)

    def place(self, key: Key) -> Cell | None:
        """Return where a partition is drawn."""
        found = [axis.place(value) for axis, value in zip(self.axes, key, strict=True)]
        across, down = found[0], found[1] if len(found) == 2 else 0
        return None if across is None or down is None else (across, down)

    def ranges(self, first: Cell, last: Cell) -> tuple[FieldRange, ...] | None:
        """Return the values in a rectangle of places: for each field a range, without those that are not limited."""
        spans = zip(self.axes, first, last, strict=False)
        return tuple(one for axis, a, b in spans if (one := axis.range(a, b)) is not None)

    def boxes(self, chosen: Mapping[str, FieldRange]) -> list[tuple[Cell, Cell]]:
        """Return the rectangle of places that have some of the chosen values."""
        spans = [axis.span(chosen.get(axis.field.name)) for axis in self.axes]
        across, down = spans[0], spans[1] if len(spans) == 2 else (0, 0)
        return [] if across is None or down is None else [((across[0], down[0]), (across[1], down[1]))]

    def label(self, cell: Cell) -> str:
        """Return which values a place has."""
        across = _short(self.axes[0].runs[cell[0]].label)
        if len(self.axes) == 1:
            return across
        return f"{across} · {_short(self.axes[1].field.name)} {_short(self.axes[1].runs[cell[1]].label)}"


@dataclass(frozen=True)
class CalendarZone:
    """A part of the chart: a page of a calendar with the times of one field from a first to a last one."""

    name: str
    field: PartitionField
    type: str
    unit: str
    """The unit of the field's values; a place of the calendar may have several of them."""
    calendar: Calendar
    first: int
    last: int

    @cached_property
    def start(self) -> int:
        """The first period."""
        return self.calendar.place(convert_time(self.first, self.unit, self.calendar.unit))[0]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The periods by name."""
        end = self.calendar.place(convert_time(self.last, self.unit, self.calendar.unit))[0]
        return tuple(self._period(period) for period in range(self.start, end + 1))

    @property
    def span_ms(self) -> tuple[float, float]:
        """The first moment of the first period and the last one of the last, in milliseconds since 1970."""
        unit, periods = self.calendar.unit, (self.start, self.start + len(self.columns))
        numbers = [self.calendar.number(period, 0) for period in periods]
        start, end = (n * MS_AN_HOUR if unit == "hour" else first_time(n, "day", unit) * MS_A_DAY for n in numbers)
        return start, end - 1

    @property
    def rows(self) -> tuple[str, ...]:
        """The parts of a period."""
        return self.calendar.rows

    def place(self, key: Key) -> Cell | None:
        """Return where a partition is drawn."""
        if key[0] is None or not self.first <= (number := count_time(key[0])) <= self.last:
            return None
        period, row = self.calendar.place(convert_time(number, self.unit, self.calendar.unit))
        return period - self.start, row

    def ranges(self, first: Cell, last: Cell) -> tuple[FieldRange, ...] | None:
        """Return the times in a rectangle: whole periods, or a part of one; None if none of them is in the zone."""
        is_one = first[0] == last[0]
        start = self._ends((first[0], first[1] if is_one else 0))[0]
        end = self._ends((last[0], last[1] if is_one else len(self.rows) - 1))[1]
        ends = max(start, self.first), min(end, self.last)
        if ends[0] > ends[1]:
            return None
        lower, upper = (time_value(self.unit, number) for number in ends)
        return (field_range(self.field, self.type, lower, upper),)

    def boxes(self, chosen: Mapping[str, FieldRange]) -> list[tuple[Cell, Cell]]:
        """Return the rectangles that cover the chosen times: parts of the first and the last period, those between."""
        one = chosen.get(self.field.name)
        if one is None:
            return []
        if one.lower is None or count_time(one.upper) < self.first or count_time(one.lower) > self.last:
            return []
        ends = max(self.first, count_time(one.lower)), min(self.last, count_time(one.upper))
        lower, upper = (self.place((time_value(self.unit, end),)) for end in ends)
        if lower is None or upper is None:
            return []
        bottom = len(self.rows) - 1
        if lower[0] == upper[0] or (lower[1] == 0 and upper[1] == bottom):
            return [(lower, upper)]
        found = [(lower, (lower[0], bottom)), ((upper[0], 0), upper)]
        between = ((lower[0] + 1, 0), (upper[0] - 1, bottom))
        return [found[0], between, found[1]] if upper[0] - lower[0] > 1 else found

    def label(self, cell: Cell) -> str:
        """Return which times a place has."""
        number = self.calendar.number(self.start + cell[0], cell[1])
        return time_label(number, self.calendar.unit)

    def _ends(self, cell: Cell) -> tuple[int, int]:
        number = self.calendar.number(self.start + cell[0], cell[1])
        return tuple(first_time(number + i, self.unit, self.calendar.unit) - i for i in (0, 1))  # type: ignore[return-value]

    def _period(self, period: int) -> str:
        text = time_label(self.calendar.number(period, 0), self.calendar.unit)
        return {"hour": text[:10], "month": text[:4], "year": f"{text[:3]}0s"}.get(self.calendar.unit, text)


Zone = GridZone | CalendarZone


@dataclass(frozen=True)
class Board:
    """Where the partitions of one spec are drawn."""

    spec_id: int
    axes: tuple[Axis, ...]
    """One or two fields; the first runs across."""
    zones: tuple[Zone, ...]
    """From left to right."""
    summed: tuple[str, ...]
    """Fields that are not drawn; values are summed over them."""

    @property
    def is_calendar(self) -> bool:
        """Whether times of one field lie in a calendar."""
        return isinstance(self.zones[-1], CalendarZone)

    def find_zone(self, name: str) -> Zone | None:
        """Return the zone of a name."""
        return next((zone for zone in self.zones if zone.name == name), None)

    def select(self, partitions: pa.Table) -> pa.Table:
        """Return the partitions that are drawn, those of the board's spec: in others, values are of other rows."""
        return partitions.filter(pc.equal(partitions["spec_id"], self.spec_id))

    def keys(self, partitions: pa.Table) -> list[Key]:
        """Return the values of each partition on the board's axes, row by row."""
        return list(zip(*(_values(partitions, axis.field) for axis in self.axes), strict=True))

    def place(self, key: Key) -> tuple[int, Cell] | None:
        """Return the number of the zone, and the place in it; None if the partition lies outside of what is zoomed."""
        for number, zone in enumerate(self.zones):
            if (cell := zone.place(key)) is not None:
                return number, cell
        return None


@dataclass(frozen=True)
class CellSums:
    """What lies at a place."""

    keys: tuple[Key, ...]
    sums: tuple[int, ...]
    """Of the columns in `SUMMED`."""

    @property
    def partition_count(self) -> int:
        """How many partitions lie there."""
        return len(self.keys)


Cells = Mapping[tuple[int, Cell], CellSums]
"""By the number of a zone, and the place in it."""


def build_board(
    partitions: pa.Table,
    specs: Mapping[int, PartitionSpec],
    default_spec_id: int,
    schema: Schema,
    *,
    width: float,
) -> Board | None:
    """Find where partitions are drawn; None if there are none, or none has a field.

    The newest times have places of their own; older ones share places if there is no room: weeks, months, years. Of
    other values, neighbours share places.

    Parameters
    ----------
    partitions : pyarrow.Table
        `schemas.partitions_schema`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    default_spec_id : int
        The spec whose partitions are drawn if it has any; else the newest spec that has some.
    schema : Schema
        Types the partition fields.
    width : float
        Pixels of the figure.
    """
    used = sorted(pc.unique(partitions["spec_id"]).to_pylist())
    typed = {spec_id: fields for spec_id in used if (fields := find_typed_fields(specs[spec_id], schema))}
    if not typed:
        return None
    spec_id = default_spec_id if default_spec_id in typed else list(typed)[-1]
    fields = typed[spec_id]
    shown = sorted(fields[:2], key=lambda pair: time_unit(pair[0].transform, pair[1]) is None)
    rows = partitions.filter(pc.equal(partitions["spec_id"], spec_id))
    values = [_values(rows, field) for field, _ in shown]
    room = int((width - MARGIN) / LEAST_PITCH)
    # All of a small table's partitions have rows of their own, if these are thin.
    is_small = all(len(set(one)) <= MOST_ROWS * 2 for one in values[1:]) and (
        len(set(values[0])) * MOST_ROWS * 2 <= MOST_CELLS
    )
    down = _axis(*shown[1], values[1], MOST_ROWS * (2 if is_small else 1)) if len(shown) == 2 else None
    most = min(room, MOST_CELLS // (1 if down is None else len(down.runs)))
    across = _axis(*shown[0], values[0], max(most, 2))
    drawn = {field.field_id for field, _ in shown}
    summed = tuple(field.name for field, _ in fields if field.field_id not in drawn)
    axes = (across,) if down is None else (across, down)
    calendars = _calendar_zones(*shown[0], values[0], room) if down is None else ()
    return Board(spec_id, axes, calendars or (GridZone("places", axes),), summed)


def sum_cells(partitions: pa.Table, board: Board) -> Cells:
    """Return what lies at each place."""
    rows = board.select(partitions)
    figures = np.stack([rows[name].to_numpy() for name in SUMMED], axis=1) if rows.num_rows else np.zeros((0, 5))
    members: dict[tuple[int, Cell], list[int]] = {}
    keys, find_place = board.keys(rows), cache(board.place)
    for row, key in enumerate(keys):
        if (place := find_place(key)) is not None:
            members.setdefault(place, []).append(row)
    return {
        place: CellSums(tuple(dict.fromkeys(keys[row] for row in found)), tuple(map(int, figures[found].sum(axis=0))))
        for place, found in members.items()
    }


def _short(text: str) -> str:
    return shorten(text, _LONGEST_LABEL)


def _values(rows: pa.Table, field: PartitionField) -> list[Any]:
    values = to_values(pc.struct_field(rows["partition"], field.name))
    # One object for each NaN: as a key, NaN equals itself alone.
    return [math.nan if value != value else value for value in values]


def _unit(field: PartitionField, kind: str, values: Sequence[Any]) -> str | None:
    unit = time_unit(field.transform, kind)
    size = 24 if unit == "hour" else 1
    known = [count_time(value) // size for value in values if value is not None] if unit in ("day", "hour") else []
    # A calendar has the years of Python.
    is_beyond = any(count_time(time_value("day", end)) != end for end in (min(known), max(known))) if known else False
    return None if is_beyond else unit


def _axis(field: PartitionField, kind: str, values: Sequence[Any], most: int) -> Axis:
    known = sorted({value for value in values if value is not None and value == value})
    nulls = [Run(None, None, "null")] if None in values else []
    nans = [Run(value, value, "NaN") for value in values if value is not None and value != value][:1]
    unit = _unit(field, kind, values)
    room = max(1, most - len(nulls) - len(nans))
    runs, about = _time_runs(known, unit, room) if unit and known else ([], "")
    if not runs:
        filled = _with_gaps(known, field.transform, room)
        # Of times the newest stand alone whatever their number; of other values neighbours share places evenly.
        alone = room // 2 if is_time_transform(field.transform, kind) and len(filled) > room else 0
        older, newest = filled[: len(filled) - alone], filled[len(filled) - alone :]
        size = max(1, -(-len(older) // (room - alone)))
        groups = [older[start : start + size] for start in range(0, len(older), size)] + [[one] for one in newest]
        runs = [_run(group, lambda value: display_partition_value(field.transform, kind, value)) for group in groups]
        about = f"{'older: ' if alone else ''}{size:,} values a place" if size > 1 else ""
    return Axis(field, kind, (*nulls, *runs, *nans), about)


def _run(group: Sequence[Any], label: Any) -> Run:
    ends = label(group[0]), label(group[-1])
    return Run(group[0], group[-1], ends[0] if len(group) == 1 else f"{ends[0]} to {ends[1]}")


def _with_gaps(values: list[Any], transform: str, most: int) -> list[Any]:
    # A bucket without rows is a gap that a person wants to see.
    if not values or not transform.startswith("bucket") or values[-1] - values[0] >= most:
        return values
    return list(range(values[0], values[-1] + 1))


def _time_runs(values: Sequence[Any], unit: str, most: int) -> tuple[list[Run], str]:
    """Return the newest times one by one, and older ones in the finest unit that has room; none if none has."""
    first, last = count_time(values[0]), count_time(values[-1])
    if last - first < most:
        return [_time_run(number, unit, unit, first, last) for number in range(first, last + 1)], ""
    for coarser in COARSER[unit]:
        for sixteenths in range(12, 3, -1):
            start = last - most * sixteenths // 16 + 1
            before, end = (convert_time(number, unit, coarser) for number in (first, start - 1))
            if end - before + 1 + last - start + 1 <= most:
                older = [_time_run(number, unit, coarser, first, start - 1) for number in range(before, end + 1)]
                newest = [_time_run(number, unit, unit, first, last) for number in range(start, last + 1)]
                return older + newest, f"older by {coarser}"
    return [], ""


def _time_run(number: int, unit: str, coarser: str, first: int, last: int) -> Run:
    start, end = first_time(number, unit, coarser), first_time(number + 1, unit, coarser) - 1
    return Run(time_value(unit, max(first, start)), time_value(unit, min(last, end)), time_label(number, coarser))


def _calendar_zones(field: PartitionField, kind: str, values: Sequence[Any], room: int) -> tuple[Zone, ...]:
    unit = _unit(field, kind, values)
    known = [count_time(value) for value in values if value is not None] if unit else []
    if unit is None or not known:
        return ()
    first, last = min(known), max(known)
    years = convert_time(last, unit, "year") - convert_time(first, unit, "year")
    if last - first < CALENDARS[unit].least or years > LONGEST_YEARS:
        return ()
    nulls = (GridZone("null", (Axis(field, kind, (Run(None, None, "null"),)),)),) if None in values else ()

    def zone(name: str, shown: str, start: int, end: int) -> CalendarZone:
        return CalendarZone(name, field, kind, unit, CALENDARS[shown], start, end)

    whole = zone("newest", unit, first, last)
    if len(whole.columns) <= min(room, MOST_CELLS // len(whole.rows)):
        return (*nulls, whole)
    for coarser in (one for one in COARSER[unit] if one in CALENDARS):
        for sixteenths in range(10, 3, -1):
            columns = min(room, MOST_CELLS // len(whole.rows)) * sixteenths // 16
            start = whole.calendar.number(whole.calendar.place(last)[0] - columns + 1, 0)
            older, newest = zone("older", coarser, first, start - 1), zone("newest", unit, start, last)
            cells = columns * len(newest.rows) + len(older.columns) * len(older.rows)
            if len(older.columns) + columns <= room - _NAMES and cells <= MOST_CELLS:
                return (*nulls, older, newest)
    return ()
