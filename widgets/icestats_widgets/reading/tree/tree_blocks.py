"""The levels of the manifest tree: snapshot, manifests, data files, columns, row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_values
from icestats.answers.text import counted, printable, render_time
from icestats.iceberg.metadata import Field
from icestats.table.overview import KeyRange, Overview
from icestats.table.table import Table
from icestats_widgets.page.cells import UNKNOWN, Cell, bytes_cell, count_cell, render_value, text_cell
from icestats_widgets.reading.bounds import decode_bound
from icestats_widgets.reading.partition_names import PartitionNames
from icestats_widgets.reading.plan_outcomes import SkippedRows
from icestats_widgets.reading.tree.file_listing import file_path
from icestats_widgets.reading.tree.outline import Block

COLUMNS = (
    {"name": "name", "title": "snapshot › manifest › file › column", "width": "minmax(230px,2.2fr)", "sortable": True},
    {"name": "keys", "title": "partition", "width": "minmax(176px,1.5fr)", "sortable": True},
    {"name": "records", "title": "records", "width": "minmax(96px,1fr)", "align": "end", "sortable": True},
    {"name": "files", "title": "files", "width": "minmax(64px,.6fr)", "align": "end", "sortable": True},
    {"name": "size", "title": "size", "width": "minmax(84px,.8fr)", "align": "end", "sortable": True},
    {"name": "nulls", "title": "nulls", "width": "minmax(72px,.8fr)", "align": "end", "sortable": True},
    {"name": "lower", "title": "lower bound", "width": "minmax(96px,1fr)", "sortable": True},
    {"name": "upper", "title": "upper bound", "width": "minmax(96px,1fr)", "sortable": True},
)
SNAPSHOT = "snapshot"
NOTHING: Cell = {"t": ""}


def column_titles(column: str | None) -> list[dict[str, Any]]:
    """Return the columns of the grid; the last three show the selected column."""
    of = f" of {printable(column)}" if column else ""
    return [
        {**one, "title": f"{one['title']}{of}"} if one["name"] in ("nulls", "lower", "upper") else dict(one)
        for one in COLUMNS
    ]


def snapshot_block(table: Table, overview: Overview) -> Block:
    """Return the outermost row: the snapshot."""
    snapshot = table.snapshot
    if snapshot is None:
        return Block("s", 0, lambda _: [])
    about = f"snapshot {snapshot.snapshot_id}, {snapshot.operation}, {render_time(snapshot.timestamp_ms)}"
    cells = [
        text_cell(f"snapshot {snapshot.snapshot_id}", about, "strong"),
        text_cell(f"{snapshot.operation} · {render_time(snapshot.timestamp_ms)}"),
        count_cell(overview.record_count),
        count_cell(overview.data_file_count),
        bytes_cell(overview.file_size_in_bytes),
        NOTHING,
        NOTHING,
        NOTHING,
    ]
    return Block("s", 1, lambda _: cells, lambda _: SNAPSHOT, opens=True)


def manifest_block(manifests: pa.Table, overview: Overview, column: Field | None, skipped: SkippedRows) -> Block:
    """Return the manifests: `schemas.MANIFESTS`, or `schemas.MANIFEST_FILES` before they are read."""
    is_read = "total_record_count" in manifests.column_names
    records = manifests["total_record_count"] if is_read else _added(manifests, "rows")
    files = manifests["live_file_count"] if is_read else _added(manifests, "files")
    sizes = (
        manifests["total_file_size_in_bytes"] if is_read else pa.chunked_array([pa.nulls(len(manifests), pa.int64())])
    )
    ranges = {one.manifest_path: one for one in overview.key_ranges}
    paths = manifests["manifest_path"].to_pylist()
    contents, lengths = manifests["content"].to_pylist(), manifests["manifest_length"].to_pylist()
    snapshots, sequence = manifests["added_snapshot_id"].to_pylist(), manifests["sequence_number"].to_pylist()
    figures = _Figures(records, files, sizes, *_metrics(manifests, column, is_read))

    def cells(row: int) -> list[Cell]:
        about = (
            f"{paths[row]}\n{counted(lengths[row], 'byte')}, {contents[row]}, added by snapshot {snapshots[row]}, "
            f"sequence number {sequence[row]}"
        )
        first = _name_cell(paths[row], about, contents[row], skipped.of_manifest(paths[row]))
        return [first, text_cell(_span(ranges.get(paths[row]))), *figures.cells(row, column, pending=not is_read)]

    def keys() -> pa.Array:
        lowest = [None if (one := ranges.get(path)) is None else one.lower for path in paths]
        return pa.array(lowest, pa.float64())

    values = {"name": lambda: pa.array(paths, pa.string()), "keys": keys, **figures.values(column)}
    return Block("m", len(paths), cells, lambda row: paths[row], values, values["name"], opens=True)


def file_block(files: pa.Table, table: Table, column: Field | None, skipped: SkippedRows) -> Block:
    """Return live files, as `read_listed_files` gives them."""
    ones = pa.chunked_array([pa.nulls(len(files), pa.int64())])
    rest = (files[name] for name in ("file_size_in_bytes", "nulls", "lower", "upper"))
    figures = _Figures(files["record_count"], ones, *rest)
    partition, spec_ids = files["partition"], files["spec_id"]
    names = PartitionNames(table.metadata, table.schema)

    def cells(row: int) -> list[Cell]:
        path, content = file_path(files, row), files["content"][row].as_py()
        about = f"{path}\n{files['file_format'][row].as_py()}, {content}"
        first = _name_cell(path, about, content, skipped.of_file(files["manifest_path"][row].as_py(), path))
        text = names.text(to_values(partition.slice(row, 1))[0], spec_ids[row].as_py())
        rest = figures.cells(row, column, pending=False)
        rest[1] = NOTHING
        return [first, text_cell(text), *rest]

    def keys() -> pa.Array:
        first = (
            pc.struct_field(partition, [0]) if partition.type.num_fields else pa.chunked_array([pa.nulls(len(files))])
        )
        return first.cast(pa.int32()).combine_chunks() if pa.types.is_date(first.type) else first.combine_chunks()

    values = {"name": lambda: combine_chunks(files["file_name"]), "keys": keys, **figures.values(column)}
    return Block("f", len(files), cells, lambda row: file_path(files, row), values, values["name"], opens=True)


def column_block(file: Mapping[str, Any], columns: Sequence[Field], opens: bool) -> Block:
    """Return the columns of a file, from its entry in the manifest; null is unknown."""
    maps = {name: dict(file[name] or ()) for name in ("column_sizes", "value_counts", "null_value_counts")}
    maps |= {name: dict(file[name] or ()) for name in ("lower_bounds", "upper_bounds")}
    most = {name: max((v or 0 for v in maps[name].values()), default=0) for name in ("value_counts", "column_sizes")}

    def cells(row: int) -> list[Cell]:
        one = columns[row]
        found = {name: values.get(one.field_id) for name, values in maps.items()}
        bounds = [text_cell(render_value(one.type, found[name])) for name in ("lower_bounds", "upper_bounds")]
        return [
            text_cell(one.name),
            text_cell(one.type, kind="quiet"),
            count_cell(found["value_counts"], most["value_counts"], "values"),
            NOTHING,
            bytes_cell(found["column_sizes"], most["column_sizes"]),
            count_cell(found["null_value_counts"], found["value_counts"]),
            *bounds,
        ]

    def numbers(name: str) -> pa.Array:
        return pa.array([maps[name].get(one.field_id) for one in columns], pa.int64())

    values = {
        "name": lambda: pa.array([one.name for one in columns], pa.string()),
        "records": lambda: numbers("value_counts"),
        "size": lambda: numbers("column_sizes"),
        "nulls": lambda: numbers("null_value_counts"),
    }
    return Block("c", len(columns), cells, lambda row: columns[row].name, values, opens=opens)


def row_group_block(groups: pa.Table, column: Field) -> Block:
    """Return the row groups of a file with the statistics of one column, from the file's footer."""
    rows = groups.to_pylist()
    most = {name: max((row[name] for row in rows), default=0) for name in ("row_count", "size_bytes")}

    def cells(number: int) -> list[Cell]:
        row = rows[number]
        bounds = [render_value(column.type, row[f"{side}_bound_{column.field_id}"]) for side in ("lower", "upper")]
        return [
            text_cell(f"row group {row['row_group']}", "from the file's footer"),
            NOTHING,
            count_cell(row["row_count"], most["row_count"]),
            NOTHING,
            bytes_cell(row["size_bytes"], most["size_bytes"], "all columns, compressed"),
            count_cell(row[f"null_value_count_{column.field_id}"], row["row_count"]),
            # A footer whose writer took NaN for the largest value says nothing.
            *(text_cell(UNKNOWN if bound == "NaN" else bound) for bound in bounds),
        ]

    return Block("g", len(rows), cells)


