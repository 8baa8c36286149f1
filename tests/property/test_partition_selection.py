"""A filter never selects a partition wrongly: what is said of its every row, or of none, holds for any row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, In, IsNull, LessThan, NotEqualTo, NotIn, NotNull
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record

import icestats
from icestats.iceberg.types import encode_value
from icestats.snapshot.evaluation.partition_projection import PartitionSelection, select_partitions
from icestats.stats.partition_sketches import PartitionEntry, PartitionKey
from icestats.stats.table_statistics import ColumnStatistics

ARROW = {
    "i": pa.int32(),
    "l": pa.int64(),
    "s": pa.string(),
    "b": pa.binary(),
    "c": pa.decimal128(9, 2),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "z": pa.timestamp("us", tz="UTC"),
    "u": pa.binary(16),
    "f": pa.float64(),
    "o": pa.bool_(),
}
TIMES = ("year", "month", "day", "hour")
CASES = [
    *((column, "identity") for column in "ilsbcdtzof"),
    *((column, "bucket[5]") for column in "ilsbcdtz"),
    *((column, "truncate[3]") for column in "ilsbc"),
    *(("t", name) for name in TIMES),
    *(("z", name) for name in TIMES),
    *(("d", name) for name in TIMES[:3]),
]
VALUES = {
    "i": st.integers(-9, 9),
    "l": st.integers(-9, 9),
    "s": st.text("ab\u00e9\U0001f600", max_size=5),
    "b": st.binary(max_size=4).map(lambda data: bytes(byte % 3 for byte in data)),
    "c": st.integers(-900, 900).map(lambda unscaled: Decimal(unscaled).scaleb(-2)),
    "d": st.dates(dt.date(1968, 1, 1), dt.date(1973, 1, 1)),
    "t": st.datetimes(dt.datetime(1969, 12, 30), dt.datetime(1970, 2, 3)),
    "z": st.datetimes(dt.datetime(1969, 12, 30), dt.datetime(1970, 2, 3), timezones=st.just(dt.UTC)),
    "o": st.booleans(),
    "f": st.sampled_from([-1.5, -0.0, 0.0, 1.5, float("inf")]),
}
NAMES = {f"{column}{place}": (column, transform) for place, (column, transform) in enumerate(CASES)}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table with a spec a case."""
    folder = tmp_path_factory.mktemp("specs")
    properties = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema(list(ARROW.items())))
    before = None
    for name, (column, transform) in NAMES.items():
        with table.update_spec() as update:
            if before is not None:
                update.remove_field(before)
            update.add_field(column, parse_transform(transform), name)
        before = name
    yield icestats.load("db.t", catalog=properties), table.schema()
    catalog.close()


def partition_of(source: Any, name: str, value: Any) -> PartitionEntry:
    found, schema = source
    spec = next(s for s in found.metadata.specs.values() if s.fields and s.fields[0].name == name)
    column, transform = NAMES[name]
    kind = schema.find_type(column)
    placed = parse_transform(transform)
    raw = placed.transform(kind)(internal(value))
    data = None if raw is None else encode_value(str(placed.result_type(kind)), raw)
    key = PartitionKey(spec.spec_id, ((spec.fields[0].field_id, data),))
    return PartitionEntry(key, ColumnStatistics(1, "long", 1, 0, 0, None, None, None, None), 0, 0, 0)


