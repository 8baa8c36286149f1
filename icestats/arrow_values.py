"""Python's values as Arrow's and back, by buffers: pyarrow's own ways import pandas (apache/arrow#34994)."""

from __future__ import annotations

import datetime as dt
import uuid
from array import array as packed
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from icestats.arrays import combine, pack_bits, to_arrow
from icestats.value_numbers import time_number, unscaled_number

Values = Sequence[Any]

_INTEGERS: dict[Any, str] = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
}
_FLOATS: dict[Any, str] = {pa.float32(): "f", pa.float64(): "d"}
_EXACT = 2**53


def from_values(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """Return Python's values as an Arrow array of a type, as `pyarrow.array(values, kind)` does.

    Parameters
    ----------
    values : iterable
        None is null. Whole numbers, floats, bool, str, bytes, uuid.UUID, decimal.Decimal, datetime's values (or what
        they count), and for nested types dicts, sequences and sequences of pairs.
    kind : pyarrow.DataType
        Any type that a table of Iceberg's metadata has.

    Returns
    -------
    pyarrow.Array
        Of the type `kind`.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value of another type, or one that the type cannot hold. Stricter than `pyarrow.array`: a float is no whole
        number, bytes are no text and text is no bytes.
    pyarrow.ArrowNotImplementedError
        A type that is not built here.

    Examples
    --------
    >>> from_values([1, None], pa.int32()).type
    DataType(int32)
    >>> from_values([{"a": "x"}, None], pa.struct([("a", pa.string())])).to_pylist()
    [{'a': 'x'}, None]
    """
    items = values if isinstance(values, list) else list(values)
    try:
        return _build(items, kind)
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
        if isinstance(error, pa.ArrowException):
            raise
        raise pa.ArrowInvalid(f"values that do not fit the type {kind}: {error}") from error


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return one of Python's values as an Arrow scalar of a type, as `pyarrow.scalar(value, kind)` does.

    Raises
    ------
    pyarrow.ArrowInvalid
        As `from_values`.

    Examples
    --------
    >>> scalar("data", pa.string()).as_py()
    'data'
    """
    return from_values([value], kind)[0]


def from_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table of a schema, as `pyarrow.Table.from_pylist` does: a column that a row lacks is null.

    Raises
    ------
    pyarrow.ArrowInvalid
        As `from_values`.
    """
    found = list(rows)
    arrays = [from_values([row.get(field.name) for row in found], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return an Arrow array as Python's values, as `to_pylist` does, timestamps of a zone and structs of them too.

    Timestamps of nanoseconds alone are left to pyarrow, which makes pandas' of them.
    """
    kind = array.type
    if kinds.is_struct(kind) and kind.num_fields:
        whole = combine(array)
        names, there = [field.name for field in kind], whole.is_valid().to_pylist()
        rows = zip(*(to_values(column) for column in whole.flatten()), strict=True)
        return [dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, there, strict=True)]
    if kinds.is_timestamp(kind) and kind.tz is not None and kind.unit != "ns":
        zone = ZoneInfo(kind.tz)
        plain = array.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.timestamp(kind.unit)).to_pylist()
        return [None if v is None else v.replace(tzinfo=dt.UTC).astimezone(zone) for v in plain]
    return cast(list[Any], array.to_pylist())


def _build(values: list[Any], kind: pa.DataType) -> pa.Array:
    for holds, build in _BUILDERS:
        if holds(kind):
            return build(values, kind)
    raise pa.ArrowNotImplementedError(f"values of the type {kind} are not built from Python's")


def _build_nulls(values: list[Any], kind: pa.DataType) -> pa.Array:
    if any(value is not None for value in values):
        raise TypeError("expected None alone")
    return pa.nulls(len(values), kind)


def _build_booleans(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (bool, np.bool_))
    return _from_buffers(kind, values, _bits(value is not None and bool(value) for value in values))


def _build_integers(values: list[Any], kind: pa.DataType) -> pa.Array:
    _refuse(values, (bool, np.bool_))
    return _from_buffers(kind, values, pa.py_buffer(packed(_INTEGERS[kind], _filled(values, 0))))


def _build_floats(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (int, float, np.integer, np.floating))
    for value in values:
        if isinstance(value, int) and abs(value) > _EXACT:
            raise ValueError(f"{value} has no exact floating point number")
    return _from_buffers(kind, values, pa.py_buffer(packed(_FLOATS[kind], _filled(values, 0.0))))


def _build_texts(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, str)
    filled = _filled(values, "")
    text = "".join(filled)
    if text.isascii():
        return _from_buffers(kind, values, _offsets(filled), pa.py_buffer(text.encode()))
    encoded = [value.encode() for value in filled]
    return _from_buffers(kind, values, _offsets(encoded), pa.py_buffer(b"".join(encoded)))


def _build_binaries(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (bytes, bytearray, memoryview))
    filled = [bytes(value) for value in _filled(values, b"")]
    return _from_buffers(kind, values, _offsets(filled), pa.py_buffer(b"".join(filled)))


def _build_fixed(values: list[Any], kind: pa.DataType) -> pa.Array:
    width = kind.byte_width
    plain = [value.bytes if isinstance(value, uuid.UUID) else value for value in values]
    _check(plain, (bytes, bytearray, memoryview))
    filled = _filled(plain, bytes(width))
    if any(len(value) != width for value in filled):
        raise ValueError(f"expected {width} bytes each")
    return _from_buffers(kind, values, pa.py_buffer(b"".join(filled)))


def _build_decimals(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (int, Decimal))
    words = (unscaled_number(value, kind.precision, kind.scale) for value in _filled(values, 0))
    content = b"".join(word.to_bytes(kind.byte_width, "little", signed=True) for word in words)
    return _from_buffers(kind, values, pa.py_buffer(content))


def _build_times(values: list[Any], kind: pa.DataType) -> pa.Array:
    unit = None if kinds.is_date32(kind) else kind.unit
    numbers = [None if value is None else time_number(value, unit) for value in values]
    return _build_integers(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def _build_lists(values: list[Any], kind: pa.DataType) -> pa.Array:
    _refuse(values, (str, bytes, Mapping))
    lists = [() if value is None else list(value) for value in values]
    items = _build([item for items in lists for item in items], kind.value_type)
    return _nested(kind, values, lists, items)


def _build_maps(values: list[Any], kind: pa.DataType) -> pa.Array:
    pairs = [list(value.items() if isinstance(value, Mapping) else value) for value in _filled(values, ())]
    keys = [key for value in pairs for key, _ in value]
    if None in keys:
        raise ValueError("a map has a null key")
    columns = [_build(keys, kind.key_type), _build([item for value in pairs for _, item in value], kind.item_type)]
    entries = pa.StructArray.from_arrays(columns, fields=[kind.key_field, kind.item_field])
    return _nested(kind, values, pairs, entries)


def _build_structs(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (Mapping, tuple))
    if any(isinstance(value, tuple) and len(value) != kind.num_fields for value in values):
        raise ValueError(f"expected {kind.num_fields} values each")
    columns = [_build([_member(value, field.name, i) for value in values], field.type) for i, field in enumerate(kind)]
    return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=columns)


def _member(value: Any, name: str, place: int) -> Any:
    if value is None:
        return None
    return value[place] if isinstance(value, tuple) else value.get(name)


def _build_extension(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, _build(values, kind.storage_type))


def _nested(kind: pa.DataType, values: Values, items: Values, children: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [_validity(values), _offsets(items)], children=[children])


def _offsets(values: Values) -> pa.Buffer:
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    return to_arrow(ends, pa.int32()).buffers()[1]


def _from_buffers(kind: pa.DataType, values: Values, *buffers: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [_validity(values), *buffers])


def _validity(values: Values) -> pa.Buffer | None:
    return _bits(value is not None for value in values) if None in values else None


def _bits(flags: Iterable[bool]) -> pa.Buffer:
    return pack_bits(np.fromiter(flags, np.bool_))


def _filled(values: list[Any], filler: Any) -> list[Any]:
    return [filler if value is None else value for value in values] if None in values else values


def _check(values: Values, expected: Any) -> None:
    for found in set(map(type, values)) - {type(None)}:
        if not issubclass(found, expected):
            raise TypeError(f"a value of type {found.__name__} was given")


def _refuse(values: Values, refused: tuple[type, ...]) -> None:
    for found in set(map(type, values)):
        if issubclass(found, refused):
            raise TypeError(f"a value of type {found.__name__} was given")


_BUILDERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[list[Any], pa.DataType], pa.Array]], ...] = (
    (_INTEGERS.__contains__, _build_integers),
    (_FLOATS.__contains__, _build_floats),
    (kinds.is_boolean, _build_booleans),
    (kinds.is_string, _build_texts),
    (kinds.is_binary, _build_binaries),
    (kinds.is_fixed_size_binary, _build_fixed),
    (kinds.is_decimal128, _build_decimals),
    (lambda kind: kinds.is_timestamp(kind) or kinds.is_time(kind) or kinds.is_date32(kind), _build_times),
    (kinds.is_list, _build_lists),
    (kinds.is_map, _build_maps),
    (kinds.is_struct, _build_structs),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), _build_extension),
    (kinds.is_null, _build_nulls),
)
