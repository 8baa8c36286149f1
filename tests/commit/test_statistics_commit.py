"""Committing statistics does what was planned: what is listed, carried over and replaced, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.dynamodb import DynamoDbCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import icestats
from icestats.commit.puffin_writer import MAX_LISTED_BLOB_SIZE_BYTES, NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.statistics_plan import is_spark_trapped
from icestats.commit.statistics_removal import prepare_removal
from icestats.errors import (
    CallError,
    ColumnNotFoundError,
    CommitError,
    MetadataError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.storage import Storage, local_path
from icestats.read.puffin.puffin import read_puffin_footer
from icestats.read.puffin.statistics_users import find_listed_traps
from icestats.table import writers
from tests.committed_statistics import (
    KLL,
    ROWS,
    THETA,
    blob,
    commit,
    entries,
    kll,
    listed,
    register,
    remove,
    statistics_files,
    stored,
    theta,
    write_foreign,
)

PRESTO = "presto-kll-sketch-bytes-v1"
TIMES = ("last-updated-ms", "timestamp-ms")


def test_theta_is_listed_and_everything_of_the_kit_alone_is_hidden(table):
    """The footer lists Theta, and a KLL sketch that does not say to be of the kit."""
    result = commit(table, theta(table, 1), kll(table, 1), blob(table, "icestats-column-stats-v1", 1, b"{}"))
    entry = entries(table)[0]
    snapshot = table.current_snapshot()
    assert listed(table) == [(THETA, (1,), "2")]
    assert [b.type for b in PuffinFile(Path(entry.statistics_path[7:]).read_bytes()).footer.blobs] == [
        THETA,
        KLL,
    ]
    assert entry.statistics_path == result.statistics_path
    assert Path(entry.statistics_path).name.startswith(f"{snapshot.snapshot_id}-")
    assert entry.statistics_path.startswith(f"{table.location()}/metadata/")
    assert entry.file_size_in_bytes == Path(entry.statistics_path[7:]).stat().st_size == len(result.puffin.data)
    footer = read_puffin_footer(Storage(), entry.statistics_path)
    assert entry.file_footer_size_in_bytes == footer.footer_size_bytes
    assert entry.blob_metadata[0].snapshot_id == snapshot.snapshot_id
    assert entry.blob_metadata[0].sequence_number == snapshot.sequence_number
    assert result.table.metadata_location == table.refresh().metadata_location


def test_preparing_writes_nothing_and_the_plan_is_what_is_committed(table):
    plan = prepare_commit(table, [theta(table, 1), kll(table, 2)])
    assert statistics_files(table) == []
    assert entries(table) == []
    text = plan.describe()
    assert plan.statistics_path in text
    assert f"{len(plan.puffin.data):,} bytes" in text
    assert f"new  {THETA} of a: {plan.blobs[0].blob.length} bytes, listed, ndv 2" in text
    assert f"new  {KLL} of b: {plan.blobs[1].blob.length} bytes, footer only" in text
    assert "before: none" in text
    result = commit_statistics(plan)
    assert result.statistics_path == plan.statistics_path
    assert result.after == plan.after
    assert Path(plan.statistics_path[7:]).read_bytes() == plan.puffin.data


def test_the_plan_names_the_trap_where_it_applies(table):
    numeric = prepare_commit(table, [theta(table, 1), theta(table, 2), theta(table, 3)])
    trap = [effect for effect in numeric.effects if "0 rows" in effect]
    assert len(trap) == 1
    assert "an equality on a, c (" in trap[0]
    assert not any("0 rows" in effect for effect in prepare_commit(table, [theta(table, 2)]).effects)
    assert "Spark and Impala plan as before" in prepare_commit(table, [kll(table, 1)]).effects[0]


def test_no_trap_is_named_for_what_partitions_are_of(catalog):
    """Spark leaves a filter on such a column to Iceberg where each spec has it as it is, and finds its rows."""
    fields = (LongType(), StringType(), DoubleType())
    schema = Schema(*(NestedField(i, name, kind) for i, name, kind in zip((1, 2, 3), "abc", fields, strict=True)))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "a"))
    table = catalog.create_table("db.p", schema, partition_spec=spec)
    table.append(ROWS)
    planned = prepare_commit(table, [theta(table, 1), theta(table, 3)])
    assert "an equality on c (" in planned.trap
    assert planned.trap in planned.effects
    with table.update_spec() as update:
        update.add_field("a", BucketTransform(4), "a_bucket")
    assert "an equality on a, c (" in prepare_commit(table, [theta(table, 1), theta(table, 3)]).trap
    with table.update_spec() as update:
        update.remove_field("a_bucket")
        update.remove_field("a")
    assert "an equality on a, c (" in prepare_commit(table, [theta(table, 1), theta(table, 3)]).trap


@pytest.mark.parametrize(("list_ndv", "lost"), [(["a"], "b"), ([], "a, b")])
def test_the_plan_names_the_ndvs_that_are_listed_no_longer(table, list_ndv, lost):
    commit(table, theta(table, 1), theta(table, 2))
    table.refresh()
    effects = prepare_commit(table, [theta(table, 1), theta(table, 2)], list_ndv=list_ndv).effects
    assert effects[0].startswith(f"Spark and Trino plan this snapshot without the NDV of {lost}, which ")
    assert not any("plan as before" in effect for effect in effects)
    again = prepare_commit(table, [theta(table, 1), theta(table, 2)]).effects
    assert not any("without the NDV" in effect for effect in again)


def test_the_plan_does_not_say_that_spark_plans_with_an_ndv_that_it_does_not_find(table):
    with table.update_schema() as update:
        update.rename_column("b", "unit price")
    effects = prepare_commit(table, [theta(table, 1), theta(table, 2)]).effects
    assert [effect.partition(" of ")[2].partition(", for ")[0] for effect in effects[:2]] == ["a", "a, unit price"]
    assert prepare_commit(table, [theta(table, 2)]).effects[0].startswith("Trino plans with the NDV of unit price,")


def test_other_blobs_are_carried_over_and_the_same_ones_are_replaced(table):
    commit(
        table, theta(table, 1, b"old a"), theta(table, 2, b"b", ndv="7"), kll(table, 1, b"old kll"), kll(table, 3, b"c")
    )
    first = entries(table)[0]
    result = commit(table, theta(table, 1, b"new a", ndv="9"), kll(table, 1, b"new kll"))
    assert stored(table) == {
        (THETA, (1,)): b"new a",
        (KLL, (1,)): b"new kll",
        (THETA, (2,)): b"b",
        (KLL, (3,)): b"c",
    }
    assert sorted(listed(table)) == [(THETA, (1,), "9"), (THETA, (2,), "7")]
    assert [(b.blob.type, b.columns, b.listed) for b in result.blobs if b.kept] == [
        (THETA, ("b",), True),
        (KLL, ("c",), False),
    ]
    assert sorted((b.type, b.field_ids) for b in result.replaced) == [(KLL, (1,)), (THETA, (1,))]
    assert result.before.statistics_path == first.statistics_path
    assert Path(first.statistics_path[7:]).exists()


def test_a_file_of_iceberg_for_java_is_carried_over_byte_for_byte(table):
    golden = Path(__file__).parent.parent / "golden" / "compute_table_stats.stats"
    path = f"{table.location()}/metadata/from-java.stats"
    Path(path[7:]).write_bytes(golden.read_bytes())
    register(table, path, [3])
    commit(table, kll(table, 1, b"mine"))
    after = entries(table)[0]
    old = read_puffin_footer(Storage(), path)
    new = read_puffin_footer(Storage(), after.statistics_path)
    data = Path(after.statistics_path[7:]).read_bytes()
    for blob_before, blob_after in zip(old.blobs, new.blobs[1:], strict=True):
        before = golden.read_bytes()[blob_before.offset : blob_before.offset + blob_before.length]
        assert data[blob_after.offset : blob_after.offset + blob_after.length] == before
        assert blob_after.properties == blob_before.properties
    assert listed(table) == [(THETA, (3,), "5")]


def test_a_second_file_of_the_same_snapshot_is_carried_over_too(table):
    """No writer that is known registers one, and the spec forbids none: the new entry replaces both."""
    first, second = (write_foreign_as(table, name, theta(table, field_id)) for name, field_id in (("x", 1), ("y", 2)))
    register(table, first, [1])
    path = Path(table.refresh().metadata_location[7:])
    document = json.loads(path.read_text())
    [entry] = document["statistics"]
    other = {**entry, "statistics-path": second, "blob-metadata": [{**entry["blob-metadata"][0], "fields": [2]}]}
    path.write_text(json.dumps({**document, "statistics": [entry, other]}))
    plan = prepare_commit(table.refresh(), [kll(table, 3)])
    assert f"{second} is of this snapshot too: the new file takes its place as well" in plan.describe()
    assert (
        f"{second} is of this snapshot too, and goes with the rest"
        in prepare_removal(table, plan.snapshot_id).describe()
    )
    commit_statistics(plan)
    assert stored(table) == {(THETA, (1,)): b"theta", (THETA, (2,)): b"theta", (KLL, (3,)): b"kll"}
    assert listed(table) == [(THETA, (1,), "5"), (THETA, (2,), "5")]


def write_foreign_as(table, name, *blobs):
    path = Path(write_foreign(table, *blobs)[7:])
    return f"file://{path.rename(path.with_stem(name))}"


def test_list_ndv_chooses_the_columns_that_engines_see(table):
    plan = prepare_commit(table, [theta(table, 1), theta(table, 2)], list_ndv=["b"])
    commit_statistics(plan)
    assert listed(table) == [(THETA, (2,), "2")]
    assert set(stored(table)) == {(THETA, (1,)), (THETA, (2,))}
    with pytest.raises(ColumnNotFoundError):
        prepare_commit(table, [theta(table, 1)], list_ndv=["nope"])
    with pytest.raises(CallError, match="'c'"):
        prepare_commit(table, [theta(table, 1)], list_ndv=["c"])


def test_columns_dropped_before_are_never_listed(table):
    commit(table, theta(table, 3))
    with table.catalog.load_table(table.name()).update_schema() as update:
        update.delete_column("c")
    table.refresh()
    plan = prepare_commit(table, [theta(table, 1)])
    assert any("field 3 is not in the current schema" in warning for warning in plan.warnings)
    assert ("#3",) in [b.columns for b in plan.kept]
    commit_statistics(plan)
    assert listed(table) == [(THETA, (1,), "2")]
    assert (THETA, (3,)) in stored(table)


def test_old_snapshots_and_branches_have_statistics_too(table):
    old = table.current_snapshot()
    table.append(ROWS)
    commit_statistics(prepare_commit(table, [blob(table, KLL, 1, b"old", old)], snapshot_id=old.snapshot_id))
    commit(table, kll(table, 1, b"new"))
    assert stored(table, old.snapshot_id) == {(KLL, (1,)): b"old"}
    assert stored(table) == {(KLL, (1,)): b"new"}


def test_statistics_of_an_earlier_snapshot_are_said_to_be_none_for_spark_of_the_current_one(table):
    """Planned for it, or planned before another writer has committed."""
    plan = prepare_commit(table, [theta(table, 1)])
    assert plan.warnings == ()
    table.append(ROWS)
    said = f"snapshot {plan.snapshot_id} is not the current one: Spark plans the current one without these statistics"
    assert prepare_commit(table, plan.request.blobs, snapshot_id=plan.snapshot_id).warnings == (said,)
    assert commit_statistics(plan).warnings == (said,)
    assert commit(table, kll(table, 1)).warnings == ()


@pytest.mark.parametrize(
    ("blobs", "error", "words"),
    [
        (lambda _: [], CallError, "no blobs"),
        (lambda t: [theta(t, 1, ndv="12.5")], CallError, "12.5"),
        (lambda t: [theta(t, 1, ndv="²")], CallError, "integer"),
        (lambda t: [blob(t, THETA, 1, b"no ndv")], CallError, "ndv ''"),
        (lambda _: [NewBlob(KLL, (1,), 5, 1, b"x")], CallError, "snapshot 5"),
    ],
)
def test_a_wrong_call_is_refused(table, blobs, error, words):
    with pytest.raises(error, match=words):
        prepare_commit(table, blobs(table))


def test_a_snapshot_that_does_not_exist_is_refused(catalog, table):
    with pytest.raises(SnapshotNotFoundError, match="no snapshot 5"):
        prepare_commit(table, [NewBlob(KLL, (1,), 5, 1, b"x")], snapshot_id=5)
    empty = catalog.create_table("db.empty", schema=ROWS.schema)
    with pytest.raises(SnapshotNotFoundError, match="no snapshot yet"):
        prepare_commit(empty, [NewBlob(KLL, (1,), 5, 1, b"x")])


def test_a_plan_committed_again_never_overwrites_a_file(table):
    plan = prepare_commit(table, [theta(table, 1)])
    first = commit_statistics(plan)
    remove(table)
    second = commit_statistics(plan)
    assert second.statistics_path != first.statistics_path
    assert len(statistics_files(table)) == 2
    assert stored(table) == {(THETA, (1,)): b"theta"}


def test_a_bare_metadata_file_is_read_only(table):
    static = StaticTable.from_metadata(table.metadata_location)
    plan = prepare_commit(static, [theta(table, 1)])
    assert "cannot be committed" in plan.describe()
    with pytest.raises(CommitError, match="read-only"):
        commit_statistics(plan)
    with pytest.raises(CommitError, match="read-only"):
        remove(static)
    assert statistics_files(table) == []


def test_a_table_of_format_version_1_takes_statistics_loses_them_and_stays_what_it_is(catalog):
    table = catalog.create_table("db.v1", ROWS.schema, properties={"format-version": "1"})
    table.append(ROWS)
    commit(table, theta(table, 1), kll(table, 3))
    assert listed(table) == [(THETA, (1,), "2")]
    assert stored(table) == {(THETA, (1,)): b"theta", (KLL, (3,)): b"kll"}
    remove(table)
    assert entries(table) == []
    assert table.refresh().metadata.format_version == 1


def test_format_version_3_is_refused_where_pyiceberg_would_write_the_metadata(catalog, table):
    path = Path(table.metadata_location[7:])
    document = {**json.loads(path.read_text()), "format-version": 3, "next-row-id": 2}
    for snapshot in document["snapshots"]:
        snapshot.update({"first-row-id": 0, "added-rows": 2})
    newer = path.with_name("00009-v3.metadata.json")
    newer.write_text(json.dumps(document))
    third = catalog.register_table("db.v3", f"file://{newer}")
    with pytest.raises(UnsupportedError, match="format version 3"):
        commit(third, theta(table, 1))
    assert statistics_files(table) == []


def register_presto(table, *field_ids, kind=PRESTO):
    """Commit what Presto's ANALYZE does: Theta and its own KLL sketch of a column, both listed."""
    blobs = [theta(table, 2, b"their theta", ndv="7"), NewBlob(kind, field_ids, *ids_of(table), b"their kll", {}, None)]
    listing = [
        {
            "type": b.type,
            "snapshot-id": b.snapshot_id,
            "sequence-number": b.sequence_number,
            "fields": list(b.field_ids),
        }
        | {"properties": dict(b.properties)}
        for b in blobs
    ]
    register(table, write_foreign(table, *blobs), [], **{"blob-metadata": listing})


