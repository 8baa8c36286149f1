"""What Spark counts of a filter is what is true of the rows, whatever Iceberg's own planning makes of the filter."""

from __future__ import annotations

import pytest

import icestats
from icestats.snapshot.filter_sql import build_sql
from icestats.spark import optimizer
from icestats.spark.optimizer import count_with_spark
from icestats.spark.plain_sql import changed_settings

pytestmark = pytest.mark.spark
NAMESPACE = "icestats.counted"
ROWS = "(1, named_struct('price', 1.5D)), (2, null), (3, named_struct('price', 2.5D)), (4, null)"


@pytest.fixture(scope="module")
def orders(spark, namespace):
    """Four rows in an ORC file, whose counts leave out the rows with a null struct."""
    spark.sql(
        f"create table {namespace}.orders (id int, item struct<price: double>) using iceberg "
        "tblproperties ('write.format.default' = 'orc')"
    )
    spark.sql(f"insert into {namespace}.orders select /*+ coalesce(1) */ * from values {ROWS}")
    return icestats.load(f"{namespace}.orders")


@pytest.mark.parametrize(
    ("row_filter", "count"),
    [
        ("true", 4),
        ("id > 3 and id < 3", 0),
        ("item.price is null", 2),
        ("item.price not in (1.5, 9.5)", 3),
        ("item.price is not null", 2),
    ],
)
def test_rows_are_counted(spark, orders, row_filter, count):
    condition = build_sql(orders._ask(row_filter).predicate, orders.schema, "spark", exact=True)
    assert count_with_spark(spark, orders._source, orders.snapshot, orders.schema, [condition]) == [count]


@pytest.fixture(scope="module")
def zeros(spark, namespace):
    """Zeros of both signs and NaN, an ORC file each: to Iceberg -0.0 is less than 0.0, to engines it is the same."""
    spark.sql(
        f"create table {namespace}.zeros (a float, b double) using iceberg "
        "tblproperties ('write.format.default' = 'orc')"
    )
    for value in ("-0.0", "0.0", "NaN"):
        spark.sql(f"insert into {namespace}.zeros values (cast('{value}' as float), cast('{value}' as double))")
    return icestats.load(f"{namespace}.zeros")


@pytest.mark.parametrize("column", ["a", "b"])
@pytest.mark.parametrize(
    ("rest", "count"),
    [(">= 0", 2), ("<= -0.0", 2), ("= 0", 2), ("= -0.0", 2), ("in (0, 5)", 2), ("< 0", 0), ("> -0.0", 0), ("!= 0", 1)],
)
def test_zeros_of_both_signs_are_the_same(spark, zeros, column, rest, count):
    condition = build_sql(zeros._ask(f"{column} {rest}").predicate, zeros.schema, "spark", exact=True)
    assert count_with_spark(spark, zeros._source, zeros.snapshot, zeros.schema, [condition]) == [count]


@pytest.fixture(scope="module")
def odd_bounds(spark, namespace):
    """An ORC file whose bounds ORC compares in another order, or calendar, than they are in."""
    spark.sql(
        f"create table {namespace}.odd_bounds (day date, at timestamp_ntz, name string) using iceberg "
        "tblproperties ('write.format.default' = 'orc')"
    )
    for day, name in (("0001-01-01", "\U0001f50b"), ("1582-10-14", "\uffff")):
        spark.sql(
            f"insert into {namespace}.odd_bounds select /*+ coalesce(1) */ * from values "
            f"(date '{day}', timestamp_ntz '{day} 01:00:00', '{name}'), "
            f"(date '{day}', timestamp_ntz '{day} 01:00:00', '\U0001f50b')"
        )
    return icestats.load(f"{namespace}.odd_bounds")


@pytest.mark.parametrize(
    ("row_filter", "count"),
    [
        ("day = '0001-01-01'", 2),
        ("day <= '0001-01-01'", 2),
        ("at < '1582-10-01T00:00:00'", 2),
        ("at = '1582-10-14T01:00:00'", 2),
        ("name = '\uffff'", 1),
        ("name > '\uffff'", 3),
    ],
)
def test_bounds_of_orc_that_are_compared_in_another_order_leave_out_no_rows(spark, odd_bounds, row_filter, count):
    assert odd_bounds.plan(row_filter, rows=True).steps[-1].kept == count


@pytest.fixture(scope="module")
def odd_years(spark, namespace):
    """An ORC file with a row a day, at 12 o'clock: two days before the year 1, and two after 9999, among others."""
    name, noon = f"{namespace}.odd_years", "timestamp_micros(day * 86400000000L + 43200000000L)"
    spark.sql(
        f"create table {name} (day date, at timestamp_ntz, at_zone timestamp) using iceberg "
        "tblproperties ('write.format.default' = 'orc')"
    )
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.sql(
        f"insert into {name} select date_from_unix_date(day), cast({noon} as timestamp_ntz), {noon} "
        f"from values {', '.join(f'({day})' for day in ODD_DAYS)} as days(day)"
    )
    spark.conf.unset("spark.sql.session.timeZone")
    return icestats.load(name)


ODD_DAYS = (-800_000, -719_163, -719_162, 0, 2_932_896, 2_932_897, 3_000_000)


