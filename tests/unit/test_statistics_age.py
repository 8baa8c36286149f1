"""What has come since statistics were made is counted, and the engines that still use them are those that would."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    TimestamptzType,
    UUIDType,
)

import icestats
from icestats.commit.puffin_writer import NewBlob, created_by
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.iceberg.metadata import BlobMetadata, StatisticsFile
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_age import MERGED, THETA, StatisticsAge, count_ages, find_statistics_users
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch

KLL = "apache-datasketches-kll-v1"
ROWS = pa.table({"a": pa.array(range(10), pa.int64()), "b": pa.array([True] * 10)})


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def open_table(table, **options):
    return icestats.load("db.t", catalog=table.catalog.properties, **options)


def commit(table, *kinds, field_id=1, **options):
    snapshot = table.refresh().current_snapshot()
    sketch = ThetaSketch()
    sketch.update(hash_values(pa.array(range(10), pa.int64()), "long"))
    payloads = {THETA: (sketch.to_bytes(), {"ndv": "10"}), KLL: (b"kll", {})}
    blobs = [
        NewBlob(kind, (field_id,), snapshot.snapshot_id, snapshot.sequence_number, *payloads[kind]) for kind in kinds
    ]
    return commit_statistics(prepare_commit(table, blobs, **options))


def ages(table):
    return [(a.commits, a.files, a.rows, a.appends_only) for a in _ages(table).values()]


def _ages(table):
    opened = open_table(table)
    return count_ages(opened.metadata, opened.snapshot)


def test_commits_files_and_rows_since_are_counted(table):
    table.append(ROWS)
    table.append(pa.concat_tables([ROWS, ROWS]))
    assert ages(table) == [(0, 0, 0, True), (1, 1, 20, True), (2, 2, 30, True)]


def test_a_delete_since_is_no_append(table):
    table.append(ROWS)
    table.delete("a = 1")
    table.append(ROWS)
    flags = [age.appends_only for age in _ages(table).values()]
    assert (flags[:2], set(flags[2:])) == ([True, True], {False})


def test_compaction_adds_nothing_and_a_summary_without_counts_is_unknown(table):
    table.append(ROWS)
    table.append(ROWS)
    opened = open_table(table)
    newest, middle, oldest = opened.metadata.ancestors(opened.snapshot)

    def ages_with(**summaries):
        changed = {s.snapshot_id: replace(s, summary=summaries.get(n, s.summary)) for n, s in named.items()}
        return list(count_ages(replace(opened.metadata, snapshots=changed), changed[newest.snapshot_id]).values())

    named = {"newest": newest, "middle": middle, "oldest": oldest}
    compacted = ages_with(middle={**middle.summary, "operation": "replace"})
    assert compacted[2] == StatisticsAge(2, 1, 10, appends_only=True)
    removed = {**middle.summary, "operation": "replace", "deleted-data-files": "2"}
    assert ages_with(middle=removed)[2] == StatisticsAge(2, 1, 10, appends_only=False), "a refresh reads all files"
    silent = ages_with(middle={"operation": "append"})
    assert silent[1] == StatisticsAge(1, 1, 10, appends_only=True)
    assert silent[2] == StatisticsAge(2, None, None, appends_only=True)
    zero = {name: text for name, text in middle.summary.items() if not name.startswith("added-")}
    assert ages_with(middle=zero)[2] == StatisticsAge(2, 1, 10, appends_only=True)


def test_sketches_say_what_has_come_since_and_who_uses_them(table):
    commit(table, THETA, KLL)
    fresh = open_table(table).sketches().to_pylist()
    assert [(r["type"], r["commits_behind"], r["files_behind"], r["rows_behind"]) for r in fresh] == [
        (THETA, 0, 0, 0),
        (KLL, 0, 0, 0),
    ]
    assert [r["used_by"] for r in fresh] == [["Spark", "Trino", "Presto", "Impala", "icestats"], ["icestats"]]
    table.append(ROWS)
    table.append(ROWS)
    stale = open_table(table).sketches().to_pylist()
    assert [(r["commits_behind"], r["files_behind"], r["rows_behind"]) for r in stale] == [(2, 2, 20)] * 2
    assert [r["used_by"] for r in stale] == [["Trino", "Presto", "Impala", "icestats"], ["icestats"]]
    commit(table, THETA, keep_earlier=False)
    newer, older, kll = open_table(table).sketches().to_pylist()
    assert newer["used_by"] == ["Spark", "Trino", "Presto", "Impala", "icestats"]
    assert older["used_by"] == []
    assert kll["used_by"] == ["icestats"]


def test_trino_takes_the_nearest_file_only_and_impala_each_column(table):
    commit(table, THETA)
    table.append(ROWS)
    commit(table, KLL, keep_earlier=False)
    by_type = {row["type"]: row["used_by"] for row in open_table(table).sketches().to_pylist()}
    assert by_type == {KLL: ["icestats"], THETA: ["Impala", "icestats"]}


@pytest.mark.parametrize("refused", [TimestamptzType(), UUIDType()], ids=str)
def test_presto_reads_the_footer_whether_listed_or_not_unless_it_refuses_the_table(table, refused):
    commit(table, THETA, KLL, list_ndv=[])
    used = {row["type"]: row["used_by"] for row in open_table(table).sketches().to_pylist()}
    assert used == {THETA: ["Presto", "icestats"], KLL: ["icestats"]}
    with table.update_schema() as update:
        update.add_column("at", refused)
    assert [row["used_by"] for row in open_table(table).sketches().to_pylist()] == [["icestats"]] * 2
    effects = commit(table, THETA).effects
    assert f"Presto 0.287 refuses the table: column 'at' is {refused}" in effects
    assert not any("Presto plans" in effect for effect in effects)


def insert_as_trino(table, query, rows=ROWS, field_id=1):
    """Append and register a sketch as an INSERT does, which names both after its query."""
    table.refresh().append(rows, snapshot_properties={"trino_query_id": query})
    register_as_trino(table, query, field_id)


def register_as_trino(table, query, field_id=1):
    commit(table, THETA, keep_earlier=False, field_id=field_id)
    made = table.refresh().metadata.statistics[-1]
    path = f"{table.location()}/metadata/{query}-1.stats"
    shutil.copy(made.statistics_path.removeprefix("file://"), path.removeprefix("file://"))
    with table.update_statistics() as update:
        update.set_statistics(made.model_copy(update={"statistics_path": path}))


def read_ndv(table, column="a", **options):
    (row,) = open_table(table, **options).columns().filter(pc.field("name") == column).to_pylist()
    return dict(row["provenance"])["ndv"]


@pytest.mark.parametrize("between", ["nothing", "append", "delete"])
def test_a_sketch_that_trino_has_merged_across_other_changes_is_not_called_exact(table, between):
    """Its INSERT merges with the nearest ancestor's, whatever was committed in between."""
    commit(table, THETA)
    if between == "append":
        table.append(ROWS)
    elif between == "delete":
        table.delete("a < 5")
    insert_as_trino(table, "q1")
    insert_as_trino(table, "q2")
    is_merged = between in ("append", "delete")
    words = (MERGED, "exact but for hash collisions")
    assert [one in read_ndv(table) for one in words] == [is_merged, not is_merged]
    opened = open_table(table)
    assert (MERGED in repr(opened.estimate_join(opened, "a"))) == is_merged
    commit(table, THETA)
    assert "exact but for hash collisions" in read_ndv(table)
    insert_as_trino(table, "q3")
    assert "exact but for hash collisions" in read_ndv(table)


