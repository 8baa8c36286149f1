"""Row-level deletes, as the share of rows that they take away; position deletes by the data file that they name.

Source: Iceberg spec, "Delete Formats", "Scan Planning"; a position delete file whose paths have one value names that
data file too (`ContentFileUtil.referencedDataFile` of Iceberg's Java library).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, join_paths, to_numpy
from icestats.answers.text import counted
from icestats.estimation.formulas.grouped_sources import DeleteShares
from icestats.estimation.formulas.selectivity import as_floats
from icestats.iceberg.value_order import Floats
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.snapshot.pruning.delete_index import PATH_FIELD_ID
from icestats.snapshot.snapshot_reader import SnapshotReader

ReadNdv = Callable[[int], float | None]
"""Gives the number of distinct values of a column, by field id; None: unknown."""
_PROPORTION = "position deletes and deletion vectors deducted in proportion to the rows"


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """How many rows of each of some data files are deleted by what names them."""

    most: Floats
    """No more; records of a position delete file may name a row that another has deleted."""
    least: Floats
    """No fewer: those of deletion vectors, which name each row once."""


@dataclass(frozen=True, slots=True)
class FileDeletes:
    """The live position deletes and deletion vectors of a snapshot."""

    named: pa.Table
    """One row a delete file that names one data file: `file_path` of that as bytes, `is_vector`, `record_count`,
    `sequence_number`."""
    unnamed_record_count: int
    """Records of the other position delete files, which name rows of several data files."""
    assumes: str
    """What is deducted how, as text; empty: there are none."""
    bytes_read: int

    def count_rows(self, files: pa.Table) -> DeletedRows:
        """Count the deleted rows of data files.

        Parameters
        ----------
        files : pyarrow.Table
            One row a data file: `file_path`, or its parts, `sequence_number`, `record_count`.
        """
        rows = as_floats(files["record_count"])
        paths = combine_chunks(join_paths(files)["file_path"]).cast(pa.binary())
        places = to_numpy(pc.index_in(self.named["file_path"], paths), null=-1)
        found = np.flatnonzero(places >= 0)
        # A delete file is about no file that is newer.
        numbers = to_numpy(files["sequence_number"], null=0)
        found = found[numbers[places[found]] <= to_numpy(self.named["sequence_number"], null=0)[found]]
        places, records = places[found], as_floats(self.named["record_count"])[found]
        is_vector = to_numpy(self.named["is_vector"])[found]
        vectors, positions = (
            np.bincount(places[kind], records[kind], minlength=len(rows)) for kind in (is_vector, ~is_vector)
        )
        # Where a file has a deletion vector, readers take it alone.
        has_vector = np.bincount(places[is_vector], minlength=len(rows)) > 0
        return DeletedRows(
            most=np.minimum(np.where(has_vector, vectors, positions), rows), least=np.minimum(vectors, rows)
        )


def read_file_deletes(reader: SnapshotReader) -> FileDeletes:
    """Read the position delete files and deletion vectors of a snapshot; no manifest, where it has none."""
    groups = reader.read_manifest_rollups(())[0].manifests
    has_some = pc.greater(pc.add(groups["position_delete_file_count"], groups["dv_count"]), 0)
    manifests = reader.manifest_files.filter(has_some)
    source = reader.source
    files = read_file_metrics(manifests_to_read(manifests), source.metadata, source.storage, [PATH_FIELD_ID])
    files = files.filter(pc.equal(files["content"], "position_deletes"))
    named = pa.table(
        {
            "file_path": find_named_files(files),
            "is_vector": pc.equal(pc.utf8_lower(files["file_format"]), "puffin"),
            "record_count": files["record_count"],
            "sequence_number": files["sequence_number"],
        }
    )
    has_name = pc.is_valid(named["file_path"])
    rest, named = named.filter(pc.invert(has_name)), named.filter(has_name)
    vectors = sum_column(named, "is_vector")
    return FileDeletes(
        named=named,
        unnamed_record_count=sum_column(rest, "record_count"),
        assumes=_explain(vectors, len(named) - vectors, len(rest)),
        bytes_read=sum_column(manifests, "manifest_length"),
    )


def find_named_files(files: pa.Table) -> pa.Array:
    """Return the path, as bytes, of the data file that each position delete file is about; null: of several.

    Parameters
    ----------
    files : pyarrow.Table
        `schemas.file_metrics_schema` with the statistics of `PATH_FIELD_ID`.
    """
    lower, upper = (combine_chunks(files[f"{side}_bound_{PATH_FIELD_ID}"]) for side in ("lower", "upper"))
    only_path = pc.if_else(pc.equal(lower, upper), lower, pa.scalar(None, pa.binary()))
    return pc.coalesce(combine_chunks(files["referenced_data_file"]).cast(pa.binary()), only_path)


def _explain(vectors: int, files: int, unnamed: int) -> str:
    kinds = (counted(vectors, "deletion vector"), counted(files, "position delete file"))
    exact = " and ".join(kind for kind, count in zip(kinds, (vectors, files), strict=True) if count)
    rest = f"those of {counted(unnamed, 'position delete file')} in proportion to the rows of all data files"
    if not exact:
        return rest.replace("those", "the rows", 1) if unnamed else ""
    whole = f"the rows of {exact} deducted from the data file that each names"
    return f"{whole}, {rest}" if unnamed else whole


@dataclass(frozen=True, slots=True)
class TableDeletes:
    """The row-level deletes of a snapshot."""

    position_record_count: int
    """Records of position deletes and deletion vectors."""
    equality_record_count: int
    record_count: int
    """Records of live data files."""
    equality_row_count: float
    """Rows that the equality deletes are estimated to take away."""
    equality_assumes: str
    equality_is_by_partition: bool
    """Whether each partition's equality deletes are its own; else some are for all partitions."""

    def over(self, row_counts: Floats) -> DeleteShares:
        """Spread all deletes evenly over groups."""
        rows = max(self.record_count, 1)
        return DeleteShares(
            positions=np.full(len(row_counts), min(1.0, self.position_record_count / rows)),
            equality=np.full(len(row_counts), min(1.0, self.equality_row_count / rows)),
            has_equality=np.full(len(row_counts), self.equality_record_count > 0),
            most_own=np.zeros(len(row_counts)),
            least_own=np.zeros(len(row_counts)),
            most_others=float(self.position_record_count),
            positions_assumes=_PROPORTION,
            equality_assumes=self.equality_assumes,
        )

    def of_partitions(self, partitions: pa.Table) -> DeleteShares:
        """Give each partition (`schemas.partition_groups_schema`) the share that its own deletes take away."""
        rows = np.maximum(as_floats(partitions["data_record_count"]), 1.0)
        evenly = self.over(rows)
        positions = np.minimum(as_floats(partitions["position_delete_record_count"]) / rows, 1.0)
        shares = replace(evenly, positions=positions, positions_assumes=f"{_PROPORTION} of each partition")
        if not self.equality_is_by_partition:
            return shares
        records = as_floats(partitions["equality_delete_record_count"])
        per_record = self.equality_row_count / max(self.equality_record_count, 1)
        return replace(shares, equality=np.minimum(records * per_record / rows, 1.0), has_equality=records > 0.0)

    def of_files(self, files: pa.Table, deletes: FileDeletes | None) -> DeleteShares:
        """Deduct from each data file what names it, and spread the rest evenly.

        Parameters
        ----------
        files : pyarrow.Table
            One row a data file: `file_path`, `sequence_number`, `record_count`; the last alone without `deletes`.
        deletes : FileDeletes or None
            The position deletes and deletion vectors; None: there are none.
        """
        counts = as_floats(files["record_count"])
        evenly = self.over(counts)
        if deletes is None:
            return evenly
        own, rows = deletes.count_rows(files), np.maximum(counts, 1.0)
        rest = min(1.0, deletes.unnamed_record_count / max(self.record_count, 1))
        return replace(
            evenly,
            positions=1.0 - (1.0 - own.most / rows) * (1.0 - rest),
            most_own=own.most,
            least_own=own.least,
            most_others=float(deletes.unnamed_record_count),
            positions_assumes=deletes.assumes,
        )


