"""Which partitions a row filter selects: with every row, with none, or with some that their values cannot tell apart.

Source: Iceberg spec, "Partition Transforms". A null is selected by nothing but `is null`, as in SQL.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from icestats.catalog import Source, load_iceberg_table
from icestats.metadata import PartitionField, PartitionSpec, Schema
from icestats.partition_values import partition_field_type
from icestats.plan.filters import parse_row_filter
from icestats.stats.partition_sketches import PartitionEntry
from icestats.types import decode_value, parse_type, to_integer

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression, BoundPredicate

NONE: Final = 0
SOME: Final = 1
EVERY: Final = 2
"""Selected of a partition: no row, possibly some, every row (whose value is not null)."""

_TIMES = frozenset({"year", "month", "day", "hour"})
_WIDTH = re.compile(r"truncate\[(\d+)\]")
_UNITS_A_DAY = {"date": 1, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# What follows a truncated text or binary value in the largest value that is cut to it.
_REST_LENGTH = 1_024


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The partitions that a filter selects."""

    whole: tuple[PartitionEntry, ...]
    """Every row of them."""
    partial: tuple[PartitionEntry, ...]
    """Some of their rows, or none: their values do not tell."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The source values that a partition may hold: null only, or those between two, both included."""

    is_null: bool
    low: Any = None
    high: Any = None

    @property
    def is_single(self) -> bool:
        return bool(self.low == self.high)


def select_partitions(
    source: Source, row_filter: str | BooleanExpression, partitions: Sequence[PartitionEntry]
) -> PartitionSelection:
    """Return which partitions a row filter selects.

    Parameters
    ----------
    source : Source
        The table: its current schema, and its partition specs.
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter.
    partitions : sequence of PartitionEntry
        The partitions to choose from.

    Raises
    ------
    FilterError
        The filter cannot be read, or does not fit the schema.

    Notes
    -----
    Never wrong, rather undecided: a partition is `whole` or left out only where its values prove it. NaN is undecided
    (engines order it differently), and so are times before 1970, which early writers rounded the wrong way.
    """
    from pyiceberg.expressions.visitors import bind, rewrite_not

    schema = load_iceberg_table(source).schema()
    bound = bind(schema, rewrite_not(parse_row_filter(row_filter, schema)), case_sensitive=True)
    whole: list[PartitionEntry] = []
    partial: list[PartitionEntry] = []
    for entry in partitions:
        spec = source.metadata.specs[entry.key.spec_id]
        verdict = _judge(bound, _find_values(spec, source.metadata.schema, dict(entry.key.values)))
        if verdict != NONE:
            (whole if verdict == EVERY else partial).append(entry)
    return PartitionSelection(tuple(whole), tuple(partial))


def describe_partition_fields(specs: Mapping[int, PartitionSpec], schema: Schema) -> str:
    """Return what a filter can choose partitions by, for messages.

    Examples
    --------
    >>> from icestats.metadata import Field
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True),))
    >>> describe_partition_fields({0: PartitionSpec(0, (PartitionField(1000, 1, "at_day", "day"),))}, schema)
    'day of at'
    """
    texts = []
    for spec in specs.values():
        for field in spec.fields:
            column = schema.get(field.source_id)
            if column is not None and field.transform != "void":
                texts.append(column.name if field.transform == "identity" else f"{field.transform} of {column.name}")
    return ", ".join(dict.fromkeys(texts)) or "nothing"


def _find_values(
    spec: PartitionSpec, schema: Schema, partition: Mapping[int, bytes | None]
) -> dict[int, list[_Values | Callable[[Any], bool]]]:
    found: dict[int, list[_Values | Callable[[Any], bool]]] = {}
    for field in spec.fields:
        source = schema.get(field.source_id)
        if source is None or field.transform == "void" or field.field_id not in partition:
            continue
        known = _source_values(field, source.type, schema, partition[field.field_id])
        if known is not None:
            found.setdefault(field.source_id, []).append(known)
    return found


def _source_values(
    field: PartitionField, source_type: str, schema: Schema, data: bytes | None
) -> _Values | Callable[[Any], bool] | None:
    if data is None:
        return _Values(is_null=True)
    type_text = partition_field_type(field, schema)
    if type_text is None:
        return None
    value = _comparable(decode_value(type_text, data))
    if field.transform == "identity":
        return _Values(False, value, value)
    if field.transform in _TIMES:
        return _time_values(field.transform, source_type, value)
    if width := _WIDTH.fullmatch(field.transform):
        return _truncated_values(int(width[1]), source_type, value)
    if field.transform.startswith("bucket"):
        return _in_bucket(field.transform, source_type, value)
    return None


def _time_values(transform: str, source_type: str, value: int) -> _Values:
    name = parse_type(source_type).name
    unit = "date" if name == "date" else "ns" if name.endswith("_ns") else "us"
    # Writers before Iceberg 0.14 rounded moments before 1970 up: what is in 0 and below may be of the one before.
    first = value - 1 if value <= 0 and (unit != "date" or transform in ("year", "month")) else value
    begin, end = (_begin(transform, place, unit) for place in (first, value + 1))
    return _Values(False, begin, end - 1)