@pytest.mark.parametrize(("field_id", "is_merged"), [(1, False), (2, True)])
@pytest.mark.parametrize("is_carried", [False, True])
def test_a_sketch_that_trino_has_merged_with_presto_s_is_not_called_exact(table, field_id, is_merged, is_carried):
    """Of other types than long, double and text these count each value twice."""
    commit(table, THETA, field_id=field_id)
    path = local_path(table.refresh().metadata.statistics[0].statistics_path)
    path.write_bytes(path.read_bytes().replace(created_by().encode(), b"presto-0.287".ljust(len(created_by()))))
    if is_carried:
        commit(table, KLL)
    insert_as_trino(table, "q1", field_id=field_id)
    assert (MERGED in read_ndv(table, "ab"[field_id - 1])) == is_merged


def test_what_a_lost_file_has_hashed_is_not_known(table):
    """Presto may have written it."""
    commit(table, THETA, field_id=2)
    lost = local_path(table.refresh().metadata.statistics[0].statistics_path)
    insert_as_trino(table, "q1", field_id=2)
    assert "exact but for hash collisions" in read_ndv(table, "b")
    lost.unlink()
    assert MERGED in read_ndv(table, "b")


@pytest.mark.parametrize("planned", ["before the INSERT", "after it"])
def test_a_sketch_that_comes_after_trino_s_insert_was_not_merged_with(table, planned):
    """What was computed meanwhile is of the snapshot between them; the INSERT has merged with an earlier one."""
    commit(table, THETA)
    table.append(ROWS)
    between = table.refresh().current_snapshot()
    ndv = NewBlob(THETA, (1,), between.snapshot_id, between.sequence_number, ThetaSketch().to_bytes(), {"ndv": "0"})
    plan = prepare_commit(table, [ndv])
    insert_as_trino(table, "q1")
    assert MERGED in read_ndv(table)
    if planned == "after it":
        plan = prepare_commit(table.refresh(), [ndv], snapshot_id=between.snapshot_id)
    commit_statistics(plan)
    assert MERGED in read_ndv(table)
    again = prepare_commit(table.refresh(), [ndv], snapshot_id=between.snapshot_id)
    assert not again.is_new
    insert_as_trino(table, "q2")
    assert MERGED in read_ndv(table)


