"""Statistics are taken back and cleaned up from the command line: nothing changes without --yes."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
import yaml

import icestats
from icestats.cli import entry as cli
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.iceberg.storage import local_path
from icestats.table.statistics import Statistics
from tests.computed_statistics import scan_table


@pytest.fixture
def run(capfd, monkeypatch, tmp_path, catalog_properties):
    """Run the command line in this process, with the catalog configured; gives exit code, stdout and stderr."""
    home = tmp_path / "configuration"
    home.mkdir()
    (home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"catalog": catalog_properties}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(home))

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["icestats", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return (stop.value.code, *capfd.readouterr())

    return run


@pytest.fixture
def old_orphan(small_table) -> Path:
    path = Path(small_table.location().removeprefix("file://")) / "metadata" / "1-x.stats"
    path.write_bytes(b"PFA1 cut")
    os.utime(path, (time.time() - 3 * 86_400,) * 2)
    return path


def commit(table):
    snapshot = table.refresh().current_snapshot()
    theta = NewBlob("apache-datasketches-theta-v1", (1,), snapshot.snapshot_id, 1, b"x", {"ndv": "1"})
    return commit_statistics(prepare_commit(table, [theta]))


def test_orphans_are_deleted_only_when_told(run, old_orphan):
    name = "catalog.db.small"
    [listed] = json.loads(run("orphans", name, "--format", "json")[1])
    assert (listed["kind"], listed["size_bytes"], listed["last_referred_at"]) == ("table statistics", 8, None)
    assert 3 * 86_400 <= listed["age_seconds"] < 3 * 86_400 + 600
    [shown] = json.loads(run("orphans", name, "--remove", "--format", "json")[1])
    assert (shown["removed"], shown["kept_because"]) == (False, None)
    [kept] = json.loads(run("orphans", name, "--remove", "--older-than", "1w", "--yes", "--format", "json")[1])
    assert (kept["removed"], kept["kept_because"]) == (False, "it is younger than 7 days")
    assert old_orphan.exists()
    [removed] = json.loads(run("orphans", name, "--remove", "--yes", "--format", "json")[1])
    assert (removed["removed"], removed["kept_because"]) == (True, None)
    assert not old_orphan.exists()
    assert json.loads(run("orphans", name, "--format", "json")[1]) == []


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--yes"], 2, "--yes goes with --remove"),
        (["--remove", "--older-than", "soon"], 2, "'soon' is no age"),
        (["--older-than", "-7d"], 2, "'-7d' is no age"),
        (["--remove", "--older-than", "23h", "--yes"], 2, "expected a day at least"),
    ],
)
def test_a_wrong_call_deletes_nothing(run, old_orphan, options, code, words):
    got, out, err = run("orphans", "catalog.db.small", *options)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert words in err
    assert old_orphan.exists()


def test_from_a_metadata_file_nothing_is_deleted(run, small_table, old_orphan):
    got, out, err = run("orphans", small_table.metadata_location, "--remove", "--yes")
    assert (got, out) == (1, "")
    assert "read-only" in err
    assert old_orphan.exists()


def test_json_says_what_the_text_of_a_commit_and_of_a_removal_says(run, small_table):
    path, name = local_path(commit(small_table).statistics_path), "catalog.db.small"
    compute = ("compute", name, "--manifests", "--commit", "--format", "json")
    assert "estimates 0 rows for an equality on id" in json.loads(run(*compute)[1])["effects"][-1]
    again = json.loads(run(*compute)[1])
    assert again["committed"] is False
    assert "has exactly these statistics already" in again["warnings"][0]
    path.unlink()
    removed = json.loads(run("remove-statistics", name, "--restore", "--yes", "--format", "json")[1])
    assert f"{path}: no such file" in removed["notes"][0]
    assert removed["effects"][0] == "Spark plans this snapshot without the NDV of id"


def test_statistics_are_removed_only_when_told(run, small_table):
    path = commit(small_table).statistics_path
    code, out, _ = run("remove-statistics", "catalog.db.small")
    assert code == 0
    assert f"would take {path} out of the table" in out
    assert len(small_table.refresh().metadata.statistics) == 1
    document = json.loads(run("remove-statistics", "catalog.db.small", "--yes", "--format", "json")[1])
    assert (document["removed"], document["path"], document["restored_path"]) == (True, path, None)
    assert small_table.refresh().metadata.statistics == []
    got, out, err = run("remove-statistics", "catalog.db.small", "--yes")
    assert (got, out) == (1, "")
    assert "has no statistics for snapshot" in err
    [row] = json.loads(run("orphans", "catalog.db.small", "--format", "json")[1])
    assert row["path"] == path
    assert row["last_referred_at"] is not None


def test_a_refresh_without_statistics_says_what_to_do(run, small_table):
    got, out, err = run("refresh-statistics", "catalog.db.small")
    assert (got, out, err.count("\n")) == (1, "", 1)
    assert "icestats compute SOURCE --commit" in err


def test_columns_say_below_the_rows_which_figures_are_of_an_earlier_snapshot(run, small_table, catalog_properties):
    opened = icestats.load("db.small", catalog=catalog_properties)
    found = scan_table(opened, by_partition=True)
    Statistics(opened._source, found).commit()
    fresh = run("columns", "catalog.db.small")[1]
    assert "behind" not in fresh
    small_table.append(small_table.scan(limit=1).to_arrow())
    [*rows, note] = run("columns", "catalog.db.small")[1].splitlines()
    assert len(rows) == len(fresh.splitlines())
    names = ", ".join(found.columns)
    assert note == f"ndv, avg_length, max_length of {names}: of snapshot {opened.snapshot.snapshot_id}, 1 commit behind"
    assert "behind" not in run("columns", "catalog.db.small", "--format", "csv")[1].partition("{")[0]


@pytest.fixture
def hadoop_folder(small_table, tmp_path) -> Path:
    """The same table as a Hadoop catalog keeps it: a folder whose versions have numbers."""
    folder = tmp_path / "hadoop" / "metadata"
    folder.mkdir(parents=True)
    (folder / "v1.metadata.json").write_bytes(local_path(small_table.metadata_location).read_bytes())
    (folder / "version-hint.text").write_text("1")
    return folder.parent


@pytest.mark.parametrize("verb", [("compute", "--manifests", "--partitions"), ("refresh-statistics",)])
@pytest.mark.parametrize("place", ["metadata.json", "Hadoop folder"])
def test_a_commit_that_cannot_be_is_refused_before_anything_is_read(run, small_table, hadoop_folder, place, verb):
    location = str(hadoop_folder) if place == "Hadoop folder" else small_table.metadata_location
    for manifest in icestats.load(small_table.metadata_location).manifest_files()["manifest_path"].to_pylist():
        local_path(manifest).unlink()
    got, out, err = run(verb[0], location, *verb[1:], "--commit")
    assert (got, out, err.count("\n")) == (1, "", 1)
    assert "read-only: open the table through its catalog to commit" in err


@pytest.mark.parametrize("damaged", [b"PFA1 cut", None], ids=["cut", "gone"])
@pytest.mark.parametrize("verb", ["compute", "refresh-statistics"])
def test_a_commit_that_cannot_keep_what_is_there_is_refused_before_anything_is_read(run, small_table, verb, damaged):
    path = local_path(commit(small_table).statistics_path)
    path.unlink() if damaged is None else path.write_bytes(damaged)
    for manifest in icestats.load(small_table.metadata_location).manifest_files()["manifest_path"].to_pylist():
        local_path(manifest).unlink()
    got, out, err = run(verb, "catalog.db.small", "--commit")
    assert (got, out, err.count("\n")) == (1, "", 1)
    assert "the present blobs cannot be carried over (remove_statistics() takes them out of the table)" in err


@pytest.mark.parametrize(
    ("verb", "name", "words"),
    [
        (("compute", "--table"), "nope", "no column 'nope'"),
        (("compute", "--manifests"), "name", "'name', which is not among the columns that are read"),
        (("compute", "--partitions"), "nope", "no column 'nope'"),
        (("compute", "--table", "--columns", "i*"), "name", "'name', which is not among the columns that are read"),
        (("refresh-statistics",), "nope", "no column 'nope'"),
        (("refresh-statistics",), "name", "'name', which is not among the columns that are read"),
        (("refresh-statistics", "--columns", "i*"), "name", "'name', which is not among the columns that are read"),
    ],
)
def test_an_ndv_that_cannot_be_listed_is_refused_before_anything_is_read(run, small_table, verb, name, words):
    """Behind a scan the answer would be lost over it."""
    commit(small_table)
    for manifest in icestats.load(small_table.metadata_location).manifest_files()["manifest_path"].to_pylist():
        local_path(manifest).unlink()
    got, out, err = run(verb[0], "catalog.db.small", *verb[1:], "--list-ndv", name)
    assert (got, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize("place", ["metadata.json", "Hadoop folder"])
def test_without_a_commit_the_answer_is_printed_whether_or_not_one_would_be_possible(
    run, small_table, hadoop_folder, place
):
    location = str(hadoop_folder) if place == "Hadoop folder" else small_table.metadata_location
    code, out, err = run("compute", location, "--manifests", "--partitions")
    assert (code, err) == (0, "")
    assert "2 data manifests, 4 columns" in out
    assert "cannot be committed: " in out
    assert "would write" in out
    document = json.loads(run("compute", location, "--manifests", "--format", "json")[1])
    assert document["committed"] is False
    assert any("cannot be committed: " in warning for warning in document["warnings"])


def test_the_answer_is_printed_even_where_the_table_has_gone_bad_meanwhile(run, small_table):
    path = Path(commit(small_table).statistics_path.removeprefix("file://"))
    path.write_bytes(b"PFA1 cut")
    code, out, _ = run("compute", "catalog.db.small", "--manifests")
    assert code == 0
    assert "2 data manifests, 4 columns" in out
    assert f"cannot be committed: {path}" in out.replace("file://", "")
    got, _, err = run("compute", "catalog.db.small", "--manifests", "--commit")
    assert (got, err.count("\n")) == (1, 1)
    assert "remove_statistics()" in err


def test_statistics_of_earlier_snapshots_are_left_out_when_told(run, small_table):
    commit(small_table)
    small_table.append(small_table.scan().to_arrow())
    run("compute", "catalog.db.small", "--manifests", "--commit", "--leave-earlier")
    kinds = [len(entry.blob_metadata) for entry in small_table.refresh().metadata.statistics]
    assert kinds == [1, 0]
    run("compute", "catalog.db.small", "--manifests", "--commit")
    assert [len(entry.blob_metadata) for entry in small_table.refresh().metadata.statistics] == [1, 1]


def test_partition_statistics_are_removed_too_unless_they_are_kept(run, small_table):
    run("compute", "catalog.db.small", "--manifests", "--partitions", "--commit")
    kept = json.loads(run("remove-statistics", "catalog.db.small", "--keep-partitions", "--format", "json")[1])
    assert (kept["removed"], len(kept["entries"])) == (False, 1)
    removed = json.loads(run("remove-statistics", "catalog.db.small", "--yes", "--format", "json")[1])
    assert (removed["removed"], len(removed["entries"])) == (True, 2)
    metadata = small_table.refresh().metadata
    assert (metadata.statistics, metadata.partition_statistics) == ([], [])
    got, _, err = run("remove-statistics", "catalog.db.small", "--expired")
    assert (got, "no statistics of expired snapshots" in err) == (1, True)
    got, _, err = run("compute", "catalog.db.small", "--manifests", "--together", "id,nope")
    assert (got, "no column 'nope'" in err) == (2, True), "what takes a scan is not left out without a word"
    got, _, err = run("remove-statistics", "catalog.db.small", "--expired", "--restore")
    assert (got, "expired takes out the entries of all expired snapshots: leave out restore" in err) == (2, True)
