"""The readers, what they may raise, and the whole inputs that damage starts from."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema as IcebergSchema

from icestats.commit.partition_statistics_file import write_stored_table
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.errors import FilterError, MetadataError, UnsupportedError
from icestats.iceberg.filters.row_filter import FilterSchema, bind_row_filter
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.types import to_arrow_type
from icestats.read.avro.avro_file import parse_schema, read_header
from icestats.read.manifests.manifests import read_files, read_rollups
from icestats.read.partitions.partition_statistics import partition_file_schema, read_partition_statistics
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.rollups.stored_table import stored_field
from icestats.snapshot.evaluation.evaluator import evaluate
from icestats.snapshot.pruning.row_groups import read_row_groups
from icestats.stats.kll import KllSketch
from icestats.stats.kll_layout import ITEM_TYPES
from icestats.stats.theta import ThetaSketch
from tests.small_manifests import DOCUMENT, MANIFEST, METADATA, WHOLE, Memory

GOLDEN = Path(__file__).parent.parent / "golden" / "compute_table_stats.stats"
KLL_TYPES = sorted(ITEM_TYPES)
PARTITION = (PartitionColumn(1000, "name", "string"),)
FILTERS = (
    "id = 5 and name in ('a', 'b')",
    "price > 1.25 or weight is nan",
    "not (name like 'a%') and id is not null",
    "weight between -5.5 and 0.1",
    "name >= 'z' or id < -1",
)


@dataclass(frozen=True)
class FuzzTarget:
    """A reader of bytes."""

    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    """What it may raise; anything else is a mistake."""
    inputs: Callable[[], Iterator[bytes]]
    """Whole inputs, which are read without an error."""
    is_text: bool = False
    """Whether damage should put the words of the inputs elsewhere too."""


def read_manifest(data: bytes) -> object:
    """Roll a manifest up and list its files, with the compiled kernel."""
    storage = Memory(data)
    rollups = read_rollups([MANIFEST], METADATA, storage, threads=1)
    files = read_files([MANIFEST], METADATA, storage, (1, 2, 3, 4), threads=1)
    files.validate(full=True)
    assert rollups.manifests["live_file_count"].to_pylist() == [files.num_rows]
    return files


def read_avro_header(data: bytes) -> object:
    """Read what stands before the blocks of an Avro file."""
    return parse_schema(read_header(data, "m.avro"))


def read_puffin(data: bytes) -> object:
    """Read a Puffin file's footer, and all blobs."""
    footer = read_puffin_footer(data, "a.stats")
    return [read_blob(data, blob, "a.stats") for blob in footer.blobs]


def read_kll(data: bytes) -> object:
    """Read a sketch of the type that the first byte names, and ask it."""
    sketch = KllSketch.from_bytes(KLL_TYPES[data[0] % len(KLL_TYPES)] if data else KLL_TYPES[0], data[1:])
    if not sketch.n:
        return None
    quantiles = sketch.quantiles([0.0, 0.5, 1.0])
    assert all(0.0 <= rank <= 1.0 for rank in sketch.ranks(quantiles))
    return KllSketch.from_bytes(sketch.item_type, sketch.to_bytes()).n


def read_theta(data: bytes) -> object:
    """Read a sketch, and ask it."""
    sketch = ThetaSketch.from_bytes(data)
    assert sketch.estimate() >= 0
    return ThetaSketch.from_bytes(sketch.to_bytes()) == sketch


def read_partition_file(data: bytes) -> object:
    """Read partition statistics: Parquet where the file begins so, else Avro."""
    path = "p.parquet" if data.startswith(b"PAR1") else "p.avro"
    found = read_partition_statistics(data, path, PARTITION, METADATA.schema.columns, METADATA.specs)
    return found.groups.validate(full=True)


def read_footer(data: bytes) -> object:
    """Read the row groups of a Parquet file, by its footer alone."""
    row = {"file_path": "a.parquet", "file_format": "PARQUET", "record_count": 2, "file_size_in_bytes": len(data)}
    found, _ = read_row_groups(Memory(data), pa.Table.from_pylist([row]), METADATA.schema.columns)
    found.validate(full=True)
    return found


def read_table_metadata(data: bytes) -> object:
    """Read a metadata.json."""
    return read_metadata(Memory(data), "v1.metadata.json")


