"""The truth beside estimates: live rows that satisfy a filter, counted by reading them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import add, mul
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_doubles
from icestats.answers.redaction import explained, safe_cause, safe_line
from icestats.answers.text import one_line
from icestats.errors import CallError, IcestatsError, UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.confined_io import UNREAD_SCHEMA
from icestats.iceberg.filters.predicates import find_predicates
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.iceberg.filters.value_sets import build_values
from icestats.iceberg.metadata import NAME_MAPPING, Field, Schema, Snapshot
from icestats.iceberg.storage import unreadable
from icestats.iceberg.types import parse_type, to_arrow_type
from icestats.scan.position_deletes import read_position_deletes
from icestats.scan.scan_job import gather
from icestats.scan.scan_plan import find_unreadable, open_scan
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.column_values import unify

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table import FileScanTask
    from pyiceberg.types import NestedField

_Digest = TypeVar("_Digest")
_PARTS = 64
"""At least so many parts of files are read one beside the other, where there are as many files."""
_MOST_FILES_TOGETHER = 16


def count_rows(source: Source, snapshot: Snapshot | None, schema: Schema, row_filter: RowFilter) -> int:
    """Count the live rows that satisfy a filter, in the files that it leaves; deletes are applied.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot or None
        The snapshot; None: no rows.
    schema : Schema
        The schema that the snapshot is read with.
    row_filter : RowFilter
        The filter.

    Raises
    ------
    UnsupportedError
        PyIceberg cannot read the files: equality deletes, ORC, values of a type that does not fit the schema.
    MetadataError
        A file is not there.
    """
    if snapshot is None:
        return 0
    scan = open_scan(source, snapshot, schema)
    with explained_reading(source):
        try:
            return _count(scan.select(*_columns([row_filter], scan.projection())), row_filter)
        except (TypeError, OverflowError):
            # PyIceberg compares null partition values of truncate with literals, and knows no day after 9999-12-31:
            # read without planning by the filter.
            return count_rows_of_many(source, snapshot, schema, [row_filter])[0]


def count_rows_of_many(
    source: Source, snapshot: Snapshot | None, schema: Schema, row_filters: Sequence[RowFilter]
) -> list[int]:
    """Count the live rows that satisfy each of some filters, reading their columns of the whole table once.

    Parameters
    ----------
    source, snapshot, schema
        As in `count_rows`.
    row_filters : sequence of RowFilter
        The filters.

    Raises
    ------
    UnsupportedError, MetadataError
        As in `count_rows`.
    """
    if snapshot is None or not row_filters:
        return [0] * len(row_filters)
    scan = open_scan(source, snapshot, schema)
    projection = scan.projection()
    conditions = [_build_condition(one, projection) for one in row_filters]
    counts = [0] * len(conditions)
    with explained_reading(source):
        chosen = scan.select(*_columns(row_filters, projection))

        def count(table: pa.Table) -> list[int]:
            return [table.filter(condition).num_rows for condition in conditions]

        for found in map_rows(chosen, list(chosen.plan_files()), count):
            counts = list(map(add, counts, found))
    return counts


def _excludes(expression: Any) -> bool:
    """Whether a filter excludes values: PyIceberg's residuals hold those for true of partitions that are null."""
    from pyiceberg import expressions as e

    if isinstance(expression, e.And | e.Or):
        return _excludes(expression.left) or _excludes(expression.right)
    return isinstance(expression, e.BoundNotEqualTo | e.BoundNotIn | e.BoundNotStartsWith | e.BoundNotNaN)


_REAL = frozenset({"float", "double"})
_NUMBERS = _REAL | {"int", "long", "decimal"}
_BYTES = frozenset({"binary", "fixed"})
_TIMES = (frozenset({"date", "timestamp", "timestamp_ns"}), frozenset({"timestamptz", "timestamptz_ns"}))
_DECIMAL_DIGITS = 76
"""Enough for any two decimals in a type of their own, and for a long beside one."""


