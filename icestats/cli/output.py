"""Answers on stdout or in a file: a table for people, JSON, CSV, Parquet; and progress on stderr.

In JSON and CSV numbers are numbers, 64-bit identifiers strings, decimals strings, dates and timestamps ISO 8601, binary
hexadecimal, NaN and infinities strings; null is unknown.
"""

from __future__ import annotations

import datetime as dt
import functools
import io
import json
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from icestats.answers.arrays import to_rows
from icestats.answers.schemas import PARTITION_MAPS, STATISTICS, SUMMED_STATISTICS
from icestats.answers.text import align, counted, escape_json, one_line, printable, printable_lines
from icestats.answers.whole_file import write_whole
from icestats.errors import CallError
from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.iceberg.partition_columns import name_specs
from icestats.iceberg.types import decode_json, json_value
from icestats.scan.scan_progress import render_left

_FORMATS = ("table", "json", "csv", "parquet")
_MOST_CELL_CHARACTERS = 60
_SHOWN: dict[str, Any] = {"default": "table", "show_default": True}
_IDENTIFIERS = frozenset({"added_snapshot_id", "snapshot_id", "parent_snapshot_id", "last_updated_snapshot_id"})
_AGED = frozenset({"ndv", "avg_length", "max_length"})
_AGE = re.compile(r"snapshot \d+, [\d,]+ commits? behind")
_MOST_NAMES = 10
_PLURALS = tuple(f"{statistic}s" for statistic in STATISTICS)
_PARTITION_MAPS = tuple(field.name for field in PARTITION_MAPS)
_MAP_COLUMNS = frozenset((*_PLURALS, *_PARTITION_MAPS)) | {f"{name}_missing_files" for name in _PLURALS}


@dataclass(frozen=True)
class Output:
    """An answer: Arrow rows, and the JSON objects of the same rows."""

    table: pa.Table
    records: Callable[[pa.Table], Iterable[dict[str, Any]]] | None = None
    """Makes JSON objects of its rows, of which a terminal gets fewer columns; by default the columns as they are."""
    document: dict[str, Any] | None = None
    """The whole answer as one JSON object, where it is more than rows."""
    text: str | None = None
    """The answer for a terminal, where aligned columns of all that is known would be too wide."""
    note: str = ""
    """What a terminal says below the rows."""


Command = Callable[..., Any]


def with_output(command: Command) -> Any:
    """Give a command the options that say where its answer goes; it returns an `Output`."""

    @click.option("--format", "output_format", type=click.Choice(_FORMATS), **_SHOWN)
    @click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of stdout."
    )
    @functools.wraps(command)
    def run(output_format: str, output: Path | None, **others: Any) -> None:
        if output_format == "parquet" and output is None and sys.stdout.isatty():
            # It has a table's names and values as they are.
            raise CallError("Parquet is no text for a terminal: name a file with --output, or give it to a program")
        _write_output(command(**others), output_format, output)

    return run


Report = tuple[Callable[[], Any], object]
"""What JSON is made of, and what text is."""


def with_report(command: Command) -> Any:
    """Give a command the choice between text and JSON; it returns a `Report`."""

    @click.option("--format", "output_format", type=click.Choice(("table", "json")), **_SHOWN)
    @functools.wraps(command)
    def run(output_format: str, **others: Any) -> None:
        to_json, text = command(**others)
        if output_format == "json":
            _write_json(to_json(), None)
        else:
            click.echo(str(text))

    return run


def _write_json(document: Any, path: Path | None) -> None:
    """Write one JSON document; what `printable` would replace is escaped."""
    _write([f"{_json(document)}\n".encode()], path)


def _json(document: Any) -> str:
    lines = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(map(_escape, lines))


