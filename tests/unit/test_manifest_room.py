"""What manifests expand to together is bounded, though each of them may expand to a little."""

from __future__ import annotations

import io
from dataclasses import replace

import fastavro
import pytest
import zstandard

from icestats.errors import UnsupportedError
from icestats.iceberg import storage
from icestats.read.manifests import group_store, manifest_pool
from icestats.read.manifests.manifests import read_file_metrics, read_files, read_rollups
from tests.avro_bytes import varint
from tests.small_manifests import ENTRY, MANIFEST, METADATA, WHOLE, Memory, entry

MIB = 1 << 20
READS = {
    "rollups": lambda manifests, memory: read_rollups(manifests, METADATA, memory),
    "files": lambda manifests, memory: read_files(manifests, METADATA, memory, [2]),
    "metrics": lambda manifests, memory: read_file_metrics(manifests, METADATA, memory, [2]),
}


def repeated(data_file, count):
    """A manifest that has an entry many times, in a block that is compressed to nearly nothing."""
    head, body = io.BytesIO(), io.BytesIO()
    fastavro.writer(head, ENTRY, [], codec="zstandard", sync_marker=b"s" * 16)
    fastavro.schemaless_writer(
        body, ENTRY, {"status": 1, "snapshot_id": None, "data_file": entry(1)["data_file"] | data_file}
    )
    block = zstandard.ZstdCompressor(19).compress(body.getvalue() * count)
    return head.getvalue() + varint(count) + varint(len(block)) + block + b"s" * 16


def manifests(data, count):
    return [replace(MANIFEST, path=f"m{i}.avro", length=len(data)) for i in range(count)]


def refused(read, data, count, what):
    with pytest.raises(UnsupportedError, match=what):
        READS[read](manifests(data, count), Memory(data))


@pytest.mark.parametrize("read", READS)
def test_a_few_bytes_are_not_millions_of_entries(read):
    """8,000,000 entries of 7 kB took 5 GB and minutes."""
    nothing = dict.fromkeys(("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"))
    data = repeated({**nothing, "split_offsets": None}, manifest_pool.FREE_ENTRIES // 2 + 1)
    refused(read, data, 2, "m[01].avro: it and others, of [0-9,]+ bytes together, have more than 262,144 entries")


@pytest.mark.parametrize(("read", "what"), [("rollups", "bounds"), ("files", "paths"), ("metrics", "paths")])
def test_many_manifests_of_long_bounds_take_no_gigabytes(read, what):
    """40 manifests of 7 kB took 5 GB, 400 would have taken all of the memory."""
    bound = [{"key": 2, "value": b"a" * (40 * MIB)}]
    data = repeated({"upper_bounds": bound}, 1)
    refused(read, data, 8, f"have too long {what}")


@pytest.mark.parametrize("read", ["files", "metrics"])
def test_many_manifests_of_long_paths_take_no_gigabytes(read):
    refused(read, repeated({"file_path": "a" * (40 * MIB)}, 1), 8, "have too long paths")


@pytest.mark.parametrize("read", READS)
def test_many_manifests_do_not_inflate_without_end(read, monkeypatch):
    monkeypatch.setattr(manifest_pool, "FREE_SIZE_BYTES", 2 * MIB)
    long = repeated({"key_metadata": None, "column_sizes": [{"key": 99, "value": 1}] * MIB}, 1)
    refused(read, long, 2, "inflate to more than 2,097,152 bytes")


def test_partitions_by_columns_take_no_more_than_their_manifests_tell(monkeypatch):
    """30,000 partitions of 1,000 columns, of 70 kB, took 10 GB."""
    monkeypatch.setattr(manifest_pool, "FREE_GROUPS_BYTES", 2_000)
    monkeypatch.setattr(storage, "MAX_RATIO", 0)
    monkeypatch.setattr(group_store, "_WHOLE_SIZE", 1)
    refused("rollups", WHOLE["deflate"], 1, "manifests and partitions by 4 columns take more than 2 kB")


def test_partitions_by_the_fields_of_all_specs_take_no_more_than_their_manifests_tell(monkeypatch):
    """18,000 partitions of 60 of 2,000 specs with 10,000 fields, 365 kB together, took 5 GB and 50 s."""
    monkeypatch.setattr(group_store, "_VALUE_SIZE", 1 << 25)
    refused("rollups", WHOLE["deflate"], 1, "partitions by 1 partition fields of all specs take more than 1.07 GB")


def test_ordinary_manifests_have_room(monkeypatch):
    for name in ("FREE_SIZE_BYTES", "FREE_TEXT_BYTES", "FREE_ENTRIES"):
        monkeypatch.setattr(manifest_pool, name, 0)
    data = WHOLE["deflate"]
    for read in READS.values():
        read(manifests(data, 100), Memory(data))
