"""Which delete files apply to which data files.

Source: Iceberg spec, "Scan Planning": by partition, by sequence number, and by the data file that a position delete
file or a deletion vector is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.iceberg.metadata import PartitionSpec

PATH_FIELD_ID = 2_147_483_546
"""The field of position delete files that holds the path of the data file."""


@dataclass(frozen=True, slots=True)
class _Delete:
    path: str
    is_equality: bool
    sequence_number: int
    lower_path: bytes | None
    upper_path: bytes | None
    referenced: str | None

    def applies(self, file_path: str, sequence_number: int) -> bool:
        if self.is_equality:
            return sequence_number < self.sequence_number
        if sequence_number > self.sequence_number:
            return False
        if self.referenced is not None:
            return self.referenced == file_path
        path = file_path.encode()
        if self.lower_path is not None and path < self.lower_path:
            return False
        return self.upper_path is None or path <= self.upper_path


class DeleteIndex:
    """Delete files by the partition that they are about.

    Parameters
    ----------
    deletes : pyarrow.Table
        `file_figures_schema` of manifests of deletes, with the statistics of `PATH_FIELD_ID`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    """

    def __init__(self, deletes: pa.Table, specs: Mapping[int, PartitionSpec]) -> None:
        self._by_partition: dict[Any, list[_Delete]] = defaultdict(list)
        self._global: list[_Delete] = []
        for row in deletes.to_pylist():
            delete = _build(row)
            # An equality delete file of an unpartitioned spec is about all data files.
            fields = [field for field in specs[row["spec_id"]].fields if field.transform != "void"]
            if delete.is_equality and not fields:
                self._global.append(delete)
            else:
                self._by_partition[_key(row)].append(delete)

    def find(self, files: pa.Table) -> list[list[str]]:
        """Return for each data file the paths of the delete files that apply to it.

        Parameters
        ----------
        files : pyarrow.Table
            `file_figures_schema` of data files.
        """
        if not self._by_partition and not self._global:
            return [[]] * files.num_rows
        return [list(self._applying(row)) for row in _rows(files)]

    def _applying(self, row: Mapping[str, Any]) -> Iterator[str]:
        path, number = row["file_path"], row["sequence_number"] or 0
        for delete in (*self._global, *self._by_partition.get(_key(row), ())):
            if delete.applies(path, number):
                yield delete.path


def _rows(files: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in files.select(["file_path", "sequence_number", "spec_id", "partition"]).to_batches():
        yield from batch.to_pylist()


def _build(row: Mapping[str, Any]) -> _Delete:
    lower, upper = (row[f"{side}_bound_{PATH_FIELD_ID}"] for side in ("lower", "upper"))
    return _Delete(
        path=row["file_path"],
        is_equality=row["content"] == "equality_deletes",
        sequence_number=row["sequence_number"] or 0,
        lower_path=lower,
        upper_path=upper,
        referenced=row["referenced_data_file"],
    )


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    # NaN is no key: it is not equal to itself.
    return (row["spec_id"], *("NaN" if value != value else value for value in (row["partition"] or {}).values()))