@pytest.mark.parametrize(("written_at", "is_merged"), [("20000101_000000", False), ("29991231_235959", True)])
def test_a_sketch_of_trino_s_that_is_later_than_its_insert_was_not_merged_with(table, written_at, is_merged):
    """After a rollback its ANALYZE writes, or copies, sketches of an earlier snapshot; then it goes forward again."""
    commit(table, THETA)
    register_as_trino(table, f"{written_at}_00001_abcde")
    insert_as_trino(table, "q1")
    assert (MERGED in read_ndv(table)) == is_merged


def test_a_sketch_that_is_put_back_after_trino_s_insert_was_not_merged_with(table):
    with table.update_spec() as update:
        update.add_identity("b")
    commit(table, THETA)
    table.append(ROWS)
    between = table.refresh().current_snapshot()
    commit(table, THETA)
    open_table(table).compute(partitions=True).commit()
    open_table(table).remove_statistics(partitions=False)
    insert_as_trino(table, "q1")
    assert MERGED in read_ndv(table)
    opened = open_table(table, snapshot=between.snapshot_id)
    opened.remove_statistics(restore=True)
    assert "exact but for hash collisions" in read_ndv(table, snapshot=between.snapshot_id)
    assert MERGED in read_ndv(table)


def test_a_sketch_that_trino_s_insert_can_have_merged_with_is_not_called_late(table):
    """Where a branch has snapshots of its own, or files were only rewritten since."""
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "other").commit()
    table.refresh().append(ROWS, branch="other")
    commit(table, THETA)
    insert_as_trino(table, "q1")
    assert "exact but for hash collisions" in read_ndv(table)


def test_a_late_sketch_is_known_beside_one_that_was_late_already(table):
    """What is carried over has the mark of its own commit."""
    commit(table, THETA)
    first = table.refresh().current_snapshot()
    insert_as_trino(table, "q0")
    between = table.refresh().current_snapshot()
    blobs = [NewBlob(THETA, (2,), first.snapshot_id, first.sequence_number, ThetaSketch().to_bytes(), {"ndv": "0"})]
    commit_statistics(prepare_commit(table, blobs, snapshot_id=first.snapshot_id))
    blobs = [NewBlob(THETA, (1,), between.snapshot_id, between.sequence_number, ThetaSketch().to_bytes(), {"ndv": "0"})]
    plan = prepare_commit(table.refresh(), blobs)
    insert_as_trino(table, "q1")
    commit_statistics(plan)
    assert MERGED in read_ndv(table)


def test_a_sketch_that_trino_has_merged_is_known_as_such_when_trino_copies_it(table):
    """Its ANALYZE of other columns keeps what the footer says of a sketch."""
    commit(table, THETA)
    table.delete("a < 5")
    insert_as_trino(table, "q1")
    commit(table, KLL)
    made = table.refresh().metadata.statistics[-1]
    with table.update_statistics() as update:
        bare = [one.model_copy(update={"properties": {"ndv": "10"}}) for one in made.blob_metadata]
        update.set_statistics(made.model_copy(update={"blob_metadata": bare}))
    assert MERGED in read_ndv(table)


