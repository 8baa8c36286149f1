"""Position deletes and deletion vectors by the data file that they name.

Source: Iceberg spec, "Delete Formats", "Scan Planning"; a position delete file whose paths have one value names that
data file too (`ContentFileUtil.referencedDataFile` of Iceberg's Java library).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.text import counted
from icestats.estimation.formulas.group_evidence import as_floats
from icestats.plan.pruning.delete_index import PATH_FIELD_ID
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.snapshot.snapshot_reader import SnapshotReader

Floats = npt.NDArray[np.float64]


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
            One row a data file: `file_path`, `sequence_number`, `record_count`.
        """
        rows = as_floats(files["record_count"])
        vectors, positions = np.zeros(len(rows)), np.zeros(len(rows))
        places = self._find_files(files["file_path"])
        numbers = to_numpy(files["sequence_number"], null=0)
        found = np.flatnonzero(places >= 0)
        # A delete file is about no file that is newer.
        found = found[numbers[places[found]] <= to_numpy(self.named["sequence_number"], null=0)[found]]
        is_vector = to_numpy(self.named["is_vector"])[found]
        records = as_floats(self.named["record_count"])[found]
        np.add.at(vectors, places[found][is_vector], records[is_vector])
        np.add.at(positions, places[found][~is_vector], records[~is_vector])
        # Where a file has a deletion vector, readers take it alone.
        has_vector = np.bincount(places[found][is_vector], minlength=len(rows)) > 0
        return DeletedRows(
            most=np.minimum(np.where(has_vector, vectors, positions), rows), least=np.minimum(vectors, rows)
        )

    def _find_files(self, paths: pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Return the place of each named data file among some paths, -1 where it is none of them."""
        names = pc.unique(self.named["file_path"])
        found = to_numpy(pc.index_in(combine_chunks(paths).cast(pa.binary()), names), null=-1)
        places: npt.NDArray[np.int64] = np.full(len(names), -1, np.int64)
        rows = np.flatnonzero(found >= 0)
        places[found[rows]] = rows
        numbers: npt.NDArray[np.int64] = to_numpy(pc.index_in(combine_chunks(self.named["file_path"]), names)).astype(
            np.int64
        )
        return places[numbers]


def read_file_deletes(reader: SnapshotReader) -> FileDeletes:
    """Read the position delete files and deletion vectors of a snapshot; no manifest, where it has none."""
    groups = reader.read_manifest_rollups(())[0].manifests
    has_some = pc.greater(pc.add(groups["position_delete_file_count"], groups["dv_count"]), 0)
    manifests = reader.manifest_files.filter(has_some)
    source = reader.source
    files = read_file_metrics(manifests_to_read(manifests), source.metadata, source.storage, [PATH_FIELD_ID])
    files = files.filter(pc.equal(files["content"], "position_deletes"))
    lower, upper = (combine_chunks(files[f"{side}_bound_{PATH_FIELD_ID}"]) for side in ("lower", "upper"))
    is_one = pc.fill_null(pc.equal(lower, upper), False)
    only_path = pc.if_else(is_one, lower, pa.scalar(None, pa.binary()))
    named = pa.table(
        {
            "file_path": pc.coalesce(combine_chunks(files["referenced_data_file"]).cast(pa.binary()), only_path),
            "is_vector": pc.equal(pc.utf8_lower(files["file_format"]), "puffin"),
            "record_count": files["record_count"],
            "sequence_number": files["sequence_number"],
        }
    )
    has_name = pc.is_valid(named["file_path"])
    rest, named = named.filter(pc.invert(has_name)), named.filter(has_name)
    vectors = int(pc.sum(named["is_vector"]).as_py() or 0)
    return FileDeletes(
        named=named,
        unnamed_record_count=int(pc.sum(rest["record_count"]).as_py() or 0),
        assumes=_explain(vectors, len(named) - vectors, len(rest)),
        bytes_read=int(pc.sum(manifests["manifest_length"]).as_py() or 0),
    )


def _explain(vectors: int, files: int, unnamed: int) -> str:
    kinds = (counted(vectors, "deletion vector"), counted(files, "position delete file"))
    exact = " and ".join(kind for kind, count in zip(kinds, (vectors, files), strict=True) if count)
    rest = f"those of {counted(unnamed, 'position delete file')} in proportion to the rows of all data files"
    if not exact:
        return rest.replace("those", "the rows", 1) if unnamed else ""
    whole = f"the rows of {exact} deducted from the data file that each names"
    return f"{whole}, {rest}" if unnamed else whole