def _json_list(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Write a list as `_json` does, an item at a time."""
    before = "["
    for record in records:
        item = _json(record).replace("\n", "\n ")
        yield f"{before}\n {item}".encode()
        before = ","
    yield b"[]\n" if before == "[" else b"\n]\n"


def _escape(line: str) -> str:
    return line if line.isprintable() else "".join(c if c.isprintable() else escape_json(c) for c in line)


def _write_output(output: Output, output_format: str, path: Path | None) -> None:
    """Write an answer in one of `_FORMATS`, to a file or to stdout."""
    if output_format == "parquet":
        _write([_parquet(output.table)], path)
    elif output_format == "json" and output.document is not None:
        _write_json(output.document, path)
    elif output_format == "table" and output.text is not None:
        _write([output.text.encode()], path)
    else:
        table = _drop_statistics(output.table) if output_format == "table" else output.table
        records = map(_plain_row, to_rows(table)) if output.records is None else output.records(table)
        if output_format == "json":
            _write(_json_list(records), path)
        elif output_format == "csv":
            # A file and a program get the values as they are.
            is_read = path is None and sys.stdout.isatty()
            lines = _csv(records, table.column_names)
            shown = (printable(line[:-2]) + "\n" for line in lines) if is_read else lines
            _write((line.encode("utf-8", "replace") for line in shown), path)
        else:
            _write([(_text(records) + output.note).encode()], path)


def _drop_statistics(table: pa.Table) -> pa.Table:
    """Leave out what lines have no room for: maps by the ids of columns."""
    maps = [f.name for f in table.schema if pa.types.is_map(f.type) and pa.types.is_integer(f.type.key_type)]
    return table if len(maps) == table.num_columns else table.drop_columns(maps)


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    # Parquet has no structs without fields, as the partition of an unpartitioned table is.
    fieldless = [f.name for f in table.schema if pa.types.is_struct(f.type) and not f.type.num_fields]
    try:
        pq.write_table(table.drop_columns(fieldless), buffer)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise CallError(
            f"Parquet cannot hold these rows: {one_line(error)}; cast the column, or ask for another format"
        ) from error
    return buffer.getvalue()


def _write(parts: Iterable[bytes], path: Path | None) -> None:
    if path is None:
        for part in parts:
            click.echo(part, nl=False)
        return
    try:
        write_whole(path, parts)
    except OSError as error:
        said = f"the answer cannot be written to {path}: {error.strerror or type(error).__name__}"
        raise CallError(f"{said}; name a file in a folder of yours") from error


def _csv(records: Iterable[dict[str, Any]], names: list[str]) -> Iterator[str]:
    """Write a line at a time; the first record says which columns there are, or `names` where there is none."""
    rest = iter(records)
    first = next(rest, None)
    heads = names if first is None else list(first)
    if heads:
        yield _csv_line(heads)
    for record in () if first is None else chain([first], rest):
        values = (record[name] for name in heads)
        yield _csv_line([json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for v in values])


def _csv_line(values: list[Any]) -> str:
    import csv

    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()


def _text(records: Iterable[dict[str, Any]]) -> str:
    """Aligned columns: a partition's fields one by one, lists on one line; what is nested deeper is left out."""
    found = [(record.get("provenance"), _flattened(record)) for record in records]
    if not found:
        return "nothing to list\n"
    flat = [row for _, row in found]
    names = list(dict.fromkeys(name for row in flat for name in row))
    if not names:
        return f"{counted(len(found), 'row')} of nested values: --format json shows them\n"
    rows = [[_short(row.get(name), _absence(provenance, name)) for name in names] for provenance, row in found]
    left = [i for i, name in enumerate(names) if not all(isinstance(row.get(name), int | float | None) for row in flat)]
    return "\n".join(align([names, *rows], left)) + "\n"


def _flattened(record: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if name == "partition" and isinstance(value, dict):
            for field, part in value.items():
                flat[f"partition.{field}" if field in record else field] = "null" if part is None else part
        elif isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
            flat[name] = ", ".join(map(str, value))
        elif not isinstance(value, list | dict):
            flat[name] = value
    return flat


def _absence(provenance: Any, name: str) -> str:
    """What to show for null: the first words of the figure's provenance, where the row has one."""
    if isinstance(provenance, list):
        # A query has that of `columns` as pairs, and may call anything else so.
        pairs = [pair for pair in provenance if isinstance(pair, list) and len(pair) == 2]
        words = next((words for about, words in pairs if about == name), None)
    else:
        words = provenance.get(name) if isinstance(provenance, dict) else None
    return str(words or "unknown").partition(":")[0]


def _short(value: Any, absence: str) -> str:
    if value is None:
        return absence
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_CELL_CHARACTERS else f"…{text[-_MOST_CELL_CHARACTERS + 1 :]}"


def build_manifest_records(manifests: pa.Table, schema: Schema) -> Iterator[dict[str, Any]]:
    """Build an object a manifest from `Table.manifests()`, in its order."""
    return (_with_maps(row, schema) for row in to_rows(manifests.drop_columns(["partitions", "key_metadata"])))


def build_partition_records(
    partitions: pa.Table, schema: Schema, specs: Mapping[int, PartitionSpec]
) -> Iterator[dict[str, Any]]:
    """Build an object a partition from `Table.partitions()`, in its order.

    `partition` holds the fields of the row's own spec, by the names that they have in the answer.
    """
    named = name_specs(specs)
    for row in to_rows(partitions):
        record = _with_maps(row, schema)
        names = [field.name for field in named[row["spec_id"]].fields]
        record["partition"] = {name: plain_value(row["partition"][name]) for name in names}
        yield record


def build_column_records(columns: pa.Table) -> Iterator[dict[str, Any]]:
    """Build an object a column from `Table.columns()`, in its order."""
    for row in to_rows(columns):
        record = {name: plain_value(value) for name, value in row.items()}
        for side in ("lower_bound", "upper_bound"):
            record[side] = decode_json(row["type"], row[side])
        record["missing_files"] = dict(row["missing_files"])
        record["provenance"] = dict(row["provenance"])
        yield record


def describe_ages(columns: pa.Table) -> str:
    """Say which figures of `Table.columns()` are of earlier snapshots: a terminal has no room for the provenance."""
    aged: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in columns.select(["name", "provenance"]).to_pylist():
        for figure, words in row["provenance"]:
            if figure in _AGED and (found := _AGE.search(words)):
                figures, names = aged.setdefault(found[0], ({}, {}))
                figures[figure], names[row["name"]] = None, None
    lines = []
    for age, (figures, names) in aged.items():
        listed = ", ".join(names) if len(names) <= _MOST_NAMES else counted(len(names), "column")
        lines.append(f"{', '.join(figures)} of {listed}: of {age}")
    return f"{printable_lines(lines)}\n" if lines else ""


def build_sketch_records(sketches: pa.Table) -> list[dict[str, Any]]:
    """Build an object a blob from `Table.sketches()`, in its order."""
    return [{**_plain_row(row), "properties": dict(row["properties"])} for row in sketches.to_pylist()]


def plain_value(value: Any) -> Any:
    """Return any Arrow value as JSON has it, without its Iceberg type."""
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, float):
        return json_value("double", value)
    if isinstance(value, Mapping):
        return _plain_row(value)
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return value


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: str(value) if name in _IDENTIFIERS and value is not None else plain_value(value)
        for name, value in row.items()
    }