def read_row_filter(data: bytes) -> object:
    """Read a filter, bind it, and evaluate it over a file of which nothing is known."""
    bound = bind_row_filter(data.decode("utf-8", "replace"), _filter_schema())
    return str(bound.condition), bound.by_spec, evaluate(bound.condition, {}, 1).kept


def _filter_schema() -> FilterSchema:
    return FilterSchema(IcebergSchema.model_validate(DOCUMENT["schemas"][0]), {})


def _sketch_values(item_type: str) -> pa.Array:
    if item_type == "decimal":
        return pa.array([f"{i}.25" for i in range(40)]).cast(pa.decimal128(20, 2))
    numbers = pa.array(range(1, 2000))
    return numbers.cast(
        {"string": pa.string(), "double": pa.float64(), "float": pa.float32()}.get(item_type, pa.int64())
    )


def _kll_inputs() -> Iterator[bytes]:
    for place, item_type in enumerate(KLL_TYPES):
        for count in (0, 1, 2000):
            sketch = KllSketch(item_type, 32)
            sketch.update(_sketch_values(item_type)[:count])
            yield bytes([place]) + sketch.to_bytes()


def _theta_inputs() -> Iterator[bytes]:
    for count in (0, 1, 30, 2000):
        sketch = ThetaSketch(5)
        sketch.update(np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15) >> np.uint64(1))
        yield sketch.to_bytes()


def _partition_inputs() -> Iterator[bytes]:
    schema = partition_file_schema(2, PARTITION, ())
    row: dict[str, Any] = {field.name: 1 for field in schema if pa.types.is_integer(field.type)}
    table = pa.Table.from_pylist([row | {"partition": {"name": name}} for name in ("a", "b")], schema)
    yield write_stored_table(table, PARTITION, "parquet")
    yield write_stored_table(table, PARTITION, "avro")


def _footer_inputs() -> Iterator[bytes]:
    schema = pa.schema([stored_field(c.name, to_arrow_type(c.type), c.field_id) for c in METADATA.schema.columns])
    file = io.BytesIO()
    pq.write_table(
        pa.table([pa.array(["1", "2"]).cast(field.type) for field in schema], schema), file, store_schema=False
    )
    yield file.getvalue()
    yield next(_partition_inputs())


def _puffin_inputs() -> Iterator[bytes]:
    yield GOLDEN.read_bytes()
    yield write_puffin([NewBlob("a", field_ids, 1, 1, b"payload" * 9) for field_ids in ((1,), (), (1, 2))]).data


def _manifest_inputs() -> Iterator[bytes]:
    yield from WHOLE.values()


def _metadata_inputs() -> Iterator[bytes]:
    snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "l.avro", "summary": {}}
    blob = {"type": "apache-datasketches-theta-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
    file = {"snapshot-id": 1, "statistics-path": "a.stats", "file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    yield json.dumps(DOCUMENT).encode()
    yield json.dumps(
        DOCUMENT
        | {
            "current-snapshot-id": 1,
            "snapshots": [snapshot],
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
            "statistics": [file | {"blob-metadata": [blob]}],
            "partition-statistics": [{"snapshot-id": 1, "statistics-path": "p.parquet", "file-size-in-bytes": 9}],
        }
    ).encode()


DAMAGED = (MetadataError, UnsupportedError)
TARGETS = {
    "kernel": FuzzTarget(read_manifest, DAMAGED, _manifest_inputs),
    "avro-header": FuzzTarget(read_avro_header, DAMAGED, _manifest_inputs),
    "puffin": FuzzTarget(read_puffin, DAMAGED, _puffin_inputs),
    "kll": FuzzTarget(read_kll, (ValueError,), _kll_inputs),
    "theta": FuzzTarget(read_theta, (ValueError,), _theta_inputs),
    "partition-statistics": FuzzTarget(read_partition_file, DAMAGED, _partition_inputs),
    "parquet-footer": FuzzTarget(read_footer, DAMAGED, _footer_inputs),
    "metadata": FuzzTarget(read_table_metadata, DAMAGED, _metadata_inputs, is_text=True),
    "row-filter": FuzzTarget(
        read_row_filter, (FilterError, UnsupportedError), lambda: (f.encode() for f in FILTERS), is_text=True
    ),
}
"""By name: each is fuzzed in a process of its own, which shows a crash."""


def attempt(name: str, data: bytes) -> object:
    """Read some bytes; None for an error that the reader may raise."""
    target = TARGETS[name]
    try:
        return target.read(data)
    except target.errors:
        return None
