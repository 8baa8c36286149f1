"""Which delete files apply to which data files.

Source: Iceberg spec, "Scan Planning": by partition, by sequence number, and by the data file that a position delete
file or a deletion vector is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from icestats.answers.arrays import without_times
from icestats.iceberg.metadata import PartitionSpec

PATH_FIELD_ID = 2_147_483_546
"""The field of position delete files that holds the path of the data file."""


_LOWER, _UPPER = f"lower_bound_{PATH_FIELD_ID}", f"upper_bound_{PATH_FIELD_ID}"


class DeleteIndex:
    """Delete files by the partition that they are about.

    Parameters
    ----------
    deletes : pyarrow.Table
        `file_metrics_schema` of manifests of deletes, with the statistics of `PATH_FIELD_ID`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    """

    def __init__(self, deletes: pa.Table, specs: Mapping[int, PartitionSpec]) -> None:
        self._by_partition: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self._global: list[dict[str, Any]] = []
        for row in _plain(deletes).to_pylist():
            # An equality delete file of an unpartitioned spec is about all data files.
            fields = [field for field in specs[row["spec_id"]].fields if field.transform != "void"]
            if row["content"] == "equality_deletes" and not fields:
                self._global.append(row)
            else:
                self._by_partition[_key(row)].append(row)

    def find(self, files: pa.Table) -> list[list[str]]:
        """Return for each data file the paths of the delete files that apply to it.

        Parameters
        ----------
        files : pyarrow.Table
            `file_metrics_schema` of data files.
        """
        if not self._by_partition and not self._global:
            return [[]] * files.num_rows
        wanted = _plain(files.select(["file_path", "sequence_number", "spec_id", "partition"]))
        return [list(self._applying(row)) for batch in wanted.to_batches() for row in batch.to_pylist()]

    def _applying(self, row: Mapping[str, Any]) -> Iterator[str]:
        path, number = row["file_path"], row["sequence_number"] or 0
        every = (*self._global, *self._by_partition.get(_key(row), ()))
        found = [delete for delete in every if _applies(delete, path, number)]
        # A deletion vector holds what position delete files have deleted before.
        has_vector = any(map(_is_vector, found))
        for delete in found:
            if not has_vector or delete["content"] == "equality_deletes" or _is_vector(delete):
                yield delete["file_path"]


def _plain(files: pa.Table) -> pa.Table:
    # Python has no years before 1 and after 9999.
    return files.cast(pa.schema([field.with_type(without_times(field.type)) for field in files.schema]))


def _is_vector(delete: Mapping[str, Any]) -> bool:
    return str(delete["file_format"]).lower() == "puffin"


def _applies(delete: Mapping[str, Any], file_path: str, sequence_number: int) -> bool:
    own = delete["sequence_number"] or 0
    if delete["content"] == "equality_deletes":
        return sequence_number < own
    if sequence_number > own:
        return False
    if delete["referenced_data_file"] is not None:
        return bool(delete["referenced_data_file"] == file_path)
    path, lower, upper = file_path.encode(), delete[_LOWER], delete[_UPPER]
    return (lower is None or path >= lower) and (upper is None or path <= upper)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    # NaN is no key: it is not equal to itself.
    return (row["spec_id"], *("NaN" if value != value else value for value in (row["partition"] or {}).values()))
