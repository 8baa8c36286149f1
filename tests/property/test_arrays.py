"""Conversions between NumPy's, Python's and Arrow's values give what pyarrow's own give."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.answers.arrays import binary_places, combine, empty_table, fill_null, find_nulls, to_arrow, to_numpy
from icestats.answers.arrow_values import from_rows, from_values, scalar, to_rows, to_values

WHOLE = {kind: np.iinfo(kind.to_pandas_dtype()) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
WHOLE |= {kind: np.iinfo(kind.to_pandas_dtype()) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())}
NUMBERS = {kind: st.integers(info.min, info.max) for kind, info in WHOLE.items()}
NUMBERS |= {pa.float32(): st.floats(width=32), pa.float64(): st.floats(), pa.bool_(): st.booleans()}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
ZONED = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 1, 1), timezones=st.just(dt.UTC))
PLAIN = NUMBERS | {
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(7, 2): st.decimals(-99_999, 99_999, places=2),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): ZONED,
    pa.timestamp("ms", "UTC"): ZONED.map(lambda moment: moment.replace(microsecond=7000)),
    pa.time64("us"): st.times(),
    pa.uuid(): st.uuids(),
    pa.null(): st.none(),
}


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type, plain or nested, and its values, None among them."""
    form = draw(st.sampled_from(["plain", "plain", "list", "map", "struct"])) if depth else "plain"
    if form == "plain":
        # pyarrow makes no lists of UUIDs of Python's.
        kind = draw(st.sampled_from([kind for kind in PLAIN if depth == 2 or kind != pa.uuid()]))
        return kind, st.none() | PLAIN[kind]
    if form == "struct":
        fields = draw(st.lists(kinds(depth=depth - 1), min_size=1, max_size=3))
        names = [f"f{i}" for i in range(len(fields))]
        rows = st.fixed_dictionaries(dict(zip(names, (values for _, values in fields), strict=True)))
        return pa.struct([(name, kind) for name, (kind, _) in zip(names, fields, strict=True)]), st.none() | rows
    kind, values = draw(kinds(depth=depth - 1))
    if form == "list":
        return pa.list_(kind), st.none() | st.lists(values, max_size=3)
    return pa.map_(pa.string(), kind), st.none() | st.lists(st.tuples(TEXTS, values), max_size=3)


@st.composite
def slices(draw: st.DrawFn, array: pa.Array) -> pa.Array | pa.ChunkedArray:
    """A slice of an array, or chunks of slices of it, or no chunk."""

    def cut() -> pa.Array:
        start = draw(st.integers(0, len(array)))
        return array.slice(start, draw(st.integers(0, len(array) - start)))

    count = draw(st.integers(-1, 3))
    return cut() if count < 0 else pa.chunked_array([cut() for _ in range(count)], type=array.type)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def equal(found: pa.Array, expected: pa.Array) -> bool:
    found.validate(full=True)
    assert (found.type, len(found), found.null_count) == (expected.type, len(expected), expected.null_count)
    if pa.types.is_temporal(found.type):
        number = pa.int32() if found.type.bit_width == 32 else pa.int64()
        found, expected = found.view(number), expected.view(number)
    return repr(found.to_pylist()) == repr(expected.to_pylist())


@given(st.data())
def test_numpys_numbers_become_the_arrow_array_that_pyarrow_makes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NUMBERS)))
    values = np.array(data.draw(st.lists(NUMBERS[kind], max_size=40)), kind.to_pandas_dtype())
    values = values[:: data.draw(st.sampled_from([1, 2, -1]))]
    nulls = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), np.bool_)
    assert equal(to_arrow(values), pa.array(values))
    assert equal(to_arrow(values, nulls=nulls), pa.array(values, mask=nulls))


CASTS = [*NUMBERS, pa.date32(), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.string()]


@given(st.data())
def test_a_type_that_cannot_hold_numpys_numbers_is_refused_where_pyarrow_refuses_it(data: st.DataObject) -> None:
    kind, wanted = data.draw(st.sampled_from(list(NUMBERS))), data.draw(st.sampled_from(CASTS))
    values = np.array(data.draw(st.lists(NUMBERS[kind], min_size=1, max_size=5)), kind.to_pandas_dtype())
    nulls = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), np.bool_)
    try:
        expected = pa.array(values, mask=nulls).cast(wanted)
    except pa.ArrowException as error:
        with pytest.raises(type(error)):
            to_arrow(values, wanted, nulls=nulls)
    else:
        assert equal(to_arrow(values, wanted, nulls=nulls), expected)


@given(st.data())
def test_arrows_numbers_become_the_numpy_array_that_pyarrow_makes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NUMBERS)))
    whole = pa.array(data.draw(st.lists(NUMBERS[kind], max_size=40)), kind)
    array = data.draw(slices(whole))
    expected = array.to_numpy(zero_copy_only=False).astype(kind.to_pandas_dtype())
    assert same(to_numpy(array), expected)
    assert not to_numpy(array).flags.writeable


@given(st.data())
def test_what_stands_for_null_is_given_and_null_is_refused_otherwise(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NUMBERS)))
    whole = pa.array(data.draw(st.lists(st.none() | NUMBERS[kind], max_size=40)), kind)
    array, null = data.draw(slices(whole)), data.draw(NUMBERS[kind])
    expected = [null if value is None else value for value in array.to_pylist()]
    assert same(to_numpy(array, null=null), np.array(expected, kind.to_pandas_dtype()))
    assert equal(fill_null(array, null), pa.array(expected, kind))
    assert find_nulls(array).tolist() == [value is None for value in array.to_pylist()]
    if array.null_count:
        with pytest.raises(pa.ArrowInvalid, match="values are null"):
            to_numpy(array)


