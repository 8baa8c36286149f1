"""What has come since statistics were made is counted, and the engines that still use them are those that would."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.types import (
    TimestamptzType,
    UUIDType,
)

import icestats
from icestats.commit.puffin_writer import NewBlob, created_by
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.iceberg.metadata import BlobMetadata, StatisticsFile
from icestats.iceberg.storage import local_path
from icestats.read.puffin.statistics_age import MERGED, THETA, StatisticsAge, count_ages
from icestats.read.puffin.statistics_users import find_statistics_users
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


EXACT = "exact but for hash collisions"
TRINO = b"Trino"


def insert_as_trino(table, rows=ROWS):
    """Append rows and register a sketch of their snapshot, as an INSERT does."""
    table.refresh().append(rows, snapshot_properties={"trino_query_id": "q1"})
    register_as(TRINO, table)


def register_as(maker, table):
    """Register a sketch of the table's last snapshot in a file of another writer's, as its ANALYZE does."""
    commit(table, THETA, keep_earlier=False)
    copy_as(maker, table)


def copy_as(maker, table, **changes):
    """Register the sketches of the newest statistics file once more, in a file of another writer's."""
    made = table.refresh().metadata.statistics[-1]
    path, mine = f"{table.location()}/metadata/{uuid4()}.stats", created_by().encode()
    data = local_path(made.statistics_path).read_bytes()
    local_path(path).write_bytes(data.replace(mine, maker.ljust(len(mine))))
    with table.update_statistics() as update:
        update.set_statistics(made.model_copy(update={"statistics_path": path, **changes}))


def read_ndv(table, column="a", **options):
    (row,) = open_table(table, **options).columns().filter(pc.field("name") == column).to_pylist()
    return dict(row["provenance"])["ndv"]


@pytest.mark.parametrize("between", ["nothing", "append", "delete"])
def test_a_sketch_that_trino_has_merged_is_not_called_exact(table, between):
    """Its INSERT merges with the nearest ancestor's, whatever was committed in between, and nothing tells what was."""
    commit(table, THETA)
    if between == "append":
        table.append(ROWS)
    elif between == "delete":
        table.delete("a < 5")
    insert_as_trino(table)
    opened = open_table(table)
    joined = repr(opened.estimate_join(opened, "a"))
    assert (MERGED in read_ndv(table), MERGED in joined, "95.4%" in joined) == (True, True, False)
    commit(table, THETA)
    opened = open_table(table)
    joined = repr(opened.estimate_join(opened, "a"))
    assert (EXACT in read_ndv(table), MERGED in joined, "95.4%" in joined) == (True, False, True)


@pytest.mark.parametrize(
    ("change", "query", "maker", "is_merged"),
    [
        ("append", {"trino_query_id": "q1"}, TRINO, True),
        ("append", {"trino_query_id": "q1"}, b"Iceberg 1.12", False),
        ("append", {"trino_query_id": "q1"}, b"presto-0.287", False),
        ("append", {}, TRINO, False),
        ("delete", {"trino_query_id": "q1"}, TRINO, False),
    ],
)
@pytest.mark.parametrize("is_carried", [False, True])
def test_analyze_makes_a_whole_sketch_but_right_after_trino_s_insert(
    table, change, query, maker, is_merged, is_carried
):
    """There its ANALYZE of other columns copies what the INSERT has merged, and nothing tells that from its own."""
    commit(table, THETA)
    change, what = (table.append, ROWS) if change == "append" else (table.delete, "a < 5")
    change(what, snapshot_properties=query)
    register_as(maker, table)
    if is_carried:
        commit(table, KLL)
    assert (MERGED in read_ndv(table), EXACT in read_ndv(table)) == (is_merged, not is_merged)


@pytest.mark.parametrize(
    "course",
    [
        "carry",
        "append, carry, forget",
        "carry, restore",
        "append, copy as Trino, forget",
        "append, copy as Trino, carry, forget",
        "carry, copy as Trino",
        "list nothing",
        "list nothing, carry",
    ],
)
def test_a_sketch_that_trino_has_merged_is_known_as_such_wherever_it_goes(table, course):
    table.delete("a < 5")
    insert_as_trino(table)
    inserted = table.refresh().current_snapshot().snapshot_id
    for step in course.split(", "):
        newest = table.refresh().current_snapshot().snapshot_id
        if step == "append":
            table.append(ROWS)
        elif step == "carry":
            commit(table, KLL)
        elif step == "restore":
            open_table(table).remove_statistics(restore=True)
        elif step == "copy as Trino":
            copy_as(TRINO, table, snapshot_id=newest)
        elif step == "list nothing":
            copy_as(TRINO, table, blob_metadata=[])
        elif step == "forget":
            with table.update_statistics() as update:
                update.remove_statistics(inserted)
    assert {row["snapshot_id"] for row in open_table(table).sketches().to_pylist() if row["type"] == THETA} == {
        inserted
    }
    assert MERGED in read_ndv(table)


def test_a_sketch_that_is_made_anew_is_exact_though_the_merged_one_was_carried_over(table):
    """A later snapshot's file keeps the merged one, with its mark."""
    table.delete("a < 5")
    insert_as_trino(table)
    made_for = table.refresh().current_snapshot()
    table.append(ROWS)
    commit(table, KLL)
    assert MERGED in read_ndv(table)
    anew = NewBlob(THETA, (1,), made_for.snapshot_id, made_for.sequence_number, ThetaSketch().to_bytes(), {"ndv": "0"})
    commit_statistics(prepare_commit(table.refresh(), [anew], snapshot_id=made_for.snapshot_id))
    assert EXACT in read_ndv(table)
    table.manage_snapshots().set_current_snapshot(snapshot_id=made_for.snapshot_id).commit()
    assert EXACT in read_ndv(table)


def test_what_is_expired_does_not_make_the_rest_a_tables_first_rows(table):
    """PyIceberg leaves the children of what it expires without a parent."""
    commit(table, THETA)
    earlier = table.current_snapshot().snapshot_id
    table.append(ROWS)
    insert_as_trino(table)
    table.maintenance.expire_snapshots().by_ids([earlier, table.current_snapshot().parent_snapshot_id]).commit()
    (snapshot,) = table.refresh().metadata.snapshots
    assert snapshot.parent_snapshot_id is None
    assert MERGED in read_ndv(table)


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
