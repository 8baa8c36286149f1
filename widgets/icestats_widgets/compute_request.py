"""What to compute, and what it costs, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_bytes
from icestats.iceberg.metadata import Field
from icestats.read.puffin.statistics_files import KLL
from icestats.stats.kll_items import item_type_of
from icestats.stats.kll_layout import MAX_K
from icestats.stats.partition_sketches import choose_size, estimate_size, find_default_limit
from icestats.table.table import Table

K, LG_K = 200, 12


@dataclass(frozen=True)
class ComputeRequest:
    """Columns and kinds of statistics."""

    columns: tuple[str, ...] | None = None
    """Top-level columns; None: all."""
    table: bool = True
    """Theta, KLL and column statistics: one scan with PySpark."""
    by_partition: bool = False
    """Theta and KLL for each partition, in the same scan."""
    partitions: bool = False
    """The partition statistics file, from manifests."""
    manifests: bool = False
    """The roll-up of each manifest, from manifests."""

    @property
    def scans(self) -> bool:
        """Whether data is read."""
        return self.table or self.by_partition

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return not (self.scans or self.partitions or self.manifests) or self.columns == ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Table.compute` that differ from its defaults."""
        found: dict[str, Any] = {} if self.columns is None else {"columns": list(self.columns)}
        if self.partitions or self.manifests:
            found["table"] = self.scans
        found |= {name: True for name in ("partitions", "manifests") if getattr(self, name)}
        return found | ({"by": "partition"} if self.by_partition else {})

    def code(self) -> str:
        """Return the Python line that computes and shows what a commit would do."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"table.compute({arguments}).commit(dry_run=True)"


def describe_cost(
    request: ComputeRequest,
    table: Table,
    columns: pa.Table | None,
    partitions: pa.Table | None,
    sketches: pa.Table | None,
) -> str:
    """Return what a request reads and writes, as far as metadata tells.

    Parameters
    ----------
    request : ComputeRequest
        What to compute.
    table : Table
        The table.
    columns : pyarrow.Table or None
        `schemas.COLUMNS`, for sizes; None: not read yet.
    partitions : pyarrow.Table or None
        The partitions, for the numbers of their rows; None: not read yet.
    sketches : pyarrow.Table or None
        `schemas.SKETCHES`, whose sizes new ones keep; None: not read yet.
    """
    if request.is_empty:
        return "Nothing to compute: choose a kind of statistics, and columns."
    fields = [f for f in table.schema.top_level if request.columns is None or f.name in request.columns]
    texts = []
    if request.scans:
        texts.append(f"Reads the data of {counted(len(fields), 'column')}{_size(fields, columns)} once, with PySpark")
        size = estimate_size(_sketched(fields), [10**9], k=_find_k(sketches), lg_k=LG_K)
        texts.append(f"writes at most {render_bytes(size.size_bytes)} of sketches")
    if request.by_partition:
        texts.append(_by_partition(fields, partitions, _find_k(sketches)))
    if request.partitions or request.manifests:
        what = [name for name, on in (("partitions", request.partitions), ("manifests", request.manifests)) if on]
        texts.append(f"statistics of {' and '.join(what)} are made from the manifests, without Spark")
    text = "; ".join(texts)
    return f"{text[:1].upper()}{text[1:]}. Nothing on the table changes before Commit."


def _size(fields: list[Field], columns: pa.Table | None) -> str:
    if columns is None:
        return ""
    sizes = dict(zip(columns["field_id"].to_pylist(), columns["column_size"].to_pylist(), strict=True))
    found = [sizes.get(field.field_id) for field in fields if field.is_primitive]
    known = [size for size in found if size is not None]
    unknown = f", of {len(found) - len(known):,} the size is unknown" if len(known) < len(found) else ""
    return f" ({render_bytes(sum(known))} on disk{unknown})"


def _find_k(sketches: pa.Table | None) -> int:
    """Return the k of the largest committed KLL sketch, at least the default."""
    rows = [] if sketches is None else sketches.select(["type", "properties"]).to_pylist()
    texts = [dict(row["properties"]).get("k", "") for row in rows if row["type"] == KLL]
    return max([K, *(min(int(text), MAX_K) for text in texts if text.isdecimal())])


def _by_partition(fields: list[Field], partitions: pa.Table | None, k: int) -> str:
    if partitions is None:
        return "the size of the sketches by partition is not known yet"
    limit = find_default_limit(sum(partitions["total_data_file_size_in_bytes"].to_pylist()))
    size = choose_size(_sketched(fields), partitions["data_record_count"].to_pylist(), limit, k=k, lg_k=LG_K)
    text = f"up to {render_bytes(size.size_bytes)} for sketches of {counted(size.partition_count, 'partition')}"
    return f"{text}, of which what is above {render_bytes(limit)} with the table's own is left out"


def _sketched(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field.is_primitive and item_type_of(field.type) is not None]
