"""Layouts: how deep files overlap, what is found and how it is mended, and what a rewrite would bring."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    DateType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

import icestats
from icestats.answers.arrays import join_paths
from icestats.answers.text import render_bytes
from icestats.iceberg.storage import local_path
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.snapshot.layout.clustering import build_depth
from icestats.snapshot.layout.maintenance import Maintenance
from icestats.snapshot.planned_files import PlannedFiles
from tests.written_deletes import list_data_files


def test_depth_counts_ranges_of_keys():
    """Against counting one by one; a range the wrong way round holds no key."""
    rng = np.random.default_rng(1)
    lower = rng.integers(0, 60, 200)
    upper = np.minimum(lower + rng.integers(0, 20, 200), 79)
    lower[0], upper[0] = 70, 9
    depth = build_depth(lower, upper, np.ones(80), unknown_count=7, valueless_count=5)
    counts = [int(((lower <= key) & (key <= upper)).sum()) + 7 for key in range(80)]
    assert depth.max == max(counts)
    assert (depth.range_count, depth.unknown_count) == (212, 7)
    for least, most, share in depth.histogram:
        assert share == pytest.approx(np.mean([least <= max(count, 1) <= most for count in counts]))


@pytest.fixture
def mixed_table(catalog):
    """Twelve commits that each write to every one of four partitions, ids spread over all files."""
    schema = Schema(
        NestedField(1, "part", LongType(), required=False), NestedField(2, "id", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("db.mixed", schema, partition_spec=spec)
    for commit in range(12):
        ids = np.arange(400) * 12 + commit
        table.append(pa.table({"part": ids // 12 % 4, "id": ids}))
    return icestats.load("db.mixed", catalog={"name": "catalog", **catalog.properties})


def test_a_column_that_a_partition_field_is_named_after_is_told_from_it(mixed_table):
    lines = repr(mixed_table.layout()).splitlines()
    assert [line.split("  ")[1] for line in lines if "a key lies in" in line and "!" not in line][:2] == [
        "part",
        "part (column)",
    ]


def test_findings_name_the_statement_and_what_if_says_what_it_brings(mixed_table):
    layout = mixed_table.layout(columns=["id"])
    titles = {finding.title: finding for finding in layout.findings}
    mixed = next(finding for title, finding in titles.items() if title.startswith("Manifests overlap in part"))
    assert "12.0 of 12 manifests" in mixed.evidence
    assert mixed.fix.endswith("system.rewrite_manifests(table => 'db.mixed', sort_by => array('part'))")
    lengths = sum(mixed_table.manifest_files()["manifest_length"].to_pylist())
    assert mixed.cost == f"rewrites 12 manifests ({render_bytes(lengths)}), no data file"
    unsorted = next(finding for title, finding in titles.items() if "overlap in id" in title)
    assert unsorted.cost.startswith("rewrites all 48 data files (")
    assert "sort_order => '`id` ASC NULLS LAST'" in unsorted.fix
    size = sum(mixed_table.manifest_files()["manifest_length"].to_pylist()) // 4
    regrouped = layout.what_if(["part = 2"], regroup="part", manifest_size_bytes=size).to_arrow().to_pylist()
    assert (regrouped[0]["kept_now"], regrouped[0]["total_now"]) == (12, 12)
    assert regrouped[0]["kept_then"] == 1
    assert regrouped[-1]["kept_now"] == regrouped[-1]["kept_then"] == 12
    ordered = layout.what_if(["part = 2 and id < 100"], sort_by="id").to_arrow().to_pylist()
    assert ordered[-1]["kept_now"] == 12
    assert ordered[-1]["kept_then"] <= 2
    # A plan skips no manifest by the bounds of columns before the statistics of manifests are committed.
    assert "manifests by column bounds" not in [step.step for step in mixed_table.plan("id < 100").steps]
    for change in ({"regroup": "part"}, {"sort_by": "id"}, {"partition_by": "part"}):
        assert "manifests by column bounds as if their statistics were committed" in repr(
            layout.what_if(["id < 100"], **change)
        )
    preview = mixed_table.rewrite_manifests(sort_by="part", manifest_size_bytes=size, workload=["part = 2"])
    assert not preview.is_done
    assert "as if their statistics were committed" in repr(preview)
    assert "committed" not in repr(mixed_table.rewrite_manifests())
    assert preview.to_arrow()["after"].null_count == preview.to_arrow().num_rows
    assert mixed_table.refresh().snapshot == mixed_table.snapshot


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda layout: layout.what_if(["id = 1"]), "give one of"),
        (lambda layout: layout.what_if(["id = 1"], regroup="nope"), "no partition field 'nope'"),
        (lambda layout: layout.what_if(["id = 1"], sort_by="nope"), "no column 'nope'"),
        (lambda layout: layout.what_if(["nope = 1"], regroup="partition"), "names no column 'nope'"),
    ],
)
def test_a_wrong_what_if_says_what_is_wrong(mixed_table, call, part):
    with pytest.raises(icestats.CallError, match=part):
        call(mixed_table.layout())


@pytest.mark.parametrize(
    ("column", "kind"), [("pair", "struct"), ("some", "list"), ("some.element", "int in a list or map")]
)
def test_what_no_file_is_sorted_by_is_refused(catalog, load, column, kind):
    some = ListType(5, IntegerType(), element_required=False)
    pair = StructType(NestedField(3, "left", IntegerType(), required=False))
    schema = Schema(NestedField(1, "pair", pair, required=False), NestedField(4, "some", some, required=False))
    table = catalog.create_table("db.nested", schema)
    table.append(pa.Table.from_pylist([{"pair": {"left": 1}, "some": [2]}], table.schema().as_arrow()))
    layout = load("db.nested").layout()
    with pytest.raises(icestats.CallError, match=f"sort_by is '{column}', of type {kind}: expected a column"):
        layout.what_if(["pair.left = 1"], sort_by=column)
    assert layout.what_if(["pair.left = 1"], sort_by="pair.left").comparisons


def test_what_if_counts_now_as_a_plan_does(mixed_table):
    """The funnel in memory and the one over manifests agree."""
    for row_filter in ("part = 2 and id < 100", "id > 4000", "part in (1, 3) and id = 77", "id is null"):
        plan = mixed_table.plan(row_filter, manifest_statistics=True)
        rows = mixed_table.layout().what_if([row_filter], regroup="partition").to_arrow().to_pylist()
        steps = [step for step in plan.steps if step.unit != "row"]
        assert [(r["total_now"], r["kept_now"], r["kept_rows_now"]) for r in rows[2:]] == [
            (s.total, s.kept, s.kept_rows) for s in steps[2:]
        ]
        assert [(r["total_now"], r["kept_now"]) for r in rows[:2]] == [(s.total, s.kept) for s in steps[:2]]


def test_manifests_without_a_live_file_have_a_layout(catalog, load):
    """Text keys, too: all files of the only partition are gone, and the manifest that says so is left."""
    schema = Schema(NestedField(1, "name", StringType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("db.gone", schema, partition_spec=spec)
    table.append(pa.table({"name": ["a"]}))
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        overwrite.delete_data_file(list_data_files(table)[0])
    layout = load("db.gone").layout()
    assert [(field.name, field.files.range_count) for field in layout.fields] == [("name", 0)]


def test_files_that_a_plan_has_read_are_the_same_for_the_next_one(mixed_table):
    """Whatever parts of the table were read before, in whatever order: the rows are those of a first reading."""
    source, manifests = mixed_table._source, mixed_table.manifest_files()
    planned = PlannedFiles(source)
    chosen = [range(3, 9), range(12), range(12), [11, 2, 3, 4, 0], [], [7], range(0, 12, 2), range(5)]
    columns = [(2,), (2,), (), (1,), (2, 1), (2,), (1, 2), ()]
    for places, field_ids in zip(chosen, columns, strict=True):
        asked = manifests.take(pa.array(places, pa.int64()))
        first = read_file_metrics(manifests_to_read(asked), source.metadata, source.storage, field_ids)
        found = join_paths(planned.read(asked, field_ids))
        assert found.select(first.column_names).cast(first.schema) == first


def test_a_second_plan_reads_no_manifest_again(mixed_table):
    kept = mixed_table.plan("part = 2 and id < 100").steps[-1].kept
    for path in mixed_table.manifest_files()["manifest_path"].to_pylist():
        local_path(path).unlink()
    assert mixed_table.plan("part = 2 and id < 100").steps[-1].kept == kept
    assert mixed_table.plan("id < 100").steps[-1].total == 48


def test_a_filter_on_another_column_reads_that_one_alone(mixed_table, monkeypatch):
    """The files themselves are known, as far as their manifests are."""
    read = []

    def spy(manifests, *arguments, with_paths, **options):
        read.append((len(manifests), *arguments[2:], with_paths))
        return read_file_metrics(manifests, *arguments, with_paths=with_paths, **options)

    monkeypatch.setattr("icestats.snapshot.planned_files.read_file_metrics", spy)
    planned, manifests = PlannedFiles(mixed_table._source), mixed_table.manifest_files()
    for count, field_ids in ((6, (2,)), (8, (1,)), (8, (2, 1))):
        planned.read(manifests.slice(0, count), field_ids)
    assert read == [(6, (2,), True), (6, (1,), False), (2, (2, 1), True)]


HOSTILE = "x;\n!touch /tmp/a;\u2028${env:HOME}"


def test_statements_have_nothing_that_a_shell_of_sql_ends_or_fills_in(catalog):
    """A shell that cuts at line ends and semicolons would run what follows in a name, as its own command."""
    schema = Schema(
        NestedField(1, HOSTILE, LongType(), required=False), NestedField(2, "id", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), f"p{HOSTILE}"))
    table = catalog.create_table("db.statements", schema, partition_spec=spec)
    for commit in range(12):
        table.append(pa.table({HOSTILE: np.arange(40) % 4, "id": np.arange(40) * 12 + commit}))
    layout = icestats.load("db.statements", catalog={"name": "catalog", **catalog.properties}).layout()
    made = [finding.fix for finding in layout.findings if finding.fix]
    changes = [{"regroup": f"p{HOSTILE}"}, {"sort_by": HOSTILE}, {"partition_by": "bucket(4, id)"}]
    made += [layout.what_if([EqualTo("id", 1)], **change).statement for change in changes]
    assert any(
        "sort_by => array('px\\u003b\\u000a!touch /tmp/a\\u003b\\u2028\\u0024{env:HOME}')" in one for one in made
    )
    assert made[-1].startswith("-- no statement: ")
    for statement in ";\n".join(made).split(";\n"):
        assert statement.startswith(("ALTER TABLE ", "CALL ", "-- "))
        assert not set("\n;$\u2028") & set(statement)


def test_only_manifests_of_the_current_spec_are_rewritten(catalog):
    """Spark leaves those of earlier specs as they are, and knows no field of these to sort by."""
    rows = pa.table({"a": pa.array(range(8), pa.int64()), "b": pa.array(range(8), pa.int64())})
    made = catalog.create_table("db.respecified", rows.schema)
    with made.update_spec() as change:
        change.add_field("a", IdentityTransform(), "by_a")
    for _ in range(6):
        made.append(rows)
    with made.update_spec() as change:
        change.remove_field("by_a")
        change.add_field("b", IdentityTransform(), "by_b")
    for _ in range(2):
        made.append(rows)
    table = icestats.load(made.metadata_location)
    layout = table.layout()
    assert not any("by_a" in (finding.fix or "") for finding in layout.findings)
    (found,) = layout.what_if(["b = 3"], regroup="partition").comparisons
    assert (found.now[0].kept, found.then[0].kept) == (8, 7)
    with pytest.raises(icestats.CallError, match="no partition field 'by_a': the table has by_b"):
        table.rewrite_manifests(sort_by="by_a")


@pytest.mark.parametrize(("commits", "late", "widens"), [(([1], [3], [2]), 1, False), (([1, 2, 3],) * 3, 4, True)])
def test_late_files_in_manifests_of_their_own_days_widen_none(catalog, load, commits, late, widens):
    schema = Schema(NestedField(1, "at", DateType()))
    spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "at_day"))
    table = catalog.create_table("db.late", schema, partition_spec=spec)
    for days in commits:
        table.append(pa.table({"at": pa.array(days, pa.date32())}))
    layout = load("db.late").layout()
    assert layout.late.file_count == late
    assert any(found.title.startswith("Late data") for found in layout.findings) is widens


_SPREAD = np.random.default_rng(11).permutation(8_000)
SORTED = {
    "numbers": (pa.array(_SPREAD), "c = 3500", "c >= 2000 and c < 2500", "c < 50", "c = 7999"),
    "prices": (pa.array(_SPREAD / 80), "c > 50", "c = 12.5", "c >= 40 and c < 60"),
    "text": (pa.array([f"user-{n:05}" for n in _SPREAD]), "c = 'user-03500'", "c like 'user-02%'", "c >= 'user-065'"),
    "days": (
        pa.array([f"2026-{1 + n % 12:02}-{1 + n % 28:02}" for n in _SPREAD]),
        "c like '2026-06%'",
        "c > '2026-10'",
    ),
    "decimals": (pa.array([Decimal(int(n) - 4_000) for n in _SPREAD], pa.decimal128(25, 2)), "c > 0", "c = -17"),
}


@pytest.mark.parametrize(("values", "filters"), [(v, f) for v, *f in SORTED.values()], ids=SORTED)
def test_files_of_the_same_bounds_are_sorted_as_their_rows_would_be(catalog, values, filters):
    """Each of 20 files has values from all of the range: what is looked for lies in one of the sorted ones at least."""
    made = catalog.create_table("db.spread", pa.schema([("c", values.type)]))
    done = catalog.create_table("db.sorted", pa.schema([("c", values.type)]))
    ordered = values.take(pc.array_sort_indices(values))
    for start in range(0, len(values), 400):
        made.append(pa.table({"c": values[start : start + 400]}))
        done.append(pa.table({"c": ordered[start : start + 400]}))
    found = icestats.load(made.refresh().metadata_location).layout().what_if(filters, sort_by="c")
    real = icestats.load(done.refresh().metadata_location)
    for comparison in found.comparisons:
        counted = real.plan(comparison.row_filter).steps[-1].kept
        assert abs(comparison.then[-1].kept - counted) <= 1, comparison.row_filter


def test_one_file_of_most_rows_is_sorted_into_as_many_as_there_are(catalog):
    made = catalog.create_table("db.uneven", pa.schema([("c", pa.int64())]))
    for values in (range(10_000), *([n, n + 1] for n in range(50_000, 50_009))):
        made.append(pa.table({"c": pa.array(values, pa.int64())}))
    filters = ["c = 5000", "c = 50004", "c >= 0"]
    layout = icestats.load(made.refresh().metadata_location).layout()
    kept = [one.then[-1].kept for one in layout.what_if(filters, sort_by="c").comparisons]
    assert kept == [1, 1, 10]


def test_the_greatest_long_stays_the_greatest_where_files_are_sorted(catalog):
    """As doubles, which the rows between two bounds are spread by, it would be one too many."""
    most = 2**63 - 1
    rows = pa.table({"id": pa.array([1, most], pa.int64())})
    made = catalog.create_table("db.greatest", rows.schema)
    for _ in range(4):
        made.append(rows)
    layout = icestats.load(made.metadata_location).layout()
    (found,) = layout.what_if([f"id = {most}"], sort_by="id").comparisons
    assert found.then[-1].kept == 1


@pytest.mark.parametrize("beginning", [b"", b"\x07" * 6])
def test_sorted_uuids_have_all_their_bytes(catalog, beginning):
    """What lies between two bounds may end in zeros, or is longer where all uuids begin in one way."""
    made = catalog.create_table("db.uuids", Schema(NestedField(1, "id", UUIDType())))
    rng = np.random.default_rng(5)
    values = [beginning + rng.bytes(16 - len(beginning)) for _ in range(100)]
    for start in range(4):
        made.append(pa.table({"id": pa.array(values[start::4], pa.binary(16))}))
    filters = [f"id = '{UUID(bytes=value)}'" for value in values[:10]]
    for one in icestats.load(made.metadata_location).layout().what_if(filters, sort_by="id").comparisons:
        assert 1 <= one.then[-1].kept <= 2


def test_names_that_spark_does_not_take_are_in_backticks():
    call = Maintenance("prod", ("db", "my-table"), {}).compact_files()
    assert call == "CALL `prod`.system.rewrite_data_files(table => 'db.`my-table`')"


def test_a_name_with_a_dot_stays_one_part_of_a_name():
    """`db.orders`.`2026` may be another table."""
    maintenance = Maintenance("prod", ("db", "orders.2026"), {})
    assert maintenance.rewrite_manifests() == "CALL `prod`.system.rewrite_manifests(table => 'db.`orders.2026`')"
    assert maintenance.set_property("a", "b").startswith("ALTER TABLE `prod`.`db`.`orders.2026` SET")


def test_a_table_whose_name_ends_a_statement_is_altered_by_none():
    maintenance = Maintenance("prod", ("db", "a; drop table b; --"), {})
    assert maintenance.set_property("a", "b").startswith("-- no statement")
    assert maintenance.change_partitions(["`id`"], []).startswith("-- no statement")
    assert ";" not in maintenance.compact_files()


def test_no_procedure_is_called_on_a_table_whose_name_has_a_variable():
    """Spark parses the text that names it, and would rewrite `root` in place of `${system:user.name}`."""
    maintenance = Maintenance("prod", ("db", "${system:user.name}"), {})
    made = (maintenance.compact_files(), maintenance.rewrite_manifests("a", 9), maintenance.sort_files(("a", "b")))
    assert all(line.startswith("-- no statement") for one in made for line in one.split("\n"))
    assert Maintenance("prod", ("db", "$events"), {}).compact_files().startswith("CALL ")


@pytest.mark.parametrize("name", ["a--b", "it's", 'say "', "a/*b"])
def test_a_partition_field_is_not_dropped_where_the_one_in_its_place_cannot_be_added(name):
    """Spark's shell knows no backticks, and would run what follows such a name with it, or not at all."""
    maintenance = Maintenance("prod", ("db", "events"), {})
    assert maintenance.change_partitions(["day(`at`)"], [f"truncate(3, `{name}`)"]).startswith("-- no statement")


