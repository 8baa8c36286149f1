"""Row-level deletes and compactions, which PyIceberg reads but does not write."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import (
    AvroOutputFile,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.types import StringType
from pyroaring import BitMap

PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545


class _DeletesWriter(ManifestWriterV2):
    """Writes manifests of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """Write the fields of format version 3, which a deletion vector needs."""
        kind = self._with_partition(3)
        return AvroOutputFile(self._output_file, kind, "manifest_entry", kind, self._meta)


class _OfAnySpec:
    """PyIceberg takes the partitions of all files for those of the table's present spec and schema, for the summary."""

    def _summary(self, snapshot_properties: Any = EMPTY_DICT) -> Summary:
        with patch.object(SnapshotSummaryCollector, "update_partition_metrics"):
            summary: Summary = super()._summary(snapshot_properties)  # type: ignore[misc]
        return summary


class _AddDeletes(_OfAnySpec, _FastAppendFiles):
    """Appends delete files."""

    def new_manifest_writer(self, spec: Any) -> _DeletesWriter:
        metadata = self._transaction.table_metadata
        spec = metadata.specs()[self._added_data_files[0].spec_id]
        return _DeletesWriter(spec, metadata.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)


class _ChangeFiles(_OfAnySpec, _OverwriteFiles):
    """Overwrites files."""


class _ReplaceFiles(_ChangeFiles):
    """Overwrites files, and says that no row has changed."""

    def _summary(self, snapshot_properties: Any = EMPTY_DICT) -> Summary:
        return Summary(Operation.REPLACE, **super()._summary(snapshot_properties).additional_properties)


def list_data_files(table: Table) -> list[DataFile]:
    """Return the live data files; PyIceberg plans no table with equality deletes."""
    snapshot = table.refresh().current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    return [entry.data_file for entry in entries if entry.data_file.content == DataFileContent.DATA]


def delete_positions(table: Table, positions: Sequence[tuple[DataFile, int]]) -> None:
    """Commit one position delete file; its data files are in one partition."""
    paths = sorted((file.file_path, position) for file, position in positions)
    schema = pa.schema([_field("file_path", pa.string(), PATH_ID), _field("pos", pa.int64(), POSITION_ID)])
    rows = pa.table(list(map(list, zip(*paths, strict=True))), schema)
    ends = (to_bytes(StringType(), paths[place][0]) for place in (0, -1))
    bounds = {f"{side}_bounds": {PATH_ID: end} for side, end in zip(("lower", "upper"), ends, strict=True)}
    _commit(table, rows, positions[0][0], content=DataFileContent.POSITION_DELETES, **bounds)


def delete_by_vector(table: Table, file: DataFile, positions: Iterable[int]) -> None:
    """Commit a deletion vector of a data file."""
    bitmap = BitMap(positions)
    body = bytes.fromhex("d1d33964") + (1).to_bytes(8, "little") + bytes(4) + bitmap.serialize()
    stored = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    blob = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4}
    about = {"referenced-data-file": file.file_path, "cardinality": str(len(bitmap))}
    footer = json.dumps({"blobs": [blob | {"length": len(stored), "properties": about}]}).encode()
    data = b"PFA1" + stored + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    path = f"{table.location()}/data/deletes-{uuid.uuid4()}.puffin"
    with table.io.new_output(path).create() as output:
        output.write(data)
    members = {"referenced_data_file": file.file_path, "content_offset": 4, "content_size_in_bytes": len(stored)}
    content = DataFileContent.POSITION_DELETES
    _add(table, path, file, len(bitmap), file_format=FileFormat.PUFFIN, content=content, **members)


def delete_equal(table: Table, rows: pa.Table, file: DataFile) -> None:
    """Commit one equality delete file: rows whose columns have one of these values, in the partition of a data file."""
    ids = [table.schema().find_field(name).field_id for name in rows.column_names]
    fields = [_field(f.name, f.type, i) for f, i in zip(rows.schema, ids, strict=True)]
    rows = rows.cast(pa.schema(fields))
    _commit(table, rows, file, content=DataFileContent.EQUALITY_DELETES, equality_ids=ids)