def build_table_deletes(reader: SnapshotReader, read_ndv: ReadNdv) -> TableDeletes:
    """Build a snapshot's deletes from its roll-up by manifest; only manifests with equality deletes are read."""
    groups = reader.read_manifest_rollups(())[0].manifests
    is_data = pc.equal(reader.manifest_files["content"], "data")
    records = sum_column(groups.filter(is_data), "record_count")
    positions, equality = sum_column(groups.filter(pc.invert(is_data)), "record_count"), 0
    removed, assumes, by_partition = 0.0, "", True
    has_equality = pc.greater(groups["equality_delete_file_count"], 0)
    if pc.any(has_equality).as_py():
        files = reader.read_files((), reader.manifest_files.filter(has_equality))
        by_equality = files.filter(pc.equal(files["content"], "equality_deletes"))
        equality = sum_column(by_equality, "record_count")
        older = _count_older(reader.manifest_files.filter(is_data), by_equality)
        removed, assumes = _estimate_equality(by_equality, read_ndv, records, older)
        specs = reader.source.metadata.specs
        by_partition = all(specs[spec_id].is_partitioned for spec_id in pc.unique(by_equality["spec_id"]).to_pylist())
    return TableDeletes(
        position_record_count=positions - equality,
        equality_record_count=equality,
        record_count=records,
        equality_row_count=removed,
        equality_assumes=assumes,
        equality_is_by_partition=by_partition,
    )