def ids_of(table):
    snapshot = table.current_snapshot()
    return snapshot.snapshot_id, snapshot.sequence_number


def test_a_catalog_that_pyiceberg_only_reads_is_refused_before_anything_is_written(table):
    table.catalog = DynamoDbCatalog.__new__(DynamoDbCatalog)
    (warning,) = prepare_commit(table, [theta(table, 1)]).warnings
    assert warning == "cannot be committed: db.t takes no commit of PyIceberg: it only reads tables of such a catalog"


def test_a_type_that_pyiceberg_does_not_know_stays_listed(table):
    register_presto(table, 2)
    result = commit(table, theta(table, 1), kll(table, 2))
    assert listed(table) == [(THETA, (1,), "2"), (THETA, (2,), "7"), (PRESTO, (2,), None)]
    assert stored(table)[PRESTO, (2,)] == b"their kll"
    assert result.warnings == ()
    assert [effect for effect in result.effects if "with the NDV of a, b," in effect]
    table.append(ROWS)
    commit(table, kll(table, 1))
    assert listed(table) == 2 * [(THETA, (1,), "2"), (THETA, (2,), "7"), (PRESTO, (2,), None)]
    assert "effect: Spark plans this snapshot without the NDV of a, b" in remove(table).describe()
    assert listed(table) == [(THETA, (1,), "2"), (THETA, (2,), "7"), (PRESTO, (2,), None)]