def _with_maps(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    record = _plain_row({name: value for name, value in row.items() if name not in _MAP_COLUMNS})
    for statistic, name in zip(STATISTICS, _PLURALS, strict=True):
        items: list[tuple[int, Any]] = row.get(name) or []
        if statistic in SUMMED_STATISTICS:
            record[f"total_{name}"] = {str(field_id): value for field_id, value in items}
        else:
            record[name] = {str(field_id): _bound(schema, field_id, value) for field_id, value in items}
    record |= {n: {str(i): plain_value(value) for i, value in row[n] or ()} for n in _PARTITION_MAPS if n in row}
    record["missing_files"] = {
        name: lacking
        for name in _PLURALS
        if (lacking := {str(f): count for f, count in row.get(f"{name}_missing_files") or () if count})
    }
    return record


def _bound(schema: Schema, field_id: int, value: bytes | None) -> Any:
    field = schema.get(field_id)
    return decode_json("binary" if field is None else field.type, value)


@contextmanager
def terminal_progress(
    description: str, *, before: str = "", after_s: float = 0.0
) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback of finished and total tasks that draws a bar on stderr, or None without a terminal.

    On a terminal, `before` is a line above the bar. What is done within `after_s` seconds draws no bar.
    """
    if not sys.stderr.isatty():
        yield None
        return
    if before:
        click.echo(before, err=True)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[left]")]
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), texts[1])
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(printable(description), total=None, left="")
    begin, started = time.monotonic() + after_s, 0.0

    def show(done: int, total: int) -> None:
        nonlocal started
        now = time.monotonic()
        started = started or now
        bar.update(task, completed=done, total=total, left=render_left(now - started, done, total))
        if now >= begin:
            bar.start()

    try:
        if not after_s:
            bar.start()
        yield show
    finally:
        bar.stop()
