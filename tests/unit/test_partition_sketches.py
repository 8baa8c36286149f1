"""The bytes of sketches by partition: what is written is read, few partitions cost few bytes, damage is refused."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.errors import PuffinFormatError
from icestats.iceberg import storage
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import to_arrow_type
from icestats.read.puffin import committed_partitions
from icestats.read.puffin.committed_partitions import (
    read_items_by_partition,
    read_kll_by_partition,
    read_merged_items,
    read_merged_sketches,
    read_partition_index,
)
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES, CommittedBlob, CommittedBlobs
from icestats.scan import scan_job
from icestats.scan.scan_job import ScanJob, Sizes, scan_rows
from icestats.stats import partition_sketches
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.frequent_items import FrequentValues, find_size_limit, read_frequent_values
from icestats.stats.kll import KllSketch
from icestats.stats.partition_sketches import (
    HEAD_SIZE_BYTES,
    estimate_size,
    parse_index,
    parse_index_size,
    write_partition_sketches,
)
from icestats.stats.table_statistics import ColumnStatistics, PartitionKey
from icestats.stats.theta import ThetaSketch

TYPES = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp_ns", "decimal(9, 2)", "string", "uuid")


class CountingReader:
    """A file in memory that knows how much of it was read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes_read = 0

    def size(self, location: str) -> int:
        return len(self.data)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        found = self.data[offset : None if length is None else offset + length]
        self.bytes_read += len(found)
        return found


def column(type_text: str = "long") -> Field:
    return Field(3, "c", type_text, required=False, top_level=True)


def statistics(array: pa.Array, type_text: str = "long", k: int = 200, lg_k: int = 12) -> ColumnStatistics:
    accumulator = ColumnAccumulator(column(type_text))
    accumulator.update(array)
    return accumulator.result(k=k, lg_k=lg_k, items_size_bytes=find_size_limit(k))


def key(number: int | None, spec_id: int = 0) -> PartitionKey:
    return PartitionKey(spec_id, ((1000, None if number is None else number.to_bytes(4, "little")),))


def committed(payload: bytes) -> tuple[CountingReader, CommittedBlobs]:
    blob = NewBlob(PARTITION_SKETCHES, (3,), 7, 1, payload, compression_codec=None)
    file = write_puffin([NewBlob("other", (3,), 7, 1, b"x" * 100), blob])
    return CountingReader(file.data), CommittedBlobs([CommittedBlob(file.blobs[1], "t.stats", False, 0)])