def _write_often(catalog, name, rows, times=6, **options):
    made = catalog.create_table(name, rows.schema, **options)
    for _ in range(times):
        made.append(rows)
    return icestats.load(made.metadata_location)


def test_columns_that_no_curve_takes_are_sorted_by_in_turn(catalog):
    """Iceberg's z-order refuses decimals, and finds no column whose name has a backtick."""
    rows = pa.table(
        {"id": pa.array(range(8), pa.int64()), "price": pa.array(range(8), pa.decimal128(9, 2)), "x`y": ["a"] * 8}
    )
    table = _write_often(catalog, "db.priced", rows)
    for columns, order in (
        (["id", "price"], "`id` ASC NULLS LAST, `price` ASC NULLS LAST"),
        (["id", "x`y"], "`id` ASC NULLS LAST, `x``y` ASC NULLS LAST"),
    ):
        (found,) = (one for one in table.layout(columns=columns).findings if "overlap" in one.title)
        assert f"sort_order => '{order}'" in found.fix


def test_bounds_of_avro_files_are_had_by_another_format_only(catalog):
    made = catalog.create_table(
        "db.unmeasured",
        pa.schema([("id", pa.int64())]),
        properties={"write.metadata.metrics.default": "none"},
    )
    made.append(pa.table({"id": pa.array(range(8), pa.int64())}))

    def fix():
        layout = icestats.load(made.metadata_location).layout(columns=["id"])
        (found,) = (one for one in layout.findings if "without bounds" in one.title)
        return found.fix

    assert fix().endswith("('write.metadata.metrics.column.id' = 'truncate(16)')")
    with made.transaction() as change:
        change.set_properties({"write.format.default": "avro"})
    assert fix().endswith("('write.format.default' = 'parquet')")