@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize(("between", "is_merged"), [("nothing", False), ("delete", True)])
def test_a_sketch_that_trino_may_have_copied_from_its_insert_s_file_is_not_called_exact(
    table, between, is_merged, is_carried
):
    """Its ANALYZE of other columns right after an INSERT copies what that has merged into a file of another name."""
    commit(table, THETA)
    if between == "delete":
        table.delete("a < 5")
    insert_as_trino(table, "20261130_120000_00001_abcde")
    register_as_trino(table, "20261130_120001_00002_abcde")
    if is_carried:
        commit(table, KLL)
    assert (MERGED in read_ndv(table)) == is_merged
    insert_as_trino(table, "20261130_120002_00003_abcde")
    assert (MERGED in read_ndv(table)) == is_merged
    table.delete("a < 6")
    register_as_trino(table, "20261130_120003_00004_abcde")
    assert "exact but for hash collisions" in read_ndv(table)


@pytest.mark.parametrize("removed", ["what it was merged with", "its own file"])
def test_a_sketch_that_trino_may_have_copied_stays_doubted_when_what_tells_is_removed(table, removed):
    commit(table, THETA)
    earlier = table.current_snapshot()
    table.append(ROWS)
    insert_as_trino(table, "20261130_120000_00001_abcde")
    inserted = table.refresh().current_snapshot()
    if removed == "what it was merged with":
        register_as_trino(table, "20261130_120001_00002_abcde")
        open_table(table, snapshot=earlier.snapshot_id).remove_statistics()
    else:
        register_copy_as_trino(table, "20261130_120001_00002_abcde")
        open_table(table, snapshot=inserted.snapshot_id).remove_statistics()
    assert MERGED in read_ndv(table)
    commit(table, KLL)
    assert MERGED in read_ndv(table)


def register_copy_as_trino(table, query):
    """Append rows, and register the sketches of the snapshot before once more, as an ANALYZE of other columns does."""
    made = table.refresh().metadata.statistics[-1]
    table.append(ROWS)
    path = f"{table.location()}/metadata/{query}-1.stats"
    shutil.copy(made.statistics_path.removeprefix("file://"), path.removeprefix("file://"))
    snapshot_id = table.current_snapshot().snapshot_id
    with table.update_statistics() as update:
        update.set_statistics(made.model_copy(update={"statistics_path": path, "snapshot_id": snapshot_id}))


def test_a_sketch_that_trino_has_merged_is_known_as_such_when_it_is_restored(table):
    commit(table, THETA)
    table.delete("a < 5")
    insert_as_trino(table, "q1")
    commit(table, KLL)
    open_table(table).remove_statistics(restore=True)
    assert [row["type"] for row in open_table(table).sketches().to_pylist() if not row["commits_behind"]] == [THETA]
    assert MERGED in read_ndv(table)


@pytest.mark.parametrize("at", ["the same snapshot", "a later snapshot"])
def test_a_sketch_that_trino_has_merged_is_known_as_such_when_carried_over(table, at):
    """The new file has the name of no query; a whole sketch that is carried stays one."""
    commit(table, THETA)
    insert_as_trino(table, "q1")
    commit(table, KLL)
    assert "exact but for hash collisions" in read_ndv(table)
    table.delete("a < 5")
    insert_as_trino(table, "q2")
    if at == "a later snapshot":
        table.refresh().append(ROWS)
    commit(table, KLL)
    commit(table, KLL, field_id=2)
    table.refresh()
    made = max(table.metadata.statistics, key=lambda file: len(file.blob_metadata))
    if at == "a later snapshot":
        with table.update_statistics() as update:
            for file in table.metadata.statistics:
                if file.snapshot_id != table.current_snapshot().snapshot_id:
                    update.remove_statistics(file.snapshot_id)
        made = table.refresh().metadata.statistics[0]
    assert [blob.type for blob in made.blob_metadata] == [THETA]
    assert MERGED in repr(open_table(table).estimate_join(open_table(table), "a"))
    insert_as_trino(table, "q3")
    assert MERGED in read_ndv(table)
    commit(table, THETA)
    assert "exact but for hash collisions" in read_ndv(table)


def test_a_sketch_that_is_made_anew_is_exact_though_the_merged_one_was_carried_over(table):
    """A later snapshot's file keeps the merged one, with its mark."""
    commit(table, THETA)
    table.delete("a < 5")
    insert_as_trino(table, "q1")
    made_for = table.refresh().current_snapshot()
    table.append(ROWS)
    commit(table, KLL)
    assert MERGED in read_ndv(table)
    anew = NewBlob(THETA, (1,), made_for.snapshot_id, made_for.sequence_number, ThetaSketch().to_bytes(), {"ndv": "0"})
    commit_statistics(prepare_commit(table.refresh(), [anew], snapshot_id=made_for.snapshot_id))
    assert "exact but for hash collisions" in read_ndv(table)
    table.manage_snapshots().set_current_snapshot(snapshot_id=made_for.snapshot_id).commit()
    assert "exact but for hash collisions" in read_ndv(table)