def find_key_type(left: Field, right: Field) -> pa.DataType:
    """Return the Arrow type in which the keys of an equi-join are compared: the common one that SQL engines take.

    Parameters
    ----------
    left, right : Field
        The key columns.

    Raises
    ------
    CallError
        A key is nested or of a type without an order, or the two types have no common one.

    Examples
    --------
    >>> keys = [Field(1, "id", kind, required=False, top_level=True) for kind in ("int", "double", "string")]
    >>> find_key_type(keys[0], keys[1])
    DataType(double)
    """
    for key in (left, right):
        if not key.is_primitive or not key.top_level or can_sketch(key) is not None:
            expected = "expected a top-level column of numbers, dates, times, booleans, strings or bytes"
            raise CallError(f"{key.name!r}, of type {key.type}, cannot be the key of a join: {expected}")
    kinds = parse_type(left.type), parse_type(right.type)
    names = {kind.name for kind in kinds}
    if names <= _NUMBERS and names & _REAL:
        return pa.float64()
    if names <= _NUMBERS:
        scale = max(kind.scale for kind in kinds)
        return pa.decimal256(_DECIMAL_DIGITS, scale) if "decimal" in names else pa.int64()
    if names <= _BYTES:
        return pa.binary()
    for times, zone in zip(_TIMES, (None, "UTC"), strict=True):
        if names <= times and names != {"date"}:
            return pa.timestamp("ns" if any(name.endswith("_ns") for name in names) else "us", zone)
    if len(names) == 1:
        return to_arrow_type(left.type)
    raise CallError(
        f"{left.name!r}, of type {left.type}, cannot be joined with {right.name!r}, of type {right.type}: expected two "
        "numbers, a date with timestamps without a zone, or two columns of one type"
    )


JoinInput = tuple[Source, Snapshot | None, Schema, RowFilter, Field]
"""Table, snapshot, schema, filter and key column of one side of a join."""


def count_join_rows(left: JoinInput, right: JoinInput) -> int:
    """Count the rows of an equi-join, from how often each key is on each side; null keys meet none.

    Keys are compared in their common type: NaN equals NaN, and -0.0 equals 0.0, as in SQL engines.

    Raises
    ------
    CallError
        The keys cannot be compared: see `find_key_type`.
    UnsupportedError
        PyIceberg cannot read the files, or a key is beyond what the common type holds.
    MetadataError
        A file is not there.
    """
    kind = find_key_type(left[-1], right[-1])
    one, other = (_key_counts(*side, kind) for side in (left, right))
    both = one.join(other.rename_columns(["key", "other_count"]), "key", join_type="inner")
    return sum(map(mul, both["count"].to_pylist(), both["other_count"].to_pylist()))


def count_groups(
    source: Source, snapshot: Snapshot | None, schema: Schema, row_filter: RowFilter, fields: Sequence[Field]
) -> int:
    """Count the groups that the rows of a filter have by some columns; nulls are a group, as are NaN, and zeros.

    Raises
    ------
    UnsupportedError
        PyIceberg cannot read the files.
    """
    if snapshot is None:
        return 0
    names = [field.name for field in fields]
    scan = open_scan(source, snapshot, schema)
    with explained_reading(source):
        chosen = scan.select(*_columns([row_filter], scan.projection(), *names))
        found = list(_map_matching(chosen, row_filter, lambda rows: _distinct(rows, names)))
        return _distinct(pa.concat_tables(found, promote_options="permissive"), names).num_rows if found else 0


def _distinct(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return pa.table([_as_engines_group(unify(rows[name])) for name in names], names).group_by(list(names)).aggregate([])


def _key_counts(
    source: Source, snapshot: Snapshot | None, schema: Schema, row_filter: RowFilter, key: Field, kind: pa.DataType
) -> pa.Table:
    nothing = pa.table({"key": pa.array([], kind), "count": pa.array([], pa.int64())})
    if snapshot is None:
        return nothing
    scan = open_scan(source, snapshot, schema)
    with explained_reading(source):
        chosen = scan.select(*_columns([row_filter], scan.projection(), key.name))
        found = list(_map_matching(chosen, row_filter, lambda rows: _count_values(rows[key.name])))
        if not found:
            return nothing
        # Files may have texts in more than one of Arrow's forms.
        counted = pa.concat_tables(found, promote_options="permissive")
    try:
        values = combine_chunks(counted["key"])
        keys = to_doubles(values) if kind == pa.float64() else values.cast(kind)
    except pa.ArrowException as error:
        raise UnsupportedError(f"a key {key.name!r} of {source.name} is no {kind}: {one_line(error)}") from error
    by_key = pa.table({"key": _as_engines_group(keys), "count": counted["count"]}).group_by("key")
    return by_key.aggregate([("count", "sum")]).select(["key", "count_sum"]).rename_columns(["key", "count"])


def _count_values(column: pa.ChunkedArray) -> pa.Table:
    counted = unify(column).drop_null().value_counts()
    return pa.table({"key": counted.field("values"), "count": counted.field("counts")})


def _as_engines_group(values: pa.Array) -> pa.Array:
    """Give zeros, and NaN, the same bits each: these make one key of a join and one group, in Arrow as in engines."""
    if not pa.types.is_floating(values.type):
        return values
    plain = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(plain), pa.scalar(math.nan, values.type), plain)