def internal(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


def select(source: Any, row_filter: Any, entry: PartitionEntry) -> PartitionSelection:
    table = source[0]
    return select_partitions(table.bind(row_filter), table.metadata.specs, table.schema, [entry])


def literal(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else value


def matches(schema: Any, expression: Any, column: str, value: Any) -> bool:
    """Whether a row matches, as a PyIceberg scan has it: of comparisons with null, `not in` alone is true."""
    if value is None:
        return isinstance(expression, IsNull | NotIn)
    row = [internal(value) if name == column else None for name in ARROW]
    return bool(expression_evaluator(schema, expression, case_sensitive=True)(Record(*row)))


@settings(max_examples=1_500)
@given(st.data(), st.sampled_from(sorted(NAMES)))
def test_no_row_contradicts_what_is_said_of_its_partition(source: Any, data: st.DataObject, name: str) -> None:
    column = NAMES[name][0]
    value = data.draw(st.none() | VALUES[column], "value")
    first, second = (literal(data.draw(VALUES[column], "literal")) for _ in range(2))
    comparing = [EqualTo, NotEqualTo, LessThan, GreaterThanOrEqual]
    kind = data.draw(st.sampled_from([*comparing, In, NotIn, IsNull, NotNull, "starts", "not starts"]), "kind")
    expression: Any
    if kind in (IsNull, NotNull):
        expression = kind(column)
    elif kind in (In, NotIn):
        expression = kind(column, {first, second})
    elif isinstance(kind, str):
        if column != "s":
            return
        from pyiceberg.expressions import NotStartsWith, StartsWith

        expression = (StartsWith if kind == "starts" else NotStartsWith)(column, first)
    else:
        expression = kind(column, first)
    selection = select(source, expression, partition_of(source, name, value))
    if selection.whole:
        assert matches(source[1], expression, column, value)
    elif not selection.partial:
        assert not matches(source[1], expression, column, value)


@pytest.mark.parametrize(
    ("name", "value", "row_filter", "expected"),
    [
        ("day", dt.datetime(2026, 9, 3, 7), "t >= '2026-09-03T00:00:00' and t < '2026-09-04T00:00:00'", "whole"),
        ("day", dt.datetime(2026, 9, 3, 7), "t >= '2026-09-03T00:00:01'", "partial"),
        ("day", dt.datetime(2026, 9, 3, 7), "t < '2026-09-03T00:00:00'", "none"),
        ("day", dt.datetime(2026, 9, 3, 7), "not (t < '2026-09-03T00:00:00')", "whole"),
        (
            "month",
            dt.datetime(2026, 9, 3, 7),
            "t >= '2026-09-01T00:00:00' and t <= '2026-09-30T23:59:59.999999'",
            "whole",
        ),
        ("year", dt.datetime(2024, 9, 3, 7), "t < '2025-01-01T00:00:00'", "whole"),
        ("hour", dt.datetime(2026, 9, 3, 7), "t in ('2026-09-03T07:30:00')", "partial"),
        ("day", None, "t is null or t < '2026-09-03T00:00:00'", "whole"),
        ("day", None, "t != '2026-09-03T00:00:00'", "none"),
        ("day", None, "t not in ('2026-09-03T00:00:00', '2026-09-04T00:00:00')", "whole"),
        ("day", dt.datetime(1965, 9, 3, 7), "t >= '1965-09-01T00:00:00' and t < '1965-09-05T00:00:00'", "whole"),
        ("day", dt.datetime(1965, 9, 3, 7), "t >= '1965-09-03T00:00:00' and t < '1965-09-04T00:00:00'", "partial"),
        ("day", dt.datetime(2026, 9, 3, 7), "l = 5", "partial"),
        ("day", dt.datetime(2026, 9, 3, 7), "l = 5 and t < '2026-01-01T00:00:00'", "none"),
    ],
)
def test_whole_days_months_and_years_are_decided(
    source: Any, name: str, value: Any, row_filter: str, expected: str
) -> None:
    field = next(field for field, case in NAMES.items() if case == ("t", name))
    selection = select(source, row_filter, partition_of(source, field, value))
    assert ("whole" if selection.whole else "partial" if selection.partial else "none") == expected


@pytest.mark.parametrize(
    ("case", "value", "row_filter", "expected"),
    [
        (("s", "truncate[3]"), "ab", "s = 'ab'", "whole"),
        (("s", "truncate[3]"), "ab", "s != 'ab'", "none"),
        (("s", "truncate[3]"), "abc", "s = 'abc'", "partial"),
        (("s", "truncate[3]"), "abcd", "s like 'abc%'", "whole"),
        (("s", "truncate[3]"), "b", "s <= 'b'", "whole"),
        (("b", "truncate[3]"), b"abc", "b is not null", "whole"),
        (("i", "bucket[5]"), 3, "i is not null", "whole"),
        (("i", "bucket[5]"), None, "i is null", "whole"),
        (("i", "bucket[5]"), None, "i not in (1099511627776, 1099511627777)", "none"),
        (("i", "identity"), 3, "i not in (1099511627776, 1099511627777)", "whole"),
        (("i", "identity"), None, "i != 1099511627776", "none"),
        (("f", "identity"), float("nan"), "f > 5", "partial"),
        (("f", "identity"), float("nan"), "f is nan", "whole"),
        (("f", "identity"), float("nan"), "f is not nan and f > 5", "none"),
        (("f", "identity"), float("nan"), "f is not null", "whole"),
        (("f", "identity"), 1.5, "f != 2.0", "whole"),
    ],
)
def test_what_one_value_proves_is_decided(source: Any, case: Any, value: Any, row_filter: str, expected: str) -> None:
    field = next(field for field, found in NAMES.items() if found == case)
    selection = select(source, row_filter, partition_of(source, field, value))
    assert ("whole" if selection.whole else "partial" if selection.partial else "none") == expected
