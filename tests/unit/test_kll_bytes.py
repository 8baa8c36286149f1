"""Bytes of KLL sketches: DataSketches' own, here and in Java, and refused where they are damaged."""

from __future__ import annotations

import pickle
from decimal import Decimal

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.kll import KllSketch
from icestats.stats.kll_layout import ITEM_TYPES, KllLayout, parse_kll
from tests.kll_sketches import sketch_of


@pytest.mark.parametrize(("count", "item_type"), [(n, t) for n in (0, 1, 2, 150, 60_000) for t in ("double", "long")])
def test_datasketches_and_we_read_each_other_s_bytes(count: int, item_type: str) -> None:
    sketch = sketch_of(item_type, pa.array(np.arange(count)))
    data = sketch.to_bytes()
    if item_type == "double":
        theirs = datasketches.kll_doubles_sketch.deserialize(data)
        assert KllSketch.from_bytes(item_type, theirs.serialize()).to_bytes() == data
    else:
        theirs = datasketches.kll_items_sketch.deserialize(data, datasketches.PyLongsSerDe())
        assert KllSketch.from_bytes(item_type, theirs.serialize(datasketches.PyLongsSerDe())).to_bytes() == data
    assert theirs.n == count
    for value in (0, count // 3, count - 1) if count else ():
        assert theirs.get_rank(value, True) == sketch.ranks([value])[0]
        assert theirs.get_rank(value) == sketch.ranks([value], inclusive=False)[0]


# Spark 4.1.4's kll_sketch_agg_bigint and kll_sketch_agg_double over 0 to n - 1, and Java's KllItemsSketch<String> with
# ArrayOfStringsSerDe over "\u00e9", "fig", "\U0001f600kiwi".
FULL = "05010f00c80008000300000000000000c8000100c5000000"
JAVA = [
    ("long", [], "02010f01c8000800"),
    ("long", [0], "02020f04c80008000000000000000000"),
    ("long", [0, 1, 2], FULL + "00" * 8 + "02" + "00" * 7 + "00" * 8 + "01" + "00" * 7 + "02" + "00" * 7),
    ("double", [0.0], "02020f04c80008000000000000000000"),
    (
        "double",
        [0.0, 1.0, 2.0],
        FULL + "0000000000000000" + "0000000000000040" + "0000000000000000" + "000000000000f03f" + "0000000000000040",
    ),
    (
        "string",
        ["fig", "\u00e9", "\U0001f600kiwi"],
        FULL + "0300000066696708000000f09f98806b69776908000000f09f98806b6977690300000066696702000000c3a9",
    ),
]


@pytest.mark.parametrize(("item_type", "items", "data"), JAVA)
def test_bytes_of_java_are_read(item_type: str, items: list, data: str) -> None:
    sketch = KllSketch.from_bytes(item_type, bytes.fromhex(data))
    assert [item for item, _ in sketch.items()] == items
    assert len(sketch.to_bytes()) == len(data) // 2


def test_java_s_order_of_text_beyond_u_ffff_is_no_damage() -> None:
    layout = KllLayout("string", 200, 200, 4, "\U0001f600", "\uffff", ((), ("\U0001f600", "\uffff")))
    sketch = KllSketch.from_bytes("string", layout.to_bytes())
    assert (sketch.min_value, sketch.max_value) == ("\uffff", "\U0001f600")


def test_bytes_pickles_and_copies_hold_the_same_items() -> None:
    for item_type in ITEM_TYPES:
        kind = {"string": pa.string(), "decimal": pa.decimal128(38, 0)}.get(item_type, pa.int64())
        sketch = sketch_of(item_type, pa.array(range(30_000)).cast(kind))
        copy = pickle.loads(pickle.dumps(sketch))
        assert list(copy.items()) == list(sketch.items())
        assert (copy.n, copy.k, copy.min_value, copy.max_value) == (30_000, 200, sketch.min_value, sketch.max_value)
        assert copy.to_bytes() == sketch.to_bytes()


GOOD = sketch_of("long", pa.array(range(1_001))).to_bytes()
START = int.from_bytes(GOOD[20:24], "little")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes"),
        (GOOD[:20], "20 bytes"),
        (GOOD[:-1], "bytes, expected"),
        (GOOD + b"\0", "bytes, expected"),
        (GOOD[:2] + b"\x03" + GOOD[3:], "family 3"),
        (GOOD[:3] + b"\x05" + GOOD[4:], "contradict"),
        (GOOD[:4] + b"\0\0" + GOOD[6:], "k 0"),
        (GOOD[:6] + b"\x09" + GOOD[7:], "m 9"),
        (GOOD[:8] + b"\xff" * 8 + GOOD[16:], "n is"),
        (GOOD[:8] + (1_002).to_bytes(8, "little") + GOOD[16:], "n is 1002"),
        (GOOD[:16] + b"\0\0" + GOOD[18:], "smallest k"),
        (GOOD[:18] + b"\xff" + GOOD[19:], "levels"),
        (GOOD[:18] + b"\0" + GOOD[19:], "levels"),
        (GOOD[:20] + b"\xff" * 4 + GOOD[24:], "start at"),
        (GOOD[:20] + (START + 1).to_bytes(4, "little") + GOOD[24:], "n is"),
        (GOOD[:-8] + (500_000).to_bytes(8, "little"), "outside"),
        (GOOD[:-16] + GOOD[-8:] + GOOD[-16:-8], "ascend"),
    ],
    # Which items a sketch keeps is left to chance, and each worker must give a test the same name.
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_damaged_bytes_are_refused_in_one_line(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        KllSketch.from_bytes("long", data)
    assert "\n" not in str(caught.value)


def test_nan_and_text_that_is_not_utf8_are_damage() -> None:
    numbers = bytearray(sketch_of("double", pa.array([1.0, 2.0])).to_bytes())
    numbers[-8:] = np.array([np.nan]).tobytes()
    with pytest.raises(ValueError, match="not a number"):
        KllSketch.from_bytes("double", bytes(numbers))
    text = bytearray(sketch_of("string", pa.array(["ab"])).to_bytes())
    text[-1] = 0xFF
    with pytest.raises(ValueError, match="UTF-8"):
        KllSketch.from_bytes("string", bytes(text))
    text[8:12] = b"\xff\xff\xff\x7f"
    with pytest.raises(ValueError, match="too few"):
        KllSketch.from_bytes("string", bytes(text))


def test_a_decimal_of_more_bytes_than_the_longest_has_is_damage() -> None:
    data = KllLayout("decimal", 200, 200, 2, 0, 1 << 127, ((0, 1 << 127),)).to_bytes()
    with pytest.raises(ValueError, match="a decimal of 17 bytes"):
        parse_kll("decimal", data)


def test_a_layout_is_what_its_bytes_say() -> None:
    layout = parse_kll("long", GOOD)
    assert layout.to_bytes() == GOOD
    assert (layout.n, layout.min_value, layout.max_value) == (1_001, 0, 1_000)


@pytest.mark.parametrize("item_type", ["double", "long", "string", "decimal"])
@pytest.mark.parametrize("count", [0, 1, 2, 150, 20_000])
def test_bytes_are_those_of_the_layout(item_type: str, count: int) -> None:
    """Negative numbers, text beyond ASCII, one level or many."""
    random = np.random.default_rng(count)
    numbers = random.integers(-(2**60), 2**60, count)
    arrays = {
        "double": pa.array(numbers / 7),
        "long": pa.array(numbers),
        "string": pa.array([f"{'é' * (n % 3)}{n}" for n in numbers.tolist()], pa.string()),
        "decimal": pa.array([Decimal(n * 10**9) for n in numbers.tolist()], pa.decimal128(38, 0)),
    }
    sketch = KllSketch(item_type)
    for start in range(0, count, 700):
        sketch.update(arrays[item_type].slice(start, 700))
    assert sketch.to_bytes() == parse_kll(item_type, sketch.to_bytes()).to_bytes()
    assert sketch.n == count