def test_manifests_of_a_table_without_partitions_are_as_many_as_their_bytes_ask_for(catalog):
    table = _write_often(catalog, "db.unpartitioned", pa.table({"id": pa.array(range(8), pa.int64())}))
    size = sum(table.manifest_files()["manifest_length"].to_pylist()) // 3 + 1
    (found,) = table.layout().what_if(["id = 3"], regroup="partition", manifest_size_bytes=size).comparisons
    assert (found.now[0].total, found.then[0].total) == (6, 3)


def test_a_prediction_says_that_small_files_become_fewer(catalog):
    rows = pa.table({"id": pa.array(range(8), pa.int64())})
    small = _write_often(catalog, "db.small", rows).layout()
    large = _write_often(catalog, "db.large", rows, properties={"write.target-file-size-bytes": "100"}).layout()
    for change in ({"sort_by": "id"}, {"partition_by": "bucket(2, id)"}):
        assert "larger ones, of up to 536,870,912 bytes" in small.what_if(["id = 3"], **change).assumes
        assert "larger ones" not in large.what_if(["id = 3"], **change).assumes


def test_a_new_partition_field_takes_no_name_that_a_column_has(catalog):
    """Spark would have dropped the fields before it refuses to add this one."""
    rows = pa.table({"at": pa.array([0], pa.timestamp("us")), "at_day": pa.array([1], pa.int64())})
    found = (
        _write_often(catalog, "db.dated", rows, 1).layout().what_if(["at_day = 1"], partition_by="day(at), month(at)")
    )
    assert found.statement.splitlines()[:2] == [
        "ALTER TABLE `<catalog>`.`<namespace>`.`<table>` ADD PARTITION FIELD day(`at`) AS `at_day_2`;",
        "ALTER TABLE `<catalog>`.`<namespace>`.`<table>` ADD PARTITION FIELD month(`at`);",
    ]


