"""What Spark's optimizer makes of a table that is fed with the kit's statistics, beside the plain table."""

from __future__ import annotations

import json
import queue
import re
import warnings

import pytest

import icestats
from icestats.errors import CallError, UnsupportedError
from icestats.spark.session import active
from tests.spark_versions import SPARK

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.feed"
MEASURED = f"{NAMESPACE}.measured"
ROWS = 60_000
COLUMNS = (
    "cast(exp(3.5 + 0.95 * randn(7)) as int) ms, cast(id % 10 as int) day, id, "
    "concat('s', id % 700) name, cast(id % 7 as float) + cast(0.1 as float) f, cast(null as int) void, "
    "id % 2 = 0 flag, cast(id % 77 as decimal(12, 2)) dec, date '2026-01-01' + cast(id % 365 as int) d, "
    "timestamp_ntz '2026-01-01T00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) ntz, "
    "timestamp '2026-01-01T00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) tz, "
    "if(id % 50 = 0, double('NaN'), cast(id as double)) odd, if(id % 4 = 0, null, id) sparse, "
    "id % 90 `größe`, id % 90 `unit price`"
)


@pytest.fixture(scope="module")
def session(spark, request):
    """A session with CBO on, and the view `fed` beside the table that it is of."""
    if SPARK != (4, 1):
        pytest.skip("`to_spark` is refused: it is known to work with Spark 4.1 alone")
    request.getfixturevalue("namespace")
    settings = {
        "spark.sql.cbo.enabled": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    query = f"select {COLUMNS} from range({ROWS})"
    spark.sql(f"create table {MEASURED} using iceberg partitioned by (day) as {query}")
    icestats.load(MEASURED).compute(spark=spark).commit()
    icestats.load(MEASURED).to_spark(spark, view="fed")
    yield spark
    spark.catalog.dropTempView("fed")
    for name, value in before.items():
        spark.conf.set(name, value)


def _statistics(spark, frame):
    # Statistics of a plan that is not run go by the active session's settings.
    with active(spark):
        return frame._jdf.queryExecution().optimizedPlan().stats()


def _estimate(spark, query):
    statistics = _statistics(spark, spark.sql(query))
    return int(str(statistics.rowCount().get())), int(str(statistics.sizeInBytes()))


def _count(spark, table, where):
    return spark.sql(f"select count(*) from {table} where {where}").first()[0]


def _physical(spark, query):
    plan = spark.sql(f"explain {query}").first()[0]
    return [re.sub(r"#\d+L?", "", line.split("[")[0]).strip() for line in plan.splitlines()]


ESTIMATED = (
    "ms > 300",
    "ms = 30",
    "ms > 60 and ms < 70",
    "day = 3",
    "day = 3 and ms > 100",
    "day in (1, 2) and ms < 20",
    "name = 's5'",
    "f = cast(0.1 as float)",
    "f >= cast(3.1 as float)",
    "flag = true",
    "dec = 12",
    "dec > 12.5",
    "d >= date '2026-12-01'",
    "tz < timestamp '2026-01-01T02:00:00'",
    "odd > 50000",
    "sparse is null",
    "sparse < 30000",
    "not (ms > 300)",
    "`größe` = 5",
    "`unit price` < 9",
)


@pytest.mark.parametrize("where", ESTIMATED)
def test_rows_of_a_filter_are_estimated_within_a_factor(session, counts, where):
    """Ranges and equalities, over a partition column, beside one, and over columns of each type."""
    rows, _ = _estimate(session, f"select * from fed where {where}")
    actual = counts[where]
    assert max(rows / actual, actual / rows) <= 1.7, (rows, actual)


UNESTIMATED = (
    "void = 3",
    "void is null",
    "flag",
    "isnan(odd)",
    "odd = double('NaN')",
    "name like 's1%'",
    "name > 's6'",
    "cast(ms as string) = '30'",
    "ms > 1e9",
    "ms in (30, 31) or day = 11",
    "day = 11",
    "3 < day",
)


@pytest.fixture(scope="module")
def counts(session):
    """How many rows of the plain table each filter keeps, counted in one query."""
    filters = ESTIMATED + UNESTIMATED
    counted = ", ".join(f"count_if({where})" for where in filters)
    return dict(zip(filters, session.sql(f"select {counted} from {MEASURED}").first(), strict=True))


@pytest.mark.parametrize("where", ESTIMATED + UNESTIMATED)
def test_answers_and_pushdown_stay_as_they_are(session, counts, where):
    assert _count(session, "fed", where) == counts[where]
    query = "select id, ms from {} where " + where
    assert _physical(session, query.format("fed")) == _physical(session, query.format(MEASURED))


def test_spark_finds_no_ndv_of_an_unusual_name_by_itself(session):
    """So it is not estimated at 0 rows either, as other columns are that have an NDV and no bounds."""
    table = icestats.load(MEASURED)
    engines = {row["columns"][0]: row["used_by"] for row in table.sketches().to_pylist() if "theta" in row["type"]}
    for name in ("ms", "größe", "unit price"):
        rows, _ = _estimate(session, f"select * from {MEASURED} where `{name}` = 5")
        assert (rows > 1) == ("Spark" not in engines[name])
        traps = [finding.title for finding in table.estimate(f'"{name}" = 5').findings]
        assert any("SPARK-52868" in title for title in traps) == ("Spark" in engines[name])
    said = table.compute(columns=["id", "größe"], spark=session).commit(dry_run=True)
    named = re.search("estimates 0 rows for an equality on (.*) and IN", str(said))[1].split(", ")
    assert "ms" in named
    assert not {"größe", "unit price"} & set(named)


def test_a_timestamp_without_a_zone_has_no_statistics(session):
    """Spark's own estimate fails on a range of them, where it knows any statistic."""
    assert _count(session, "fed", "ntz > timestamp_ntz '2026-01-01T00:10:00'") == ROWS - 601
    unknown = dict(icestats.load(MEASURED).reported_statistics().unknown)
    assert list(unknown) == ["ntz"]
    assert "without a zone" in unknown["ntz"]


QUERIES = (
    "select min(id), max(id), count(*) from {0}",
    "select count(*) from {0} where day = 3",
    "select name, count(*) from {0} group by name",
    "select id from {0} order by id limit 3",
    "select id from {0} limit 3",
    "select * from (select name, count(*) n from {0} group by 1) a join (select name, count(*) n from {0} group by 1) b"
    " using (name, n)",
    "select count(*) from {0} a join {0} b on a.day = b.day and a.id = b.id",
    "select count(*) from {0} a join (select day, id from {0} where ms > 1000) b on a.day = b.day and a.id = b.id",
)


@pytest.mark.parametrize("query", QUERIES)
def test_plans_keep_what_iceberg_pushes_down_and_spark_reuses(session, query):
    """Aggregates, limits, metadata columns, exchanges that are used again, joins by partition."""
    settings = {
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    }
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        plans = [_physical(session, query.format(table)) for table in ("fed", MEASURED)]
        kinds = [sorted(line.split("(")[0].lstrip(":+-* ") for line in plan) for plan in plans]
        assert kinds[0] == kinds[1]
        if "limit 3" not in query or "order" in query:
            first, second = (sorted(map(str, session.sql(query.format(t)).collect())) for t in ("fed", MEASURED))
            assert first == second
    finally:
        for name, value in before.items():
            session.conf.unset(name) if value is None else session.conf.set(name, value)


def test_metadata_columns_are_there(session):
    assert icestats.load(MEASURED).to_spark(session).select("_partition.day").distinct().count() == 10


def test_runtime_filters_reach_the_scan(session):
    """A join with a filtered small side filters the partitions of the other side when the query runs."""
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    try:
        query = (
            "select count(*) from {0} a join (select day from {0} where id = 13) b on a.day = b.day"  # one of ten days
        )
        plans = [session.sql("explain " + query.format(table)).first()[0] for table in ("fed", MEASURED)]
        assert ["dynamicpruning" in plan for plan in plans] == [True, True]
        assert [session.sql(query.format(table)).first()[0] for table in ("fed", MEASURED)] == [ROWS // 10] * 2
    finally:
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")


def test_sizes_are_those_of_the_columns_that_are_read(session):
    _, all_columns = _estimate(session, "select * from fed")
    assert _estimate(session, "select ms from fed") == (ROWS, ROWS * 4)
    assert _estimate(session, "select ms, name from fed") == (ROWS, ROWS * (4 + 4 + 12))
    assert all_columns > ROWS * 72


def test_without_cbo_files_that_filters_prune_still_make_scans_smaller(session):
    session.conf.set("spark.sql.cbo.enabled", "false")
    try:
        sizes = [
            int(str(_statistics(session, session.sql(query)).sizeInBytes()))
            for query in ("select ms from fed", "select ms from fed where day = 3", "select ms from fed where id < 0")
        ]
    finally:
        session.conf.set("spark.sql.cbo.enabled", "true")
    assert sizes == [ROWS * 4, ROWS // 10 * 6, 1]


def test_deletes_and_later_rows_are_accounted_for(session):
    """Statistics of an earlier snapshot: today's rows, and the new rows beyond the old bounds where they are."""
    name = f"{NAMESPACE}.changed"
    session.sql(
        f"create table {name} using iceberg tblproperties ('format-version' = '2', 'write.delete.mode' = "
        f"'merge-on-read') as select id, cast(id % 9 as int) kind from range(20000)"
    )
    icestats.load(name).compute(spark=session).commit()
    session.sql(f"insert into {name} select id + 20000, 100 from range(20000)")
    session.sql(f"delete from {name} where id % 10 = 0 and id < 20000")
    session.sql(f"refresh table {name}")
    table = icestats.load(name)
    reported = table.reported_statistics()
    assert (reported.row_count, reported.record_count) == (38_000, 40_000)
    sources = dict(zip(*reported.to_arrow().select(["column", "sources"]).to_pydict().values(), strict=True))
    assert "2 commits behind" in sources["kind"]
    table.to_spark(session, view="changed")
    for where in ("kind > 50", "id >= 20000", "id < 10000", "kind < 50"):
        rows, _ = _estimate(session, f"select * from changed where {where}")
        actual = _count(session, name, where)
        assert max(rows / actual, actual / rows) <= 1.7, (where, rows, actual)
    session.catalog.dropTempView("changed")


def test_a_frame_stays_at_its_snapshot(session):
    """Through an earlier snapshot, and while the table changes."""
    name = f"{NAMESPACE}.pinned"
    session.sql(f"create table {name} using iceberg as select id from range(100)")
    old = icestats.load(name)
    frame = old.to_spark(session, view="pinned")
    session.sql(f"insert into {name} select id from range(50)")
    assert (frame.count(), session.table("pinned").count()) == (100, 100)
    assert icestats.load(name).to_spark(session).count() == 150
    assert icestats.load(name, snapshot=old.snapshot.snapshot_id).to_spark(session).count() == 100
    session.sql(f"alter table {name} add column more string")
    for snapshot, count in ((old.snapshot.snapshot_id, 60), (None, 60)):
        found = icestats.load(name, snapshot=snapshot).to_spark(session)
        assert found.where("id >= 40").count() == (60 if snapshot else 70), count
    session.catalog.dropTempView("pinned")


def test_a_table_of_no_catalog_of_the_session_is_read_too(session, demo_home):
    location = icestats.load(MEASURED)._source.metadata_location
    frame = icestats.load(location).to_spark(session)
    assert frame.where("day = 3").count() == ROWS // 10
    assert _statistics(session, frame.where("ms > 300")).rowCount().isDefined()


def test_a_view_that_is_taken_is_left_alone(session):
    session.sql("create temporary view taken as select 1 as one")
    table = icestats.load(MEASURED)
    with pytest.raises(CallError, match="has a view 'taken' already"):
        table.to_spark(session, view="taken")
    assert session.table("taken").columns == ["one"]
    with pytest.raises(CallError, match="cannot be the name of a view"):
        table.to_spark(session, view="a.b.c d")
    table.to_spark(session, view="again")
    table.to_spark(session, view="again")
    for view in ("taken", "again"):
        session.catalog.dropTempView(view)


def test_figures_that_spark_cannot_take_leave_the_plain_table(session, monkeypatch):
    """One warning says why, and the query runs."""
    table = icestats.load(MEASURED)
    monkeypatch.setattr(type(table.reported_statistics()), "to_json", lambda self: "no figures")
    with pytest.warns(RuntimeWarning, match=r"with Iceberg's own statistics, not with those of icestats: .+") as caught:
        frame = table.to_spark(session)
    assert [one.category for one in caught].count(RuntimeWarning) == 1
    assert frame.where("day = 3").count() == ROWS // 10


def test_what_fails_while_spark_plans_is_said_once_in_python(session, monkeypatch):
    """More bytes than a long holds, which only the planning of a query finds out: the queries run."""
    table = icestats.load(MEASURED)
    figures = json.dumps(json.loads(table.reported_statistics().to_json()) | {"rows": 2**62})
    monkeypatch.setattr(type(table.reported_statistics()), "to_json", lambda self: figures)
    frame, seen = table.to_spark(session), queue.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_: seen.put(message)
        joins = [frame.where(f"id < {least}").join(frame.select("id"), "id") for least in (300, 300, 500)]
        assert [join.count() for join in joins] == [300, 300, 500]
        said = seen.get(timeout=60)
    assert isinstance(said, RuntimeWarning)
    assert str(said).startswith(
        "Spark plans with Iceberg's own statistics, not with those of icestats: java.lang.Arith"
    )
    assert seen.empty()


def test_statistics_that_are_gone_leave_bounds(session):
    name = f"{NAMESPACE}.gone"
    session.sql(f"create table {name} using iceberg as select id from range(1000)")
    icestats.load(name).compute(spark=session).commit()
    from icestats.iceberg.storage import local_path

    for file in icestats.load(name).metadata.statistics:
        local_path(file.statistics_path).unlink()
    table = icestats.load(name)
    reported = table.reported_statistics()
    assert reported.row_count == 1000
    assert any("committed statistics are not used" in note for note in reported.notes)
    with pytest.warns(RuntimeWarning, match="committed statistics are not used"):
        frame = table.to_spark(session, view="gone")
    assert frame.count() == 1000
    assert _estimate(session, "select * from gone where id = 5000")[0] == 0
    assert _estimate(session, "select * from gone where id = 5")[0] == 1000
    session.catalog.dropTempView("gone")


def test_a_warning_has_no_escape_sequence_of_a_column(session):
    name = f"{NAMESPACE}.hostile"
    session.sql(f"create table {name} using iceberg as select id as `n\x1b[31m` from range(1000)")
    icestats.load(name).compute(spark=session).commit()
    from icestats.iceberg.storage import local_path

    (file,) = icestats.load(name).metadata.statistics
    path, footer = local_path(file.statistics_path), file.file_footer_size_in_bytes
    data = path.read_bytes()
    path.write_bytes(b"PFA1" + bytes(len(data) - footer - 4) + data[-footer:])
    table = icestats.load(name)
    assert any("\x1b" in note for note in table.reported_statistics().notes)
    with pytest.warns(RuntimeWarning, match="is used") as caught:
        table.to_spark(session)
    assert all(str(one.message).isprintable() for one in caught)


def test_sessions_that_cannot_be_fed_are_refused(spark):
    class Session:
        sparkContext = spark.sparkContext  # noqa: N815
        version = spark.version if SPARK < (4, 1) else "4.2.0"

    class Connected(Session):
        __module__ = "pyspark.sql.connect.session"

    table = icestats.load("demo.flights")
    with pytest.raises(UnsupportedError, match=r"Spark [\d.]+, known to work is 4\.1: .*spark\.table\("):
        table.to_spark(Session())
    with pytest.raises(UnsupportedError, match=r"Spark Connect does not reach: .*spark\.table\("):
        table.to_spark(Connected())
