"""The rows of a manifest list, by the kernel: several times as quick as by fastavro.

Fields go by their id: v1 writers named some of them otherwise. Source: Iceberg spec, "Manifest Lists".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.schemas import FIELD_SUMMARY, MANIFEST_FILES
from icestats.read.avro.avro_file import AvroHeader, Batch, kernel_error, read_batches
from icestats.read.avro.avro_names import SchemaError, find_field_type, find_record, resolve_names
from icestats.read.avro.avro_tokens import LONGEST, decode_numbers
from icestats.read.avro.decoding_program import ARRAY, BOOLEAN, NUMBER, RECORD, TEXT, Capture, compile_program
from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.kernel_layout import Words
from icestats.read.manifests.row_store import RowStore

FIELD_IDS = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "content": 517,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "partitions": 507,
    "key_metadata": 519,
    "first_row_id": 520,
}
REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id")
CONTENTS = ("data", "deletes")

_TYPES = {"manifest_path": "string", "partition_spec_id": "int", "partitions": "binary", "key_metadata": "binary"}
_SUMMARY_IDS = {"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}
_SUMMARY_TYPES = ("boolean", "boolean", "binary", "binary")
_FIELD_TYPES = [(field.name, field.type) for field in MANIFEST_FILES]
_KINDS = {"boolean": BOOLEAN, "int": NUMBER, "long": NUMBER, "string": TEXT, "binary": TEXT}


def read_rows(data: bytes, header: AvroHeader, schema: Any) -> pa.Table | None:
    """Read the rows of a manifest list, unless the kernel has still to be compiled.

    Parameters
    ----------
    data : bytes
        The file.
    header : AvroHeader
        Its header.
    schema : dict, list or str
        The writer's schema, as JSON.

    Returns
    -------
    pyarrow.Table or None
        `schemas.MANIFEST_FILES`, in the list's order. None: the kernel is not compiled on this machine, or a list of
        partition summaries is written in a way that the kernel does not take.

    Raises
    ------
    MetadataError
        The file is cut or damaged.
    ValueError
        This is no manifest list.
    """
    programs = _compile(schema)
    store = RowStore([_TYPES.get(name, "long") for name in FIELD_IDS])
    parts = [MANIFEST_FILES.empty_table()]
    try:
        for batch in read_batches(data, header):
            parts += _capture(batch, programs, store, header.path)
        parts.append(_take(store, programs))
    except _NotForKernelError:
        return None
    return pa.concat_tables(parts).combine_chunks()


class _NotForKernelError(Exception):
    """It is not compiled, or the bytes are not laid out as all known writers do."""


@dataclass(frozen=True, slots=True)
class _Programs:
    """How to decode the lists of one writer schema."""

    manifest: Words
    summary: Words
    """Decodes the summary of one partition field; nothing where the list has none."""


def _compile(schema: Any) -> _Programs:
    kinds = [_KINDS[_TYPES.get(name, "long")] for name in FIELD_IDS]
    captures = _captures(FIELD_IDS, kinds) | {FIELD_IDS["partitions"]: Capture(ARRAY, _slot("partitions"))}
    code = compile_program(schema, Capture(RECORD, fields=captures))
    found = {field.get("field-id") for field in find_record(schema)["fields"]}
    missing = [name for name in REQUIRED if FIELD_IDS[name] not in found]
    if missing:
        raise SchemaError(f"it has no field {missing[0]} (id {FIELD_IDS[missing[0]]})")
    if FIELD_IDS["partitions"] not in found:
        return _Programs(code, np.zeros(0, np.int64))
    items = find_field_type(schema, [FIELD_IDS["partitions"]])["items"]
    captures = _captures(_SUMMARY_IDS, [_KINDS[kind] for kind in _SUMMARY_TYPES])
    return _Programs(code, compile_program(items, Capture(RECORD, fields=captures), resolve_names(schema)))


def _captures(field_ids: Mapping[str, int], kinds: Sequence[str]) -> dict[int, Capture]:
    slots = range(k.PARTITION_FIELDS, k.PARTITION_FIELDS + len(kinds))
    captures = map(Capture, kinds, slots)
    return dict(zip(field_ids.values(), captures, strict=True))


def _slot(name: str) -> int:
    return k.PARTITION_FIELDS + list(FIELD_IDS).index(name)


def _capture(batch: Batch, programs: _Programs, store: RowStore, path: str) -> Iterator[pa.Table]:
    if not store.is_compiled(batch.data, batch.blocks, programs.manifest):
        raise _NotForKernelError
    store.frame.state[:] = 0
    while (result := store.capture_records(batch.data, batch.blocks, programs.manifest)) == k.FULL:
        yield _take(store, programs)
    if result == k.FAILED:
        raise kernel_error(store.frame, path, batch)


def _take(store: RowStore, programs: _Programs) -> pa.Table:
    columns = dict(zip(FIELD_IDS, store.values(), strict=True))
    for name in ("sequence_number", "min_sequence_number"):
        columns[name] = pa.array(_or_zero(store, name))
    contents = _or_zero(store, "content")
    check_contents(contents.tolist())
    columns["content"] = pa.array(CONTENTS, pa.string()).take(pa.array(contents))
    columns["partitions"] = _build_summaries(store, programs.summary)
    store.clear()
    return pa.Table.from_arrays([columns[name].cast(kind) for name, kind in _FIELD_TYPES], schema=MANIFEST_FILES)


def _or_zero(store: RowStore, name: str) -> Words:
    numbers, lengths = store.slot(_slot(name))
    return np.where(lengths < 0, 0, numbers)


def check_contents(contents: Iterable[int]) -> None:
    """Raise ValueError where one is no number of `CONTENTS`."""
    for content in set(contents) - {0, 1}:
        raise ValueError(f"a manifest's content is {content}, expected 0 (data) or 1 (deletes)")


def _build_summaries(store: RowStore, code: Words) -> pa.Array:
    starts, lengths = store.slot(_slot("partitions"))
    filled = np.flatnonzero(lengths > 0)
    arrays = np.append(store.rows.arena, np.zeros(LONGEST, np.uint8))
    counts, begins = decode_numbers(arrays, starts[filled])
    if (counts < 0).any():
        raise _NotForKernelError
    # The items of an array are one block, behind which is a 0.
    blocks = np.stack([begins, starts[filled] + lengths[filled] - 1, counts], axis=1)[counts > 0]
    items = RowStore(_SUMMARY_TYPES, capacity=max(1, int(counts.sum())))
    if items.capture_records(arrays, blocks, code) != k.DONE:
        raise _NotForKernelError
    offsets = np.zeros(len(starts) + 1, np.int32)
    offsets[filled + 1] = counts
    np.cumsum(offsets, out=offsets)
    values = pa.StructArray.from_arrays(items.values(), fields=list(FIELD_SUMMARY))
    places = pa.array(offsets, mask=np.append(lengths < 0, False))
    return pa.ListArray.from_arrays(places, values, type=pa.list_(FIELD_SUMMARY))
