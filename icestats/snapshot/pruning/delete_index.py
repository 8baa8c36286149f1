"""Which delete files apply to which data files.

Source: Iceberg spec, "Scan Planning": by partition, by sequence number, and by the data file that a position delete
file or a deletion vector is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from icestats.answers.arrays import without_times
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import PartitionSpec

PATH_FIELD_ID = 2_147_483_546
"""The field of position delete files that holds the path of the data file."""
MOST_PAIRS = 1 << 24
"""Of data files with delete files that may apply to them, in one list: tables that nobody compacts have millions."""
_MOST_BYTES = 1 << 30
_LOWER, _UPPER = f"lower_bound_{PATH_FIELD_ID}", f"upper_bound_{PATH_FIELD_ID}"


class DeleteIndex:
    """Delete files by the partition, or the one data file, that they are about.

    Parameters
    ----------
    deletes : pyarrow.Table
        `file_metrics_schema` of manifests of deletes, with the statistics of `PATH_FIELD_ID`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    """

    def __init__(self, deletes: pa.Table, specs: Mapping[int, PartitionSpec]) -> None:
        self._by_partition: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self._by_file: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self._global: list[dict[str, Any]] = []
        for place, row in enumerate(_plain(deletes).to_pylist()):
            row["place"] = place
            if row["content"] == "equality_deletes" and not specs[row["spec_id"]].is_partitioned:
                self._global.append(row)
            elif (path := _only_path(row)) is not None:
                self._by_file[_key(row), path].append(row)
            else:
                self._by_partition[_key(row)].append(row)

    def find(self, files: pa.Table) -> list[list[str]]:
        """Return for each data file the paths of the delete files that apply to it.

        Parameters
        ----------
        files : pyarrow.Table
            `file_metrics_schema` of data files.

        Raises
        ------
        UnsupportedError
            There are too many pairs of them to look at, or to list.
        """
        if not (self._by_partition or self._by_file or self._global):
            return [[]] * files.num_rows
        wanted = _plain(files.select(["file_path", "sequence_number", "spec_id", "partition"]))
        found, pair_count, size_bytes = [], 0, 0
        for row in (row for batch in wanted.to_batches() for row in batch.to_pylist()):
            near = self._near(row)
            pair_count += len(near)
            if pair_count <= MOST_PAIRS:
                found.append(list(_applying(near, row)))
                size_bytes += sum(map(len, found[-1]))
            if pair_count > MOST_PAIRS or size_bytes > _MOST_BYTES:
                raise UnsupportedError(
                    f"{files.num_rows:,} data files have more than {MOST_PAIRS:,} pairs with delete files of their "
                    "partitions, or paths too long to list: filter for fewer, or compact the table (rewrite_data_files)"
                )
        return found

    def _near(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        key = _key(row)
        own = self._by_file.get((key, row["file_path"].encode()), ())
        return [*self._global, *self._by_partition.get(key, ()), *own]


def _applying(near: Sequence[dict[str, Any]], row: Mapping[str, Any]) -> Iterator[str]:
    path, number = row["file_path"], row["sequence_number"] or 0
    found = sorted((delete for delete in near if _applies(delete, path, number)), key=itemgetter("place"))
    # A deletion vector holds what position delete files have deleted before.
    has_vector = any(map(_is_vector, found))
    for delete in found:
        if not has_vector or delete["content"] == "equality_deletes" or _is_vector(delete):
            yield delete["file_path"]


def _only_path(delete: Mapping[str, Any]) -> bytes | None:
    """Return the path of the one data file that a delete file is about; None: it may be about any number of them.

    As `ContentFileUtil.referencedDataFile` of Iceberg's Java library, by which it looks them up.
    """
    if delete["content"] == "equality_deletes":
        return None
    if (path := delete["referenced_data_file"]) is not None:
        return str(path).encode()
    lower: bytes | None = delete[_LOWER]
    return lower if lower == delete[_UPPER] else None


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
