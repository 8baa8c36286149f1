"""Whatever a commit writes, engines see small blobs of one field each: Presto is blind to the table otherwise."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
)

import icestats
from icestats.commit.puffin_writer import MAX_LISTED_BLOB_SIZE_BYTES, NewBlob
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import MANIFEST_STATISTICS, PARTITION_SKETCHES
from icestats.scan.scan_job import Sizes
from icestats.table.metadata_statistics import MetadataStatistics
from icestats.table.statistics import Statistics
from tests.committed_statistics import entries, open_catalog, register, write_foreign
from tests.computed_statistics import scan_table

KINDS = ("columns", "partitions", "manifests")
ALL = [set(kinds) for kinds in chain.from_iterable(combinations(KINDS, count) for count in (1, 2, 3))]
SIZES = [Sizes(200, 12, 200, 12), Sizes(65_535, 16, 2_000, 10)]
OTHERS = {("presto-kll-sketch-bytes-v1", (2,)), ("of-others", (1, 2)), ("of-others", ())}
FIELDS = {
    "day": LongType(),
    "v": DoubleType(),
    "text": StringType(),
    "long_text": StringType(),
    "price": DecimalType(12, 2),
    "due": DateType(),
    "flag": BooleanType(),
    "raw": BinaryType(),
}


def rows(count):
    numbers = np.arange(count)
    schema = Schema(*(NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(FIELDS.items(), 1)))
    columns = {
        "day": numbers % 3,
        "v": numbers * 0.5,
        "text": [f"text {i}" for i in range(count)],
        "long_text": ["x" * 3000 + str(i % 50) for i in range(count)],
        "price": pa.array([Decimal(i) for i in range(count)], pa.decimal128(12, 2)),
        "due": pa.array(numbers % 1000, pa.int32()).cast(pa.date32()),
        "flag": numbers % 2 == 0,
        "raw": [str(i).encode() for i in range(count)],
    }
    return pa.table(columns).cast(schema.as_arrow()), schema


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A table of rows enough for large sketches, and what scans of both sizes find, by partition too."""
    with open_catalog(tmp_path_factory.mktemp("many")) as catalog:
        catalog.create_namespace("db")
        data, schema = rows(40_000)
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
        table = catalog.create_table("db.many", schema, partition_spec=spec)
        table.append(data)
        opened = icestats.load("db.many", catalog={**catalog.properties, "name": "c"})
        yield table, opened, [scan_table(opened, by_partition=True, sizes=sizes) for sizes in SIZES]


def check(table):
    """Check the current snapshot's file, and that the kit reads all of it."""
    snapshot_id = table.current_snapshot().snapshot_id
    (entry,) = [e for e in entries(table) if e.snapshot_id == snapshot_id]
    data = Path(entry.statistics_path[7:]).read_bytes()
    puffin = PuffinFile(data)
    for blob in puffin.footer.blobs:
        if (blob.type, tuple(blob.fields)) not in OTHERS:
            assert len(blob.fields) == 1, blob
            assert len(puffin.get_blob_payload(blob)) <= MAX_LISTED_BLOB_SIZE_BYTES, blob
    assert all(len(value) < 5_000_000 for value in puffin.footer.properties.values())
    assert all(len(b.fields) == 1 for b in entry.blob_metadata if (b.type, tuple(b.fields)) not in OTHERS)
    footer = read_puffin_footer(Storage(), entry.statistics_path)
    assert all(len(value) <= 1000 for b in footer.blobs for value in b.properties.values()), "texts of 3,001 characters"
    payloads = {(b.type, b.field_ids): read_blob(Storage(), b, entry.statistics_path) for b in footer.blobs}
    assert len(payloads) == len(footer.blobs)
    return payloads


@pytest.mark.parametrize("size", range(len(SIZES)))
@pytest.mark.parametrize("kinds", ALL, ids=lambda kinds: "+".join(sorted(kinds)))
def test_every_kind_that_a_commit_writes(found, kinds, size):
    """Each over what the commits before it have left: whatever is written is carried over by the next."""
    table, opened, scans = found
    statistics = scans[size]
    if "partitions" not in kinds:
        statistics = replace(statistics, by_partition=None, columns=statistics.columns if "columns" in kinds else {})
    metadata = opened.compute(manifests=True).of_metadata if "manifests" in kinds else MetadataStatistics()
    Statistics(opened._source, statistics, metadata).commit()
    written = {kind for kind, _ in check(table.refresh())}
    assert {MANIFEST_STATISTICS} & written or "manifests" not in kinds
    assert {PARTITION_SKETCHES} & written or "partitions" not in kinds
    assert opened.refresh().histogram("v", bins=3).n == 40_000 or "columns" not in kinds


def test_what_others_and_earlier_versions_of_the_kit_have_listed(found):
    """Others' blobs stay where they look for them, byte for byte; the kit's own are hidden by its next commit."""
    table, opened, scans = found
    ids = (table.current_snapshot().snapshot_id, table.current_snapshot().sequence_number)
    theirs = [NewBlob(kind, fields, *ids, kind.encode(), {"by": "them"}) for kind, fields in sorted(OTHERS)]
    # The same length as the kit's prefix, and not the kit's: so that it is listed, as it was before.
    own = [
        NewBlob("icestatz-manifest-stats-v1", (), *ids, b"manifests"),
        NewBlob("icestatz-partition-sketches-v1", (2,), *ids, b"partitions"),
    ]
    path = write_foreign(table, *theirs, *own)
    file = Path(path[7:])
    file.write_bytes(file.read_bytes().replace(b"icestatz-", b"icestats-"))
    register(table, path, [])
    assert len(PuffinFile(file.read_bytes()).footer.blobs) == 5
    Statistics(opened._source, replace(scans[0], by_partition=None)).commit()
    payloads = check(table.refresh())
    assert {key: payloads[key] for key in OTHERS} == {(kind, fields): kind.encode() for kind, fields in OTHERS}
    assert payloads[MANIFEST_STATISTICS, ()] == b"manifests"
    assert payloads[PARTITION_SKETCHES, (2,)] == b"partitions"
    data = Path(entries(table)[0].statistics_path[7:]).read_bytes()
    listed = {(b.type, tuple(b.fields)) for b in PuffinFile(data).footer.blobs}
    assert listed >= OTHERS
    assert not {kind for kind, _ in listed} & {MANIFEST_STATISTICS, PARTITION_SKETCHES}