def test_what_trino_lists_of_the_kits_own_blobs_is_taken_out_again(table):
    """Its ANALYZE of some columns lists in metadata.json whatever the footer has, and PyIceberg refuses the table."""
    own = [
        blob(table, KLL, 2, b"kll", **{"item-type": "string"}),
        blob(table, "icestats-column-stats-v1", 2, b"{}"),
    ]
    listing = [
        {"type": b.type, "snapshot-id": b.snapshot_id, "sequence-number": 1, "fields": [2]}
        | {"properties": dict(b.properties)}
        for b in own
    ]
    register(table, write_foreign(table, *own), [], **{"blob-metadata": listing})
    plan = prepare_commit(table.refresh(), [theta(table, 1)])
    assert sum("is not listed any more" in warning for warning in plan.warnings) == 2
    commit_statistics(plan)
    assert listed(table) == [(THETA, (1,), "2")]
    assert (KLL, (2,)) in stored(table)


def test_blobs_of_several_fields_of_others_stay_where_their_owners_look(table):
    """Spark takes the first field of an entry; only an NDV of several fields makes it wrong."""
    register_presto(table, 1, 2, kind="of-others")
    plan = prepare_commit(table.refresh(), [theta(table, 1)])
    assert [w for w in plan.warnings if "'of-others' of fields [1, 2], which others wrote, is kept" in w]
    commit_statistics(plan)
    assert listed(table) == [(THETA, (1,), "2"), (THETA, (2,), "7"), ("of-others", (1, 2), None)]
    path = entries(table)[0].statistics_path
    assert [tuple(b.fields) for b in PuffinFile(Path(path[7:]).read_bytes()).footer.blobs] == [(1,), (2,), (1, 2)]
    remove(table)
    register_presto(table.refresh(), 1, 3, kind=THETA)
    plan = prepare_commit(table.refresh(), [kll(table, 1)])
    assert "an NDV of 2 fields is not listed (Spark would take it for that of a)" in plan.warnings
    commit_statistics(plan)
    assert listed(table) == [(THETA, (2,), "7")]
    assert stored(table)[THETA, (1, 3)] == b"their kll"


