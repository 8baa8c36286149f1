"""A statistics file that is gone or damaged costs the figures that it had, no more, and is named."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow.compute as pc
import pytest

import icestats
from icestats.errors import MetadataError
from icestats.iceberg.storage import local_path
from icestats.scan.scan_plan import scan_here
from tests.added_rows import numbers
from tests.computed_statistics import compute_here

pytestmark = pytest.mark.usefixtures("no_cache")


def commit_all(table: icestats.Table) -> None:
    """Commit sketches of the columns, and statistics of manifests and partitions."""
    compute_here(table).commit()
    table.compute(table=False, manifests=True, partitions=True, with_column_stats=True).commit()


def statistics_file(table: icestats.Table) -> Path:
    return local_path(table.metadata.statistics[-1].statistics_path)


def partition_file(table: icestats.Table) -> Path:
    return local_path(table.metadata.partition_statistics[-1].statistics_path)


DAMAGE = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "other bytes": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a damaged blob": lambda path: path.write_bytes(b"PFA1" + bytes(3_000) + path.read_bytes()[3_004:]),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("find", [statistics_file, partition_file])
def test_answers_come_with_a_finding_that_names_the_file(find, damage, small_table, load, caplog):
    expected = load()
    manifests, partitions, names = expected.manifests(), expected.partitions(), expected.columns()["name"]
    commit_all(load())
    path = find(load())
    DAMAGE[damage](path)
    table = load()
    with caplog.at_level(logging.WARNING, "icestats"):
        assert table.manifests().equals(manifests)
        assert table.partitions().drop_columns(["last_updated_at"]).equals(partitions.drop_columns(["last_updated_at"]))
        assert table.columns()["name"].equals(names)
        assert len(table.plan("id < 5").files())
    assert str(path) in caplog.text
    assert any(str(path) in finding for finding in table.overview().findings)
    assert str(path) in repr(table)
    assert len({record.getMessage() for record in caplog.records}) == len(caplog.records)


def test_an_untouched_table_has_no_such_finding(small_table, load, caplog):
    commit_all(load())
    table = load()
    with caplog.at_level(logging.WARNING, "icestats"):
        for ask in (table.manifests, table.partitions, table.columns):
            ask()
    assert not table._reader.findings
    assert not caplog.records


def test_who_asks_for_the_lost_statistics_gets_one_line(small_table, load):
    commit_all(load())
    path = statistics_file(load())
    path.unlink()
    for ask in (lambda: load().histogram("id"), lambda: load().sketches()):
        with pytest.raises(MetadataError) as caught:
            ask()
        assert str(caught.value) == f"{load().metadata.statistics[-1].statistics_path}: no such file"
    partition_file(load()).unlink()
    with pytest.raises(MetadataError, match="no such file"):
        load().partition_statistics()


def test_earlier_statistics_are_used_where_the_nearest_are_gone(small_table, load):
    commit_all(load())
    ndv = dict(zip(load().columns()["name"].to_pylist(), load().columns()["ndv"].to_pylist(), strict=True))
    small_table.append(numbers([1]))
    commit_all(load())
    statistics_file(load()).unlink()
    columns = {row["name"]: row for row in load().columns().to_pylist()}
    assert columns["name"]["ndv"] == ndv["name"]
    assert "1 commit behind" in dict(columns["name"]["provenance"])["ndv"]


def test_a_lost_file_takes_no_statistics_of_other_files_with_it(small_table, load, caplog):
    commit_all(load())
    lost = statistics_file(load())
    small_table.append(numbers([1]))
    commit_all(load())
    table = load()
    before = [
        table.histogram("id"),
        table.frequent_values("id"),
        table.estimate("id < 3").to_arrow()["rows_upper"],
        table.sketches().filter(pc.equal(table.sketches()["commits_behind"], 0)),
    ]
    lost.unlink()
    table = load()
    after = [
        table.histogram("id"),
        table.frequent_values("id"),
        table.estimate("id < 3").to_arrow()["rows_upper"],
        table.sketches(),
    ]
    assert after == before
    assert str(lost) in repr(table)
    assert table.refresh_statistics().commit().files == ()


@pytest.mark.parametrize("damage", DAMAGE)
def test_statistics_are_computed_anew_where_the_only_file_is_lost(damage, small_table, load, monkeypatch):
    monkeypatch.setattr("icestats.spark.statistics_scan.run_scan", lambda _, plan, sizes, **__: scan_here(plan, sizes))
    monkeypatch.setattr("icestats.spark.session_catalog.find_session", lambda *_: None)
    commit_all(load())
    DAMAGE[damage](statistics_file(load()))
    small_table.append(numbers([1]))
    assert load().compute(together=[("id", "name")]).commit().committed
    table = load()
    assert (table.histogram("id").commits_behind, table.histogram("id").n) == (0, 201)
    assert table.columns_together().num_rows == 1


@pytest.mark.parametrize("engine", ["hive", "impala", "spark", "trino"])
def test_an_export_comes_without_the_lost_statistics(engine, small_table, load):
    commit_all(load())
    statistics_file(load()).unlink()
    assert "db.small" in load().export(engine, name="lake.db.small" if engine in ("spark", "trino") else None)


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_estimate_of_manifests_comes_without_the_lost_statistics(damage, small_table, load):
    commit_all(load())
    DAMAGE[damage](statistics_file(load()))
    sources = load().estimate("id < 5")
    assert sources["combined"].rows is not None
    assert sources["combined"].rows_upper <= sources["data-files"].rows_upper
    assert "are not used" in str(sources) or damage == "a damaged blob"


def test_ten_lost_files_are_named_of_any_number(small_table, load, tmp_path, caplog):
    document = json.loads(local_path(small_table.metadata_location).read_bytes())
    entry = {"snapshot-id": document["current-snapshot-id"], "file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    document["statistics"] = [
        {**entry, "statistics-path": str(tmp_path / f"{i}.stats"), "blob-metadata": []} for i in range(50)
    ]
    location = tmp_path / "changed.metadata.json"
    location.write_text(json.dumps(document))
    with caplog.at_level(logging.WARNING, "icestats"):
        assert icestats.load(str(location)).columns().num_rows == 4
    assert len(caplog.records) == 10