@pytest.mark.parametrize("column", ["day", "at", "at_zone"])
@pytest.mark.parametrize("day", [-800_000, -719_163, 2_932_897, 3_000_000])
def test_days_beyond_the_years_of_python_are_counted(odd_years, column, day):
    """Spark takes a number for a year, in the text of a date, and refuses it in that of a timestamp."""
    literal = day if column == "day" else day * 86_400_000_000 + 43_200_000_000
    counted = [odd_years.plan(f"{column} {sign} {literal}", rows=True).steps[-1].kept for sign in ("<", "=", ">=")]
    assert counted == [sum(one < day for one in ODD_DAYS), 1, sum(one >= day for one in ODD_DAYS)]


def test_counting_leaves_the_zone_of_the_session_alone(spark, namespace, monkeypatch):
    """Queries of other threads run meanwhile. The count is right in a zone that has an hour twice."""
    spark.sql(
        f"create table {namespace}.zones using iceberg tblproperties ('write.format.default' = 'orc') as "
        "select at, cast(at as timestamp_ntz) local, date '0001-01-01' day, timestamp_micros(-62135596800000000) old "
        "from (select timestamp '2026-10-25 00:30:00Z' + make_dt_interval(0, id) at from range(3))"
    ).collect()
    table, zones, run, name = (
        icestats.load(f"{namespace}.zones"),
        set(),
        optimizer.run_sql,
        "spark.sql.session.timeZone",
    )

    def run_beside(session, statement):
        zones.add(session.conf.get(name))
        return run(session, statement)

    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "Europe/Berlin")
    monkeypatch.setattr(optimizer, "run_sql", run_beside)
    filters = {
        "at = '2026-10-25T01:30:00+00:00'": 1,
        "local > '2026-10-25T00:30:00'": 2,
        "day = '0001-01-01'": 3,
        "old = '0001-01-01T00:00:00+00:00'": 3,
    }
    conditions = [build_sql(table._ask(one).predicate, table.schema, "spark", exact=True) for one in filters]
    try:
        counts = count_with_spark(spark, table._source, table.snapshot, table.schema, conditions)
    finally:
        spark.conf.set(name, before)
    assert counts == list(filters.values())
    assert zones == {"Europe/Berlin"}


def test_moments_have_a_zone_where_those_of_the_session_have_none(spark, namespace):
    """To such a session `timestamp` is a type without a zone: Spark left out the one of a text, and took its own."""
    spark.sql(
        f"create table {namespace}.moments using iceberg tblproperties ('write.format.default' = 'orc') as "
        "select timestamp_ltz '2026-10-24 22:00:00Z' + make_dt_interval(0, id) at from range(5)"
    ).collect()
    table = icestats.load(f"{namespace}.moments")
    filters = {"at >= '2026-10-25T00:00:00+00:00'": 3, "at < '2026-10-25T01:00:00+02:00'": 1, "at < 0": 0}
    conditions = [build_sql(table._ask(one).predicate, table.schema, "spark", exact=True) for one in filters]
    settings = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}
    with changed_settings(spark, settings):
        counts = count_with_spark(spark, table._source, table.snapshot, table.schema, conditions)
    assert counts == list(filters.values())


def test_rows_are_counted_where_a_session_reserves_the_words_of_sql(spark, orders):
    """Opened by its metadata.json, a table is registered for the count, by an argument that is called `table`."""
    bare = icestats.load(orders._source.metadata_location)
    with changed_settings(spark, {"spark.sql.ansi.enforceReservedKeywords": "true"}):
        assert count_with_spark(spark, bare._source, bare.snapshot, bare.schema, ["id > 1"]) == [3]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_groups_of_rows_that_pyiceberg_cannot_read_are_counted(spark, namespace, file_format):
    """NaN, zeros of either sign and nulls are a group each, as where PyIceberg counts them."""
    nan = "cast('NaN' as double)"
    values = f"('a', 0.0D), ('a', -0.0D), ('b', {nan}), (null, {nan}), (null, null), ('b', null)"
    counts = {}
    for kind in ("parquet", file_format):
        name = f"{NAMESPACE}.groups_{kind}"
        spark.sql(f"drop table if exists {name} purge")
        spark.sql(
            f"create table {name} (`odd.name` string, v double) using iceberg "
            f"tblproperties ('write.format.default' = '{kind}')"
        )
        spark.sql(f"insert into {name} values {values}")
        table = icestats.load(name)
        asked = [(["odd.name", "v"], "true"), (["v"], "true"), (["odd.name"], "v >= 0"), (["v"], "v is not null")]
        found = [table.estimate_groups(*one, actual=True, spark=spark) for one in asked]
        counts[kind] = [one.actual for one in found]
        by = "PyIceberg" if kind == "parquet" else "Spark, as PyIceberg cannot read the table"
        assert all(one["actual"].assumes.startswith(f"counted by {by}") for one in found)
    assert counts["parquet"] == counts[file_format]
    with pytest.raises(icestats.UnsupportedError, match="count a join of it in Spark SQL"):
        table.estimate_join(table, "v", actual=True)


def test_columns_that_take_each_others_names_after_the_table_was_loaded_are_counted_as_they_were(spark, namespace):
    """Iceberg 1.12 looks the columns of a filter on a snapshot up by the names that they have now."""
    name = f"{namespace}.swapped"
    spark.sql(f"create table {name} (x int, y int) using iceberg tblproperties ('write.format.default' = 'orc')")
    spark.sql(f"insert into {name} select /*+ coalesce(1) */ * from values (1, 10), (2, 20)")
    table = icestats.load(name)
    for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
        spark.sql(f"alter table {name} rename column {old} to {new}")
    assert table.estimate("x = 1", actual=True, sources=["table"]).actual == 1
    assert table.refresh().estimate("x = 10", actual=True, sources=["table"]).actual == 1