def test_what_is_hidden_from_engines_is_said(table):
    large, none = bytes(MAX_LISTED_BLOB_SIZE_BYTES + 1), NewBlob("icestats-manifest-stats-v1", (), *ids_of(table), b"m")
    plan = prepare_commit(table, [none, theta(table, 1, large), theta(table, 2)])
    assert "the Theta sketch of a is large, so it is hidden from engines" in plan.describe()
    assert "new  icestats-manifest-stats-v1 of the table: 14 bytes, hidden from engines" in plan.describe()
    assert listed(commit_statistics(plan).table) == [(THETA, (1,), "2"), (THETA, (2,), "2")]
    assert commit(table, kll(table, 1)).puffin.blobs[-1].is_hidden, "and stays hidden when it is carried over"
    assert stored(table)[THETA, (1,)] == large


def test_a_broken_description_of_hidden_blobs_is_not_silently_dropped(table):
    """Their bytes are somewhere in the file: a commit that went on would lose them."""
    path = write_foreign(table, theta(table, 1), NewBlob("icestats-manifest-stats-v1", (), *ids_of(table), b"m"))
    file = Path(path[7:])
    file.write_bytes(file.read_bytes().replace(b'\\"offset\\":', b'\\"offsex\\":'))
    register(table, path, [1])
    with pytest.raises(MetadataError, match=r"remove_statistics\(\).*icestats.blobs should be: no 'offset'") as caught:
        prepare_commit(table.refresh(), [theta(table, 2)])
    assert "\n" not in str(caught.value)


