"""What Arrow's arrays are as NumPy's: their values, their nulls, and no copy where there is no null."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.answers.arrays import binary_places, combine_chunks, to_numpy

WHOLE = {kind: np.iinfo(kind.to_pandas_dtype()) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
WHOLE |= {kind: np.iinfo(kind.to_pandas_dtype()) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())}
NUMBERS = {kind: st.integers(info.min, info.max) for kind, info in WHOLE.items()}
NUMBERS |= {pa.float32(): st.floats(width=32), pa.float64(): st.floats(), pa.bool_(): st.booleans()}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)


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


@given(st.data())
def test_arrows_numbers_become_the_numpy_array_that_pyarrow_makes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NUMBERS)))
    whole = pa.array(data.draw(st.lists(NUMBERS[kind], max_size=40)), kind)
    array = data.draw(slices(whole))
    expected = array.to_numpy(zero_copy_only=False).astype(kind.to_pandas_dtype())
    assert same(to_numpy(array), expected)


@given(st.data())
def test_what_stands_for_null_is_given_and_null_is_refused_otherwise(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NUMBERS)))
    whole = pa.array(data.draw(st.lists(st.none() | NUMBERS[kind], max_size=40)), kind)
    array, null = data.draw(slices(whole)), data.draw(NUMBERS[kind])
    expected = [null if value is None else value for value in array.to_pylist()]
    assert same(to_numpy(array, null=null), np.array(expected, kind.to_pandas_dtype()))
    if array.null_count:
        with pytest.raises(pa.ArrowInvalid, match="values are null"):
            to_numpy(array)


def test_numbers_without_null_are_shared_and_not_copied() -> None:
    values = np.arange(10)
    array = pa.array(values)
    for some in (array[3:7], pa.chunked_array([array[3:7]])):
        found = to_numpy(some)
        assert np.shares_memory(values, found)
        assert not found.flags.writeable
        assert found.tolist() == [3, 4, 5, 6]


@given(st.data())
def test_chunks_become_the_array_of_their_values(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([pa.string(), pa.list_(pa.string()), pa.uuid()]))
    values = {pa.string(): TEXTS, pa.list_(pa.string()): st.lists(TEXTS), pa.uuid(): st.uuids()}[kind]
    array = data.draw(slices(pa.array(data.draw(st.lists(st.none() | values, max_size=6)), kind)))
    found = combine_chunks(array)
    assert isinstance(found, pa.Array)
    assert (found.type, found.to_pylist()) == (kind, array.to_pylist())


@given(st.data())
def test_the_places_of_texts_are_those_of_the_slice(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]))
    array = combine_chunks(data.draw(slices(pa.array(data.draw(st.lists(st.none() | TEXTS, max_size=9)), kind))))
    places, content = binary_places(array)
    found = [content[start:end].tobytes() for start, end in pairwise(places)]
    assert found == [value or b"" for value in array.cast(pa.large_binary()).to_pylist()]
