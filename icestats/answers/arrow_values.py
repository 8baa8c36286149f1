"""Python's values as Arrow's and back, by nanoarrow: pyarrow's own way imports pandas (apache/arrow#34994)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from icestats.answers.arrays import combine, to_arrow

_EXACT = 2**53
_FLAGS = (bool, np.bool_)
_BYTES = (bytes, bytearray, memoryview)


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
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        if isinstance(error, pa.ArrowNotImplementedError):
            raise
        what = str(error).rpartition("\n")[2].strip()
        raise pa.ArrowInvalid(f"values that do not fit the type {kind}: {what}") from error


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


def is_equal(array: pa.Array | pa.ChunkedArray, value: Any) -> pa.Array | pa.ChunkedArray:
    """Say of each value of an Arrow array whether it is equal to one of Python's, as `pyarrow.compute.equal` does.

    Raises
    ------
    pyarrow.ArrowInvalid
        As `from_values`.

    Examples
    --------
    >>> is_equal(from_values(["data", None], pa.string()), "data").to_pylist()
    [True, None]
    """
    return pc.equal(array, scalar(value, array.type))


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


def from_columns(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return columns of Arrow's, NumPy's or Python's values as a table of a schema, as `pyarrow.table` does.

    Raises
    ------
    KeyError
        A column is missing.
    pyarrow.ArrowInvalid
        As `from_values` and `to_arrow`.
    """
    return pa.Table.from_arrays([_column(columns[field.name], field.type) for field in schema], schema=schema)


def to_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a table's rows as Python's values, as `to_pylist` does; timestamps as `to_values`."""
    columns = [to_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


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


def _column(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type == kind else values.cast(kind)
    return to_arrow(values, kind) if isinstance(values, np.ndarray) else from_values(values, kind)


def _build(values: list[Any], kind: pa.DataType) -> pa.Array:
    for holds, build in _BUILDERS:
        if holds(kind):
            return build(values, kind)
    raise pa.ArrowNotImplementedError(f"values of the type {kind} are not built from Python's")


def _build_plain(values: list[Any], kind: pa.DataType) -> pa.Array:
    from nanoarrow import c_array

    # An array of another library imports nothing.
    return pa.array(c_array(values, kind))  # noqa: TID251


def _build_nulls(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, ())
    return pa.nulls(len(values), kind)


def _build_booleans(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, _FLAGS)
    return _build_plain(values, kind)


def _build_integers(values: list[Any], kind: pa.DataType) -> pa.Array:
    _refuse(values, _FLAGS)
    return _build_plain(values, kind)


def _build_floats(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (int, float, np.integer, np.floating))
    for value in values:
        if isinstance(value, int) and abs(value) > _EXACT:
            raise ValueError(f"{value} has no exact floating point number")
    return _build_plain(values, kind)


def _build_fixed(values: list[Any], kind: pa.DataType) -> pa.Array:
    plain = [value.bytes if isinstance(value, uuid.UUID) else value for value in values]
    _check(plain, _BYTES)
    return _build_plain(plain, pa.binary()).cast(kind)


def _build_decimals(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (int, Decimal))
    return _build_plain(_texts(values, str), pa.string()).cast(kind)


def _build_times(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kinds.is_date32(kind):
        days = [value.date() if isinstance(value, dt.datetime) else value for value in values]
        if any(isinstance(day, dt.date) for day in days):
            _check(days, dt.date)
            return _build_plain(_texts(days, dt.date.isoformat), pa.string()).cast(kind)
    elif any(isinstance(value, dt.datetime) for value in values):
        _check(values, dt.datetime)
        moments = [value and (value if value.tzinfo else value.replace(tzinfo=dt.UTC)) for value in values]
        texts = _build_plain(_texts(moments, dt.datetime.isoformat), pa.string())
        return texts.cast(pa.timestamp("us", "UTC")).cast(kind)
    elif any(isinstance(value, dt.time) for value in values):
        _check(values, dt.time)
        day = [value and dt.datetime.combine(dt.date(1970, 1, 1), value) for value in values]
        return _build_times(day, pa.timestamp("us")).cast(kind)
    return _build_integers(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def _build_lists(values: list[Any], kind: pa.DataType) -> pa.Array:
    _refuse(values, (str, bytes, Mapping))
    lists = [() if value is None else list(value) for value in values]
    items = _build([item for items in lists for item in items], kind.value_type)
    return pa.ListArray.from_arrays(_offsets(lists), items, type=kind, mask=_nulls(values))


def _build_maps(values: list[Any], kind: pa.DataType) -> pa.Array:
    pairs = [list(value.items() if isinstance(value, Mapping) else value or ()) for value in values]
    keys = [key for value in pairs for key, _ in value]
    if None in keys:
        raise ValueError("a map has a null key")
    columns = [_build(keys, kind.key_type), _build([item for value in pairs for _, item in value], kind.item_type)]
    return pa.MapArray.from_arrays(_offsets(pairs), *columns, type=kind, mask=_nulls(values))


def _build_structs(values: list[Any], kind: pa.DataType) -> pa.Array:
    _check(values, (Mapping, tuple))
    if any(isinstance(value, tuple) and len(value) != kind.num_fields for value in values):
        raise ValueError(f"expected {kind.num_fields} values each")
    names = [field.name for field in kind]
    rows = [dict(zip(names, value, strict=True)) if isinstance(value, tuple) else value or {} for value in values]
    columns = [_build([row.get(field.name) for row in rows], field.type) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_nulls(values))


def _build_extension(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, _build(values, kind.storage_type))


def _texts(values: list[Any], text: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else text(value) for value in values]


def _offsets(values: Sequence[Sequence[Any]]) -> pa.Array:
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return to_arrow(ends, pa.int32())


def _nulls(values: list[Any]) -> pa.Array | None:
    return to_arrow(np.array([value is None for value in values], np.bool_)) if None in values else None


def _check(values: Iterable[Any], expected: Any) -> None:
    for found in set(map(type, values)) - {type(None)}:
        if not issubclass(found, expected):
            raise TypeError(f"a value of type {found.__name__} was given")


def _refuse(values: Iterable[Any], refused: tuple[type, ...]) -> None:
    for found in set(map(type, values)):
        if issubclass(found, refused):
            raise TypeError(f"a value of type {found.__name__} was given")


_BUILDERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[list[Any], pa.DataType], pa.Array]], ...] = (
    (kinds.is_integer, _build_integers),
    (lambda kind: kind in (pa.float32(), pa.float64()), _build_floats),
    (kinds.is_boolean, _build_booleans),
    (lambda kind: kind in (pa.string(), pa.binary()), _build_plain),
    (kinds.is_fixed_size_binary, _build_fixed),
    (kinds.is_decimal128, _build_decimals),
    (lambda kind: kinds.is_timestamp(kind) or kinds.is_time(kind) or kinds.is_date32(kind), _build_times),
    (kinds.is_list, _build_lists),
    (kinds.is_map, _build_maps),
    (kinds.is_struct, _build_structs),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), _build_extension),
    (kinds.is_null, _build_nulls),
)