def note_block(text: str) -> Block:
    """Return a single row that says why there are no others."""
    return Block("n", 1, lambda _: [text_cell(text, kind="quiet"), *[NOTHING] * (len(COLUMNS) - 1)])


def _name_cell(path: str, about: str, content: str, step: str | None) -> Cell:
    name = path.rsplit("/", 1)[-1]
    if content != "data":
        return text_cell(name, about, "deletes")
    return text_cell(name, about) if step is None else text_cell(name, f"{about}\nskipped: {step}", "skipped")


class _Figures:
    """The columns of numbers that manifests and files have in common."""

    def __init__(self, records: Any, files: Any, sizes: Any, nulls: Any, lower: Any, upper: Any) -> None:
        self._counts = {"records": records, "files": files, "size": sizes, "nulls": nulls}
        self._bounds = {"lower": lower, "upper": upper}
        self._most = {name: pc.max(values).as_py() for name, values in self._counts.items()}

    def cells(self, row: int, column: Field | None, *, pending: bool) -> list[Cell]:
        records, files, size, nulls = (values[row].as_py() for values in self._counts.values())
        kind = None if column is None else column.type
        bounds = [
            NOTHING if kind is None else text_cell(render_value(kind, self._bounds[s][row].as_py()))
            for s in self._bounds
        ]
        rest = [NOTHING if column is None else count_cell(nulls, records), *bounds]
        if pending:
            rest = [text_cell("…")] * 3
        return [
            count_cell(records, self._most["records"]),
            count_cell(files, self._most["files"]),
            text_cell("…") if pending else bytes_cell(size, self._most["size"]),
            *rest,
        ]

    def values(self, column: Field | None) -> dict[str, Any]:
        counts = {name: (lambda v=values: combine_chunks(v)) for name, values in self._counts.items()}
        if column is None:
            return counts
        return counts | {
            side: (lambda v=values: _decoded(column.type, v)) for side, values in self._bounds.items()
        }  # fmt: skip


def _metrics(rows: pa.Table, column: Field | None, is_read: bool) -> list[Any]:
    if column is None or not is_read:
        return [pa.chunked_array([pa.nulls(len(rows), kind)]) for kind in (pa.int64(), pa.binary(), pa.binary())]
    names = ("null_value_counts", "lower_bounds", "upper_bounds")
    return [pc.map_lookup(rows[name], pa.scalar(column.field_id, pa.int32()), "first") for name in names]


def _added(manifests: pa.Table, what: str) -> Any:
    return pc.add(manifests[f"added_{what}_count"], manifests[f"existing_{what}_count"])


def _span(one: KeyRange | None) -> str:
    if one is None:
        return "–"
    return one.lower_text if one.lower_text == one.upper_text else f"{one.lower_text} to {one.upper_text}"


def _decoded(type_text: str, values: Any) -> pa.Array:
    found = [decode_bound(type_text, data) for data in values.to_pylist()]
    try:
        return pa.array(found)
    except (pa.ArrowException, TypeError):
        return pa.array([None if value is None else str(value) for value in found], pa.string())
