"""Theta sketches against DataSketches' own."""

from __future__ import annotations

import pickle
import struct

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.hashing import hash_values
from icestats.stats.theta import MAX_THETA, ThetaSketch


def longs(*spans: range, lg_k: int = 12) -> ThetaSketch:
    sketch = ThetaSketch(lg_k)
    for span in spans:
        sketch.update(hash_values(pa.array(span, pa.int64()), "long"))
    return sketch


def peer(span: range) -> datasketches.update_theta_sketch:
    sketch = datasketches.update_theta_sketch(12)
    for value in span:
        sketch.update(value)
    return sketch


@pytest.mark.parametrize("count", [0, 1, 2, 100, 4_096])
def test_up_to_k_values_the_estimate_is_the_count_and_the_hashes_are_datasketches_own(count: int) -> None:
    sketch = longs(range(count))
    assert (sketch.estimate(), sketch.ndv, sketch.is_exact) == (count, count, True)
    assert sketch.bounds() == (count, count)
    assert sketch.relative_error == 0.0
    assert sorted(peer(range(count)).compact()) == sketch.hashes.tolist()


@pytest.mark.parametrize("count", [4_097, 50_000, 400_000])
def test_beyond_k_values_the_truth_is_within_four_standard_errors(count: int) -> None:
    sketch = longs(range(count))
    assert abs(sketch.estimate() / count - 1) < 4 / 4_095**0.5
    lower, upper = sketch.bounds(3)
    assert lower < sketch.estimate() < upper
    assert len(sketch.hashes) == 4_096
    assert 0 < sketch.relative_error < 0.04


@pytest.mark.parametrize("count", [0, 1, 2, 100, 4_096, 4_097, 50_000])
def test_datasketches_reads_our_bytes_with_the_same_estimate_and_bounds(count: int) -> None:
    sketch = longs(range(count))
    read = datasketches.compact_theta_sketch.deserialize(sketch.to_bytes())
    assert read.get_estimate() == sketch.estimate()
    assert (read.get_lower_bound(2), read.get_upper_bound(2)) == sketch.bounds(2)
    assert read.is_ordered()
    assert read.is_empty() == sketch.is_empty
    assert list(read) == sketch.hashes.tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 100, 50_000])
@pytest.mark.parametrize("ordered", [True, False])
def test_bytes_of_datasketches_are_read_with_the_same_estimate(count: int, ordered: bool) -> None:
    theirs = peer(range(count)).compact(ordered)
    ours = ThetaSketch.from_bytes(theirs.serialize())
    assert ours.estimate() == theirs.get_estimate()
    assert ThetaSketch.from_bytes(ours.to_bytes()) == ours


# Blobs of Iceberg 1.12.0's compute_table_stats (Spark 4.1.4) over no row, the bigint 0, and the bigints 0, 1, 2.
JAVA = {
    0: "01030300001e0000",
    1: "01030300003acc93e56b61eec8804420",
    3: "02030300001acc93030000000000803f15f97dcbbd86a105c397fc1281709d1ee56b61eec8804420",
}
# Spark 4.1.4's own theta_sketch_agg over the bigints 0 to 19: serial version 4.
SPARK_20 = (
    "0104033d011acc93140c79209c4bc9c7d90498aa908130068538aa182b61ca560198ceeb08aad29432982140b3c5ca903fe12d7d486efd329a"
    "a089346ed6003c0a3656e5ee5606bc64c92af86b0033e0ebad8171b080e3dd4d6af69cb21791d29675416dcc33da8b48c9a69e93d25f2563a7"
    "6840a83fd23d8f5ecf437d318246f173d6a8efea6cc4c6f01c6fd03e7c1257c89b36778a711eaa0817235b18c9738f80"
)


@pytest.mark.parametrize("count", JAVA)
def test_our_bytes_are_those_of_iceberg_in_java(count: int) -> None:
    assert longs(range(count)).to_bytes().hex() == JAVA[count]
    assert ThetaSketch.from_bytes(bytes.fromhex(JAVA[count])) == longs(range(count))


def test_packed_bytes_of_spark_are_read() -> None:
    assert ThetaSketch.from_bytes(bytes.fromhex(SPARK_20)) == longs(range(20))


def test_an_estimate_s_bytes_have_theta_after_the_count() -> None:
    data = longs(range(10_000)).to_bytes()
    assert data[:16].hex() == "03030300001acc93001000000000803f"
    assert struct.unpack_from("<Q", data, 16)[0] < MAX_THETA


def test_the_result_depends_on_neither_order_nor_grouping() -> None:
    whole = longs(range(30_000))
    parts = [longs(range(start, start + 6_000), range(500)) for start in range(0, 30_000, 6_000)]
    left = ThetaSketch()
    for part in parts:
        left.merge(part)
    right = ThetaSketch()
    for part in reversed(parts):
        fresh = pickle.loads(pickle.dumps(part))
        fresh.merge(right)
        right = fresh
    assert left == whole
    assert right == whole
    assert left.to_bytes() == whole.to_bytes()


def test_merging_leaves_the_other_as_it_was() -> None:
    left, right = longs(range(10)), longs(range(5, 20_000))
    before = right.to_bytes()
    left.merge(right)
    left.merge(left)
    assert right.to_bytes() == before
    assert left == longs(range(20_000))


