"""What Spark's optimizer makes of common values, which have bins of their own in the histograms that it is fed with."""

from __future__ import annotations

import json

import pytest

import icestats
from icestats.estimation.optimizer_statistics import build_reported_statistics
from icestats.spark.optimizer_feed.optimizer_feed import read_fed
from icestats.spark.session import active
from tests.spark_versions import SPARK

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.feed_common"
ROWS = 60_000
# 97 % of the rows have one value of `most`; `key` follows a power law, the most common value in the middle.
COLUMNS = (
    "id, if(id % 100 < 97, 500, cast(id * 7919 % 10000 as int)) most, "
    "cast(5000 + if(id % 2 = 0, 1, -1) * floor(pow(pmod(id * 7919, 60000) / 60000 + 0.001, -1)) as bigint) key, "
    "cast(if(id % 10 < 9, 12.34, id % 977) as decimal(12, 2)) dec, "
    "cast(if(id % 10 < 9, 12.34, id % 977) as decimal(30, 2)) wide, "
    "if(id % 10 < 6, date '2026-02-28', date '2026-01-01' + cast(id % 365 as int)) d, "
    "timestamp '2026-01-01T00:00:00' + make_interval(0, 0, 0, 0, 0, 0, if(id % 4 = 0, 77, id)) tz, "
    "case when id % 50 = 0 then double('NaN') when id % 2 = 0 then -0.0D else id * 0.5 end odd, "
    "if(id % 3 = 0, cast(0.1 as float), cast(id as float)) f, if(id % 5 = 0, null, if(id % 5 < 4, 1, id)) sparse, "
    "if(id % 4 = 0, 0, if(id % 4 = 1, 9, 1 + id % 8)) ends, id % 10 even, concat('s', id % 7) name, id % 3 = 0 flag"
)