def test_statistics_that_cannot_be_read_are_not_silently_dropped(table):
    first = commit(table, theta(table, 1), kll(table, 2))
    Path(first.statistics_path[7:]).write_bytes(b"PFA1 cut")
    with pytest.raises(MetadataError, match=r"remove_statistics\(\)"):
        prepare_commit(table.refresh(), [theta(table, 3)])
    Path(first.statistics_path[7:]).unlink()
    with pytest.raises(MetadataError, match="no such file"):
        prepare_commit(table, [theta(table, 3)])
    remove(table)
    commit(table.refresh(), theta(table, 3))
    assert stored(table) == {(THETA, (3,)): b"theta"}


def test_encrypted_statistics_are_unsupported(table):
    register(table, write_foreign(table, theta(table, 3)), [3], **{"key-metadata": "c2VjcmV0"})
    with pytest.raises(UnsupportedError, match="encrypted"):
        prepare_commit(table.refresh(), [theta(table, 1)])


def test_what_is_odd_about_kept_entries_is_said(table):
    register(table, write_foreign(table, theta(table, 3)), [3], ndv="12.5")
    plan = prepare_commit(table.refresh(), [theta(table, 1)])
    assert any("12.5" in warning and "Trino" in warning for warning in plan.warnings)


def test_the_metadata_path_of_the_table_is_honoured(catalog, tmp_path):
    properties = {"write.metadata.path": f"file://{tmp_path}/elsewhere"}
    table = catalog.create_table("db.moved", schema=ROWS.schema, properties=properties)
    table.append(ROWS)
    result = commit(table, theta(table, 1))
    assert Path(result.statistics_path[7:]).parent == tmp_path / "elsewhere"


