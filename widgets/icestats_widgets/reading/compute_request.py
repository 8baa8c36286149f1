"""What to compute, and what it costs, before anything runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.iceberg.metadata import Field, Schema, Snapshot, TableMetadata
from icestats.iceberg.summary import parse_count
from icestats.read.puffin.statistics_age import count_ages
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    MANIFEST_STATISTICS,
    PARTITION_SKETCHES,
    THETA,
)
from icestats.stats.frequent_items import CAPACITY, MOST_PAYLOAD_BYTES, estimate_stored_size
from icestats.stats.kll_items import item_type_of
from icestats.stats.kll_layout import MAX_K
from icestats.stats.partition_sketches import choose_size, estimate_size, find_default_limit
from icestats.table.table import Table
from icestats_widgets.state import ExplorerState

K, LG_K = 200, 12
_VALUE_BYTES = 16
"""What a common value is taken to have."""
_SCANNED = (THETA, KLL, FREQUENT_ITEMS, COLUMN_STATISTICS, PARTITION_SKETCHES, JOINT_STATISTICS)


@dataclass(frozen=True)
class ComputeRequest:
    """Columns and kinds of statistics."""

    columns: tuple[str, ...] | None = None
    """Top-level columns; None: all."""
    table: bool = True
    """Theta, KLL, common values and column statistics: one scan with PySpark."""
    together: bool = False
    """The pairs of columns that a sample shows to go together, in the same scan."""
    by_partition: bool = False
    """Theta, KLL and common values for each partition, in the same scan."""
    partitions: bool = False
    """The partition statistics file, from manifests."""
    manifests: bool = False
    """The roll-up of each manifest, from manifests."""
    updates: bool = False
    """Whether what is committed of the table is brought up to date, from the new files alone where that is possible."""

    @property
    def scans(self) -> bool:
        """Whether data is read."""
        return self.table or self.together or self.by_partition

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return not (self.scans or self.partitions or self.manifests) or (self.scans and self.columns == ())

    def adding(self, kind: str, column: str | None = None) -> ComputeRequest:
        """Return the request with one more kind, `table`, `by_partition`, `partitions` or `manifests`, of a column.

        Examples
        --------
        >>> ComputeRequest(None, table=False, partitions=True).adding("table", "price")
        ComputeRequest(columns=('price',), table=True, together=False, by_partition=False, partitions=True, ...)
        """
        kinds: dict[str, Any] = {kind: True}
        if column is None:
            return replace(self, updates=False, **kinds)
        chosen = self.columns if self.scans and not self.updates else ()
        if chosen is not None and column not in chosen:
            chosen = (*chosen, column)
        return replace(self, columns=chosen, updates=False, **{"table": True, **kinds})

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Table.compute` that differ from its defaults."""
        found: dict[str, Any] = {} if self.columns is None or not self.scans else {"columns": list(self.columns)}
        if self.partitions or self.manifests:
            found["table"] = self.scans
        found |= {name: True for name in ("partitions", "manifests") if getattr(self, name)}
        found |= {"together": "auto"} if self.together else {}
        return found | ({"by": "partition"} if self.by_partition else {})

    def code(self) -> str:
        """Return the Python lines that compute and show what a commit would do."""
        if not self.updates:
            return f"table.compute({_listed(self.arguments())}).commit(dry_run=True)"
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        lines = [f"table.refresh_statistics({_listed(columns)}).commit(dry_run=True)"] if self.scans else []
        more = {name: True for name in ("partitions", "manifests") if getattr(self, name)}
        return "\n".join([*lines, *([f"table.compute({_listed(more)}).commit(dry_run=True)"] if more else [])])