def test_uuids_that_trino_has_merged_are_not_called_exact(catalog):
    """Trino hashes 16 bytes, Iceberg's Spark procedure and icestats the text: a value of both counts twice."""
    rows = pa.table({"id": pa.array([bytes([i] * 16) for i in range(10)], pa.uuid())})
    table = catalog.create_table("db.t", Schema(NestedField(1, "id", UUIDType())))
    table.append(rows)
    commit(table, THETA)
    assert "exact but for hash collisions" in read_ndv(table, "id")
    insert_as_trino(table, "q1", rows=rows)
    assert MERGED in read_ndv(table, "id")


@pytest.mark.parametrize(
    ("type_", "wider", "is_merged"),
    [
        (IntegerType(), LongType(), True),
        (FloatType(), DoubleType(), True),
        (DecimalType(21, 2), DecimalType(30, 2), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("has_schema_id", [True, False])
def test_values_that_trino_has_merged_with_those_of_a_narrower_type_are_not_called_exact(
    catalog, type_, wider, is_merged, has_schema_id
):
    """It hashes the bytes of the type that the column has then, so that a value of before counts again."""
    table = catalog.create_table("db.t", Schema(NestedField(1, "a", type_)))
    table.append(ROWS.select(["a"]).cast(table.schema().as_arrow()))
    commit(table, THETA)
    with table.update_schema() as update:
        update.update_column("a", wider)
    rows = ROWS.select(["a"]).cast(table.schema().as_arrow())
    insert_as_trino(table, "q1", rows)
    insert_as_trino(table, "q2", rows)
    if not has_schema_id:
        path = local_path(table.refresh().metadata_location)
        document = json.loads(path.read_text())
        del document["snapshots"][0]["schema-id"]
        path.write_text(json.dumps(document))
    words = (MERGED, "exact but for hash collisions")
    assert [one in read_ndv(table) for one in words] == [is_merged, not is_merged]


def test_a_sketch_of_trinos_first_rows_is_of_all_rows(catalog):
    """Trino makes a table with a snapshot of no rows, and merges its first sketch with none."""
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS.slice(0, 0))
    insert_as_trino(table, "q1")
    assert "exact but for hash collisions" in read_ndv(table)


def test_impala_takes_no_boolean(table):
    commit(table, THETA, field_id=2)
    assert open_table(table).sketches()["used_by"].to_pylist() == [["Spark", "Trino", "Presto", "icestats"]]


def test_spark_does_not_find_the_ndv_of_a_column_that_was_renamed_after_the_tag_it_reads(table):
    """It is given the name of today, and looks for it among those of the tag."""
    commit(table, THETA)
    with table.manage_snapshots() as manage:
        manage.create_tag(table.current_snapshot().snapshot_id, "before")
    with table.update_schema() as change:
        change.rename_column("a", "c")
    read = []
    for options in ({"ref": "before"}, {}):
        opened = open_table(table.refresh(), **options)
        listed = opened.coverage(engines=["Spark"]).filter(pc.field("statistic") == "NDV").to_pylist()[0]
        read.append((listed["column"], listed["available"], listed["read_by_engine"]))
        assert ("Spark" in opened.sketches()["used_by"].to_pylist()[0]) is listed["read_by_engine"]
    assert read == [("a", True, False), ("c", True, True)]


def test_one_ndv_that_is_no_integer_costs_trino_all_of_them(table):
    opened = open_table(table)
    snapshot_id = opened.snapshot.snapshot_id
    entries = [BlobMetadata(THETA, snapshot_id, 1, (1,), {"ndv": ndv}) for ndv in ("5", "12.5")]
    file = StatisticsFile(snapshot_id, "x.stats", 1, 1, tuple(entries))
    metadata = replace(opened.metadata, statistics=(file,))
    found = [find_statistics_users(metadata, count_ages(metadata, opened.snapshot))(file, e) for e in entries]
    assert found == [("Spark", "Impala"), ()]


def test_statistics_of_another_branch_are_of_use_to_presto_alone(table):
    """It takes the file whose snapshot is the nearest in time."""
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    commit(table, THETA)
    old = open_table(table, snapshot=first).sketches().to_pylist()[0]
    assert (old["commits_behind"], old["files_behind"], old["rows_behind"], old["used_by"]) == (
        *(None, None, None),
        ["Presto"],
    )


def test_the_overview_says_how_old_the_statistics_are_and_what_to_do(table):
    commit(table, THETA)
    assert not [f for f in open_table(table).overview().findings if "statistics" in f]
    table.append(ROWS)
    overview = open_table(table).overview()
    assert (overview.statistics_commits_behind, overview.statistics_files_behind) == (1, 1)
    assert overview.statistics_rows_behind == 10
    assert overview.findings == (
        "The statistics are 1 commit old, 1 data file with 10 rows added since: Trino still uses those of the "
        "nearest file, Spark only those of the exact snapshot; refresh_statistics() may read the new files alone.",
    )
    table.delete("a = 1")
    assert "refresh_statistics" not in open_table(table).overview().findings[0]


def test_the_overview_counts_no_statistics_of_a_column_that_is_gone(table):
    """The NDV of such a column grows old for ever, and nobody can compute it again."""
    commit(table, THETA)
    commit(table, THETA, field_id=2)
    with table.update_schema() as change:
        change.delete_column("b")
    table.append(ROWS.select(["a"]))
    commit(table, THETA)
    overview = open_table(table).overview()
    assert (overview.statistics_column_count, overview.statistics_commits_behind, overview.findings) == (1, 0, ())


def test_without_a_listed_ndv_nobody_says_how_old_the_statistics_are(table):
    """A newer file may hold what was made for an earlier snapshot: metadata.json says nothing of it."""
    assert open_table(table).overview().statistics_file_count == 0
    assert "  statistics             none" in repr(open_table(table))
    commit(table, KLL)
    table.append(ROWS)
    commit(table, KLL)
    opened = open_table(table)
    overview = opened.overview()
    assert (overview.statistics_file_count, overview.statistics_column_count) == (2, 0)
    assert (overview.statistics_commits_behind, overview.statistics_files_behind) == (None, None)
    assert "  statistics             no NDV listed" in repr(opened)
    assert overview.findings == (
        "No NDV of a column is listed for this snapshot, or one before it, so most engines know none: sketches() shows "
        "what is in 2 statistics files, and how old it is.",
    )
    commit(table, THETA)
    assert open_table(table).overview().statistics_commits_behind == 0


def test_statistics_of_another_branch_alone_are_not_called_none(table):
    """Presto takes them, and a file of a branch may have what was made for a snapshot before it."""
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "other").commit()
    ndv = NewBlob(THETA, (1,), table.current_snapshot().snapshot_id, 1, ThetaSketch().to_bytes(), {"ndv": "0"})
    commit_statistics(prepare_commit(table, [ndv]))
    table.refresh().append(ROWS, branch="other")
    tip = table.refresh().metadata.snapshot_by_id(table.metadata.refs["other"].snapshot_id)
    kll = NewBlob(KLL, (1,), tip.snapshot_id, tip.sequence_number, b"kll")
    commit_statistics(prepare_commit(table, [kll], snapshot_id=tip.snapshot_id))
    open_table(table).remove_statistics()
    overview = open_table(table).overview()
    assert (overview.statistics_column_count, overview.statistics_commits_behind) == (0, None)
    (finding,) = overview.findings
    assert finding.endswith("engines know none: sketches() shows what is in 1 statistics file, and how old it is.")


def test_the_age_of_ndvs_that_outlive_their_snapshot_is_unknown(table):
    """They are carried forward, and engines read them."""
    first = table.current_snapshot().snapshot_id
    commit(table, THETA)
    table.append(ROWS)
    commit(table, KLL)
    table.refresh().maintenance.expire_snapshots().by_id(first).commit()
    opened = open_table(table)
    overview = opened.overview()
    assert [row["used_by"][:2] for row in opened.sketches().to_pylist() if row["listed"]] == [["Spark", "Trino"]]
    assert (overview.statistics_column_count, overview.statistics_stale_column_count) == (1, 1)
    assert (overview.statistics_commits_behind, overview.statistics_files_behind) == (None, None)
    assert "1 column, of other snapshots" in repr(opened)
    assert [found for found in overview.findings if "1 of 1 column" in found and "expired" in found]
    commit(table, THETA)
    assert open_table(table).overview().statistics_commits_behind == 0