def delete_equal_in_java(spark: Any, name: str, column: str, values: Sequence[Any]) -> None:
    """Commit an equality delete as a streaming writer does, by Iceberg's own Java classes in Spark's JVM.

    PyIceberg 0.12 writes `equality_ids` as longs, where the spec has ints: engines refuse its manifests.
    """
    jvm = spark.sparkContext._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    schema = loaded.schema().select([column])
    field_ids = spark.sparkContext._gateway.new_array(jvm.int, 1)
    field_ids[0] = schema.findField(column).fieldId()
    builder = getattr(jvm.org.apache.iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
    parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
    writers = builder.deleteFileFormat(parquet).equalityFieldIds(field_ids).equalityDeleteRowSchema(schema).build()
    output = loaded.io().newOutputFile(f"{loaded.location()}/data/equality-{uuid.uuid4()}.parquet")
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = writers.newEqualityDeleteWriter(encrypted, loaded.spec(), None)
    for value in values:
        writer.write(_build_record(jvm, schema.asStruct(), column.split("."), value))
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def _build_record(jvm: Any, struct: Any, names: Sequence[str], value: Any) -> Any:
    """Return a record of one column, by the names on the way to it."""
    name, *inner = names
    inside = _build_record(jvm, struct.field(name).type().asStructType(), inner, value) if inner else value
    return jvm.org.apache.iceberg.data.GenericRecord.create(struct).copy(name, inside)


def take_vector_away_in_java(spark: Any, name: str) -> int:
    """Commit that the first of a table's two deletion vectors is no longer one, then that it is in the other's place.

    Both are in one Puffin file. Returns the snapshot between the two commits.
    """
    jvm = spark.sparkContext._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    tasks = list(
        spark.sparkContext._gateway.jvm.com.google.common.collect.Lists.newArrayList(loaded.newScan().planFiles())
    )
    first, second = (vector for task in tasks for vector in task.deletes())
    assert first.location() == second.location()
    snapshots = []
    for removed, added in ((first, None), (second, first)):
        change = loaded.newRowDelta().validateFromSnapshot(loaded.currentSnapshot().snapshotId()).removeDeletes(removed)
        (change if added is None else change.addDeletes(added)).commit()
        snapshots.append(loaded.currentSnapshot().snapshotId())
    return snapshots[0]


def _field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})


def _commit(table: Table, rows: pa.Table, of: DataFile, **members: Any) -> None:
    path = f"{table.location()}/data/deletes-{uuid.uuid4()}.parquet"
    with table.io.new_output(path).create() as file:
        pq.write_table(rows, file)
    _add(table, path, of, len(rows), file_format=FileFormat.PARQUET, **members)


def _add(table: Table, path: str, of: DataFile, record_count: int, **members: Any) -> None:
    file = DataFile.from_args(
        3, file_path=path, partition=of.partition, record_count=record_count,
        file_size_in_bytes=len(table.io.new_input(path)), **members,
    )  # fmt: skip
    file.spec_id = of.spec_id
    with table.transaction() as transaction, _AddDeletes(Operation.OVERWRITE, transaction, table.io) as append:
        append.append_data_file(file)


def compact(table: Table, files: Sequence[DataFile], rows: pa.Table) -> None:
    """Replace data files by the rows that are live in them."""
    replace_files(table, files, _dataframe_to_data_files(table_metadata=table.metadata, df=rows, io=table.io))


def replace_files(
    table: Table, files: Iterable[DataFile], added: Iterable[DataFile], *, changes_rows: bool = False
) -> None:
    """Replace data files by others, by default with the same rows."""
    kind = _ChangeFiles if changes_rows else _ReplaceFiles
    with table.transaction() as transaction, kind(Operation.OVERWRITE, transaction, table.io) as change:
        for file in files:
            change.delete_data_file(file)
        for file in added:
            change.append_data_file(file)