@pytest.mark.parametrize("transform", [IdentityTransform(), DayTransform()])
def test_files_are_not_sorted_by_what_all_rows_of_their_partition_have(transform, catalog, load):
    schema = Schema(NestedField(1, "on", DateType()))
    table = catalog.create_table(
        "db.dated", schema, partition_spec=PartitionSpec(PartitionField(1, 1000, transform, "p"))
    )
    rows = pa.table({"on": pa.array([1, 2], pa.date32())})
    for _ in range(3):
        table.append(rows)
    assert not any("sort_order" in (found.fix or "") for found in load("db.dated").layout().findings)
    with table.update_spec() as change:
        change.remove_field("p")
    for _ in range(6):
        table.append(rows)
    assert any("sort_order" in (found.fix or "") for found in load("db.dated").layout().findings)


def test_partitions_are_counted_whose_column_no_schema_has_any_more(catalog):
    """Engines remove schemas that no snapshot has; the files of the earlier spec stay."""
    schema = pa.schema([("part", pa.int64()), ("id", pa.int64())])
    table = catalog.create_table("db.gone", schema)
    with table.update_spec() as change:
        change.add_identity("part")
    table.append(pa.table({"part": [1, 2, 3], "id": [1, 2, 3]}, schema))
    with table.update_spec() as change:
        change.remove_field("part")
    with table.update_schema() as change:
        change.delete_column("part")
    path = local_path(table.metadata_location)
    document = json.loads(path.read_text())
    document["schemas"] = [one for one in document["schemas"] if one["schema-id"] == document["current-schema-id"]]
    path.write_text(json.dumps(document))
    opened = icestats.load(str(path))
    spread = opened.layout().spread
    assert spread.partition_count == len(opened.partitions()) == 3
    assert spread.partitions_per_manifest_max == 3