def sum_column(table: pa.Table, name: str) -> int:
    """Return the sum of a column; 0 of no rows."""
    return int(pc.sum(table[name]).as_py() or 0)


def _count_older(manifests: pa.Table, deletes: pa.Table) -> Floats:
    """Return for each equality delete file the rows that are older, at most: of manifests that have older files.

    It deletes none of its own commit: where each commit of a stream deletes the keys that it writes, those may be new.
    """
    rows = np.nan_to_num(
        as_floats(manifests["added_rows_count"]) + as_floats(manifests["existing_rows_count"]), nan=np.inf
    )
    first = to_numpy(manifests["min_sequence_number"], null=0)
    order = np.argsort(first)
    places = np.searchsorted(first[order], to_numpy(deletes["sequence_number"], null=np.iinfo(np.int64).max))
    return np.append(0.0, np.cumsum(rows[order]))[places]


def _estimate_equality(files: pa.Table, read_ndv: ReadNdv, record_count: int, older: Floats) -> tuple[float, str]:
    """Each record of an equality delete is a filter `key = value`: rows a key, as the NDV has it, else one row."""
    removed, unknown = 0.0, False
    for row, most in zip(files.select(["record_count", "equality_ids"]).to_pylist(), older.tolist(), strict=True):
        ndvs = [read_ndv(field_id) for field_id in row["equality_ids"] or ()]
        known = [ndv for ndv in ndvs if ndv is not None]
        is_known = bool(known) and len(known) == len(ndvs)
        unknown = unknown or not is_known
        # Keys of several columns are at least as many as the values of each.
        rows_a_key = record_count / max(*known, 1.0) if is_known else 1.0
        removed += min(row["record_count"] * max(rows_a_key, 1.0), most)
    assumes = "equality deletes are filters, each key with as many rows as another"
    if unknown:
        assumes = "each record of an equality delete removes one row (no NDV of its key is committed)"
    return min(removed, float(record_count), max(older.tolist(), default=0.0)), assumes
