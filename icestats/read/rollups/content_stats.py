"""What is known of the columns of groups, in the shape of `content_stats` of format version 4, and back.

A struct with one struct a column, whose bounds have the column's type. What a struct does not have is unknown. The spec
has no place for sizes on disk, nor for how many files lack a statistic: these are the kit's own optional fields.

    146               content_stats: struct, null for groups that have no column statistics
      B               the column, by its full name: struct; B is 10,000 + 200 x field id
        B + 1, B + 2  lower_bound, upper_bound: the column's type, null where unknown or without any value to bound
        B + 3         tight_bounds: false, since the bounds of files may be cut, and rows may have been deleted
        B + 4 to 6    value_count, null_value_count, nan_value_count: long, null where unknown
        O + 1         column_size: long, bytes on disk, null where unknown; O is 1,500,000,000 + B
        O + 2, O + 3  lower_bound_bytes, upper_bound_bytes: binary, single values that the column's type cannot hold
        O + 4         missing_file_count: long, how many live data files lack each of these statistics ...
        O + 5 to 10   ..._missing_file_count: long, ... and of those statistics that another number of files lacks

Source: Iceberg spec, "Content Stats" (format version 4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import binary_places, to_numpy
from icestats.answers.schemas import STATISTICS, SUMMED_STATISTICS
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import find_width, parse_type
from icestats.iceberg.value_order import widen_decimals
from icestats.read.rollups.stored_table import OWN_FIELDS, arrays_by_id, field_id_of, stored_field, stored_type
from icestats.stats.rollup_cells import KnownCells, has_column_statistic

CONTENT_STATS = 146
_BASE_IDS = range(10_000, 200_000_000)
_OFFSETS = {"lower_bound": 1, "upper_bound": 2, "value_count": 4, "null_value_count": 5, "nan_value_count": 6}
_TIGHT_BOUNDS = 3
_BYTES = {"lower_bound": OWN_FIELDS + 2, "upper_bound": OWN_FIELDS + 3}
_OFFSETS |= {"column_size": OWN_FIELDS + 1}
_MISSING = OWN_FIELDS + 4
_MISSING_OF = {statistic: OWN_FIELDS + 5 + place for place, statistic in enumerate(STATISTICS)}
_DECODED = {*_OFFSETS.values(), *_BYTES.values(), _MISSING, *_MISSING_OF.values()}

_Words = npt.NDArray[np.int64]


def content_stats_id(column: Field) -> int | None:
    """Return the id of a column's struct; None where the spec has none for a field id as large as this.

    Examples
    --------
    >>> content_stats_id(Field(3, "price", "double", False, True))
    10600
    """
    base = 10_000 + 200 * column.field_id
    return base if base in _BASE_IDS else None


def encode_content_stats(known: KnownCells, columns: Sequence[Field], present: npt.NDArray[np.bool_]) -> pa.StructArray:
    """Build `content_stats`, one row a group.

    Parameters
    ----------
    known : KnownCells
        Every column, for each group in turn.
    columns : sequence of Field
        The columns of the cells; those without a `content_stats_id` are left out.
    present : numpy.ndarray of bool
        Which groups have column statistics; those of others are null.
    """
    structs, fields = [], []
    for place, column in enumerate(columns):
        base = content_stats_id(column)
        if base is not None:
            cells = np.arange(len(present)) * len(columns) + place
            struct = _encode_column(known, column, base, cells, present)
            structs.append(struct)
            fields.append(stored_field(column.name, struct.type, base))
    return pa.StructArray.from_arrays(structs, fields=fields, mask=pa.array(~present))


def _encode_column(
    known: KnownCells, column: Field, base: int, cells: _Words, present: npt.NDArray[np.bool_]
) -> pa.StructArray:
    arrays: dict[str, tuple[int, pa.Array]] = {}
    for statistic in STATISTICS:
        values = known.values[statistic].take(pa.array(cells))
        if statistic in _BYTES:
            typed, rest = _encode_bounds(values, column.type)
            if rest.null_count < len(rest):
                arrays[f"{statistic}_bytes"] = _BYTES[statistic], rest
            if typed is None:
                continue
            values = typed
        if has_column_statistic(column, statistic):
            arrays[statistic] = _OFFSETS[statistic], values
    arrays["tight_bounds"] = _TIGHT_BOUNDS, pa.array(np.zeros(len(cells), np.bool_))
    common = np.where(present, known.missing["value_count"][cells], 0)
    if common.any():
        arrays["missing_file_count"] = _MISSING, pa.array(common)
    for statistic in STATISTICS:
        missing = np.where(present, known.missing[statistic][cells], 0)
        if has_column_statistic(column, statistic) and (missing != common).any():
            arrays[f"{statistic}_missing_file_count"] = _MISSING_OF[statistic], pa.array(missing)
    stored = sorted(arrays.items(), key=lambda item: item[1][0])
    fields = [stored_field(name, array.type, base + offset) for name, (offset, array) in stored]
    return pa.StructArray.from_arrays([array for _, (_, array) in stored], fields=fields)


def content_stats_paths(stats: pa.Field, columns: Sequence[Field]) -> list[str]:
    """Return the names, as `stored_table.read_parquet` takes them, of the fields that some columns are decoded from."""
    wanted = {content_stats_id(column) for column in columns}
    return [
        f"{stats.name}.{struct.name}.{field.name}"
        for struct in stats.type
        if (base := field_id_of(struct)) in wanted and base is not None
        for field in struct.type
        if (field_id_of(field) or 0) - base in _DECODED
    ]


def decode_content_stats(stats: pa.StructArray, columns: Sequence[Field], groups: _Words) -> KnownCells:
    """Return what `content_stats` says of some columns of some groups.

    Parameters
    ----------
    stats : pyarrow.StructArray
        With a struct for each of `columns`.
    columns : sequence of Field
        The wanted columns, with the types that they had when the struct was made.
    groups : numpy.ndarray of int64
        The wanted rows of `stats`.

    Raises
    ------
    KeyError, ValueError, pyarrow.ArrowInvalid
        A column has no struct, or fields of another type.
    """
    structs = _Structs(stats, columns, groups)
    values = {name: structs.collect(structs.find(_OFFSETS[name]), pa.int64()) for name in SUMMED_STATISTICS}
    values |= {name: structs.collect_bounds(name) for name in _BYTES}
    common = structs.find(_MISSING)
    of_all, missing = to_numpy(structs.collect(common, pa.int64()), null=0), {}
    for name in STATISTICS:
        own = structs.find(_MISSING_OF[name])
        missing[name] = of_all
        if any(array is not None for array in own):
            counts = [c if array is None else array for array, c in zip(own, common, strict=True)]
            missing[name] = to_numpy(structs.collect(counts, pa.int64()), null=0)
    return KnownCells(values, missing)


class _Structs:
    """The structs of some columns, of which some groups are wanted."""

    def __init__(self, stats: pa.StructArray, columns: Sequence[Field], groups: _Words) -> None:
        by_id = arrays_by_id(stats)
        self._fields = [(base, arrays_by_id(by_id[base])) for base in map(content_stats_id, columns) if base]
        self._columns, self._groups, self._length = columns, groups, len(stats)

    def find(self, offset: int) -> list[pa.Array | None]:
        """Return a field of each struct, None where it does not have it."""
        return [fields.get(base + offset) for base, fields in self._fields]

    def collect(self, arrays: Sequence[pa.Array | None], kind: pa.DataType) -> pa.Array:
        """Return the cells of an array for each column."""
        return self._take(self._concat(arrays, kind), np.arange(len(self._columns)))

    def collect_bounds(self, statistic: str) -> pa.BinaryArray:
        """Return the cells of bounds, as single values; those of all columns of a type are converted at once."""
        by_type: dict[str, list[int]] = {}
        for place, column in enumerate(self._columns):
            by_type.setdefault(column.type, []).append(place)
        found, rest = self.find(_OFFSETS[statistic]), self.find(_BYTES[statistic])
        parts = [self._single_values([found[place] for place in places], kind) for kind, places in by_type.items()]
        positions = np.argsort([place for places in by_type.values() for place in places])
        values = self._take(pa.concat_arrays(parts), positions)
        if all(array is None for array in rest):
            return values
        for column, array in zip(self._columns, rest, strict=True):
            if array is not None and find_width(column.type) is not None and not column.type.startswith("fixed"):
                raise ValueError(f"column {column.name!r} has a bound that is no value of type {column.type}")
        return pc.coalesce(values, self.collect(rest, pa.binary()))

    def _single_values(self, arrays: Sequence[pa.Array | None], type_text: str) -> pa.BinaryArray:
        kind = stored_type(type_text)
        if kind is None:
            return self._concat(arrays, pa.binary())
        return _to_single(self._concat(arrays, kind), type_text)

    def _concat(self, arrays: Sequence[pa.Array | None], kind: pa.DataType) -> pa.Array:
        nothing = pa.nulls(self._length, kind)
        for array in arrays:
            if array is not None and array.type != kind:
                raise ValueError(f"a statistic is of type {array.type}, expected {kind}")
        return pa.concat_arrays([nothing if array is None else array for array in arrays])

    def _take(self, whole: pa.Array, positions: _Words) -> pa.Array:
        """Return cells of `whole`, which has the columns at some positions, one behind the other."""
        return whole.take(pa.array((self._groups[:, None] + positions * self._length).ravel()))


def _encode_bounds(values: pa.BinaryArray, type_text: str) -> tuple[pa.Array | None, pa.BinaryArray]:
    """Return bounds as values of their type, if that has a typed form, and as bytes those that it cannot hold."""
    kind = stored_type(type_text)
    if kind is None:
        return None, values
    nothing = pa.scalar(None, pa.binary())
    if _fits(values, type_text, kind):
        return _to_typed(values, type_text, kind), pa.nulls(len(values), pa.binary())
    fits = pa.array([_fits(values[i : i + 1], type_text, kind) for i in range(len(values))])
    typed = _to_typed(pc.if_else(fits, values, nothing), type_text, kind)
    return typed, pc.if_else(fits, nothing, values)


def _fits(values: pa.BinaryArray, type_text: str, kind: pa.DataType) -> bool:
    """Whether all values come back as they are."""
    try:
        return bool(_to_single(_to_typed(values, type_text, kind), type_text).equals(values))
    except ValueError:
        return False


def _to_typed(values: pa.BinaryArray, type_text: str, kind: pa.DataType) -> pa.Array:
    """Return single values (spec, Appendix D) as values of the type's Arrow form.

    Raises
    ------
    ValueError
        One is no value of that type (pyarrow.ArrowInvalid is a ValueError).
    """
    name = parse_type(type_text).name
    if name == "decimal":
        return _decimals(values, kind)
    if name == "uuid":
        return pa.ExtensionArray.from_storage(kind, values.cast(kind.storage_type))
    if name == "boolean":
        return values.cast(pa.binary(1)).view(pa.uint8()).cast(kind)
    if name in ("string", "binary", "fixed"):
        return values.cast(kind)
    return values.cast(pa.binary(kind.bit_width // 8)).view(kind)


def _to_single(array: pa.Array, type_text: str) -> pa.BinaryArray:
    """Return values of a type as single values (spec, Appendix D)."""
    name = parse_type(type_text).name
    if name == "decimal":
        return _decimal_values(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if name == "boolean":
        array = array.cast(pa.uint8())
    if pa.types.is_primitive(array.type):
        array = array.view(pa.binary(array.type.bit_width // 8))
    return array.cast(pa.binary())


def _decimals(values: pa.BinaryArray, kind: pa.DataType) -> pa.Array:
    # Big endian and as short as can be, in single values; little endian and of 16 bytes, in Arrow.
    places, content = binary_places(values)
    lengths = np.diff(places)
    present = values.is_valid()
    filled = to_numpy(present)
    if ((lengths < 1) | (lengths > 16)).any(where=filled):
        raise ValueError("a decimal has 1 to 16 bytes")
    wide = widen_decimals(content, places[:-1], lengths)
    # Arrow takes -2^127, whose absolute value it does not know, for a value of any precision.
    if (wide[:, 0] == 0x80).any(where=filled):
        raise ValueError("a decimal has at most 38 digits")
    buffers = [_bits(present), pa.py_buffer(wide[:, ::-1].tobytes())]
    return pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(values), buffers).cast(kind)


def _decimal_values(array: pa.Array) -> pa.BinaryArray:
    words = np.frombuffer(array.buffers()[1] or b"", np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
    present = to_numpy(array.is_valid())
    wide = words.reshape(-1, 16)[present, ::-1]
    negative = wide >= 0x80
    # A byte of nothing but sign goes where the byte behind it has that sign too.
    idle = (wide[:, :-1] == np.where(negative[:, :1], 0xFF, 0)) & (negative[:, 1:] == negative[:, :1])
    kept = np.ones(wide.shape, np.bool_)
    kept[:, :-1] = ~np.logical_and.accumulate(idle, axis=1)
    lengths = np.zeros(len(array), np.int32)
    lengths[present] = kept.sum(axis=1)
    offsets = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
    buffers = [_bits(array.is_valid()), pa.py_buffer(offsets), pa.py_buffer(wide[kept])]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def _bits(flags: pa.BooleanArray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(to_numpy(flags), bitorder="little"))
