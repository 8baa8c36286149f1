"""Values as places on a line, so that rows can be taken to lie evenly between two bounds; and places as values again.

Numbers are their own places. Bytes are digits behind what all of them begin with, of the kinds of bytes that are there:
between "user-10" and "user-30" lies "user-20", as no name has a byte between "9" and ":".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.iceberg.value_order import Floats, Keys, keys_of_reals, reals_of_keys

_WIDTH = 16
"""Bytes behind the common beginning that count; and those of a uuid."""
_LIMIT = np.finfo(np.float64).max / 4
_KINDS = (b"0123456789", b"abcdef", b"ghijklmnopqrstuvwxyz", b"ABCDEF", b"GHIJKLMNOPQRSTUVWXYZ", bytes(range(128, 256)))
"""Where one of these is, the others may be; where a control character is, every byte."""

_SIGN = 1 << 127

Places = tuple[Floats, Callable[[Floats], Keys]]
_Line = tuple[Floats, Callable[[Floats], pa.Array]]
"""The places of values, which are in ascending order; and what makes a value for a place that none of them has."""


def find_places(keys: Keys, type_text: str) -> Places:
    """Return the place of each key, all of which are known, and what gives the key at a place.

    Examples
    --------
    >>> keys = Keys(pa.array([b"user-10", b"user-30"]), np.ones(2, np.bool_))
    >>> (low, high), back = find_places(keys, "string")
    >>> back(np.array([low, (low + high) / 2])).values.to_pylist()
    [b'user-10', b'user-20']
    """
    if not isinstance(keys.values, np.ndarray):
        measures = {"decimal": _measure_decimals, "uuid": _measure_uuids}
        return _find_sorted_places(keys.values, measures.get(type_text.partition("(")[0], _measure_bytes))
    if type_text in ("float", "double"):
        return np.clip(reals_of_keys(keys.values), -_LIMIT, _LIMIT), lambda places: _known(keys_of_reals(places))
    return keys.values.astype(np.float64), lambda places: _known(_to_integers(places))


def _known(values: Any) -> Keys:
    return Keys(values, np.ones(len(values), np.bool_))


def _to_integers(places: Floats) -> npt.NDArray[np.int64]:
    # As a double, the greatest of 64 bits is one too many.
    most, is_most = np.iinfo(np.int64).max, places >= 2.0**63
    return np.where(is_most, most, np.rint(np.where(is_most, 0.0, places)).astype(np.int64))


def _find_sorted_places(values: pa.Array, measure: Callable[[pa.Array], _Line]) -> Places:
    encoded = values.cast(pa.binary()).dictionary_encode()
    order = to_numpy(pc.array_sort_indices(encoded.dictionary))
    known = encoded.dictionary.take(pa.array(order))
    line, make = measure(known)
    places = np.zeros(len(line))
    places[order] = line

    def back(asked: Floats) -> Keys:
        at = np.maximum(np.searchsorted(line, asked, "right") - 1, 0)
        rest = np.flatnonzero(line[at] != asked)
        at[rest] = len(known) + np.arange(len(rest))
        return _known(pa.concat_arrays([known, make(asked[rest])]).take(pa.array(at)))

    return places[to_numpy(encoded.indices)], back


def _measure_decimals(values: pa.Array) -> _Line:
    # Their keys are 16 bytes, the sign's bit turned over.
    numbers = [float(int.from_bytes(value, "big") - _SIGN) for value in values.to_pylist()]

    def make(places: Floats) -> pa.Array:
        found = (min(int(place), _SIGN - 1) + _SIGN for place in places.tolist())
        return pa.array([number.to_bytes(16, "big") for number in found], pa.binary())

    return np.array(numbers), make


def _measure_bytes(values: pa.Array) -> _Line:
    prefix = _find_prefix(values[0].as_py(), values[-1].as_py())
    rests = pc.binary_slice(values, len(prefix), len(prefix) + _WIDTH).to_pylist()
    columns = np.array(rests, f"S{_WIDTH}").view(np.uint8).reshape(-1, _WIDTH).T
    alphabets = [_find_alphabet(column) for column in columns]
    line, width, widths = np.zeros(len(values)), 1.0, []
    for column, alphabet in zip(columns[::-1], alphabets[::-1], strict=True):
        digits = np.zeros(256)
        digits[alphabet] = np.arange(len(alphabet))
        line += digits[column] * width
        widths.append(width)
        width *= len(alphabet)

    def make(places: Floats) -> pa.Array:
        rest, made = places, np.zeros((len(places), _WIDTH), np.uint8)
        for place, (alphabet, size) in enumerate(zip(alphabets, widths[::-1], strict=True)):
            digit = np.clip(rest // size, 0, len(alphabet) - 1).astype(np.int64)
            made[:, place], rest = alphabet[digit], rest - digit * size
        texts = made.reshape(-1).view(f"S{_WIDTH}").tolist()
        return pa.array([prefix + text for text in texts], pa.binary())

    return np.maximum.accumulate(line), make


def _measure_uuids(values: pa.Array) -> _Line:
    line, make = _measure_bytes(values)

    def make_whole(places: Floats) -> pa.Array:
        return pa.array([text[:_WIDTH].ljust(_WIDTH, b"\0") for text in make(places).to_pylist()], pa.binary())

    return line, make_whole


def _find_prefix(first: bytes, last: bytes) -> bytes:
    length = min(len(first), len(last))
    return first[: next((place for place in range(length) if first[place] != last[place]), length)]


def _find_alphabet(column: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bytes that may be at a place, in order; 0 also stands for the end."""
    found = {0, *np.unique(column).tolist()}
    if any(0 < byte < 32 for byte in found):
        return np.arange(256, dtype=np.uint8)
    return np.array(sorted(found.union(*(kind for kind in _KINDS if found.intersection(kind)))), np.uint8)