def _begin(transform: str, value: int, unit: str) -> int:
    if transform == "hour":
        return value * _UNITS_A_DAY[unit] // 24
    if transform == "day":
        return value * _UNITS_A_DAY[unit]
    years, month = divmod(value, 12) if transform == "month" else (value, 0)
    # Whole cycles of 400 years (146,097 days) keep the year within what Python's dates hold.
    cycles, year = divmod(1970 + years - 1, 400)
    days = dt.date(year + 1, month + 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal() + cycles * 146_097
    return days * _UNITS_A_DAY[unit]


def _truncated_values(width: int, source_type: str, value: Any) -> _Values:
    if isinstance(value, str):
        return _Values(False, value, value if len(value) < width else value + "\U0010ffff" * _REST_LENGTH)
    if isinstance(value, bytes):
        return _Values(False, value, value if len(value) < width else value + b"\xff" * _REST_LENGTH)
    if isinstance(value, Decimal):
        return _Values(False, value, value + Decimal(width - 1).scaleb(-parse_type(source_type).scale))
    return _Values(False, value, value + width - 1)


def _in_bucket(transform: str, source_type: str, bucket: int) -> Callable[[Any], bool]:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.transforms import parse_transform

    kind = IcebergSchema.model_validate(
        {"type": "struct", "fields": [{"id": 1, "name": "c", "type": source_type, "required": False}]}
    ).find_type(1)
    hash_value = parse_transform(transform).transform(kind)
    return lambda literal: hash_value(literal) == bucket


def _comparable(value: Any) -> Any:
    if isinstance(value, dt.date | dt.time):
        return to_integer(value)
    return value.bytes if hasattr(value, "bytes") and hasattr(value, "hex") else value


def _judge(expression: BooleanExpression, values: Mapping[int, list[_Values | Callable[[Any], bool]]]) -> int:
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BoundPredicate, Or

    if isinstance(expression, And):
        return min(_judge(expression.left, values), _judge(expression.right, values))
    if isinstance(expression, Or):
        return max(_judge(expression.left, values), _judge(expression.right, values))
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return EVERY if isinstance(expression, AlwaysTrue) else NONE
    if not isinstance(expression, BoundPredicate):
        return SOME
    verdicts = {
        _judge_predicate(expression, known) for known in values.get(expression.term.ref().field.field_id, ())
    } - {SOME}
    return verdicts.pop() if len(verdicts) == 1 else SOME


def _judge_predicate(predicate: BoundPredicate, known: _Values | Callable[[Any], bool]) -> int:
    from pyiceberg.expressions import BoundEqualTo, BoundIn, BoundIsNull, BoundNotNull

    if not isinstance(known, _Values):
        # A bucket: its values are not null, and only values of its hash are in it.
        if isinstance(predicate, BoundIsNull | BoundNotNull):
            return EVERY if isinstance(predicate, BoundNotNull) else NONE
        if isinstance(predicate, BoundEqualTo | BoundIn):
            return SOME if any(known(literal) for literal in _raw_literals(predicate)) else NONE
        return SOME
    if isinstance(predicate, BoundIsNull):
        return EVERY if known.is_null else NONE
    if known.is_null:
        return NONE
    if isinstance(predicate, BoundNotNull):
        return EVERY
    if isinstance(known.low, float) and math.isnan(known.low):
        return _judge_nan(predicate)
    return _judge_values(predicate, known)


def _judge_nan(predicate: BoundPredicate) -> int:
    from pyiceberg.expressions import BoundIsNaN, BoundNotNaN

    if isinstance(predicate, BoundIsNaN):
        return EVERY
    return NONE if isinstance(predicate, BoundNotNaN) else SOME


def _judge_values(predicate: BoundPredicate, known: _Values) -> int:
    from pyiceberg import expressions as e

    low, high = known.low, known.high
    literals = [_comparable(literal) for literal in _raw_literals(predicate)]
    if isinstance(predicate, e.BoundIsNaN):
        return NONE
    if isinstance(predicate, e.BoundNotNaN):
        return EVERY
    if isinstance(predicate, e.BoundEqualTo | e.BoundIn):
        return _is_one_of(known, literals)
    if isinstance(predicate, e.BoundNotEqualTo | e.BoundNotIn):
        return EVERY - _is_one_of(known, literals)
    if isinstance(predicate, e.BoundStartsWith):
        return _starts_with(known, literals[0])
    if isinstance(predicate, e.BoundNotStartsWith):
        return EVERY - _starts_with(known, literals[0])
    compared: dict[type, Callable[[Any], int]] = {
        e.BoundLessThan: lambda limit: _verdict(high < limit, low >= limit),
        e.BoundLessThanOrEqual: lambda limit: _verdict(high <= limit, low > limit),
        e.BoundGreaterThan: lambda limit: _verdict(low > limit, high <= limit),
        e.BoundGreaterThanOrEqual: lambda limit: _verdict(low >= limit, high < limit),
    }
    judge = next((judge for kind, judge in compared.items() if isinstance(predicate, kind)), None)
    return SOME if judge is None else judge(literals[0])


def _raw_literals(predicate: BoundPredicate) -> list[Any]:
    from pyiceberg.expressions import BoundLiteralPredicate, BoundSetPredicate

    if isinstance(predicate, BoundLiteralPredicate):
        return [predicate.literal.value]
    return [literal.value for literal in predicate.literals] if isinstance(predicate, BoundSetPredicate) else []


def _verdict(every: bool, none: bool) -> int:
    return EVERY if every else NONE if none else SOME


def _is_one_of(known: _Values, literals: Sequence[Any]) -> int:
    inside = [literal for literal in literals if known.low <= literal <= known.high]
    return _verdict(bool(inside) and known.is_single, not inside)


def _starts_with(known: _Values, prefix: Any) -> int:
    return _verdict(
        known.low.startswith(prefix) and known.high.startswith(prefix),
        known.is_single or not prefix.startswith(known.low),
    )
