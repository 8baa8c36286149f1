"""Decoding programs of manifests, one for each writer schema that turns up.

Source: Iceberg spec, "Manifests" (field ids of `manifest_entry` and `data_file`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icestats.errors import MetadataError
from icestats.iceberg.metadata import PartitionSpec
from icestats.iceberg.partition_columns import VOID, PartitionColumn, avro_value_type
from icestats.iceberg.types import parse_type
from icestats.read.avro.avro_file import AvroHeader, parse_schema, read_header
from icestats.read.avro.decoding_program import (
    Capture,
    Kind,
    compile_program,
    find_field_type,
)
from icestats.read.avro.type_names import SchemaError, record_fields, resolve_names
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Words

_ENTRY = {0: Capture("number", k.STATUS, required=True), 1: Capture("number", k.SNAPSHOT_ID)}
_ENTRY_DETAILS = {3: Capture("number", k.SEQUENCE_NUMBER), 4: Capture("number", k.FILE_SEQUENCE_NUMBER)}
_FILE = {
    134: Capture("number", k.CONTENT),
    101: Capture("text", k.FILE_FORMAT, required=True),
    103: Capture("number", k.RECORD_COUNT, required=True),
    104: Capture("number", k.FILE_SIZE, required=True),
}
_METRICS = {field_id: Capture("metric", i) for i, field_id in enumerate((108, 109, 110, 137, 125, 128))}
_FILE_DETAILS = {
    100: Capture("text", k.FILE_PATH, required=True),
    140: Capture("number", k.SORT_ORDER_ID),
    132: Capture("numbers", k.SPLIT_OFFSETS),
    135: Capture("numbers", k.EQUALITY_IDS),
    143: Capture("text", k.REFERENCED_DATA_FILE),
    144: Capture("number", k.CONTENT_OFFSET),
    145: Capture("number", k.CONTENT_SIZE),
    142: Capture("number", k.FIRST_ROW_ID),
    131: Capture("text", k.KEY_METADATA),
}
_DATA_FILE, _PARTITION = PARTITION_IDS = 2, 102
_TEXT_TYPES = frozenset({"string", "binary", "fixed", "uuid", "decimal"})


@dataclass(frozen=True, slots=True)
class ManifestProgram:
    """How to decode the manifests of one writer schema."""

    code: Words
    variant: int
    """A number for the layout of partition values: equal bytes of one variant are equal partitions."""


@dataclass(frozen=True, slots=True)
class PartitionVariant:
    """A layout of partition values."""

    spec_id: int
    code: Words
    """Decodes one partition."""


class ManifestPrograms:
    """Compiles each writer schema once; safe to share between threads.

    Parameters
    ----------
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    columns : sequence of PartitionColumn
        Of `find_partition_columns`.
    details : bool
        Whether all fields are wanted, or only those of roll-ups.
    with_paths : bool
        Whether of all fields those are wanted too that take bytes to copy: paths, offsets, keys.
    """

    def __init__(
        self,
        specs: Mapping[int, PartitionSpec],
        columns: Sequence[PartitionColumn],
        *,
        details: bool,
        with_paths: bool = True,
    ) -> None:
        self.variants: list[PartitionVariant] = []
        self._specs = specs
        self._columns = columns
        self._details = details
        self._file_details = _FILE_DETAILS if with_paths else {}
        self._programs: dict[tuple[int, bytes], ManifestProgram] = {}
        self._variant_numbers: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()

    def read(self, data: bytes, path: str, spec_id: int) -> tuple[AvroHeader, ManifestProgram]:
        """Read a manifest's header, and return it with the manifest's program.

        Raises
        ------
        MetadataError
            As `read_header` and `find`.
        """
        header = read_header(data, path)
        return header, self.find(header, spec_id)

    def find(self, header: AvroHeader, spec_id: int) -> ManifestProgram:
        """Return the program of a manifest.

        Raises
        ------
        MetadataError
            The file's schema is not that of a manifest of the spec.
        """
        key = (spec_id, header.schema_text)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self._compile(header, spec_id)
            return self._programs[key]

    def _compile(self, header: AvroHeader, spec_id: int) -> ManifestProgram:
        if spec_id not in self._specs:
            raise MetadataError(
                f"the manifest is of partition spec {spec_id}, which the table does not have", header.path
            )
        schema = parse_schema(header)
        captures = self._partition_captures(spec_id)
        files = {_PARTITION: Capture("record", k.PARTITION, captures, required=True), **_FILE, **_METRICS}
        entry = dict(_ENTRY)
        if self._details:
            files |= self._file_details
            entry |= _ENTRY_DETAILS
        entry[_DATA_FILE] = Capture("record", fields=files, required=True)
        try:
            code = compile_program(schema, Capture("record", fields=entry))
            return ManifestProgram(code, self._variant(schema, spec_id, captures))
        except SchemaError as error:
            raise MetadataError(f"the Avro schema is not a manifest's: {error}", header.path, 0) from error

    def _partition_captures(self, spec_id: int) -> dict[int, Capture]:
        # Values of void are null, and of the source column's type, whatever the field was before.
        wanted = {field.field_id for field in self._specs[spec_id].fields if field.transform != VOID}
        return {
            column.field_id: Capture(_capture_kind(column.type), k.PARTITION_FIELDS + i, required=True)
            for i, column in enumerate(self._columns)
            if column.field_id in wanted and column.type is not None
        }

    def _variant(self, schema: Any, spec_id: int, captures: Mapping[int, Capture]) -> int:
        partition = find_field_type(schema, PARTITION_IDS)
        for column in self._columns:
            kind = column.type or ""
            if column.field_id in captures and kind.startswith("timestamp"):
                found = (
                    field["type"] for field in record_fields(partition) if field.get("field-id") == column.field_id
                )
                if any(avro_value_type(one) in ("date", "int") for one in found):
                    raise SchemaError(f"its partitions are dates, of a column that has been promoted to {kind} since")
        key = (spec_id, json.dumps(partition, sort_keys=True))
        if key not in self._variant_numbers:
            code = compile_program(partition, Capture("record", fields=captures), resolve_names(schema))
            self._variant_numbers[key] = len(self.variants)
            self.variants.append(PartitionVariant(spec_id, code))
        return self._variant_numbers[key]


def _capture_kind(type_text: str | None) -> Kind:
    name = "unknown" if type_text is None else parse_type(type_text).name
    if name in ("float", "double"):
        return "real"
    if name == "boolean":
        return "boolean"
    return "text" if name in _TEXT_TYPES else "number"