def test_what_was_committed_says_where_spark_estimates_no_rows(table):
    trap = "Spark before 4.2 with spark.sql.cbo.enabled=true estimates 0 rows for an equality on a, c ("
    assert trap in commit(table, theta(table, 1), theta(table, 2), theta(table, 3)).describe()
    table.append(ROWS)
    assert trap in commit(table, kll(table, 1)).describe(), "what is carried forward is listed too"
    assert "0 rows" not in commit(table, theta(table, 2), keep_earlier=False).describe()


def test_booleans_are_said_to_be_estimated_at_no_rows_for_several_values_alone(catalog):
    """Spark 4.1 rewrites `b = true`, and estimates 0 rows for `b in (true, false)`."""
    rows = pa.table({"a": [1, 2], "b": [True, False], "s": ["x", "y"]})
    table = catalog.create_table("db.flags", schema=rows.schema)
    table.append(rows)
    assert "0 rows for IN or <=> on b (" in commit(table, theta(table, 2), theta(table, 3)).describe()
    assert "0 rows for an equality on a and IN or <=> on b (" in commit(table, theta(table, 1)).describe()


def test_the_preview_says_where_hive_loses_its_own_statistics(table):
    register(table, write_foreign(table, blob(table, "ColumnStatisticsObj", 1, b"java")), [])
    report = commit(table, theta(table, 2)).describe()
    assert "Hive's own statistics of columns are kept, and it reads them no longer" in report


