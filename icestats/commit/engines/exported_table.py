"""A table as it is exported to an engine: its names there, its row count, and the figures of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from icestats.answers.text import can_stand, counted, render_time
from icestats.errors import CallError
from icestats.iceberg.metadata import Field, Snapshot
from icestats.iceberg.types import decode_value, find_width
from icestats.stats.histogram import Histogram
from icestats.stats.rollup_cells import Figure

_UUID_LENGTH = 36
"""Hive and Impala show a uuid as text."""


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """A top-level column and its figures."""

    name: str
    type: str
    """The Iceberg type."""
    figures: Mapping[str, Figure]
    """By the names of `schemas.COLUMNS`; bounds are decoded. `true_count` and `false_count` of a boolean. Only those
    that are known."""

    def exact(self, name: str) -> Figure | None:
        """Return a figure that holds for the live rows of this very snapshot; None: there is none."""
        figure = self.figures.get(name)
        is_exact = figure is not None and figure.provenance.startswith("exact")
        return figure if figure is not None and is_exact and "deletes not applied" not in figure.provenance else None


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """What an engine can be told about one snapshot of a table."""

    source_name: str
    """What the table was loaded by."""
    name: tuple[str, ...]
    """The name of the table in the engine, part by part."""
    snapshot: Snapshot | None
    is_current: bool
    """Whether the snapshot is the table's current one, which engines read."""
    row_count: Figure
    columns: tuple[ExportedColumn, ...]

    def describe(self) -> str:
        """Return which snapshot of which table this is."""
        if self.snapshot is None:
            return f"{self.source_name}, which has no snapshot yet"
        which = "" if self.is_current else ", NOT the current one, which engines read"
        at = render_time(self.snapshot.timestamp_ms)
        return f"{self.source_name}, snapshot {self.snapshot.snapshot_id} of {at}{which}"


def split_name(
    name: str | None, default: tuple[str, ...] | None, engine: str, fewest: int, most: int
) -> tuple[str, ...]:
    """Return the parts of the table's name in an engine.

    Raises
    ------
    CallError
        The table has no such name, or one that cannot stand in a script.
    """
    if not isinstance(name, str | None):
        raise CallError(f"name is {name!r:.80}: expected text, such as 'db.table'")
    parts = tuple(name.split(".")) if name is not None else default
    expected = "db.table" if most == 2 else "catalog.namespace.table"
    if parts is None:
        raise CallError(f"a metadata.json has no name in {engine}: give one, name={expected!r} (--name {expected})")
    if not (fewest <= len(parts) <= most and all(map(can_stand, parts))):
        raise CallError(f"{'.'.join(parts)!r} cannot be named in {engine}: expected {expected}; give it with name=")
    return parts


def build_exported_columns(
    rows: Iterable[Mapping[str, Any]], booleans: Mapping[int, Histogram], nested: Iterable[Field]
) -> tuple[ExportedColumn, ...]:
    """Build the columns of an export.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of `schemas.COLUMNS`, of top-level columns.
    booleans : mapping of int to Histogram
        The committed distributions of boolean columns, by field id.
    nested : iterable of Field
        Structs, lists and maps, which have no figures.
    """
    simple = (_build_column(row, booleans.get(row["field_id"])) for row in rows)
    return (*simple, *(ExportedColumn(field.name, field.type, {}) for field in nested))


def find_row_count(rows: Iterable[Mapping[str, Any]], record_count: int | None, delete_files: int | None) -> Figure:
    """Return the number of live rows, or the most that there can be.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of `schemas.COLUMNS`, of top-level columns.
    record_count : int or None
        Records in live data files.
    delete_files : int or None
        Live delete files; None: unknown.
    """
    if delete_files == 0 and record_count is not None:
        return Figure(record_count, "exact: the manifest list, no deletes")
    for row in rows:
        provenance = dict(row["provenance"])["value_count"]
        if provenance.startswith("exact: over the live rows"):
            return Figure(row["value_count"], provenance)
    if record_count is None:
        return Figure(None, "unknown: the manifest list does not say")
    return Figure(record_count, f"bound: at most, deletes of {counted(delete_files, 'file')} not applied")


def _build_column(row: Mapping[str, Any], distribution: Histogram | None) -> ExportedColumn:
    provenance = dict(row["provenance"])
    figures = {
        name: Figure(row[name], provenance[name])
        for name in ("ndv", "null_value_count", "nan_value_count", "avg_length", "max_length")
        if row[name] is not None
    }
    for name in ("lower_bound", "upper_bound"):
        with suppress(ValueError):
            if row[name] is not None:
                figures[name] = Figure(decode_value(row["type"], row[name]), provenance[name])
    width = (
        _UUID_LENGTH if row["type"] == "uuid" else find_width(row["type"]) if row["type"].startswith("fixed") else None
    )
    if width is not None:
        figures |= dict.fromkeys(("avg_length", "max_length"), Figure(width, "exact: of the type"))
    if distribution is not None:
        figures |= _count_booleans(distribution)
    return ExportedColumn(row["name"], row["type"], figures)


def _count_booleans(distribution: Histogram) -> dict[str, Figure]:
    counts = {"false_count": 0.0, "true_count": 0.0}
    for edge, count in zip(distribution.edges, distribution.counts, strict=False):
        counts["true_count" if edge else "false_count"] += count
    # A single bin holds every value.
    error = distribution.rank_error if len(distribution.counts) > 1 else 0.0
    behind = distribution.commits_behind
    exact = "estimate: exact over the live rows of" if behind else "exact:"
    provenance = f"estimate: KLL sketch, within {error:.2%} of the values at 99% confidence," if error else exact
    age = f"snapshot {distribution.snapshot_id}, {counted(behind, 'commit')} behind" if behind else "this snapshot"
    return {name: Figure(round(count), f"{provenance} {age}") for name, count in counts.items()}