def test_a_string_that_its_bounds_cut_is_constant_in_a_partition_of_it(catalog, load):
    rows = pa.table({"name": [f"a region with a long name, {i}" for i in range(2)]})
    table = catalog.create_table("db.regions", rows.schema)
    with table.update_spec() as change:
        change.add_identity("name")
    for _ in range(3):
        table.append(rows)
    assert not any("sort_order" in (found.fix or "") for found in load("db.regions").layout().findings)


def test_no_sorting_is_proposed_that_leaves_files_as_deep_as_they_are(catalog, load):
    """Along a curve of two columns, a key lies in 4 of 16 files, however often they are sorted."""
    ends, step = np.arange(4), 100
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for name, widths in {"curved": (1, 1), "halved": (1, 4), "mixed": (4, 4)}.items():
        made = catalog.create_table(f"db.{name}", schema)
        for a, b in np.stack(np.meshgrid(ends, ends), -1).reshape(-1, 2):
            low = np.array([a * (widths[0] == 1), b * (widths[1] == 1)]) * step
            high = low + np.array(widths) * step - 1
            made.append(pa.Table.from_arrays([pa.array([low[side], high[side]]) for side in (0, 1)], schema=schema))
    advice = {
        name: [one.fix for one in load(f"db.{name}").layout(columns=["a", "b"]).findings if "overlap" in one.title]
        for name in ("curved", "halved", "mixed")
    }
    assert advice["curved"] == []
    # Sorting by b alone would leave a as b is now.
    for name in ("halved", "mixed"):
        assert "zorder(`a`, `b`)" in advice[name][0]


