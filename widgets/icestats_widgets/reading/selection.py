"""What a person has selected: a range of partitions, or manifests. Every view shows only that part."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.text import counted
from icestats.iceberg.filters.filter_text import write_column, write_value
from icestats.iceberg.metadata import PartitionField, Schema, TableMetadata
from icestats.iceberg.partition_columns import display_partition_value, name_specs, partition_field_type
from icestats.iceberg.types import decode_value, to_integer

_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class FieldRange:
    """Values of a partition field as Iceberg stores them, both ends included."""

    name: str
    source_id: int
    transform: str
    type: str
    lower: Any
    upper: Any
    with_null: bool = False

    @property
    def text(self) -> str:
        """The range as readable text."""
        ends = [display_partition_value(self.transform, self.type, value) for value in (self.lower, self.upper)]
        if self.lower is None:
            return f"{self.name} null"
        span = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        return f"{self.name} {span}{' or null' if self.with_null else ''}"


def field_range(field: PartitionField, kind: str, lower: Any, upper: Any, *, with_null: bool = False) -> FieldRange:
    """Return values of a partition field as a selection has them."""
    return FieldRange(field.name, field.source_id, field.transform, kind, lower, upper, with_null)


@dataclass(frozen=True)
class Selection:
    """Partitions of one spec, or manifests."""

    spec_id: int | None = None
    ranges: tuple[FieldRange, ...] = ()
    manifest_paths: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The selection as readable text."""
        if self.ranges:
            return "partitions: " + ", ".join(one.text for one in self.ranges)
        if len(self.manifest_paths) == 1:
            return "manifest " + self.manifest_paths[0].rsplit("/", 1)[-1]
        return counted(len(self.manifest_paths), "manifest")

    def mask(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return which rows are selected; they have `partition`, `spec_id` and, for manifests, `manifest_path`."""
        if not self.ranges:
            return pc.is_in(rows["manifest_path"], pa.array(self.manifest_paths, pa.string()))
        masks = [pc.equal(rows["spec_id"], self.spec_id)]
        for one in self.ranges:
            values = pc.struct_field(rows["partition"], one.name)
            masks.append(_within(values, one))
        return reduce(pc.and_, masks)

    def where(self) -> str:
        """Return the selection as a condition in DuckDB's SQL, for the views `partitions` and `files`."""
        if not self.ranges:
            paths = ", ".join(_quote(path) for path in self.manifest_paths)
            return f"manifest_path in ({paths})"
        conditions = [f"spec_id = {self.spec_id}"]
        for one in self.ranges:
            name = 'partition."' + one.name.replace('"', '""') + '"'
            within = f"{name} between {_literal(one.lower)} and {_literal(one.upper)}"
            if one.lower is None:
                within = f"{name} is null"
            conditions.append(f"({within} or {name} is null)" if one.with_null and one.lower is not None else within)
        return " and ".join(conditions)

    def call(self, view: str) -> str:
        """Return the Python that gives the selected rows of `partitions`, `manifests` or `files`."""
        query = f"select * from {view} where {self.where()}"  # noqa: S608 - Python for a person to read; quoted above
        return f"table.sql({query!r})"

    def row_filter(self, schema: Schema) -> str | None:
        """Return the selected partitions as a row filter, as far as one can express them; None if it cannot."""
        texts = [text for one in self.ranges if (text := _row_filter(one, schema)) is not None]
        return " and ".join(texts) or None

    def untold(self, schema: Schema) -> str:
        """Return what of the selected partitions no row filter can express, as readable text; empty if all can be."""
        return ", ".join(one.text for one in self.ranges if _row_filter(one, schema) is None)


def may_hold(manifest_files: pa.Table, selection: Selection, metadata: TableMetadata, schema: Schema) -> list[bool]:
    """Return which manifests may hold files of the selection, according to the manifest list.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    selection : Selection
        What is selected.
    metadata : TableMetadata
        The partition specs.
    schema : Schema
        Gives the types of the partition fields.
    """
    if not selection.ranges:
        wanted = set(selection.manifest_paths)
        return [path in wanted for path in manifest_files["manifest_path"].to_pylist()]
    spec = name_specs(metadata.specs).get(-1 if selection.spec_id is None else selection.spec_id)
    fields = {} if spec is None else {field.name: (place, field) for place, field in enumerate(spec.fields)}
    asked = [(one, *fields[one.name]) for one in selection.ranges if one.name in fields]
    typed = [(one, place, partition_field_type(field, schema)) for one, place, field in asked]
    found = []
    for row in manifest_files.select(["partition_spec_id", "partitions"]).to_pylist():
        known = row["partitions"] or ()
        bounds = ((one, _summary(kind, known[place])) for one, place, kind in typed if place < len(known))
        found.append(row["partition_spec_id"] == selection.spec_id and all(_has_some(*pair) for pair in bounds))
    return found


def _summary(kind: str | None, summary: Mapping[str, Any]) -> tuple[Any, Any, bool] | None:
    if kind is None:
        return None
    ends = []
    for name in ("lower_bound", "upper_bound"):
        try:
            ends.append(None if summary[name] is None else decode_value(kind, summary[name]))
        except ValueError:
            return None
    return ends[0], ends[1], summary["contains_null"]


def _has_some(wanted: FieldRange, known: tuple[Any, Any, bool] | None) -> bool:
    if known is None:
        return True
    lower, upper, has_null = known
    if wanted.lower is None:
        return has_null
    if has_null and wanted.with_null:
        return True
    if wanted.upper != wanted.upper:  # NaN, which no bounds tell of
        return True
    if lower is None or upper is None:
        return False
    try:
        return bool(lower <= wanted.upper and upper >= wanted.lower)
    except TypeError:
        return True


def _within(values: pa.ChunkedArray, wanted: FieldRange) -> pa.ChunkedArray:
    null = pc.is_null(values)
    if wanted.lower is None:
        return null
    kind = values.type
    lower, upper = (pa.scalar(value, kind) for value in (wanted.lower, wanted.upper))
    from_lower = pc.greater_equal(values, lower)
    # NaN is the last.
    is_open = wanted.upper != wanted.upper
    inside = pc.or_(from_lower, pc.is_nan(values)) if is_open else pc.and_(from_lower, pc.less_equal(values, upper))
    return pc.or_(pc.fill_null(inside, False), null) if wanted.with_null else pc.fill_null(inside, False)


def _row_filter(one: FieldRange, schema: Schema) -> str | None:
    source = schema.get(one.source_id)
    column = None if source is None else write_column(source.name)
    if source is None or column is None or one.transform == "void":
        return None
    # Every other transform gives null for null alone.
    if one.lower is None:
        return f"{column} is null"
    within = _within_text(column, source.type, one)
    return f"({within} or {column} is null)" if within is not None and one.with_null else within


def _within_text(column: str, type_text: str, one: FieldRange) -> str | None:
    if one.transform == "identity":
        lower, upper = write_value(type_text, one.lower), write_value(type_text, one.upper)
        if lower is None or upper is None:
            return None
        return f"{column} = {lower}" if lower == upper else f"{column} >= {lower} and {column} <= {upper}"
    start, end = _moment(one.transform, one.lower, 0), _moment(one.transform, one.upper, 1)
    if start is None or end is None:
        return None
    lower, upper = (_moment_literal(type_text, moment) for moment in (start, end))
    return f"{column} >= {lower} and {column} < {upper}"


def _moment(transform: str, value: Any, later: int) -> dt.datetime | None:
    try:
        if transform == "day":
            return _EPOCH + dt.timedelta(days=to_integer(value) + later)
        if transform == "hour":
            return _EPOCH + dt.timedelta(hours=value + later)
        if transform in ("month", "year"):
            months = (value + later) * (12 if transform == "year" else 1)
            return dt.datetime(1970 + months // 12, months % 12 + 1, 1)
    except (OverflowError, ValueError):
        return None
    return None


def _moment_literal(type_text: str, moment: dt.datetime) -> str:
    whole = type_text == "date" or moment.time() == dt.time()
    zone = "+00:00" if type_text.startswith("timestamptz") else ""
    return f"'{moment.date().isoformat()}'" if whole else f"'{moment.isoformat()}{zone}'"


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
    is_plain = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return str(value) if is_plain and not isinstance(value, bool) else _quote(str(value))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