def _count(scan: Any, row_filter: RowFilter) -> int:
    """Files that partition values answer for are counted by their metadata; others are read, several at a time."""
    from pyiceberg.expressions import AlwaysTrue

    rows, to_read = 0, []
    decides = not _excludes(row_filter.bound) and not _is_misplanned(row_filter)
    rough = _find_rough_specs(scan, row_filter)
    for task in _plan_files(scan, row_filter):
        may_differ = task.file.spec_id in rough or _may_be_wrapped(scan, task, row_filter)
        is_sure = decides and task.residual == AlwaysTrue() and not may_differ
        if is_sure and not task.delete_files:
            rows += task.file.record_count
        else:
            to_read.append(task)
    condition = _build_condition(row_filter, scan.projection())
    return int(rows + sum(map_rows(scan, to_read, lambda table: table.filter(condition).num_rows)))


def _may_be_wrapped(scan: Any, task: FileScanTask, row_filter: RowFilter) -> bool:
    """Say whether a file may have other values of a column than its partition says, as writers wrap them."""
    fields = scan.table_metadata.specs()[task.file.spec_id].fields
    found = ((place, row_filter.wrapped.get(field.field_id)) for place, field in enumerate(fields))
    return any(known is not None and abs(task.file.partition[place] or 0) >= known.least for place, known in found)


def _find_rough_specs(scan: Any, row_filter: RowFilter) -> set[int]:
    """Return the specs whose partitions may have other values of a column than they say: of `SpecGroups.imported`."""
    if NAME_MAPPING not in scan.table_metadata.properties:
        return set()
    return {
        spec_id
        for spec_id, spec in scan.table_metadata.specs().items()
        for field in spec.fields
        if field.source_id in row_filter.field_ids and str(field.transform) != "identity"
    }


def _map_matching(scan: Any, row_filter: RowFilter, digest: Callable[[pa.Table], _Digest]) -> Iterator[_Digest]:
    """Yield what is made of the matching rows; a filter that PyIceberg scans with would lose some.

    Arrow prunes row groups wrongly where NaN matches: whole files are read, and filtered afterwards.
    """
    try:
        tasks = list(_plan_files(scan, row_filter))
    except (TypeError, OverflowError):
        # As in `count_rows`.
        tasks = list(scan.plan_files())
    condition = _build_condition(row_filter, scan.projection())
    return map_rows(scan, tasks, lambda table: digest(table.filter(condition)))


def map_rows(scan: Any, tasks: Sequence[FileScanTask], digest: Callable[[pa.Table], _Digest]) -> Iterator[_Digest]:
    """Yield what is made of the live rows of files, a part at a time: several files are read at once, none is held.

    Of many files some are taken together: ten filters of a hundred rows cost what they cost of a thousand.
    """
    from pyiceberg.utils.concurrent import ExecutorFactory

    from icestats.scan.arrow_files import read_live_batches

    if reason := find_unreadable(tasks):
        raise UnsupportedError(
            f"the table's rows cannot be counted without Spark: {reason}; count a join of it in Spark SQL"
        )
    deletes = read_position_deletes(scan.io, tasks)

    def read(some: Sequence[FileScanTask]) -> list[_Digest]:
        batches = read_live_batches(scan.table_metadata, scan.io, scan.projection(), some, deletes)
        return [digest(_with_plain_uuids(table)) for table in gather(batches)]

    together = min(len(tasks) // _PARTS, _MOST_FILES_TOGETHER) or 1
    parts = [tasks[start : start + together] for start in range(0, len(tasks), together)]
    for found in ExecutorFactory.get_or_create().map(read, parts):
        yield from found


def _plan_files(scan: Any, row_filter: RowFilter) -> Iterable[FileScanTask]:
    tasks: Iterable[FileScanTask] = (
        scan if _is_misplanned(row_filter) else scan.filter(row_filter.planned)
    ).plan_files()
    return tasks


def _is_misplanned(row_filter: RowFilter) -> bool:
    """Say whether PyIceberg's planning may leave out files that have matching rows.

    Those of early writers before 1970 (`RowFilter.may_be_early`); where the filter is on a uuid: writers disagree
    in their order, and PyIceberg trusts their bounds (https://github.com/apache/iceberg/issues/14216); where it
    compares a float with what no float is: PyIceberg reads by the nearest float, and plans by the literal; and where it
    is on nulls of a struct's field, whose counts may leave out rows with a null struct.
    """
    top_level = {field.field_id for field in row_filter.schema.fields}
    return row_filter.may_be_early or any(
        one.type == "uuid"
        or len(build_values(one)) > 1
        or (one.operator == "is null" and one.field_id not in top_level)
        for one in find_predicates(row_filter.condition)
    )


def _is_uuid(field: NestedField) -> bool:
    return str(field.field_type) == "uuid"


def _with_plain_uuids(table: pa.Table) -> pa.Table:
    """Give uuids as their bytes: Arrow compares no values of its own type for them."""
    plain = pa.schema([field.with_type(_without_uuid(field.type)) for field in table.schema])
    return table if plain.types == table.schema.types else table.cast(plain)


def _without_uuid(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_uuid(field.type)) for field in kind.fields])
    return kind.storage_type if isinstance(kind, pa.UuidType) else kind