def test_an_ndv_of_timestamps_without_a_zone_is_listed_where_it_is_named_only(catalog):
    """Spark 4.1 fails on joins with a range on such a column."""
    times = pa.table({"a": pa.array([1, 2]), "at": pa.array([1, 2], pa.timestamp("us"))})
    table = catalog.create_table("db.times", schema=times.schema)
    table.append(times)
    report = commit(table, theta(table, 1), theta(table, 2)).describe()
    assert listed(table) == [(THETA, (1,), "2")]
    assert "the NDV of at is not listed; list_ndv lists it, for Trino: with spark.sql.cbo.enabled, Spark 4.1" in report
    assert list(find_listed_traps(*seen(table))) == []
    report = commit(table, theta(table, 1), theta(table, 2), list_ndv=["at"]).describe()
    assert listed(table) == [(THETA, (2,), "2")]
    assert "the NDV of at is listed: with spark.sql.cbo.enabled, Spark 4.1 fails" in report
    assert [finding.evidence for finding in find_listed_traps(*seen(table))] == ["1 such NDV is listed, as of at"]
    report = commit(table, theta(table, 2, ndv="3")).describe()
    assert listed(table) == [(THETA, (2,), "3")], "others may have listed it, as Trino does: nothing is taken from them"
    assert "the NDV of at is listed: with spark.sql.cbo.enabled, Spark 4.1 fails" in report


def test_spark_finds_no_listed_ndv_of_a_column_that_was_renamed_since(catalog):
    """It is given today's name, and looks for it among those that an earlier snapshot, or a tag, is read with."""
    rows = pa.table({"a": pa.array([1, 2]), "at": pa.array([1, 2], pa.timestamp("us"))})
    table = catalog.create_table("db.renamed", schema=rows.schema)
    table.append(rows)
    commit(table, theta(table, 2), list_ndv=["at"])
    with table.refresh().update_schema() as update:
        update.rename_column("at", "time")
    metadata, snapshot = seen(table)
    assert len(list(find_listed_traps(metadata, snapshot))) == 1
    assert list(find_listed_traps(metadata, snapshot, metadata.find_schema(snapshot.snapshot_id))) == []


def seen(table):
    metadata = read_metadata(Storage(), table.refresh().metadata_location)
    return metadata, metadata.snapshots[table.current_snapshot().snapshot_id]


@pytest.mark.parametrize(
    ("version", "trapped"), [("3.5.7", True), ("4.1.4", True), ("4.2.0", False), ("4.10.0-preview1", False)]
)
def test_which_versions_of_spark_estimate_no_rows(version, trapped):
    assert is_spark_trapped(version) is trapped


@pytest.mark.parametrize("change", ["statistics", "rows"])
def test_no_time_goes_back_where_another_writer_s_clock_is_ahead(table, tmp_path, change):
    """Iceberg's Java library loads no table whose times go back by more than a minute."""
    path = local_path(table.metadata_location)
    document = json.loads(path.read_text())
    for entry in (document, *document["snapshots"], *document["snapshot-log"], *document["metadata-log"]):
        entry.update({name: time + 3_600_000 for name, time in entry.items() if name in TIMES})
    path.write_text(json.dumps(document))
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "name": "c"}
    loaded = icestats.load("db.t", catalog=properties)
    if change == "statistics":
        assert loaded.compute(manifests=True).commit().committed
    else:
        assert not writers.append(loaded, ROWS).message
    metadata = table.refresh().metadata
    for log in (metadata.snapshot_log, metadata.metadata_log):
        times = [*(entry.timestamp_ms for entry in log), metadata.last_updated_ms]
        assert times == sorted(times)
    assert metadata.last_updated_ms == document["last-updated-ms"]
