"""Where each partition is drawn: on axes, in a calendar, or in a line."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.iceberg.metadata import PartitionField, PartitionSpec, Schema
from icestats.iceberg.partition_columns import display_partition_value, partition_field_type
from icestats_widgets.calendars import CALENDARS, Calendar
from icestats_widgets.figure_style import escape_label

MOST_PLACES = 400
"""Most places along an axis; further partitions are left out, and the caption says so."""
MOST_CELLS = 12_000
"""Most cells of a heat map; more would make a slow message to the browser."""
TIME_TRANSFORMS = ("year", "month", "day", "hour")
VALUES = {
    "records": "data_record_count",
    "files": "data_file_count",
    "bytes": "total_data_file_size_in_bytes",
}
SUMMED = (*VALUES.values(), "position_delete_record_count", "equality_delete_record_count")
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Axis:
    """The places along an axis, in order: the values as stored, and as text."""

    field: PartitionField
    type: str
    values: tuple[Any, ...]

    @cached_property
    def places(self) -> dict[Any, int]:
        """Place of each value."""
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def hovers(self) -> dict[Any, str]:
        """Text for the hover of each value, escaped for plotly: the field and the value."""
        name = escape_label(self.field.name)
        return {value: f"{name} = {escape_label(self.label(value))}" for value in self.values}

    def label(self, value: Any) -> str:
        """Return a value as readable text."""
        return display_partition_value(self.field.transform, self.type, value)


@dataclass(frozen=True)
class Board:
    """Where the partitions of one spec are drawn."""

    spec_id: int
    axes: tuple[Axis, ...]
    """One or two fields; the first runs across."""
    calendar: Calendar | None
    """Set if there is only one field and it is a time with enough values."""
    summed: tuple[str, ...]
    """Fields that are not drawn; values are summed over them."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of places across and down."""
        if self.calendar is not None:
            return self.calendar.shape
        return len(self.axes[0].values), len(self.axes[1].values) if len(self.axes) == 2 else 1

    def place(self, key: Key) -> tuple[int, int] | None:
        """Return where a partition is drawn, across and down; None if it is not."""
        if self.calendar is not None:
            return None if key[0] is None else self.calendar.place(key[0])
        found = [axis.places.get(value) for axis, value in zip(self.axes, key, strict=True)]
        if found[0] is None or found[-1] is None:
            return None
        return found[0], found[1] if len(found) == 2 and found[1] is not None else 0


def build_board(
    partitions: pa.Table, specs: Mapping[int, PartitionSpec], default_spec_id: int, schema: Schema
) -> Board | None:
    """Find where partitions are drawn; None if there are none, or none has a field.

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
    """
    found = sorted({spec for spec in pc.unique(partitions["spec_id"]).to_pylist() if _fields(specs[spec], schema)})
    if not found:
        return None
    spec_id = default_spec_id if default_spec_id in found else found[-1]
    fields = _fields(specs[spec_id], schema)
    shown = sorted(fields[:2], key=lambda pair: pair[0].transform not in TIME_TRANSFORMS)
    rows = partitions.filter(pc.equal(partitions["spec_id"], spec_id))
    values = [_values(rows, field) for field, _ in shown]
    down = _axis(*shown[1], values[1], MOST_PLACES) if len(shown) == 2 else None
    most = MOST_PLACES if down is None else max(1, min(MOST_PLACES, MOST_CELLS // len(down.values)))
    across = _axis(*shown[0], values[0], most)
    calendar = None
    if down is None and across.field.transform in CALENDARS and None not in across.values:
        calendar = CALENDARS[across.field.transform].of(across.values[0], across.values[-1])
    drawn = {field.field_id for field, _ in shown}
    summed = tuple(field.name for field, _ in fields if field.field_id not in drawn)
    return Board(spec_id, (across,) if down is None else (across, down), calendar, summed)


def sum_cells(partitions: pa.Table, board: Board) -> dict[Key, list[int]]:
    """Return the sums of `SUMMED` for each partition of the board's fields."""
    rows = partitions.filter(pc.equal(partitions["spec_id"], board.spec_id))
    keys = list(zip(*(_values(rows, axis.field) for axis in board.axes), strict=True))
    figures = np.stack([rows[name].to_numpy() for name in SUMMED], axis=1)
    places: dict[Key, int] = {}
    numbers = [places.setdefault(key, len(places)) for key in keys]
    if len(places) < len(keys):
        sums = np.zeros((len(places), len(SUMMED)), np.int64)
        np.add.at(sums, numbers, figures)
        figures = sums
    return dict(zip(places, figures.tolist(), strict=True))


def _fields(spec: PartitionSpec, schema: Schema) -> list[tuple[PartitionField, str]]:
    typed = ((field, partition_field_type(field, schema)) for field in spec.fields if field.transform != "void")
    return [(field, kind) for field, kind in typed if kind is not None]


def _values(rows: pa.Table, field: PartitionField) -> list[Any]:
    values = pc.struct_field(rows["partition"], field.name).to_pylist()
    return [value.isoformat() if isinstance(value, dt.time) else value for value in values]


def _axis(field: PartitionField, kind: str, values: Sequence[Any], most: int) -> Axis:
    known = sorted({value for value in values if value is not None})
    filled = _with_gaps(known, field.transform)
    nulls = [None] if any(value is None for value in values) else []
    newest = field.transform in TIME_TRANSFORMS
    return Axis(field, kind, tuple(nulls + (filled[-most:] if newest else filled[:most])))


def _with_gaps(values: list[Any], transform: str) -> list[Any]:
    # A day without rows is a gap that a person wants to see.
    if not values or not (transform in TIME_TRANSFORMS or transform.startswith("bucket")):
        return values
    first, last = values[0], values[-1]
    if isinstance(first, dt.date):
        days = (last - first).days
        return [first + dt.timedelta(days=i) for i in range(days + 1)] if days < MOST_PLACES else values
    return list(range(first, last + 1)) if last - first < MOST_PLACES else values