def _build_condition(row_filter: RowFilter, schema: IcebergSchema) -> pc.Expression:
    from pyiceberg.expressions.visitors import extract_field_ids
    from pyiceberg.io.pyarrow import expression_to_pyarrow

    # With a schema, PyIceberg takes each full stop in a name for a step into a struct.
    is_flat = {field.field_id for field in schema.fields}.issuperset(extract_field_ids(row_filter.bound))
    return expression_to_pyarrow(_as_arrow_compares(row_filter.bound), None if is_flat else schema)


def _as_arrow_compares(expression: Any) -> Any:
    """Compare uuids as bytes; and with zero by `=` and `!=`: to Arrow's `is_in`, 0.0 and -0.0 are two numbers."""
    from pyiceberg import expressions as e
    from pyiceberg.types import FixedType

    if isinstance(expression, e.And | e.Or):
        return type(expression)(_as_arrow_compares(expression.left), _as_arrow_compares(expression.right))
    if isinstance(expression, e.BoundLiteralPredicate | e.BoundSetPredicate) and _is_uuid(expression.term.ref().field):
        known = expression.term.ref()
        of_bytes = known.field.model_copy(update={"field_type": FixedType(16)})
        plain = e.BoundReference(field=of_bytes, accessor=known.accessor)
        if isinstance(expression, e.BoundSetPredicate):
            return type(expression)(term=plain, literals=expression.literals)
        return type(expression)(term=plain, literal=expression.literal)
    if not isinstance(expression, e.BoundIn | e.BoundNotIn):
        return expression
    term = expression.term
    zero = next((one for one in expression.literals if isinstance(one.value, float) and not one.value), None)
    if zero is None:
        return expression
    if isinstance(expression, e.BoundIn):
        return e.Or(expression, e.BoundEqualTo(term=term, literal=zero))
    return e.And(expression, e.Or(e.BoundNotEqualTo(term=term, literal=zero), e.BoundIsNull(term=term)))


def _columns(row_filters: Sequence[RowFilter], schema: IcebergSchema, *others: str) -> list[str]:
    from pyiceberg.expressions.visitors import extract_field_ids
    from pyiceberg.schema import prune_columns

    ids = {field_id for one in row_filters for field_id in extract_field_ids(one.bound)}
    names = {field.name for field in prune_columns(schema, ids).fields}
    return sorted(names.union(others)) or [schema.fields[0].name]


@contextmanager
def explained_reading(source: Source) -> Iterator[None]:
    """Raise what PyIceberg fails with as one line: UnsupportedError, or MetadataError where a file is not there."""
    from pyiceberg.exceptions import ResolveError

    known = source.storage.properties
    with explained(lambda said: IcestatsError(f"the rows of {source.name} cannot be read: {said}"), known):
        try:
            yield
        except FileNotFoundError as error:
            named = re.search("'(.+)'", str(error))
            raise unreadable(named[1] if named else source.name, error, known) from safe_cause(error, known)
        except (*UNREAD_SCHEMA, OSError, MemoryError, LookupError, EOFError, ResolveError, struct.error) as error:
            # PyIceberg fails in many ways where dates have become timestamps, or defaults do not fit (version 3).
            raise UnsupportedError(
                f"the rows of {source.name} cannot be counted by PyIceberg: {safe_line(error, known)}"
            ) from safe_cause(error, known)
