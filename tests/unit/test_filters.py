"""Row filters: a literal is bound as it was meant or refused, in one line that says what to write instead."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyiceberg import expressions as e
from pyiceberg import types as t
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from icestats.errors import FilterError
from icestats.iceberg.filters.filter_parser import parse_row_filter
from icestats.iceberg.filters.row_filter import FilterSchema, bind_row_filter, build_condition
from icestats.iceberg.filters.value_sets import build_points, build_tree

TYPES = {
    "whole": t.LongType(),
    "small": t.IntegerType(),
    "real": t.DoubleType(),
    "money": t.DecimalType(9, 2),
    "at": t.TimestampType(),
    "zoned": t.TimestamptzType(),
    "text": t.StringType(),
    "raw": t.BinaryType(),
    "nanos": t.TimestampNanoType(),
    "zoned_nanos": t.TimestamptzNanoType(),
    "six": t.FixedType(6),
    "day": t.DateType(),
    "many": t.ListType(100, t.LongType()),
    "noon": t.TimeType(),
}
SCHEMA = Schema(*(t.NestedField(i, name, kind) for i, (name, kind) in enumerate(TYPES.items(), 1)), schema_id=0)


def bound(row_filter: str | e.BooleanExpression) -> str:
    return str(build_condition(parse_row_filter(row_filter, SCHEMA), SCHEMA))


@pytest.mark.parametrize(
    ("row_filter", "condition"),
    [
        ("whole = 74.0", "whole = 74"),
        ("whole = '74'", "whole = 74"),
        ("small in (1, 3000000000)", "small = 1"),
        ("small not in (1, 2, 3000000000)", "small not in (1, 2)"),
        ("small < 3000000000 and whole != -9300000000000000000", f"small <= {2**31 - 1} and whole >= {-(2**63)}"),
        ("not (small = 3000000000) or small = -3000000000", f"small <= {2**31 - 1} or small < {-(2**31)}"),
        ("money < 5.5", "money < 5.50"),
        ("money = '5.1'", "money = 5.10"),
        ("money = 5.100", "money = 5.10"),
        ("not (money = 5 or money > 7.5)", "money != 5.00 and money <= 7.50"),
        (e.LessThan("money", 1.5), "money < 1.50"),
        ("money < 10000000", "money <= 9999999.99"),
        ("money != 1234567890123456789012345678901234567890.5", "money <= 9999999.99"),
        ("money = 10000000 or money <= -10000000", "money > 9999999.99 or money < -9999999.99"),
        ("not (money = 10000000) and money > -10000000", "money <= 9999999.99 and money >= -9999999.99"),
        ("money in (1, -2.50,+3, .25)", "money in (-2.50, 0.25, 1.00, 3.00)"),
        ("whole not in (1, 2.0) and text = 'in (1, 2)'", "whole not in (1, 2) and text = 'in (1, 2)'"),
        ("text = 'a''in (1, 2.5)' or real in (-1, 2.5)", "text = 'a''in (1, 2.5)' or real in (-1.0, 2.5)"),
        ("money in ('10000000', '5.1', '7')", "money in (5.10, 7.00)"),
        ("whole < 1.5e3 and money = -1E+3", "whole < 1500 and money = -1000.00"),
        ("whole in (1e3, 2) or text = '1e3'", "whole in (2, 1000) or text = '1e3'"),
        ("real > 5e-324 and real <= 1.7976931348623157e308", "real > 5e-324 and real <= 1.7976931348623157e+308"),
        ("real not in (0.5, 1e309) or real in (1e309, -1e309, 2)", "real != 0.5 or real = 2.0"),
        ("real < 1e309 and not (real = 1e309)", "real <= 1.7976931348623157e+308 and real is not null"),
        (e.LessThan("real", float("inf")), "real < Infinity"),
        (e.In("money", [Decimal("1.5"), Decimal(2)]), "money in (1.50, 2.00)"),
        (e.LessThan("day", dt.datetime(2026, 9, 10)), "day < '2026-09-10'"),
        (e.In("day", [dt.date(2026, 9, 10), 3_000_000_000]), "day = '2026-09-10'"),
        (e.LessThan("at", dt.date(2026, 9, 10)), "at < '2026-09-10T00:00:00'"),
        ("at in (0, 10000000000000000000)", "at = '1970-01-01T00:00:00'"),
        (e.In("noon", [0, 2**63]), "noon = '00:00:00'"),
        (e.In("zoned", [0, -(10**30)]), "zoned = '1970-01-01T00:00:00+00:00'"),
        (e.In("zoned", [dt.date(1969, 9, 10)]), "zoned = '1969-09-10T00:00:00+00:00'"),
        (e.EqualTo("nanos", dt.date(2026, 9, 10)), "nanos = '2026-09-10T00:00:00.000000000'"),
        ("noon = '12:00:00.5'", "noon = '12:00:00.500000'"),
        (e.EqualTo("noon", dt.time(12)), "noon = '12:00:00'"),
        ("at = '2026-09-10'", "at = '2026-09-10T00:00:00'"),
        ("at < '2026-09-10 08:30:00'", "at < '2026-09-10T08:30:00'"),
        ("zoned = '2026-09-10'", "zoned = '2026-09-10T00:00:00+00:00'"),
        ("zoned = '2026-09-10T08:00:00Z'", "zoned = '2026-09-10T08:00:00+00:00'"),
        ("zoned = '2026-09-10 08:00:00-02:00'", "zoned = '2026-09-10T10:00:00+00:00'"),
        ("nanos > '2026-09-10T08:00:00.000000001'", "nanos > '2026-09-10T08:00:00.000000001'"),
        ("nanos < '1969-12-31 23:59:59.5'", "nanos < '1969-12-31T23:59:59.500000000'"),
        (
            "nanos in ('2026-09-10', '1970-01-01')",
            "nanos in ('1970-01-01T00:00:00.000000000', '2026-09-10T00:00:00.000000000')",
        ),
        (e.EqualTo("nanos", dt.datetime(2026, 9, 10, 8)), "nanos = '2026-09-10T08:00:00.000000000'"),
        ("zoned_nanos = '2026-09-10'", "zoned_nanos = '2026-09-10T00:00:00.000000000+00:00'"),
        ("zoned_nanos = '2026-09-10 08:00:00.25-02:00'", "zoned_nanos = '2026-09-10T10:00:00.250000000+00:00'"),
    ],
)
def test_a_literal_is_bound_as_it_was_meant(row_filter, condition):
    assert bound(row_filter) == condition


def test_a_name_of_any_letters_needs_no_quotation_marks():
    inner = t.StructType(t.NestedField(2, "ü_1", t.StringType(), required=False))
    schema = Schema(t.NestedField(1, "größe", t.LongType()), t.NestedField(3, "a", inner))
    plain, quoted = "größe > 1e1 and a.ü_1 = 'größe > 2'", """"größe" > 10 and a."ü_1" = 'größe > 2'"""
    assert parse_row_filter(plain, schema) == parse_row_filter(quoted, schema)
    with pytest.raises(FilterError, match=r"names no column 'grösse': the table has größe, a"):
        parse_row_filter("grösse is null", schema)


def test_a_tab_in_text_is_no_spaces():
    filters = ("text = 'a\tb'\tand whole = 1", "text like 'a\t%' and whole in (1, 2.0)", "text = 'a\t' and whole < 1e3")
    read = [parse_row_filter(one, SCHEMA).left for one in filters]
    assert read == [e.EqualTo("text", "a\tb"), e.StartsWith("text", "a\t"), e.EqualTo("text", "a\t")]


@pytest.mark.parametrize(
    ("row_filter", "part"),
    [
        ("whole = 74.5", "whole is long, and 74.5 is no whole number"),
        ("small < '7.5'", "small is int, and 7.5 is no whole number"),
        (e.LessThan("whole", 74.5), "74.5 is no whole number"),
        (e.In("whole", [1.5, 2.0]), "1.5 is no whole number"),
        ("real > 1 and not (whole >= 0.1)", "0.1 is no whole number"),
        ("whole = 1e-3", "0.001 is no whole number"),
        (f"whole = {'1' * 5_000}", "cannot be read: a number in it has more than 4,300 digits"),
        ("whole = 1e1000", "cannot be read at character 10, 'e1000'"),
        ("whole = 1e3x", "cannot be read at character 10, 'e3x'"),
        ("whole in (1e3, 2) so", "cannot be read at character 19, 'so': expected comparisons"),
        ("whole = 1e3 so real = 1e2", "cannot be read at 'so real = 100': expected comparisons"),
        ("money < 5.005", "5.005 has more than 2 digits behind the point"),
        (e.EqualTo("money", 1.005), "1.005 has more than 2 digits behind the point"),
        ("zoned = 'yesterday'", "'yesterday' is no time; give a time such as '2026-09-30T12:30:00+00:00'"),
        ("at = 'now'", "'now' is no time; give a time such as '2026-09-30T12:30:00'"),
        ("at = '2026-13-01'", "month must be in 1..12; give a time such as '2026-09-30T12:30:00'"),
        ("whole in (1, 2.5)", "whole is long, and 2.5 is no whole number"),
        ("whole in (1, 'a')", "cannot be read at \"in (1, 'a')\": expected a list of text or of numbers, not of both"),
        ("text not in ('a, 1', 2) or whole = 1", "expected a list of text or of numbers, not of both"),
        ("text in ('a, 1', 'b') and", "cannot be read at its end: expected comparisons such as"),
        ("nanos = 'now'", "nanos is timestamp_ns, and now is none: expected a moment such as '2026-"),
        ("nanos = 1.5", "nanos is timestamp_ns, and 1.5 is none: expected"),
        ("nanos = '2026-13-01'", "2026-13-01 is none: expected a moment"),
        ("nanos < '2026-09-10T08:00:00Z'", "2026-09-10T08:00:00Z names a zone, which its values have none of"),
        ("zoned_nanos > '2300-01-01'", "2300-01-01 is beyond nanoseconds of 64 bits, which end in 1677 and 2262"),
        ("text = 5", "a column of type string is compared with a whole number"),
        ("raw = 'ab'", "a column of type binary is compared with text; give bytes"),
        (e.EqualTo("six", b"five5"), "a column of type fixed[6] is compared with 5 bytes; give 6"),
        (e.In("six", [b"sixsix", b"seven77"]), "a column of type fixed[6] is compared with 7 bytes; give 6"),
        (
            "not true",
            "cannot be read: true and false are whole filters, not parts of one; expected comparisons such as",
        ),
        ("money = 'much'", "a decimal column is compared with text that is no number"),
        ("small = 'few'", "'few' is no int; give a whole number"),
        ("day > '2026-09-10T08:00:00'", "is no date; give a date such as '2026-"),
        (e.LessThan("day", dt.datetime(2026, 9, 10, 8)), "microseconds since 1970 are no whole day"),
        (e.LessThan("whole", dt.date(2026, 9, 10)), "a column of type long is compared with a date"),
        (e.In("money", [dt.time(8)]), "a column of type decimal(9, 2) is compared with a time of day"),
        (e.EqualTo("at", dt.time(8)), "a column of type timestamp is compared with a time of day"),
        ("noon < '12:00:00+02:00'", "noon is time, and 12:00:00+02:00 has a zone or more than 6 digits of a second"),
        ("noon < '12:00:00.0000001'", "has a zone or more than 6 digits of a second"),
        ("noon = '2026-09-10'", "'2026-09-10' is no time; give a time such as '12:30:00'"),
        ("many.element = 1", "values in lists and maps cannot be filtered by; expected top-level columns or fields"),
        ("whole = 1 or false", "true and false are whole filters, not parts of one"),
        ("whole like '1%'", "LIKE is of text, and whole of type long: compare it by =, < or >"),
        (e.Not(e.StartsWith("money", "1")), "LIKE is of text, and money of type decimal(9, 2)"),
        (e.StartsWith("day", "2026-09-10"), "LIKE is of text, and day of type date"),
    ],
)
def test_a_literal_that_no_value_equals_is_refused(row_filter, part):
    """PyIceberg would cut or round it, and the filter would be another one."""
    with pytest.raises(FilterError) as caught:
        bound(row_filter)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_that_cannot_be_read_is_not_called_missing():
    known = FilterSchema(SCHEMA, {}, {"anything": "variant"})
    for row_filter in ("anything is null", "whole = 1 and anything.inside = 2"):
        with pytest.raises(FilterError, match="of type variant, which cannot be filtered: filter by whole, small"):
            bind_row_filter(row_filter, known)


def test_a_filter_of_nanoseconds_is_projected_to_partitions():
    """By day, hour and bucket; a bound is moved by one nanosecond, not by more."""
    fields = [
        {"source-id": 9, "field-id": 1000, "name": "day", "transform": "day"},
        {"source-id": 9, "field-id": 1001, "name": "hour", "transform": "hour"},
        {"source-id": 10, "field-id": 1002, "name": "bucket", "transform": "bucket[8]"},
    ]
    known = FilterSchema(SCHEMA, {0: PartitionSpec.model_validate({"spec-id": 0, "fields": fields})})
    found = bind_row_filter("nanos < '2026-09-10' and zoned_nanos = '2017-11-16T22:31:08.000001001Z'", known)
    # The spec's test value of a bucket is that of the microsecond: Appendix B.
    bucket = (-1207196810 & 0x7FFFFFFF) % 8
    assert str(found.by_spec[0]) == f"day <= '2026-09-09' and hour <= '2026-09-09T23' and bucket = {bucket}"


def test_thousands_of_conditions_on_a_column_are_one_set_of_values():
    """Intersected one by one, each of them with all the others, they would take many minutes."""

    def read(row_filter):
        return build_tree(build_condition(parse_row_filter(row_filter, SCHEMA), SCHEMA)).values

    numbers = range(9_000)
    lists = read(e.And(e.In("whole", numbers), e.In("whole", range(6_000, 15_000))))
    assert lists == build_points(range(6_000, 9_000))
    others = read(e.And(*(e.NotEqualTo("whole", number) for number in numbers)))
    assert not others.has_null
    assert read(e.And(e.In("whole", range(8_998, 9_002)), e.NotIn("whole", numbers))) == build_points([9_000, 9_001])
    assert read(e.Or(*(e.EqualTo("whole", number) for number in numbers))) == build_points(numbers)