def test_what_the_sketches_of_partitions_expand_to_together_is_limited(monkeypatch) -> None:
    """60 of 5 kB, of 52 MB each, took 3.5 GB, and each more of them as much more."""
    parts = {key(i): statistics(pa.array([*range(3_000)])) for i in range(20)}
    reader, blobs = committed(write_partition_sketches(parts, k=200, lg_k=12))
    found = read_partition_index(reader, blobs, column())
    expanded = sum(len(one.theta) + len(one.kll) + len(one.frequent_items) for one in parts.values())
    monkeypatch.setattr(storage, "MAX_RATIO", 0)
    for most, entries in ((expanded // 2, found.index.partitions[:10]), (expanded, found.index.partitions)):
        monkeypatch.setattr(committed_partitions, "FREE_SKETCHES_BYTES", most)
        assert read_merged_sketches(reader, found, entries).partition_count == len(entries)
    monkeypatch.setattr(committed_partitions, "FREE_SKETCHES_BYTES", expanded - 1)
    for read in (read_merged_sketches, read_kll_by_partition, read_items_by_partition):
        with pytest.raises(PuffinFormatError, match=f"sketches of 20 partitions expand to more than {expanded - 1:,}"):
            read(reader, found, found.index.partitions)


def test_each_partition_is_read_as_it_was_written() -> None:
    parts = {key(i): statistics(pa.array([*range(100 * i, 100 * i + 3_000), *[i] * 50])) for i in range(5)}
    parts[key(None, 2)] = statistics(pa.array([None, None], pa.int64()))
    reader, blobs = committed(write_partition_sketches(parts, k=200, lg_k=12))
    found = read_partition_index(reader, blobs, column())
    assert [entry.key for entry in found.index.partitions] == list(parts)
    assert (found.snapshot_id, found.commits_behind, found.index.type) == (7, 0, "long")
    for entry, expected in zip(found.index.partitions, parts.values(), strict=True):
        assert entry.figures == expected.without_sketches()
        merged = read_merged_sketches(reader, found, [entry])
        assert merged.theta == ThetaSketch.from_bytes(expected.theta)
        assert read_merged_items(reader, found, [entry]).values == read_frequent_values(expected.frequent_items)
        assert merged.kll is not None
        assert merged.kll.n == KllSketch.from_bytes("long", expected.kll or b"").n


def test_of_ten_thousand_partitions_only_those_that_are_asked_for_are_read() -> None:
    one = statistics(pa.array(np.random.default_rng(3).integers(0, 10**12, 5_000)))
    reader, blobs = committed(write_partition_sketches({key(i): one for i in range(10_000)}, k=200, lg_k=12))
    found = read_partition_index(reader, blobs, column())
    few = [entry for entry in found.index.partitions if entry.key in (key(17), key(18), key(9_000))]
    merged = read_merged_sketches(reader, found, few)
    assert merged.kll is not None
    assert (merged.partition_count, merged.kll.n) == (3, 15_000)
    assert len(reader.data) > 300_000_000
    assert reader.bytes_read < 2_000_000


def test_merging_many_partitions_gives_the_sketch_of_all_rows() -> None:
    values = np.random.default_rng(4).permutation(60_000)
    parts = {key(i): statistics(pa.array(part)) for i, part in enumerate(np.array_split(values, 300))}
    reader, blobs = committed(write_partition_sketches(parts, k=200, lg_k=12))
    found = read_partition_index(reader, blobs, column())
    merged = read_merged_sketches(reader, found, found.index.partitions)
    assert merged.theta == ThetaSketch.from_bytes(statistics(pa.array(values)).theta)
    assert read_merged_items(reader, found, found.index.partitions).values.value_count == 60_000
    assert merged.kll is not None
    assert np.abs(np.array(merged.kll.ranks([15_000, 30_000, 45_000])) - [0.25, 0.5, 0.75]).max() < 0.0266


@pytest.mark.parametrize("type_text", TYPES)
@pytest.mark.parametrize("rows", [0, 1, 2, 150, 700, 5_000, 40_000])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize(("k", "lg_k"), [(200, 12), (32, 6)])
def test_what_is_said_of_the_size_is_never_less_than_it_takes(
    type_text: str, rows: int, k: int, lg_k: int, copies: int
) -> None:
    """Neither where each value is there once, nor where each of many is common."""
    random = np.random.default_rng(rows)
    arrow = to_arrow_type(type_text)
    if type_text == "uuid":
        array = pa.array([random.bytes(16) for _ in range(rows)], arrow)
    elif type_text == "string":
        array = pa.array([random.bytes(12).hex() for _ in range(rows)], arrow)
    elif type_text in ("float", "double", "boolean"):
        array = pa.array(random.random(rows)).cast(pa.float64())
        array = pa.array(np.asarray(array) > 0.5) if type_text == "boolean" else array.cast(arrow)
    elif type_text.startswith("decimal"):
        array = pa.array(random.integers(0, 10**7, rows)).cast(pa.decimal128(19, 0)).cast(arrow)
    else:
        numbers = random.integers(0, 80_000, rows)
        array = pa.array(numbers.astype(np.int32 if arrow.bit_width == 32 else np.int64)).view(arrow)
    array = pa.concat_arrays([array.slice(0, max(rows // copies, 1))] * copies)
    rows = len(array)
    found = statistics(array, type_text, k, lg_k)
    size = len(write_partition_sketches({key(1): found}, k=k, lg_k=lg_k))
    # 400 bytes: the index, which one partition does not make up for.
    assert size <= estimate_size([column(type_text)], [rows], k=k, lg_k=lg_k).size_bytes + 400


SOUND = write_partition_sketches(
    {key(i): statistics(pa.array([*range(i, 500 + i), *range(150)])) for i in range(3)}, k=200, lg_k=12
)


@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=3), st.integers(0, 40))
def test_damage_is_refused_or_does_no_harm(changes: list[tuple[int, int]], cut: int) -> None:
    damaged = bytearray(SOUND[: len(SOUND) - cut])
    for place, value in changes:
        damaged[min(place, len(damaged) - 1)] = value
    reader, blobs = committed(bytes(damaged))
    said: PuffinFormatError | None = None
    try:
        found = read_partition_index(reader, blobs, column())
        estimate = read_merged_sketches(reader, found, found.index.partitions).theta.estimate()
        estimate += read_merged_items(reader, found, found.index.partitions).values.value_count
    except PuffinFormatError as error:
        said, estimate = error, 0.0
    assert estimate >= 0
    assert said is None or ("\n" not in str(said) and said.offset is not None)


def test_no_damage_of_a_sketch_gives_another_one() -> None:
    """Whatever byte of the sketches is changed, they are refused or are the same."""
    begin = HEAD_SIZE_BYTES + parse_index_size(SOUND)

    def read(payload: bytes) -> tuple[ThetaSketch, FrequentValues, int, float, float]:
        reader, blobs = committed(payload)
        found = read_partition_index(reader, blobs, column())
        merged = read_merged_sketches(reader, found, found.index.partitions)
        assert merged.kll is not None
        items = read_merged_items(reader, found, found.index.partitions).values
        return merged.theta, items, merged.kll.n, merged.kll.min_value, merged.kll.max_value

    expected, refused = read(SOUND), 0
    assert len(expected[1].items) > 100
    for place in range(begin, len(SOUND), 7):
        damaged = bytearray(SOUND)
        damaged[place] ^= 1 << place % 8
        try:
            assert read(bytes(damaged)) == expected, place
        except PuffinFormatError:
            refused += 1
    assert refused > (len(SOUND) - begin) // 7 * 0.99


def test_no_damage_of_the_index_gives_another_one() -> None:
    """Counts and bounds stand in it alone: whatever byte is changed, it is refused or says the same."""
    begin, end = HEAD_SIZE_BYTES, HEAD_SIZE_BYTES + parse_index_size(SOUND)
    expected = parse_index(SOUND[begin:end], len(SOUND) - end)
    refused = 0
    for place in range(begin, end):
        damaged = bytearray(SOUND)
        damaged[place] ^= 1 << place % 8
        reader, blobs = committed(bytes(damaged))
        try:
            assert read_partition_index(reader, blobs, column()).index == expected, place
        except PuffinFormatError:
            refused += 1
    assert refused > (end - begin) * 0.9


@pytest.mark.parametrize(
    ("change", "said"),
    [({"item-type": "l-7:"}, "item type 'l-7:'"), ({"k": 7}, "k is 7"), ({"lg-k": 60}, "lg_k is 60")],
)
def test_an_index_of_sketches_that_there_are_not_is_refused(change: dict[str, object], said: str) -> None:
    """As those are that were written without a checksum and damaged since."""
    begin, end = HEAD_SIZE_BYTES, HEAD_SIZE_BYTES + parse_index_size(SOUND)
    index = json.loads(zstandard.ZstdDecompressor().decompress(SOUND[begin:end])) | change
    stored = zstandard.ZstdCompressor().compress(json.dumps(index).encode())
    reader, blobs = committed(SOUND[:4] + len(stored).to_bytes(4, "little") + stored + SOUND[end:])
    with pytest.raises(PuffinFormatError, match=said):
        read_partition_index(reader, blobs, column())


def test_an_index_that_names_the_same_sketches_again_and_again_is_refused() -> None:
    """A sketch of five kilobytes may take seconds, and an index of thirty name it twenty thousand times."""
    begin, end = HEAD_SIZE_BYTES, HEAD_SIZE_BYTES + parse_index_size(SOUND)
    index = json.loads(zstandard.ZstdDecompressor().decompress(SOUND[begin:end]))
    index["partitions"] = [
        index["partitions"][-1] | {"partition": {"1000": number.to_bytes(4, "little").hex()}} for number in range(1000)
    ]
    with pytest.raises(
        ValueError, match=r"the sketches of partitions have [\d,]+ bytes, more than the [\d,]+ of the blob"
    ):
        parse_index(zstandard.ZstdCompressor().compress(json.dumps(index).encode()), len(SOUND) - end)


def test_other_bytes_are_no_partition_sketches() -> None:
    with pytest.raises(ValueError, match="expected b'IPS1'"):
        parse_index_size(b"PFA1\0\0\0\0")
    with pytest.raises(ValueError, match="damaged"):
        parse_index(b"\x28\xb5\x2f\xfdnonsense", 10)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ((256 << 20) + 1, "a frame of 268435457 bytes, expected 268435456 at most"),
        (51_000_000, "34,000,000 values of JSON, expected 16,777,216 at most"),
    ],
)
def test_an_index_that_expands_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, size: int, said: str) -> None:
    """Lists without members take twenty times their bytes."""
    lists = b"[[]" * (size // 3) + b" " * (size % 3)
    monkeypatch.setattr(partition_sketches, "expanded_limit", lambda _: 2**31)
    with pytest.raises(ValueError, match=said):
        parse_index(zstandard.ZstdCompressor().compress(lists), 10)


def test_of_a_wide_table_few_partitions_are_open_at_once(monkeypatch):
    """Accumulators of a column take up to 1.4 MB: 32 partitions of 60 columns took 2.7 GB of a worker of Spark's."""
    monkeypatch.setattr(scan_job, "ROWS_GATHERED", 1)
    fields = tuple(Field(number, f"c{number}", "long", required=False, top_level=True) for number in range(1, 41))
    keys = {f"f{number}": PartitionKey(0, ((1000, bytes([number])),)) for number in range(20)}
    job, read = ScanJob(fields, Sizes(200, 12, 200, 12), keys), []

    def give():
        for path in keys:
            read.append(path)
            yield pa.RecordBatch.from_pydict({"_file": [path]} | {f"c{field.field_id}": [7] for field in fields})

    counts = []
    for batch in scan_rows(job, give()):
        (row,) = batch.to_pylist()
        parts = pickle.loads(row["payload"])
        counts.append((pickle.loads(row["partition"]), len(read), {one.result().value_count for one in parts}))
    assert [key for key, *_ in counts] == list(keys.values())
    assert all(of_rows == {1} for *_, of_rows in counts)
    assert [number for _, number, _ in counts] == [9] * 9 + [18] * 9 + [20] * 2, "with nine, 360 accumulators are open"
