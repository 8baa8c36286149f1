"""Answers on stdout or in a file: a table for people, JSON, CSV, Parquet."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from icestats.answers.text import align, printable
from icestats.cli.records import build_plain_records

FORMATS = ("table", "json", "csv", "parquet")
_MOST_CELL_CHARACTERS = 60


@dataclass(frozen=True)
class Output:
    """An answer: Arrow rows, and the JSON objects of the same rows."""

    table: pa.Table
    records: Callable[[], list[dict[str, Any]]] | None = None
    """By default the columns as they are."""
    document: dict[str, Any] | None = None
    """The whole answer as one JSON object, where it is more than rows."""
    text: str | None = None
    """The answer for a terminal, where aligned columns of all that is known would be too wide."""
    note: str = ""
    """What a terminal says below the rows."""


def write_json(document: Any, path: Path | None) -> None:
    """Write one JSON document."""
    _write((json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(), path)


def write_output(output: Output, output_format: str, path: Path | None) -> None:
    """Write an answer in one of `FORMATS`, to a file or to stdout."""
    if output_format == "parquet":
        _write(_parquet(output.table), path)
    elif output_format == "json" and output.document is not None:
        write_json(output.document, path)
    elif output_format == "table" and output.text is not None:
        _write(output.text.encode(), path)
    else:
        records = build_plain_records(output.table) if output.records is None else output.records()
        if output_format == "json":
            write_json(records, path)
        elif output_format == "csv":
            _write(_csv(records, output.table.column_names), path)
        else:
            _write((_text(records) + output.note).encode(), path)


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    # Parquet has no structs without fields, as the partition of an unpartitioned table is.
    fieldless = [f.name for f in table.schema if pa.types.is_struct(f.type) and not f.type.num_fields]
    pq.write_table(table.drop_columns(fieldless), buffer)
    return buffer.getvalue()


def _write(data: bytes, path: Path | None) -> None:
    if path is not None:
        path.write_bytes(data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _csv(records: list[dict[str, Any]], names: list[str]) -> bytes:
    import csv

    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]) if records else names)
    if writer.fieldnames:
        writer.writeheader()
    for record in records:
        writer.writerow({name: _cell(value) for name, value in record.items()})
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _text(records: list[dict[str, Any]]) -> str:
    """Aligned columns: a partition's fields one by one, lists on one line; what is nested deeper is left out."""
    if not records:
        return "nothing to list\n"
    flat = [_flattened(record) for record in records]
    names = list(dict.fromkeys(name for row in flat for name in row))
    rows = [
        [_short(row.get(name), _absence(record, name)) for name in names]
        for record, row in zip(records, flat, strict=True)
    ]
    left = [i for i, name in enumerate(names) if not all(isinstance(row.get(name), int | float | None) for row in flat)]
    return "\n".join(align([names, *rows], left)) + "\n"


def _flattened(record: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if name == "partition" and isinstance(value, dict):
            flat |= {field: "null" if part is None else part for field, part in value.items()}
        elif isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
            flat[name] = ", ".join(map(str, value))
        elif not isinstance(value, list | dict):
            flat[name] = value
    return flat


def _absence(record: dict[str, Any], name: str) -> str:
    """What to show for null: the first words of the figure's provenance, where the row has one."""
    return str(record.get("provenance", {}).get(name, "unknown")).partition(":")[0]


def _short(value: Any, absence: str) -> str:
    if value is None:
        return absence
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = printable(text)
    return text if len(text) <= _MOST_CELL_CHARACTERS else f"…{text[-_MOST_CELL_CHARACTERS + 1 :]}"
