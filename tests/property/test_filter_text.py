"""What is written into a filter is read from it again, letter for letter; what cannot be is not written."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg import types as t
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icestats.iceberg.filters.filter_parser import parse_row_filter
from icestats.iceberg.filters.filter_text import write_column, write_value
from icestats.iceberg.filters.row_filter import build_condition

TEXTS = st.text() | st.text(st.sampled_from("'\"\\%x41 \t\n.()abnot"), max_size=12)
ZONED = st.datetimes(timezones=st.just(dt.UTC))
VALUES = st.one_of(
    st.tuples(st.just(t.StringType()), TEXTS),
    st.tuples(st.just(t.LongType()), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(t.DoubleType()), st.floats(allow_nan=False)),
    st.tuples(st.just(t.DecimalType(9, 2)), st.decimals("-9999999.99", "9999999.99", places=2)),
    st.tuples(st.just(t.DecimalType(38, 38)), st.decimals("-0.9", "0.9", places=38)),
    st.tuples(st.just(t.BooleanType()), st.booleans()),
    st.tuples(st.just(t.DateType()), st.dates()),
    st.tuples(st.just(t.TimeType()), st.times()),
    st.tuples(st.just(t.TimestampType()), st.datetimes()),
    st.tuples(st.just(t.TimestamptzType()), ZONED),
    st.tuples(st.just(t.UUIDType()), st.uuids()),
)


@given(VALUES)
@example((t.StringType(), "end\\"))
@example((t.StringType(), "a\\'b"))
@example((t.StringType(), "\\xyz"))
@example((t.StringType(), "a\tb"))
def test_a_value_comes_back(pair: tuple[Any, Any]) -> None:
    """As the literal of an equality, whatever quotation marks, backslashes and digits it has."""
    kind, value = pair
    text = write_value(str(kind), value)
    if text is None:
        assert isinstance(value, str) or not math.isfinite(value)
        return
    schema = Schema(NestedField(1, "c", kind))
    predicate = build_condition(parse_row_filter(f"c = {text}", schema), schema)
    assert predicate.literals == (stored(value),)


def stored(value: Any) -> Any:
    """Return a value as Iceberg stores it."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    if isinstance(value, dt.time):
        return (dt.datetime.combine(dt.date(1970, 1, 1), value) - dt.datetime(1970, 1, 1)) // dt.timedelta(
            microseconds=1
        )
    return value.bytes if isinstance(value, uuid.UUID) else value


@given(TEXTS)
@example('5"13')
@example('size "tall"')
@example('a""0')
@example('a"u1414')
def test_a_column_comes_back(name: str) -> None:
    """By its full name; a part of a name between full stops may be anything else."""
    text = write_column(name)
    if text is None:
        assert not name.isprintable() or "\\" in name or '"' in name
        return
    schema = Schema(NestedField(1, name, t.LongType()))
    predicate = build_condition(parse_row_filter(f"{text} = 1", schema), schema)
    assert (predicate.name, predicate.field_id) == (name, 1)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_not_rounded(value: float) -> None:
    text = write_value("double", value)
    assert text is not None
    assert Decimal(text) == Decimal(repr(value))
    assert math.copysign(1, float(text)) == math.copysign(1, value)
