"""Arguments of other types than are expected, or beyond all limits: one line says what is expected."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import In

import icestats
from tests.computed_statistics import compute_here


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., icestats.Table]]:
    """Open a table of three rows, with arguments."""
    folder = tmp_path_factory.mktemp("odd")
    properties = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    with SqlCatalog("catalog", **properties) as catalog:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", pa.schema([("id", pa.int32()), ("name", pa.string())]))
        made.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", "c"]}))
        yield lambda **pins: icestats.load("db.t", **{"catalog": properties, **pins})


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        ({"snapshot": dt.datetime(2026, 1, 1)}, "is no snapshot id: expected a whole number"),
        ({"snapshot": 1.5}, "snapshot 1.5 is no snapshot id"),
        ({"snapshot": True}, "snapshot True is no snapshot id"),
        ({"snapshot": "--1"}, "snapshot '--1' is no snapshot id"),
        ({"snapshot": "9" * 5_000}, "is no snapshot id"),
        ({"as_of": -1}, "as_of -1 is no point in time: expected a datetime, or ISO 8601"),
        ({"as_of": dt.date(2026, 1, 1)}, "is no point in time"),
        ({"as_of": "0001-01-01T00:00+14:00"}, "is no point in time"),
        ({"ref": ["main"]}, "expected text"),
        ({"catalog": 3}, "catalog is of type int: expected a catalog's name, or its properties"),
    ],
)
def test_a_table_is_not_opened_by_what_names_nothing(
    load: Callable[..., icestats.Table], pins: dict[str, Any], expected: str
) -> None:
    with pytest.raises(icestats.CallError, match=expected) as caught:
        load(**pins)
    assert "\n" not in str(caught.value)


def test_a_location_that_no_file_can_have_is_not_found() -> None:
    with pytest.raises(icestats.TableNotFoundError, match="cannot be opened: File name too long"):
        icestats.load("/tmp/" + "a" * 5_000)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        *(
            (lambda table, odd=odd: table.plan(odd), "is neither text nor an expression of PyIceberg's")
            for odd in (None, 3, True, ["id = 1"], b"id = 1")
        ),
        (lambda table: table.histogram("id", where=3), "is neither text nor an expression"),
        (lambda table: table.plan("name = '\udcff'"), "name is compared with '.*': expected text, without halves of"),
        (lambda table: table.estimate(In("name", ["a", "\ud800"])), "name is compared with '.*': expected text"),
        (lambda table: table.row_groups(pa.table({"file_path": ["x"]})), r"files is .*: expected rows of `files\(\)`"),
        (lambda table: table.plan("id = 1").explain_manifest(None), "row is None: expected a whole number from 0"),
        (lambda table: table.estimate_workload(np.array(3)), r"filters is array\(3\): expected filters in a list"),
        *(
            (lambda table, odd=odd: table.estimate("id = 1", deletes=odd), "deletes is .*: expected one of deduct")
            for odd in (np.array(["ignore", "deduct"]), None)
        ),
        (lambda table: table.compute(by=np.array(["partition", "id"])), "by is .*: expected 'partition', or nothing"),
        *(
            (ask, "is .*: expected True or False")
            for odd in (np.array([True, False]), "no", 1)
            for ask in (
                lambda table, odd=odd: table.compute(table=odd),
                lambda table, odd=odd: table.compute(manifests=True, partitions=odd),
                lambda table, odd=odd: table.compute(table=False, manifests=odd),
                lambda table, odd=odd: table.compute(partitions=True, with_column_stats=odd),
                lambda table, odd=odd: table.plan("id = 1", rows=odd),
                lambda table, odd=odd: table.plan("id = 1", row_groups=odd),
                lambda table, odd=odd: table.plan("id = 1", manifest_statistics=odd),
                lambda table, odd=odd: table.estimate_workload(["id = 1"], double_filtering=odd),
                lambda table, odd=odd: table.estimate("id = 1", actual=odd),
                lambda table, odd=odd: table.estimate("id = 1", double_filtering=odd),
                lambda table, odd=odd: table.estimate_join(table, "id", actual=odd),
                lambda table, odd=odd: table.estimate_groups(["id"], actual=odd),
            )
        ),
        *(
            (ask, expected)
            for odd in (np.array(["id", "name"]), np.array([]), pd.Series(["id", "name"]), pd.NA)
            for ask, expected in (
                (lambda table, odd=odd: table.compute(together=odd), "together is .*: expected pairs of columns"),
                (lambda table, odd=odd: table.export(odd), "engine is .*: expected one of hive, impala, spark, trino"),
                (lambda table, odd=odd: table.export(odd, metastore="thrift://a:1"), "engine is .*: expected one of"),
                (lambda table, odd=odd: table.frequent_values("id", partial=odd), "partial is .*: expected one of"),
                (lambda table, odd=odd: table.histogram("id", partial=odd), "partial is .*: expected one of refuse"),
                (lambda table, odd=odd: compute_here(table).histogram("id", kind=odd), "kind is .*: expected one of"),
                (lambda table, odd=odd: table.rewrite_manifests(sort_by=odd), "no partition field .*: the table has"),
            )
        ),
        *(
            (ask, "^spark is (str|list), expected a SparkSession$")
            for odd in ("local[2]", [])
            for ask in (
                lambda table, odd=odd: table.compute(spark=odd),
                lambda table, odd=odd: table.read_with_spark(odd),
                lambda table, odd=odd: table.to_spark(odd),
                lambda table, odd=odd: table.estimate("id = 1", engines=["spark"], spark=odd),
            )
        ),
        *(
            (lambda table, odd=odd: table.to_spark(view=odd), "view is .*: expected the name of a view, or nothing")
            for odd in (3, ["v"], b"v")
        ),
        *(
            (
                lambda table, odd=odd: icestats.writers.append(table, table.files(), snapshot_properties=odd),
                "snapshot_properties is .*: expected texts by their names",
            )
            for odd in (3, "a", ["a"], {"a": 1}, {1: "a"})
        ),
        (lambda table: table.histogram("id", bins="4"), "bins is '4': expected a whole number from 1"),
        (lambda table: table.histogram("id", bins=4.5), "bins is 4.5: expected a whole number from 1"),
        (lambda table: table.estimate_workload(n="3"), "n is '3': expected a whole number from 1"),
        (lambda table: table.estimate_workload(n=1, seed=-1), "seed is -1: expected a whole number from 0"),
        (lambda table: table.estimate_join(None, "id"), "other is None: expected a table"),
        (lambda table: table.estimate_join("db.t", "id"), "other is 'db.t': expected a table"),
        (lambda table: table.estimate_join(table, ("id", "id", "id")), "expected a column of both tables, or one of"),
        (lambda table: table.sql(None), "the query is None: expected text"),
        (lambda table: table.rewrite_manifests(manifest_size_bytes="8MB"), "manifest_size_bytes is '8MB'"),
        (lambda table: table.compute(k="200"), "k is '200': expected a whole number from 8 to 65,535"),
        (lambda table: table.compute(k=int), "k is <class 'int'>: expected a whole number from 8"),
        (lambda table: table.compute(by="x" * 5_000), "^.{0,200}$"),
        (
            lambda table: table.estimate_join(table, memoryview(b"id")),
            "expected a column of both tables, or one of each",
        ),
        (lambda table: table.estimate_join(table, ("id", 3)), "expected a column of both tables, or one of each"),
        (
            lambda table: table.compute(partitions=True, k=9),
            "k is a size of sketches that are made with a scan of the table",
        ),
        (lambda table: table.compute(partition_k=9), "partition_k is a size of sketches that are made with by='partit"),
        (lambda table: table.compute(lg_k=27), "lg_k is 27: expected a whole number from 4 to 26"),
        (lambda table: table.compute(max_size_bytes="1MB"), "max_size_bytes is '1MB': expected a whole number from 0"),
        *(
            (ask, "columns is .*: expected names in a list")
            for odd in ("id", 3, True, ["id", 3], np.array("id"))
            for ask in (
                lambda table, odd=odd: table.files(columns=odd),
                lambda table, odd=odd: table.row_groups(table.files(), columns=odd),
                lambda table, odd=odd: table.layout(columns=odd),
                lambda table, odd=odd: table.coverage(columns=odd),
                lambda table, odd=odd: table.compute(columns=odd),
                lambda table, odd=odd: table.compute(manifests=True, columns=odd),
                lambda table, odd=odd: table.estimate("id = 1", columns=odd),
            )
        ),
        *(
            (
                lambda table, odd=odd: table.compute(manifests=True).commit(list_ndv=odd, dry_run=True),
                "list_ndv is .*: expected names in a list",
            )
            for odd in ("id", 3, [1])
        ),
        (lambda table: table.files(columns=None), "columns is None: expected names in a list"),
        (lambda table: table.compute(table=False, by="partition"), "by and together are of a scan of the table"),
        (lambda table: table.compute(manifests=True, together=[("id", "nope")]), "no column 'nope'"),
        (lambda table: table.files(manifest_paths="m.avro"), r"manifest_paths is 'm\.avro': expected names in a list"),
        (lambda table: table.row_groups(table), r"files is .*: expected rows of `files\(\)`"),
        (lambda table: table.row_groups(table.manifests()), r"files is .*: expected rows of `files\(\)`"),
        (lambda table: table.coverage(engines="Hive"), "engines is 'Hive': expected names in a list"),
        (lambda table: table.estimate("id = 1", sources="kll"), "sources is 'kll': expected names in a list"),
        (lambda table: table.estimate("id = 1", engines=None), "engines is None: expected names in a list"),
        (lambda table: table.estimate_workload("id = 1"), "filters is 'id = 1': expected filters in a list"),
        (lambda table: table.estimate_workload(3), "filters is 3: expected filters in a list"),
        (lambda table: table.estimate_join(table, None), "on is None: expected a column of both tables, or one of"),
        (lambda table: table.export("hive", name=3), "name is 3: expected text, such as 'db.table'"),
        (lambda table: table.export("hive", metastore=3), "3 is no Hive metastore: expected thrift://host"),
        (lambda table: table.export("hive", metastore=["x"]), r"\['x'\] is no Hive metastore: expected thrift://host"),
        (lambda table: table.histogram("id", bins="x" * 5_000), "^.{0,200}$"),
        (
            lambda table: table.histogram("id", bins=np.array([1, 2])),
            r"bins is array\(\[1, 2\]\): expected a whole number",
        ),
        (lambda table: table.histogram(None), "no column None: the table has id"),
        (lambda table: table.histogram("a" * 200_000), "^no column 'a{79}: the table has id, name$"),
        (lambda table: table.merge_partition_sketches(None, "id = 1"), "no column None: the table has id"),
        *(
            (
                lambda table, odd=odd: table.estimate_workload(n=1, columns=odd),
                "columns is .*: expected names in a list",
            )
            for odd in (True, "id", [None])
        ),
        (lambda table: table.estimate_workload(n=100_001), "n is 100001: expected a whole number from 1 to 100,000"),
        *(
            (
                lambda table, odd=odd: table.plan("id = 1", manifest_paths=odd),
                "manifest_paths is .*: expected names in a",
            )
            for odd in (3, "m")
        ),
        *(
            (lambda table, odd=odd: table.rewrite_manifests(workload=odd), "workload is .*: expected filters in a list")
            for odd in (None, "id = 3")
        ),
        (lambda table: table.layout().what_if(3, regroup="partition"), "workload is 3: expected filters in a list"),
        *(
            (
                lambda table, odd=odd: table.layout().what_if(["id > 1"], sort_by="id", manifest_size_bytes=odd),
                "manifest_size_bytes is .*: expected a whole number from 1",
            )
            for odd in ("x", -1, float("nan"))
        ),
        *(
            (lambda table, name=name: table.layout().what_if(["id > 1"], **{name: 3}), f"{name} is 3: expected text")
            for name in ("regroup", "sort_by", "partition_by")
        ),
        *(
            (ask, "files is .*: expected one of kept, skipped, all, none")
            for odd in ("nope", None, [])
            for ask in (
                lambda table, odd=odd: table.plan("id = 1").files(odd),
                lambda table, odd=odd: table.plan("id = 1").to_json(files=odd),
            )
        ),
        (lambda table: table.plan("id = 1").step("nope"), "no step 'nope': the plan has manifests by"),
        (lambda table: table.plan("id = 1").explain_file(None), "row is None: expected a whole number from 0"),
        *(
            (lambda table, ask=ask, odd=odd: ask(odd), "table is .*: expected a table, such as icestats.load")
            for odd in (None, "db.t", pa.table({"id": [1]}))
            for ask in (
                lambda odd: icestats.writers.append(odd, pa.table({"id": [1]})),
                lambda odd: icestats.writers.overwrite(odd, pa.table({"id": [1]})),
                lambda odd: icestats.writers.append_dataframe(odd, None),
                lambda odd: icestats.preview.build_content_stats(odd),
                lambda odd: icestats.preview.read_preview_manifest_list(odd),
                lambda odd: icestats.preview.write_preview_manifest_list(odd, "new", i_know_this_breaks_pyiceberg=True),
            )
        ),
        *(
            (
                lambda table, odd=odd: icestats.preview.write_preview_manifest_list(
                    table, odd, i_know_this_breaks_pyiceberg=True
                ),
                "folder is .*: expected the path of a new local folder",
            )
            for odd in (None, 3, b"new", "a" * 5_000)
        ),
        (
            lambda table: icestats.writers.append_dataframe(table, pa.table({"id": [1]})),
            "frame is of type Table: expected a DataFrame of Spark's",
        ),
        *(
            (ask, "no column .*: the table has id, name")
            for odd in (np.array(["id"]), np.array("id"), ["id"], pa.array(["id"]))
            for ask in (
                lambda table, odd=odd: table.histogram(odd),
                lambda table, odd=odd: table.schema.find(odd),
                lambda table, odd=odd: compute_here(table).histogram(odd),
            )
        ),
        *(
            (lambda table, odd=odd: icestats.show(table.files(), odd), "no column .* to show: the answer has")
            for odd in (3, np.array(["file_path"]), ["file_path"])
        ),
        *(
            (
                lambda table, odd=odd: icestats.show(table.files(), rows=odd),
                "rows is .*: expected a whole number from 0",
            )
            for odd in ("3", 1.5, None, -1)
        ),
        (lambda table: table.remove_orphans(86_400), r"older_than is 86400: expected a datetime\.timedelta"),
    ],
)
def test_a_call_with_another_type_is_refused_in_one_line(
    load: Callable[..., icestats.Table], ask: Callable[[icestats.Table], object], expected: str
) -> None:
    with pytest.raises(icestats.CallError, match=expected) as caught:
        ask(load())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("as_given", [np.uint8, np.int8, pa.scalar])
def test_a_whole_number_of_numpy_or_arrow_is_reckoned_with_as_python_s(
    load: Callable[..., icestats.Table], as_given: Callable[[int], Any]
) -> None:
    table = load()
    size = as_given(100)
    assert table.rewrite_manifests(manifest_size_bytes=size) == table.rewrite_manifests(manifest_size_bytes=100)
    assert len(icestats.show(table.files(), rows=size)._rows) == 1
    assert compute_here(table).histogram("id", bins=as_given(2)).counts == (2, 1)


@pytest.mark.parametrize("as_given", [int, str, np.int64, pa.scalar])
def test_a_snapshot_is_named_by_any_whole_number_and_by_the_text_of_json(
    load: Callable[..., icestats.Table], as_given: Callable[[int], Any]
) -> None:
    snapshot_id = load().snapshot.snapshot_id
    named = load(snapshot=as_given(snapshot_id))
    assert named.pin == {"snapshot": snapshot_id}
    named.compute(manifests=True).commit()
    load().remove_statistics(as_given(snapshot_id))
    with pytest.raises(icestats.CallError, match=r"snapshot 1\.0 is no snapshot id: expected a whole number"):
        load().remove_statistics(1.0)


@pytest.mark.parametrize(
    ("row_filter", "count"), [("id in (3, 9999999999)", 1), ("id not in (3, 9999999999)", 2), ("id in (9999999999)", 0)]
)
def test_values_beyond_a_columns_type_equal_no_row(
    load: Callable[..., icestats.Table], row_filter: str, count: int
) -> None:
    table = load()
    assert table.estimate(row_filter, actual=True).actual == count
    assert table.estimate_workload([row_filter]).answers[0].actual == count
    assert table.estimate_join(table, "id", row_filter=row_filter, actual=True).actual == count


@pytest.mark.parametrize("row_filter", ["id = 1 or false", "true and id = 1", "not false", "not (id = 1 and true)"])
def test_true_and_false_within_a_filter_are_refused_in_one_line(
    load: Callable[..., icestats.Table], row_filter: str
) -> None:
    with pytest.raises(icestats.FilterError, match="true and false are whole filters, not parts of one"):
        load().plan(row_filter)


@pytest.mark.parametrize("kind", ["partitions", "manifests"])
def test_a_column_that_is_not_there_is_named_though_it_is_not_scanned(
    load: Callable[..., icestats.Table], kind: str
) -> None:
    with pytest.raises(icestats.ColumnNotFoundError, match="no column 'nope'"):
        load().compute(columns=["nope"], **{kind: True})


@pytest.mark.parametrize("value", [None, 0, "no", np.True_])
@pytest.mark.parametrize(
    ("method", "flag"),
    [
        ("remove_orphans", "dry_run"),
        ("remove_orphans", "allow_recent"),
        ("remove_statistics", "restore"),
        ("remove_statistics", "dry_run"),
        ("rewrite_manifests", "dry_run"),
        ("export", "dry_run"),
    ],
)
def test_what_deletes_or_commits_takes_true_and_false_alone(
    load: Callable[..., icestats.Table], method: str, flag: str, value: object
) -> None:
    arguments = ["hive"] if method == "export" else []
    with pytest.raises(icestats.CallError, match=f"^{flag} is .*: expected True or False$"):
        getattr(load(), method)(*arguments, **{flag: value})


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.histogram("id", where="id = 1"),
        lambda table: table.frequent_values("id", where="id = 1"),
        lambda table: table.merge_partition_sketches("id", "id = 1"),
    ],
)
def test_nothing_is_advised_that_a_table_without_partitions_or_rows_cannot_do(
    load: Callable[..., icestats.Table],
    catalog: SqlCatalog,
    catalog_properties: dict[str, str],
    ask: Callable[[icestats.Table], object],
) -> None:
    with pytest.raises(icestats.StatisticsMissingError, match="is not partitioned, so it has no sketches by partition"):
        ask(load())
    with pytest.raises(icestats.StatisticsMissingError, match="is not partitioned, so it has no partition statistics"):
        load().partition_statistics()
    catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    empty = icestats.load("db.empty", catalog=catalog_properties)
    for one in (ask, lambda table: table.histogram("id"), lambda table: table.partition_statistics()):
        with pytest.raises(icestats.StatisticsMissingError, match="has no snapshot yet: write to it"):
            one(empty)
