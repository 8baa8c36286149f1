"""KLL sketches against DataSketches' own, and against the values themselves."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from icestats.stats.kll import TEXT_LENGTH, KllSketch
from icestats.stats.kll_batches import thin_numbers, thin_texts
from icestats.stats.kll_engine import NARROW_LIMIT as LIMIT
from icestats.stats.kll_engine import KllEngine
from icestats.stats.kll_layout import ITEM_TYPES, KllLayout, item_type_of, parse_kll

LONG_MAX = 2**63 - 1
PROBES = 199


def sketch_of(item_type: str, array: pa.Array, k: int = 200) -> KllSketch:
    sketch = KllSketch(item_type, k)
    sketch.update(array)
    return sketch


def worst_rank_error(sketch: KllSketch, ordered: np.ndarray) -> float:
    """The largest distance of a rank from the truth, at values spread over all ranks."""
    places = np.linspace(0, len(ordered) - 1, PROBES).astype(int)
    probes = np.unique(ordered[places]).tolist()
    inclusive = np.searchsorted(ordered, probes, "right") / len(ordered)
    exclusive = np.searchsorted(ordered, probes, "left") / len(ordered)
    return max(
        float(np.abs(np.array(sketch.ranks(probes)) - inclusive).max()),
        float(np.abs(np.array(sketch.ranks(probes, inclusive=False)) - exclusive).max()),
    )


def partitioned(item_type: str, values: np.ndarray, partitions: int, batch: int) -> KllSketch:
    merged = KllSketch(item_type)
    for part in np.array_split(values, partitions):
        sketch = KllSketch(item_type)
        for start in range(0, len(part), batch):
            sketch.update(pa.array(part[start : start + batch]))
        merged.merge(sketch)
    return merged


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda random, n: random.random(n),
    "lognormal": lambda random, n: random.lognormal(0, 3, n),
    "zipf": lambda random, n: random.zipf(1.3, n).clip(0, 2**62),
    "sorted": lambda random, n: np.sort(random.integers(-(2**62), 2**62, n)),
    "reversed": lambda random, n: np.sort(random.normal(size=n))[::-1],
    "constant": lambda random, n: np.full(n, 42),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(("partitions", "batch"), [(1, 100_000), (1, 700), (7, 5_000), (1_000, 100), (10_000, 3)])
def test_ranks_are_within_the_stated_error_whatever_the_distribution_and_merges(
    name: str, partitions: int, batch: int
) -> None:
    """At 99 %: of 12 sketches held against the double-sided error, more than 2 beyond it would be a wrong sketch."""
    random = np.random.default_rng(11)
    limit = datasketches.kll_doubles_sketch(200).normalized_rank_error(True)
    rounds = {1_000: 3, 10_000: 1}.get(partitions, 12)
    beyond = 0
    for _ in range(rounds):
        values = DISTRIBUTIONS[name](random, 30_000)
        sketch = partitioned("double" if values.dtype == np.float64 else "long", values, partitions, batch)
        assert sketch.n == 30_000
        assert (sketch.min_value, sketch.max_value) == (values.min(), values.max())
        beyond += worst_rank_error(sketch, np.sort(values)) > limit
    assert beyond <= (2 if rounds == 12 else 1 if rounds == 3 else 0)


def test_the_stated_error_is_datasketches_own_and_zero_while_all_values_are_kept() -> None:
    few, many = (sketch_of("double", pa.array(np.arange(n, dtype=float))) for n in (200, 5_000))
    assert few.rank_error == 0.0
    assert many.rank_error == datasketches.kll_doubles_sketch(200).normalized_rank_error(False)
    assert sketch_of("long", pa.array(range(5_000)), k=800).rank_error < many.rank_error / 3


def test_merging_a_smaller_k_gives_the_larger_error() -> None:
    fine, coarse = (sketch_of("long", pa.array(range(50_000)), k) for k in (800, 100))
    fine.merge(coarse)
    assert fine.rank_error == coarse.rank_error
    assert (fine.n, coarse.n) == (100_000, 50_000)


@pytest.mark.parametrize("item_type", ["double", "long", "decimal"])
@pytest.mark.parametrize("count", [1, 2, 199, 200, 4_095, 4_096, 70_001])
def test_no_number_is_lost(item_type: str, count: int) -> None:
    numbers = range(-7, count - 7)
    array = pa.array(map(Decimal, numbers), pa.decimal128(38, 0)) if item_type == "decimal" else pa.array(numbers)
    sketch = sketch_of(item_type, array)
    assert (sketch.n, sketch.min_value, sketch.max_value) == (count, -7, count - 8)
    assert sum(weight for _, weight in sketch.items()) == count


def test_arrays_of_more_than_a_million_are_taken_whole() -> None:
    sketch = sketch_of("long", pa.array(np.arange(2_100_003)[::-1].copy()))
    assert (sketch.n, sketch.min_value, sketch.max_value) == (2_100_003, 0, 2_100_002)


def test_nulls_and_nan_stay_out() -> None:
    sketch = sketch_of("double", pa.array([1.0, None, float("nan"), float("inf")]))
    assert (sketch.n, sketch.min_value, sketch.max_value) == (2, 1.0, float("inf"))
    assert sketch_of("double", pa.array([float("nan")] * 10_000)).n == 0


def test_longs_beyond_the_precision_of_doubles_stay_exact() -> None:
    values = [2**53 + 1, 2**53, -(2**53) - 1, 0, 1, -1, 2**62 + 1]
    assert sorted(item for item, _ in sketch_of("long", pa.array(values)).items()) == sorted(values)


@pytest.mark.parametrize(
    "value", [LIMIT - 1, LIMIT, LIMIT + 1, -LIMIT + 1, -LIMIT, 0x7FF0 << 48, LONG_MAX, -LONG_MAX, -LONG_MAX - 1]
)
def test_the_ends_of_64_bits_are_exact_and_survive_bytes_and_merges(value: int) -> None:
    sketch = sketch_of("long", pa.array([value, 0]))
    assert sorted(item for item, _ in sketch.items()) == sorted([value, 0])
    copy = KllSketch.from_bytes("long", sketch.to_bytes())
    assert (copy.min_value, copy.max_value) == (min(value, 0), max(value, 0))
    plain = sketch_of("long", pa.array(range(10_000)))
    plain.merge(copy)
    copy.merge(sketch_of("long", pa.array(range(10_000))))
    for merged in (plain, copy):
        assert (merged.n, merged.min_value, merged.max_value) == (10_002, min(value, 0), max(value, 9_999))
        merged.update(pa.array([1, 2, 3]))
        assert merged.n == 10_005


def test_random_longs_of_all_64_bits_are_ranked_within_the_error() -> None:
    values = np.random.default_rng(2).integers(-LONG_MAX - 1, LONG_MAX, 200_000)
    values[:2] = LONG_MAX, -LONG_MAX - 1
    sketch = sketch_of("long", pa.array(values))
    assert worst_rank_error(sketch, np.sort(values)) < 2 * sketch.rank_error
    assert (sketch.min_value, sketch.max_value) == (-LONG_MAX - 1, LONG_MAX)


@pytest.mark.parametrize(
    ("array", "items"),
    [
        (pa.array([dt.date(1970, 1, 3)]), [2]),
        (pa.array([dt.time(0, 0, 1)], pa.time64("us")), [1_000_000]),
        (pa.array([3], pa.timestamp("us", "UTC")), [3]),
        (pa.array([3], pa.timestamp("ns")), [3]),
        (pa.array([True, False]), [0, 1]),
        (pa.array([Decimal("1.25"), Decimal("-0.01")], pa.decimal128(9, 2)), [-1, 125]),
        (pa.array([7], pa.uint8()), [7]),
        (pa.array([8, 7, None], pa.int16()).slice(1), [7]),
        (pa.array([7, 7]).dictionary_encode(), [7, 7]),
    ],
    ids=str,
)
def test_all_that_is_an_integer_at_heart_goes_into_a_sketch_of_longs(array: pa.Array, items: list[int]) -> None:
    assert [item for item, _ in sketch_of("long", array).items()] == items


@pytest.mark.parametrize(
    ("item_type", "array"),
    [
        ("long", pa.array(["a"])),
        ("long", pa.array([2**63], pa.uint64())),
        ("long", pa.array([1.5])),
        ("long", pa.array([Decimal(1)], pa.decimal128(19, 0))),
        ("double", pa.array(["a"])),
        ("decimal", pa.array([1])),
        ("string", pa.array([[1]])),
    ],
    ids=str,
)
def test_values_of_another_kind_are_refused(item_type: str, array: pa.Array) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        sketch_of(item_type, array)
    assert "\n" not in str(caught.value)


def test_decimals_beyond_64_bits_are_exact() -> None:
    values = [10**37, -(10**37), 0, 2**64, -(2**64) - 1]
    sketch = sketch_of("decimal", pa.array([Decimal(v).scaleb(-2) for v in values], pa.decimal128(38, 2)))
    assert [item for item, _ in sketch.items()] == sorted(values)
    copy = KllSketch.from_bytes("decimal", sketch.to_bytes())
    assert [item for item, _ in copy.items()] == sorted(values)


def random_texts(kind: str, count: int) -> list[str]:
    random = np.random.default_rng(3)
    if kind == "numbered":
        return [f"Customer#{v:012d}" for v in random.integers(0, 10**9, count)]
    if kind == "shared":
        # Alike in so many bytes that the sort of their beginnings cannot tell them apart.
        return [f"{'p' if v % 2 else 'q'}{'-' * 90}{v:09d}" for v in random.integers(0, 10**9, count)]
    if kind == "nested":
        return ["x" * int(v) for v in random.integers(0, 200, count)]
    return ["".join(map(chr, random.choice([65, 233, 8364, 128_512, 0], 6))) for _ in range(count)]


@pytest.mark.parametrize("kind", ["numbered", "shared", "nested", "unicode"])
@pytest.mark.parametrize("batch", [500, 40_000])
def test_ranks_of_strings_are_within_the_error(kind: str, batch: int) -> None:
    texts = random_texts(kind, 40_000)
    sketch = KllSketch("string")
    for start in range(0, len(texts), batch):
        sketch.update(pa.array(texts[start : start + batch]))
    ordered = np.array(sorted(texts), dtype=object)
    assert (sketch.n, sketch.min_value, sketch.max_value) == (len(texts), ordered[0], ordered[-1])
    assert worst_rank_error(sketch, ordered) < 2 * sketch.rank_error


def test_a_batch_of_strings_becomes_levels_that_ascend_and_weigh_as_much() -> None:
    texts = random_texts("numbered", 40_007)
    thinned = thin_texts(pa.array(texts), 800, np.random.default_rng(1))
    assert thinned is not None
    levels, low, high = thinned
    assert (low, high) == (min(texts), max(texts))
    assert sum(len(level) << height for height, level in enumerate(levels)) == 40_007
    assert list(levels[-1]) == sorted(levels[-1])
    ranks = np.searchsorted(np.array(sorted(texts)), levels[-1]) >> (len(levels) - 1)
    assert np.abs(ranks - np.arange(len(ranks))).max() <= 4


def test_strings_whose_beginnings_are_alike_are_left_to_be_fed_one_by_one() -> None:
    assert thin_texts(pa.array(random_texts("shared", 40_000)), 800, np.random.default_rng(1)) is None


def test_which_value_stands_for_its_neighbours_is_random_and_unbiased() -> None:
    """Of 64 neighbours the mean pick over 400 draws is within 5 standard errors of their middle."""
    random = np.random.default_rng(12)
    draws = [thin_numbers(np.arange(1_024), 16, random)[0][-1] for _ in range(400)]
    offsets = np.array(draws) % 64
    assert abs(offsets.mean() - 31.5) < 5 * 64 / 12**0.5 / offsets.size**0.5
    assert len(np.unique(offsets[:, 0])) > 32


def test_no_long_becomes_a_subnormal_double() -> None:
    """A process that flushes these to zero would take all small integers for equal."""
    for value in (0, 1, -1):
        engine = KllEngine("long", 200)
        engine.add(([value],), value, value)
        assert abs(engine.sketch.get_min_value()) >= np.finfo(np.float64).tiny


def test_strings_are_ordered_as_their_utf8_bytes_are() -> None:
    texts = ["\uffff", "\U0001f600", "z", "é", ""]
    sketch = sketch_of("string", pa.array(texts))
    assert [item for item, _ in sketch.items()] == sorted(texts, key=str.encode)


def test_long_strings_are_cut_to_their_documented_length() -> None:
    sketch = sketch_of("string", pa.array(["é" * 1_000, "a"]))
    assert sketch.max_value == "é" * TEXT_LENGTH
    sketch.update_counted(["ü" * 1_000], [3])
    assert sketch.max_value == "ü" * TEXT_LENGTH
    assert sketch.n == 5


def test_counted_values_are_exact() -> None:
    sketch = KllSketch("string")
    sketch.update_counted(["b", "a", "c"], [70_000, 1, 2**33])
    total = 70_000 + 1 + 2**33
    assert sketch.n == total
    assert sketch.ranks(["a", "b", "c"]) == [1 / total, 70_001 / total, 1.0]


def test_counted_values_may_be_many() -> None:
    values = np.random.default_rng(1).permutation(9_999).tolist()
    sketch = KllSketch("long")
    sketch.update_counted(values, [value % 100 + 1 for value in values])
    ordered = np.repeat(np.arange(9_999), np.arange(9_999) % 100 + 1)
    assert sketch.n == len(ordered)
    assert worst_rank_error(sketch, ordered) < 2 * sketch.rank_error


def test_quantiles_of_few_values_are_those_of_the_definition() -> None:
    sketch = sketch_of("long", pa.array(range(1, 101)))
    assert sketch.quantiles([0.0, 0.07, 0.1, 0.5, 0.501, 0.99, 1.0]) == [1, 7, 10, 50, 51, 99, 100]
    assert sketch.ranks([0, 1, 50, 100, 101]) == [0.0, 0.01, 0.5, 1.0, 1.0]
    assert sketch.ranks([0, 1, 50, 100, 101], inclusive=False) == [0.0, 0.0, 0.49, 0.99, 1.0]


def test_an_empty_sketch_has_no_quantiles_but_bytes() -> None:
    for item_type in ITEM_TYPES:
        sketch = KllSketch.from_bytes(item_type, KllSketch(item_type).to_bytes())
        assert (sketch.n, sketch.min_value, sketch.max_value, sketch.rank_error) == (0, None, None, 0.0)
        assert list(sketch.items()) == []
        for ask in (sketch.quantiles, sketch.ranks):
            with pytest.raises(ValueError, match="empty"):
                ask([0.5])


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


def test_merging_leaves_the_other_as_it_was_and_asks_for_one_item_type() -> None:
    left, right = (sketch_of("string", pa.array([f"{side}{i}" for i in range(5_000)])) for side in "lr")
    before = right.to_bytes()
    left.merge(right)
    assert right.to_bytes() == before
    assert (left.n, left.min_value, left.max_value) == (10_000, "l0", "r999")
    with pytest.raises(ValueError, match="long"):
        left.merge(KllSketch("long"))


def test_answers_follow_updates() -> None:
    sketch = sketch_of("long", pa.array([1]))
    assert sketch.quantiles([1.0]) == [1]
    sketch.update(pa.array([2]))
    assert sketch.quantiles([1.0]) == [2]
    sketch.update_counted([3], [1])
    assert sketch.max_value == 3
    sketch.merge(sketch_of("long", pa.array([4])))
    assert sketch.max_value == 4


@pytest.mark.parametrize(
    ("type_text", "item_type"),
    [
        ("boolean", "long"),
        ("int", "long"),
        ("date", "long"),
        ("timestamptz_ns", "long"),
        ("decimal(18,2)", "long"),
        ("decimal(19, 2)", "decimal"),
        ("float", "double"),
        ("string", "string"),
        ("uuid", None),
        ("fixed[16]", None),
        ("binary", None),
    ],
)
def test_each_type_has_its_items(type_text: str, item_type: str | None) -> None:
    assert item_type_of(type_text) == item_type


@pytest.mark.parametrize(("item_type", "k"), [("int", 200), ("long", 7), ("long", 65_536)])
def test_unknown_items_and_sizes_are_refused(item_type: str, k: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        KllSketch(item_type, k)


@pytest.mark.parametrize("k", [8, 65_535])
def test_the_smallest_and_the_largest_k_work(k: int) -> None:
    sketch = sketch_of("long", pa.array(range(200_000)), k)
    assert sketch.n == 200_000
    assert KllSketch.from_bytes("long", sketch.to_bytes()).n == 200_000


GOOD = sketch_of("long", pa.array(range(1_000))).to_bytes()
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


def test_a_layout_is_what_its_bytes_say() -> None:
    layout = parse_kll("long", GOOD)
    assert layout.to_bytes() == GOOD
    assert (layout.n, layout.min_value, layout.max_value) == (1_000, 0, 999)


@pytest.mark.parametrize("item_type", ["double", "long", "string", "decimal"])
@pytest.mark.parametrize("count", [0, 1, 2, 150, 20_000])
def test_bytes_are_those_of_the_layout(item_type: str, count: int) -> None:
    """Though they are not taken apart: negative numbers, text beyond ASCII, one level or many."""
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
    assert sketch.to_bytes() == parse_kll(item_type, sketch.to_bytes()).to_bytes() == sketch._engine.layout().to_bytes()
    assert sketch.n == count


def test_longs_too_large_for_doubles_widen_a_sketch_of_small_ones() -> None:
    sketch = KllSketch("long")
    sketch.update(pa.array([1, 2, 3]))
    sketch.update(pa.array([2**63 - 1, -(2**63)]))
    assert [item for item, _ in sketch.items()] == [-(2**63), 1, 2, 3, 2**63 - 1]
