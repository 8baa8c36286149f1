"""Manifests whose types PyIceberg takes for others are never read by it: it would read what is behind their bytes."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.reader import IntegerReader, ListReader, MapReader
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.errors import UnsupportedError
from icestats.iceberg.storage import local_path
from icestats.scan.actual_rows import count_rows
from icestats.scan.scan_plan import prepare_scan
from tests.avro_bytes import CODECS, varint

TYPES: dict[str, tuple[Any, Any]] = {
    "decimal": (
        {"type": "fixed", "name": "d", "size": 9, "logicalType": "decimal", "precision": 5, "scale": 0},
        Decimal(7),
    ),
    "decimal of bytes": ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 0}, Decimal(7)),
    "uuid": ({"type": "string", "logicalType": "uuid"}, "0" * 36),
    "timestamp-micros": ({"type": "string", "logicalType": "timestamp-micros"}, "x" * 40),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
}

REFUSED = "(a manifest has a .*, in a way that PyIceberg does not read|Type not recognized: .*enum)"


def read(path: str) -> tuple[Any, list[Any], dict[str, str]]:
    with local_path(path).open("rb") as file:
        reader = fastavro.reader(file)
        kept = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
        return reader.writer_schema, list(reader), kept


def write(path: str, schema: Any, rows: list[Any], metadata: dict[str, str]) -> int:
    with local_path(path).open("wb") as file:
        fastavro.writer(file, schema, rows, metadata=metadata)
    return local_path(path).stat().st_size


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy", "bzip2"])
def test_blocks_that_pyiceberg_reads_are_inflated_as_the_kit_does(codec):
    """1.5 kB of bzip2 behind the entries took gigabytes; snappy was a raw ImportError."""
    inflate = KNOWN_CODECS[codec].decompress
    assert inflate(CODECS[codec](b"abc")) == b"abc"
    if codec != "snappy":
        bomb = CODECS[codec](bytes(80 << 20))
        with pytest.raises(ValueError, match="inflates to more than 67,108,864 bytes"):
            inflate(bomb)
        assert inflate(CODECS[codec](b"abc") + bomb) == b"abc"


@pytest.fixture(params=TYPES)
def odd(request: pytest.FixtureRequest, catalog: SqlCatalog) -> icestats.Table:
    """A table of ten rows whose manifest begins its data files with a field that no spec knows."""
    kind, value = TYPES[request.param]
    made = catalog.create_table("db.odd", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.array(range(10), pa.int64())}))
    (listed,) = made.current_snapshot().manifests(made.io)
    schema, rows, metadata = read(listed.manifest_path)
    data_file = next(field for field in schema["fields"] if field["name"] == "data_file")["type"]
    data_file["fields"].insert(0, {"name": "more", "type": kind, "field-id": 9_999})
    for row in rows:
        row["data_file"]["more"] = value
    size = write(listed.manifest_path, schema, rows, metadata)
    path = made.current_snapshot().manifest_list
    schema, rows, metadata = read(path)
    write(path, schema, [row | {"manifest_length": size} for row in rows], metadata)
    return icestats.load(made.metadata_location)


def test_types_that_pyiceberg_misreads_are_left_to_others(odd: icestats.Table) -> None:
    """Spark then counts, and scans."""
    assert odd.files()["record_count"].to_pylist() == [10]
    with pytest.raises(UnsupportedError, match=f"cannot be counted by PyIceberg: {REFUSED}") as caught:
        count_rows(odd._source, odd.snapshot, odd.schema, odd.bind("id >= 0"))
    assert "\n" not in str(caught.value)
    assert odd.snapshot is not None
    fallback = prepare_scan(odd._source, odd.snapshot, odd.schema).fallback
    assert re.match(f"PyIceberg cannot plan the scan: {REFUSED}", str(fallback))


@pytest.mark.parametrize("stated", [0, 1, 50, -50])
def test_a_list_is_passed_over_by_its_items(stated: int) -> None:
    """A block's stated length may be any."""
    block = varint(-2) + varint(stated) + varint(300) + varint(301)
    decoder = new_decoder(block + varint(0) + varint(7))
    ListReader(IntegerReader()).skip(decoder)
    assert decoder.read_int() == 7
    decoder = new_decoder(varint(-1) + varint(stated) + varint(300) + varint(301) + varint(0) + varint(7))
    MapReader(IntegerReader(), IntegerReader()).skip(decoder)
    assert decoder.read_int() == 7