def _listed(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def match_columns(schema: Schema, text: str) -> tuple[str, ...] | None:
    """Return the top-level columns that names or patterns with `*` and `?` match, comma-separated; None: all.

    Examples
    --------
    >>> import icestats
    >>> match_columns(icestats.load("demo.events").schema, "price, device*")
    ('device_id', 'price')
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if not words:
        return None
    names = [field.name for field in schema.top_level]
    return tuple(name for name in names if any(_matches(name.lower(), word) for word in words))


def _matches(name: str, word: str) -> bool:
    pattern = word if "*" in word or "?" in word else f"*{word}*"
    return word == name or fnmatchcase(name, pattern.replace("[", "[[]"))


def request_update(table: Table, sketches: pa.Table | None) -> ComputeRequest | None:
    """Return what brings all committed statistics up to date; all of a table's sketches where none are committed.

    Parameters
    ----------
    table : Table
        The table.
    sketches : pyarrow.Table or None
        `schemas.SKETCHES`; None: not read yet.

    Returns
    -------
    ComputeRequest or None
        None where nothing is to be done.
    """
    if sketches is None or table.snapshot is None:
        return None
    ages = find_blob_ages(sketches)
    nearest = find_partition_file_age(table.metadata, table.snapshot)
    if not ages and nearest is None:
        return ComputeRequest()
    manifests = ages.get((MANIFEST_STATISTICS, ""), {"commits_behind": 0})
    request = ComputeRequest(
        table=bool(list_behind(table.schema, sketches)),
        partitions=bool(nearest),
        manifests=bool(manifests["commits_behind"]),
        updates=True,
    )
    return None if request.is_empty else request


def find_partition_file_age(metadata: TableMetadata, snapshot: Snapshot | None) -> int | None:
    """Return how many commits the nearest partition statistics file is behind; None if there is none."""
    ages = count_ages(metadata, snapshot)
    files = [file.snapshot_id for file in metadata.partition_statistics]
    return min((ages[one].commits for one in files if one in ages), default=None)


def find_blob_ages(sketches: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the nearest blob of each type and columns, a row of `schemas.SKETCHES`; blobs of the table under ""."""
    nearest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sketches.to_pylist():
        of_several = (MANIFEST_STATISTICS, JOINT_STATISTICS)
        if row["commits_behind"] is None or (len(row["columns"]) > 1 and row["type"] not in of_several):
            continue
        key = (row["type"], "" if row["type"] == MANIFEST_STATISTICS else ", ".join(row["columns"]))
        if key not in nearest or row["commits_behind"] < nearest[key]["commits_behind"]:
            nearest[key] = row
    return nearest


def list_behind(schema: Schema, sketches: pa.Table) -> list[dict[str, Any]]:
    """Return those of `find_blob_ages` that a refresh would bring up to this snapshot: of top-level columns."""
    known = {field.field_id for field in schema.top_level}
    rows = (row for (kind, _), row in find_blob_ages(sketches).items() if kind in _SCANNED)
    return [row for row in rows if row["commits_behind"] and known.issuperset(row["field_ids"])]


UNCHANGED = "Nothing on the table changes before Commit."
"""What is added to a cost where one can commit."""


def describe_cost(request: ComputeRequest, state: ExplorerState) -> str:
    """Return what a request reads and writes, as far as metadata tells.

    Parameters
    ----------
    request : ComputeRequest
        What to compute.
    state : ExplorerState
        Has the table, and what has been read of it.
    """
    if request.is_empty:
        return "Nothing to compute: choose a kind of statistics, and columns."
    table, sketches, partitions = state.table, state.sketches, state.partitions
    fields = [f for f in table.schema.top_level if f.is_primitive]
    fields = [f for f in fields if request.columns is None or f.name in request.columns]
    texts = []
    if request.scans and request.updates:
        texts.append(_describe_update(state))
    elif request.scans:
        files = None if state.overview is None else state.overview.data_file_count
        columns = f"{counted(len(fields), 'column')}{_size(fields, state.columns)}"
        texts.append(f"reads {columns} of {counted(files, 'data file')} once, with PySpark")
        size = estimate_size(_sketched(fields), [10**9], k=_find_k(sketches), lg_k=LG_K).size_bytes
        size += len(_sketched(fields)) * estimate_stored_size(CAPACITY, _VALUE_BYTES, MOST_PAYLOAD_BYTES)
        texts.append(f"writes up to about {render_bytes(size)} of sketches and common values")
    if request.by_partition:
        texts.append(_by_partition(fields, partitions, _find_k(sketches)))
    if request.partitions or request.manifests:
        what = [name for name, on in (("partitions", request.partitions), ("manifests", request.manifests)) if on]
        texts.append(f"makes statistics of {' and '.join(what)} from the manifests, without Spark")
    text = "; ".join(texts)
    return f"{text[:1].upper()}{text[1:]}."


def _describe_update(state: ExplorerState) -> str:
    table, sketches = state.table, state.sketches
    behind = [] if sketches is None else list_behind(table.schema, sketches)
    columns = {name for age in behind for name in age["columns"]}
    oldest = max(behind, key=lambda age: age["commits_behind"], default=None)
    if oldest is None or sketches is None:
        return "finds nothing to read: what is committed is up to date"
    known = count_ages(table.metadata, table.snapshot)
    if not any(age.commits == oldest["commits_behind"] and age.appends_only for age in known.values()):
        return f"reads {counted(len(columns), 'column')} of all data files, as later commits did not only add files"
    rescanned = columns - _find_whole(table, sketches)
    files, rows = counted(oldest["files_behind"], "new file"), counted(oldest["rows_behind"], "row")
    since = list(table.metadata.ancestors(table.snapshot))[: oldest["commits_behind"]]
    size = _sum_known([parse_count(one.summary.get("added-files-size")) for one in since if one.operation != "replace"])
    texts = [f"{counted(len(columns - rescanned), 'column')} of {files} with {rows} ({render_bytes(size)})"]
    of = "it" if len(rescanned) == 1 else "them"
    whole = f"{counted(len(rescanned), 'column')} of all data files, as what is committed of {of} cannot be added to"
    return f"reads {' and '.join((texts if columns - rescanned else []) + ([whole] if rescanned else []))}"


def _find_whole(table: Table, sketches: pa.Table) -> set[str]:
    """Return the columns that new files can be added to: with all kinds of one snapshot in a file, of today's type."""
    kinds: defaultdict[tuple[str, int, str], set[str]] = defaultdict(set)
    for row in sketches.to_pylist():
        if row["commits_behind"] is not None and len(row["columns"]) == 1:
            kinds[row["columns"][0], row["snapshot_id"], row["statistics_path"]].add(row["type"])
    fields = {field.name: field for field in table.schema.top_level}
    whole = set()
    for (name, snapshot_id, _), found in kinds.items():
        field = fields.get(name)
        then = None if field is None else table.metadata.find_schema(snapshot_id).get(field.field_id)
        if field is not None and then is not None and then.type == field.type:
            wanted = {THETA, FREQUENT_ITEMS, COLUMN_STATISTICS, *([] if item_type_of(field.type) is None else [KLL])}
            whole |= {name} if wanted <= found else set()
    return whole


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _size(fields: list[Field], columns: pa.Table | None) -> str:
    if columns is None:
        return ""
    sizes = dict(zip(columns["field_id"].to_pylist(), columns["column_size"].to_pylist(), strict=True))
    found = [sizes.get(field.field_id) for field in fields]
    known = [size for size in found if size is not None]
    unknown = f", {len(found) - len(known):,} of unknown size" if len(known) < len(found) else ""
    return f" ({render_bytes(sum(known))} on disk{unknown})"


def _find_k(sketches: pa.Table | None) -> int:
    """Return the k of the largest committed KLL sketch, at least the default."""
    rows = [] if sketches is None else sketches.select(["type", "properties"]).to_pylist()
    stated = [parse_count(dict(row["properties"]).get("k")) for row in rows if row["type"] == KLL]
    return min(max([K, *(k for k in stated if k is not None)]), MAX_K)


def _by_partition(fields: list[Field], partitions: pa.Table | None, k: int) -> str:
    if partitions is None:
        return "the size of the sketches by partition is not known yet"
    limit = find_default_limit(sum(partitions["total_data_file_size_in_bytes"].to_pylist()))
    size = choose_size(_sketched(fields), partitions["data_record_count"].to_pylist(), limit, k=k, lg_k=LG_K)
    text = f"{size.said} for sketches of {counted(size.partition_count, 'partition')}"
    return f"{text}, of which at most {render_bytes(limit)} are kept, the table's own included"


def _sketched(fields: list[Field]) -> list[Field]:
    return [field for field in fields if item_type_of(field.type) is not None]