def test_files_of_one_value_each_are_sorted_already(catalog, load):
    made = catalog.create_table("db.sorted", pa.schema([("status", pa.string()), ("id", pa.int64())]))
    for number in range(6):
        made.append(pa.table({"status": [f"s{number // 3}"] * 2, "id": pa.array([1, 9], pa.int64())}))
    layout = load("db.sorted").layout()
    assert layout.fields[0].files_of_partition.mean == 3
    assert not any("sort_order" in (found.fix or "") for found in layout.findings)
    (found,) = (one for one in load("db.sorted").layout(columns=["status", "id"]).findings if "sort_order" in one.fix)
    assert found.fields == ("status", "id")


def test_partitions_of_a_column_that_is_dropped_since_are_told_apart(catalog, load):
    rows = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": pa.array([1, 1, 1], pa.int64())})
    table = catalog.create_table("db.dropped", rows.schema)
    with table.update_spec() as change:
        change.add_identity("a")
        change.add_identity("b")
    table.append(rows)
    with table.update_spec() as change:
        change.remove_field("a")
    with table.update_schema() as change:
        change.delete_column("a")
    layout = load("db.dropped").layout()
    assert layout.spread.partition_count == load("db.dropped").partitions().num_rows == 3
    assert [found.files_of_partition.max for found in layout.fields if found.kind == "column"] == [1]


def test_statements_of_a_branch_say_that_procedures_rewrite_main(catalog, load):
    """Iceberg's procedures take the current snapshot; what a branch was measured by is not what they change."""
    table = catalog.create_table("db.branched", Schema(NestedField(1, "id", LongType(), required=False)))
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    table.append(rows)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    for _ in range(5):
        catalog.load_table("db.branched").append(rows, branch="dev")
    said = "/* rewrites branch main, not the snapshot that was measured */"
    branch = icestats.load("db.branched", catalog=dict(catalog.properties), ref="dev")
    (small,) = (one for one in branch.layout().findings if "Small files" in one.title)
    assert small.fix == f"CALL `catalog`.system.rewrite_data_files(table => 'db.branched') {said}"
    assert said in branch.layout().what_if(["id = 1"], sort_by="id").statement
    assert said in repr(branch.rewrite_manifests())
    for current in (load("db.branched"), icestats.load("db.branched", catalog=dict(catalog.properties), ref="main")):
        assert "/*" not in current.layout().what_if(["id = 1"], sort_by="id").statement