@pytest.mark.parametrize("null", [300, 0.5, math.nan])
def test_a_stand_in_that_the_type_cannot_hold_is_refused(null: float) -> None:
    with pytest.raises(pa.ArrowInvalid, match="cannot stand for null"):
        to_numpy(pa.array([1, None], pa.int8()), null=null)


def test_numbers_without_null_are_shared_and_not_copied() -> None:
    values = np.arange(10)
    array = to_arrow(values)
    assert np.shares_memory(values, to_numpy(array[3:7]))
    assert to_numpy(array[3:7]).tolist() == [3, 4, 5, 6]
    assert to_numpy(pa.chunked_array([array])).base is not None
    values[3] = 90
    assert array[3].as_py() == 90


@given(st.data())
def test_pythons_values_become_the_arrow_array_that_pyarrow_makes(data: st.DataObject) -> None:
    kind, strategy = data.draw(kinds())
    values = data.draw(st.lists(strategy, max_size=6))
    assert equal(from_values(values, kind), pa.array(values, kind))
    for value in values[:1]:
        assert repr(scalar(value, kind).as_py()) == repr(pa.scalar(value, kind).as_py())


@given(st.data())
def test_arrows_values_become_pythons_as_pyarrow_makes_them(data: st.DataObject) -> None:
    kind, strategy = data.draw(kinds())
    array = data.draw(slices(pa.array(data.draw(st.lists(strategy, max_size=6)), kind)))
    assert repr(to_values(array)) == repr(array.to_pylist())
    assert equal(combine(array), pa.array(array.to_pylist(), kind))
    table = pa.table({"a": array, "b": array})
    assert repr(to_rows(table)) == repr(table.to_pylist())


@given(st.data())
def test_the_places_of_texts_are_those_of_the_slice(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]))
    array = combine(data.draw(slices(pa.array(data.draw(st.lists(st.none() | TEXTS, max_size=9)), kind))))
    places, content = binary_places(array)
    found = [content[start:end].tobytes() for start, end in pairwise(places)]
    assert found == [value or b"" for value in array.cast(pa.large_binary()).to_pylist()]


WRONG = [
    (True, pa.int64()),
    (1.5, pa.int64()),
    ("a", pa.int64()),
    (2**31, pa.int32()),
    (2**63, pa.int64()),
    (-1, pa.uint8()),
    (1, pa.bool_()),
    ("a", pa.float64()),
    (2**60 + 1, pa.float64()),
    (5, pa.string()),
    (b"\xff", pa.string()),
    ("\ud800", pa.string()),
    (5, pa.binary()),
    (b"ab", pa.binary(3)),
    (Decimal("1.255"), pa.decimal128(5, 2)),
    (Decimal(1000), pa.decimal128(5, 2)),
    (Decimal("NaN"), pa.decimal128(5, 2)),
    (1.5, pa.decimal128(5, 2)),
    (dt.datetime(9020, 1, 1), pa.timestamp("ns")),
    (dt.date(2020, 1, 1), pa.timestamp("us")),
    ("2020-01-01", pa.date32()),
    ([(None, 1)], pa.map_(pa.string(), pa.int64())),
    (5, pa.list_(pa.int64())),
    (["a"], pa.list_(pa.int64())),
    ("abc", pa.struct([("a", pa.int64())])),
    (0, pa.null()),
]


@pytest.mark.parametrize(("value", "kind"), WRONG)
def test_a_value_that_is_not_of_the_type_is_refused_in_one_line(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid) as caught:
        from_values([None, value], kind)
    assert str(kind).split("<", maxsplit=1)[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2)), np.array(["a"]), np.array([None]), np.array([1], ">i8"), np.array([1], "M8[us]")]
)
def test_arrays_of_other_values_are_refused(values: np.ndarray) -> None:
    with pytest.raises(pa.ArrowInvalid, match=r"were given|was given"):
        to_arrow(values)


@pytest.mark.parametrize("nulls", [np.array([True]), np.array([1, 0]), np.zeros((2, 1), np.bool_)])
def test_a_mask_that_does_not_fit_is_refused(nulls: np.ndarray) -> None:
    with pytest.raises(pa.ArrowInvalid, match="mask"):
        to_arrow(np.arange(2), nulls=nulls)


@pytest.mark.parametrize("kind", [pa.string(), pa.date32(), pa.timestamp("us"), pa.list_(pa.int8())])
def test_only_numbers_and_booleans_become_numpys(kind: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid, match="expected numbers or booleans"):
        to_numpy(pa.nulls(2, kind), null=0)


def test_rows_become_the_table_that_pyarrow_makes_also_without_a_row() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.list_(pa.string()))], {"x": "y"})
    rows: list[dict[str, Any]] = [{"a": 1, "b": ["x", None]}, {"a": 2, "z": 5}]
    for some in (rows, []):
        found = from_rows(some, schema)
        assert found.schema.equals(schema, check_metadata=True)
        assert found.equals(pa.Table.from_pylist(some, schema))
    assert empty_table(schema).equals(schema.empty_table())
    assert empty_table(schema).schema.equals(schema, check_metadata=True)