def test_merging_into_an_empty_or_a_small_sketch_takes_the_other_s_threshold() -> None:
    large = longs(range(50_000))
    for small in (range(0), range(3)):
        merged = longs(small)
        merged.merge(large)
        assert merged == large


def test_values_that_were_all_rejected_do_not_make_the_sketch_empty() -> None:
    sketch = ThetaSketch()
    sketch.update(np.array([0], np.uint64))
    assert not sketch.is_empty
    assert sketch.estimate() == 0.0


def test_a_sketch_larger_than_k_keeps_its_writer_s_estimate_until_it_is_merged() -> None:
    theirs = longs(range(60_000), lg_k=13)
    ours = ThetaSketch.from_bytes(theirs.to_bytes())
    assert ours.estimate() == theirs.estimate()
    ours.merge(longs(range(60_000)))
    assert ours == longs(range(60_000))


def test_equality_is_of_the_contents() -> None:
    assert longs(range(5)) == longs(range(4), range(1, 5))
    assert longs(range(5)) != longs(range(6))
    assert longs(range(5)) != 5


def packed(hashes: list[int], theta: int | None, width: int) -> bytes:
    """Serial version 4, as Spark's own theta_sketch_agg writes it: differences, `width` bits each."""
    deltas = [b - a for a, b in zip([0, *hashes], hashes, strict=False)]
    bits = "".join(format(delta, f"0{width}b") for delta in deltas)
    body = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    head = bytes([2 if theta else 1, 4, 3, width, 2, 0x1A, 0xCC, 0x93])
    return head + (theta.to_bytes(8, "little") if theta else b"") + len(hashes).to_bytes(2, "little") + body


@pytest.mark.parametrize("count", [2, 7, 8, 9, 1_000, 40_000])
def test_packed_bytes_of_version_4_are_read_as_datasketches_reads_them(count: int) -> None:
    sketch = longs(range(count))
    theta = None if sketch.is_exact else struct.unpack_from("<Q", sketch.to_bytes(), 16)[0]
    deltas = np.diff(sketch.hashes, prepend=np.uint64(0))
    data = packed(sketch.hashes.tolist(), theta, int(deltas.max()).bit_length())
    assert list(datasketches.compact_theta_sketch.deserialize(data)) == sketch.hashes.tolist()
    assert ThetaSketch.from_bytes(data) == sketch


def test_old_serial_versions_are_read() -> None:
    hashes = longs(range(3)).hashes
    body = hashes.astype("<u8").tobytes()
    second = struct.pack("<4BHHII", 2, 2, 3, 0, 0, 0x93CC, 3, 0) + body
    first = struct.pack("<4BIIIQ", 3, 1, 3, 0, 0, 3, 0, MAX_THETA) + body
    for data in (first, second):
        assert datasketches.compact_theta_sketch.deserialize(data).get_estimate() == 3
        assert ThetaSketch.from_bytes(data) == longs(range(3))
    assert ThetaSketch.from_bytes(struct.pack("<4BHH", 1, 2, 3, 0, 0, 0x93CC)).is_empty


GOOD = longs(range(10)).to_bytes()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes"),
        (GOOD[:7], "7 bytes"),
        (GOOD[:-1], "bytes, expected"),
        (GOOD + b"\0", "bytes, expected"),
        (GOOD[:8] + b"\xff\xff\xff\xff" + GOOD[12:], "expected"),
        (GOOD[:2] + b"\x01" + GOOD[3:], "family 1"),
        (GOOD[:1] + b"\x05" + GOOD[2:], "serial version 5"),
        (GOOD[:6] + b"\0\0" + GOOD[8:], "seed hash"),
        (GOOD[:-16] + GOOD[-8:] * 2, "twice"),
        (GOOD[:-8] + b"\xff" * 8, "below theta"),
        (bytes([2, 4, 3, 63, 4, 0x1A, 0xCC, 0x93]) + b"\xff" * 12, "bytes, expected"),
        # In memory each of these bits would take 64 times as many, and more for a while.
        (bytes([1, 4, 3, 1, 1, 0x1A, 0xCC, 0x93, 80]) + b"\xff" * 10, "1 bits a hash"),
    ],
)
def test_damaged_bytes_are_refused_in_one_line(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        ThetaSketch.from_bytes(data)
    assert "\n" not in str(caught.value)


def test_hashes_that_repeat_one_another_are_refused_before_they_are_unpacked() -> None:
    """Six kilobytes, compressed, were 30 million: half a minute and a gigabyte. Those of values are read."""
    with pytest.raises(ValueError, match="80,010 bytes of hashes that repeat one another"):
        ThetaSketch.from_bytes(packed(list(range(1, 40_001)), None, 16))
    for count in (60_000, 3_000_000):
        sketch = longs(range(count), lg_k=16)
        assert ThetaSketch.from_bytes(sketch.to_bytes(), 16) == sketch


@pytest.mark.parametrize("lg_k", [3, 27])
def test_a_size_beyond_datasketches_own_is_refused(lg_k: int) -> None:
    with pytest.raises(ValueError, match="lg_k"):
        ThetaSketch(lg_k)


def test_bounds_know_one_two_and_three_standard_deviations() -> None:
    sketch = longs(range(20_000))
    one, two, three = (sketch.bounds(n) for n in (1, 2, 3))
    assert three[0] < two[0] < one[0] < one[1] < two[1] < three[1]
    with pytest.raises(ValueError, match="std_devs"):
        sketch.bounds(4)
