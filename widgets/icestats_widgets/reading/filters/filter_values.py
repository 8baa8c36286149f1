"""Values of a column that are worth filtering by: from partitions, common values, the committed sketch, and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_rows
from icestats.answers.text import counted, render_rows
from icestats.iceberg.filters.filter_text import write_column, write_value
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.partition_columns import name_specs
from icestats.iceberg.types import parse_type
from icestats.stats.frequent_items import VALUE_LENGTH
from icestats.stats.kll_items import item_type_of, item_value, to_item
from icestats_widgets.reading.bounds import decode_bound
from icestats_widgets.reading.selection import Selection, field_range
from icestats_widgets.state import ExplorerState

_MOST_PARTITIONS = 200
_MOST_IDEAS = 3
_RANKS = {0.0: "the smallest", 0.5: "the median", 1.0: "the largest"}
_STARTS = 3
"""Beginnings of strings have at least so many characters."""


class Item(NamedTuple):
    """What may come next in a filter: a value as a filter has it, and where it is from, a column, or a word."""

    text: str
    about: str
    kind: str = "value"


def find_values(state: ExplorerState, field: Field) -> Iterator[Item]:
    """Yield values of a column without repeats: of partitions first, then common ones, then quantiles, then bounds.

    Parameters
    ----------
    state : ExplorerState
        What has been read; nothing is read here.
    field : Field
        The column.
    """
    seen = set()
    if field.type == "boolean":
        yield from (Item("true", ""), Item("false", ""))
        return
    known = (_partition_values, _common_values, _quantiles, _bounds)
    for value, about in (one for find in known for one in find(state, field)):
        text = write_value(field.type, value) if not isinstance(value, str) or field.type == "string" else value
        if text is not None and text not in seen:
            seen.add(text)
            yield Item(text, about)


def find_starts(state: ExplorerState, field: Field) -> Iterator[Item]:
    """Yield beginnings of a column's strings, for `like`."""
    seen = set()
    for value in find_values(state, field):
        start = value.text[1:-1].split()[0] if value.text[1:-1].strip() else ""
        if len(start) >= _STARTS and start not in seen and not set(start) & set("%\\") and start.count("'") % 2 == 0:
            seen.add(start)
            yield Item(f"'{start}%'", f"begins with {start}")


def _partition_values(state: ExplorerState, field: Field) -> Iterator[tuple[Any, str]]:
    if state.partitions is None:
        return
    specs = name_specs(state.table.metadata.specs).values()
    for found in (one for spec in specs for one in spec.fields if one.source_id == field.field_id):
        partitions = state.partitions["partition"]
        if found.name not in {one.name for one in partitions.type} or found.transform == "void":
            continue
        sums = pa.table(
            {"value": pc.struct_field(partitions, found.name), "records": state.partitions["data_record_count"]}
        )
        groups = sums.group_by("value").aggregate([("records", "sum")]).sort_by([("value", "descending")])
        for row in to_rows(groups.slice(0, _MOST_PARTITIONS)):
            text = _first_value(found, row["value"], state.table.schema)
            if text is not None:
                yield text, f"partition, {counted(row['records_sum'], 'record')}"


def _first_value(found: Any, value: Any, schema: Schema) -> Any:
    """Return the least value of a partition: the value itself, or when its day, month, hour or year begins."""
    if value is None or found.transform == "identity":
        return value
    told = Selection(0, (field_range(found, "", value, value),)).row_filter(schema)
    return None if told is None else told.partition(" >= ")[2].partition(" and ")[0]


def _common_values(state: ExplorerState, field: Field) -> Iterator[tuple[Any, str]]:
    if item_type_of(field.type) is None:
        return
    row = _row(state, field) or {}
    # What is said of them ends with their age.
    age = dict(row.get("provenance", ())).get("common_values", "").rpartition(", ")[2]
    behind = "" if age == "this snapshot" else f", {age}"
    for one in row.get("common_values") or ():
        if one["rows_at_least"] > 1 and len(one["value"]) < VALUE_LENGTH:
            value = item_value(field.type, to_item(field.type, one["value"]))
            yield value, f"common: {render_rows(one['rows_at_least'], one['rows_at_most'])}{behind}"


def _quantiles(state: ExplorerState, field: Field) -> Iterator[tuple[Any, str]]:
    part, spark = state.histogram, state.sparks.get(field.name)
    is_shown = part is not None and part.histogram.column == field.name
    known = part.histogram.quantiles if is_shown else spark.quantiles if spark is not None else {}
    for rank, value in known.items():
        yield value, _RANKS.get(rank, f"the {rank:.0%} quantile")


def _bounds(state: ExplorerState, field: Field) -> Iterator[tuple[Any, str]]:
    row = _row(state, field) or {}
    for name, about in (("lower_bound", "lower bound"), ("upper_bound", "upper bound")):
        value = decode_bound(field.type, row.get(name))
        if value is not None:
            yield value, about


def _row(state: ExplorerState, field: Field) -> dict[str, Any] | None:
    """Return a column's row of `schemas.COLUMNS`."""
    if state.columns is None:
        return None
    rows = state.columns.filter(pc.equal(state.columns["field_id"], field.field_id)).to_pylist()
    return rows[0] if rows else None


def suggest_filters(columns: pa.Table, schema: Schema) -> list[str]:
    """Return a few filters that select a part of the table, from the bounds of its columns.

    Parameters
    ----------
    columns : pyarrow.Table
        `schemas.COLUMNS`.
    schema : Schema
        Says which of them are top-level columns.
    """
    top_level = {field.field_id for field in schema.top_level}
    found: dict[str, str] = {}
    for row in columns.to_pylist():
        if row["field_id"] in top_level and (name := write_column(row["name"])) is not None:
            for kind, text in _ideas(name, row):
                found.setdefault(kind, text)
    texts = list(islice(found.values(), _MOST_IDEAS))
    return [*texts, f"{texts[0]} and {texts[1]}"][:_MOST_IDEAS] if len(texts) > 1 else texts


def _ideas(name: str, row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = parse_type(row["type"])
    lower, upper = (decode_bound(row["type"], row[end]) for end in ("lower_bound", "upper_bound"))
    if lower is None or upper is None or lower == upper:
        return
    if kind.is_timestamp or kind.name == "date":
        # What Python cannot hold is an integer.
        if int not in (type(lower), type(upper)):
            third = lower + (upper - lower) * 2 / 3
            yield "time", f"{name} >= '{third.date() if kind.is_timestamp else third}'"
    elif kind.name == "decimal":
        yield "number", f"{name} < {lower + (upper - lower) / 1000:.{kind.scale}f}"
    elif kind.name in ("float", "double"):
        part = f"{lower + (upper - lower) / 1000:.4g}"
        yield "number", f"{name} < {part}" if part.lstrip("-").replace(".", "").isdecimal() else f"{name} > 0"
    elif kind.name in ("int", "long"):
        yield "whole", f"{name} = {lower + (upper - lower) // 3}"
    elif kind.name == "string" and (text := write_value("string", str(upper)[:40])) is not None:
        yield "text", f"{name} = {text}"
