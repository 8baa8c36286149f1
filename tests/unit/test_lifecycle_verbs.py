"""Statistics are taken back and cleaned up from the command line: nothing changes without --yes."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
import yaml

from icestats.cli import entry as cli
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit


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
    assert (kept["removed"], kept["kept_because"]) == (False, "it is younger than 7 days, 0:00:00")
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
    assert "icestats compute --commit" in err