@pytest.fixture(scope="module")
def session(spark, namespace):
    """A session with CBO on, the view `common` of a table, and `plain` of the same without common values."""
    if SPARK != (4, 1):
        pytest.skip("`to_spark` is refused: it is known to work with Spark 4.1 alone")
    settings = {"spark.sql.cbo.enabled": "true", "spark.sql.shuffle.partitions": "2"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    _make(spark, "common", f"select {COLUMNS} from range({ROWS})")
    table = icestats.load(f"{NAMESPACE}.common")
    reported = build_reported_statistics(table._evidence, with_common=False)
    read_fed(spark, table._source, table.snapshot, table.schema, reported, "plain")
    yield spark
    for view in ("common", "plain"):
        spark.catalog.dropTempView(view)
    for name, value in before.items():
        spark.conf.set(name, value)


def _make(spark, name, query, properties=""):
    spark.sql(f"create table {NAMESPACE}.{name} using iceberg {properties} as {query}")
    icestats.load(f"{NAMESPACE}.{name}").compute(spark=spark).commit()
    icestats.load(f"{NAMESPACE}.{name}").to_spark(spark, view=name)


def _estimate(spark, query):
    with active(spark):
        statistics = spark.sql(query)._jdf.queryExecution().optimizedPlan().stats()
    return int(str(statistics.rowCount().get()))


def _count(spark, table, where="true"):
    return spark.sql(f"select count(*) from {NAMESPACE}.{table} where {where}").first()[0]


def _sources(name):
    table = icestats.load(f"{NAMESPACE}.{name}").reported_statistics().to_arrow()
    return dict(zip(*table.select(["column", "sources"]).to_pydict().values(), strict=True))


EQUAL = (
    "most = 500",
    "key = 4999",
    "key = 5002",
    "dec = 12.34",
    "wide = 12.34",
    "d = date '2026-02-28'",
    "tz = timestamp '2026-01-01T00:01:17'",
    "odd = 0.0",
    "odd = -0.0",
    "f = cast(0.1 as float)",
    "sparse = 1",
    "ends = 0",
    "ends = 9",
    "most != 500",
)


@pytest.mark.parametrize("where", EQUAL)
def test_a_common_value_is_estimated_within_two_percent(session, where):
    # Iceberg finds no -0.0 by a filter that is pushed down.
    actual = _count(session, "common", where.replace("odd", "odd + 0"))
    assert _estimate(session, f"select * from common where {where}") == pytest.approx(actual, rel=0.02, abs=ROWS / 1000)


@pytest.mark.parametrize(
    "where",
    ["most = 6131", "most = 501", "key > 5100", "most < 500", "d > date '2026-06-01'", "odd > 20000", "f < 9000"],
)
def test_other_values_are_estimated_no_worse_than_by_the_sketch(session, where):
    actual = max(_count(session, "common", where), 1)
    errors = [
        max(rows / actual, actual / rows)
        for rows in (max(_estimate(session, f"select * from {view} where {where}"), 1) for view in ("common", "plain"))
    ]
    assert errors[0] <= max(1.2 * errors[1], 2)


def test_each_literal_between_the_bounds_is_in_a_bin(session):
    """Spark ends a query with an assertion where a literal is in no bin."""
    for column in ("most", "key", "dec", "wide", "ends", "sparse", "odd", "f"):
        low, high = session.sql(
            f"select min({column}), max({column}) from {NAMESPACE}.common where not isnan({column})"
        ).first()
        common = icestats.load(f"{NAMESPACE}.common").frequent_values(column)["value"].to_pylist()[:3]
        literals = [float(low) + share / 20 * float(high - low) for share in range(21)]
        literals += [float(value) + step for value in filter(None, common) for step in (-1, -1e-9, 0, 1e-9, 1)]
        kind = session.table("common").schema[column].dataType.simpleString()
        conditions = [
            f"{column} {operator} cast({one!r} as {kind})" for one in literals for operator in ("=", "<", ">=")
        ]
        queries = [f"select id from common where {condition}" for condition in conditions]
        assert 0 <= _estimate(session, " union all ".join(queries)) <= ROWS * len(queries)


@pytest.mark.parametrize("key", ["most", "key", "d", "dec"])
def test_a_join_of_skewed_keys_is_estimated_within_a_tenth(session, key):
    query = f"select a.id from {{0}} a join {{0}} b on a.{key} = b.{key}"
    actual = session.sql(f"select sum(n * n) from (select count(*) n from {NAMESPACE}.common group by {key})").first()[
        0
    ]
    assert _estimate(session, query.format("common")) == pytest.approx(float(actual), rel=0.1)


def test_a_common_value_joins_a_wide_bin_of_the_other_side(session):
    """Spark gives no rows to a bin without width that lies within another."""
    _make(session, "spread", "select cast(id * id / 400 as bigint) key, id n from range(2000)")
    actual = session.sql(
        f"select count(*) from {NAMESPACE}.common a join {NAMESPACE}.spread b on a.key = b.key"
    ).first()[0]
    rows = _estimate(session, "select a.id from common a join spread b on a.key = b.key")
    assert max(rows / actual, actual / rows) <= 4
    session.catalog.dropTempView("spread")


def test_what_is_said_and_what_is_not(session):
    sources = _sources("common")
    assert "1 of 301 common values in bins of their own, 97.0%" in sources["most"]
    for column in ("name", "flag", "even"):
        assert "common values are committed, and not said" in sources[column]
    assert "no histogram: values spread evenly" in sources["even"]
    plain = build_reported_statistics(icestats.load(f"{NAMESPACE}.common")._evidence, with_common=False)
    assert "common" not in "".join(column.sources for column in plain.columns)


def test_statistics_of_an_earlier_snapshot_and_deletes(session):
    """Shares are those of the sketch's rows; values that are gone from between the bounds are left out."""
    properties = "tblproperties ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    _make(session, "stale", "select id, if(id % 2 = 0, 7, id) v from range(20000)", properties)
    session.sql(f"delete from {NAMESPACE}.stale where id % 10 < 2")
    session.sql(f"insert into {NAMESPACE}.stale select id + 20000, if(id % 2 = 0, 7, id) from range(20000)")
    session.sql(f"refresh table {NAMESPACE}.stale")
    icestats.load(f"{NAMESPACE}.stale").to_spark(session, view="stale")
    assert "2 commits behind" in _sources("stale")["v"]
    assert _estimate(session, "select * from stale where v = 7") == pytest.approx(
        _count(session, "stale", "v = 7"), rel=0.02
    )
    session.catalog.dropTempView("stale")
    session.sql(f"create table {NAMESPACE}.gone using iceberg as select id, if(id < 9000, 5, id) v from range(10000)")
    icestats.load(f"{NAMESPACE}.gone").compute(spark=session).commit()
    session.sql(f"insert overwrite {NAMESPACE}.gone select id, id + 100 v from range(1000)")
    session.sql(f"refresh table {NAMESPACE}.gone")
    icestats.load(f"{NAMESPACE}.gone").to_spark(session, view="gone")
    assert _estimate(session, "select * from gone where v = 5") == 0
    session.catalog.dropTempView("gone")


def test_without_common_values_the_figures_are_those_of_the_sketch(session, monkeypatch):
    """A commit without common values gives the optimizer what it gave before there were any."""
    table = icestats.load(f"{NAMESPACE}.common")
    plain = build_reported_statistics(table._evidence, with_common=False).to_json()
    monkeypatch.setattr(type(table._evidence), "read_frequent", lambda *_: None)
    without = json.loads(build_reported_statistics(icestats.load(f"{NAMESPACE}.common")._evidence).to_json())
    assert without == json.loads(plain)
