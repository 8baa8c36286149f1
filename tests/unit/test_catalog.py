"""Opening tables: what exists is found, what does not is said in one line that names what does."""

from __future__ import annotations

import datetime as dt
import functools
import gzip
import json
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pyiceberg.types import LongType

import icestats
from icestats import writers
from icestats.commit.puffin_writer import CarriedBlob, write_puffin
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.storage import local_path
from icestats.read.puffin.puffin import PuffinBlob
from icestats.scan.scan_job import Sizes
from icestats.table.statistics import Statistics
from tests.computed_statistics import compute_here, scan_table
from tests.unit.conftest import small_rows

SIZES = Sizes(200, 12, 200, 12)


def test_a_table_is_found_by_catalog_properties(small_table, catalog_properties):
    table = icestats.load("db.small", catalog=catalog_properties)
    assert table.snapshot.snapshot_id == small_table.current_snapshot().snapshot_id
    assert [field.name for field in table.schema.fields] == ["id", "at", "price", "name"]


def test_connections_to_a_sql_catalog_close_with_the_last_table_that_may_use_them(small_table, load, tmp_path):
    """Python 3.13 warns of those that nobody has closed."""

    def count_connections() -> int:
        return sum(file.path == str(tmp_path / "catalog.db") for file in psutil.Process().open_files())

    before = count_connections()
    table = load()
    assert count_connections() == before
    held = load_iceberg_table(table._source)
    assert count_connections() == before + 1
    assert held.refresh().metadata_location == small_table.metadata_location
    del held
    assert count_connections() == before


@pytest.mark.parametrize("form", ["path", "uri", "folder"])
def test_a_metadata_file_is_found_by_its_location(small_table, tmp_path, form):
    """A path, a file: URI, and a folder whose version-hint names the version, all open the same table."""
    path = local_path(small_table.metadata_location)
    assert path is not None
    location = {"path": str(path), "uri": f"file://{path}", "folder": str(path.parent.parent)}[form]
    (path.parent / "version-hint.text").write_text(path.name)
    assert icestats.load(location).snapshot.snapshot_id == small_table.current_snapshot().snapshot_id


@pytest.mark.parametrize(
    ("hint", "names", "expected"),
    [
        (
            "2",
            ("v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "v4.gz.metadata.json"),
            "v4.gz.metadata.json",
        ),
        ("2", ("v2.metadata.json", "v4.metadata.json"), "v2.metadata.json"),
        (None, ("v9.metadata.json", "v10.metadata.json"), "v10.metadata.json"),
        ("no number", ("v1.metadata.json", "v2.metadata.json.gz"), "v2.metadata.json.gz"),
    ],
)
def test_a_folder_opens_its_newest_version(small_table, tmp_path, hint, names, expected):
    """The hint is written after the version, by some never: as in Iceberg, later versions count, one after another."""
    document = json.loads(local_path(small_table.metadata_location).read_text())
    folder = tmp_path / "hadoop" / "metadata"
    folder.mkdir(parents=True)
    for name in names:
        data = json.dumps(document | {"properties": {"name": name}}).encode()
        (folder / name).write_bytes(gzip.compress(data) if "gz" in name else data)
    if hint is not None:
        (folder / "version-hint.text").write_text(hint)
    assert icestats.load(str(folder.parent)).metadata.properties["name"] == expected


@pytest.mark.parametrize("hint", ["../../other/v1", "../../other/v1.metadata.json"])
def test_the_hint_of_a_folder_names_no_file_elsewhere(small_table, tmp_path, hint):
    """It may have come with the table: another one was opened in its place, without a word."""
    own, other = tmp_path / "t" / "metadata", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "v1.metadata.json").write_bytes(local_path(small_table.metadata_location).read_bytes())
    (own / "version-hint.text").write_text(hint)
    assert icestats.load(str(own.parent))._source.metadata_location == str(own / "v1.metadata.json")
    (own / "v1.metadata.json").rename(own / "00001-a.metadata.json")
    with pytest.raises(icestats.TableNotFoundError, match="no valid version-hint"):
        icestats.load(str(own.parent))


def test_a_table_of_a_folder_is_refreshed_to_the_newest_version(small_table, tmp_path):
    folder = tmp_path / "hadoop" / "metadata"
    folder.mkdir(parents=True)
    versions = [small_table.metadata_location]
    small_table.append(small_rows(2))
    versions.append(small_table.metadata_location)
    first, second = (local_path(location).read_bytes() for location in versions)
    (folder / "v1.metadata.json").write_bytes(first)
    table = icestats.load(str(folder.parent))
    assert (table.name, table.code()) == (str(folder.parent), f"icestats.load({str(folder.parent)!r})")
    (folder / "v2.metadata.json").write_bytes(second)
    assert table.refresh().snapshot.snapshot_id == small_table.current_snapshot().snapshot_id
    at_first = icestats.load(str(folder / "v1.metadata.json"))
    assert at_first.refresh().snapshot == at_first.snapshot == table.snapshot


@pytest.mark.parametrize("name", ["a#b", "a?b=c", "a%20b", "a b", "a:b"])
def test_any_name_of_a_folder_can_be_in_a_location(small_table, tmp_path, name):
    """Java writes them into locations as they are."""
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "v1.metadata.json"
    path.write_bytes(local_path(small_table.metadata_location).read_bytes())
    for location in (str(path), f"file:{path}", f"file://{path}"):
        assert icestats.load(location).snapshot.snapshot_id == small_table.current_snapshot().snapshot_id


def test_a_table_that_pyiceberg_cannot_read_can_be_opened_by_its_location(small_table, catalog_properties):
    """PyIceberg does not know the type variant; the message says which way is left."""
    path = local_path(small_table.metadata_location)
    document = json.loads(path.read_text())
    document["format-version"], document["next-row-id"] = 3, 0
    document["schemas"][0]["fields"].append({"id": 9, "name": "v", "type": "variant", "required": False})
    path.write_text(json.dumps(document))
    with pytest.raises(icestats.MetadataError, match="give the location of its") as caught:
        icestats.load("db.small", catalog=catalog_properties)
    assert "\n" not in str(caught.value)
    assert icestats.load(str(path)).columns().num_rows == 5


def test_a_gzipped_metadata_file_is_read(small_table, tmp_path):
    path = local_path(small_table.metadata_location)
    packed = tmp_path / "v1.gz.metadata.json"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert icestats.load(str(packed)).metadata == icestats.load(str(path)).metadata


def test_snapshots_branches_and_tags_are_found(small_table, catalog_properties):
    first = small_table.history()[0].snapshot_id
    small_table.manage_snapshots().create_tag(first, "first").commit()
    assert icestats.load("db.small", catalog=catalog_properties, ref="first").snapshot.snapshot_id == first
    assert icestats.load("db.small", catalog=catalog_properties, snapshot=str(first)).snapshot.snapshot_id == first


def test_a_branch_has_the_current_schema_and_a_tag_its_own(small_table, catalog_properties):
    """As Iceberg's Java library reads them; a snapshot's id gives its own schema, even of the current snapshot."""
    current = small_table.current_snapshot().snapshot_id
    small_table.manage_snapshots().create_tag(current, "tagged").commit()
    small_table.manage_snapshots().create_branch(small_table.history()[0].snapshot_id, "branch").commit()
    with small_table.update_schema() as update:
        update.rename_column("name", "title")
        update.delete_column("price")
        update.add_column("added", LongType())
    new, old = ["id", "at", "title", "added"], ["id", "at", "price", "name"]
    pins = [{}, {"ref": "main"}, {"ref": "branch"}, {"ref": "tagged"}, {"snapshot": current}, {"as_of": "2999-01-01"}]
    for pin, names in zip(pins, [new, new, new, old, old, old], strict=True):
        table = icestats.load("db.small", catalog=catalog_properties, **pin)
        assert [field.name for field in table.schema.top_level] == names, pin
        assert table.columns()["name"].to_pylist() == names, pin
        renamed = "title" if names == new else "name"
        rows = sum(row % 20 == 1 for row in range(100 if pin == {"ref": "branch"} else 200))
        assert table.plan(f"{renamed} = 'n1'", rows=True).steps[-1].kept == rows, pin
        assert list(scan_table(table).columns) == names, pin
        assert table.refresh().schema == table.schema, pin


def test_the_ndv_of_a_tag_is_listed_by_the_names_that_it_was_read_by(small_table, catalog_properties):
    """A column that was renamed since is found by its id; of one that was dropped nothing is listed, with a warning."""
    small_table.manage_snapshots().create_tag(small_table.current_snapshot().snapshot_id, "tagged").commit()
    with small_table.update_schema() as update:
        update.rename_column("name", "title")
        update.delete_column("price")
    table = icestats.load("db.small", catalog=catalog_properties, ref="tagged")
    found = scan_table(table)
    names = ["name", "price"]
    assert "field 3 is not in the current" in str(Statistics(table._source, found).commit(list_ndv=names, dry_run=True))
    Statistics(table._source, found).commit(list_ndv=names)
    (registered,) = small_table.refresh().metadata.statistics
    assert [blob.fields for blob in registered.blob_metadata] == [[4]]
    with pytest.raises(icestats.ColumnNotFoundError, match="nothing"):
        Statistics(table._source, found).commit(list_ndv=["nothing"])
    with pytest.raises(icestats.CallError, match="'id', of which there is no Theta sketch here"):
        table.compute(partitions=True).commit(list_ndv=["id"])


def test_a_commit_of_columns_without_statistics_says_why_there_are_none(small_table, catalog_properties):
    table = icestats.load("db.small", catalog=catalog_properties)
    found = replace(scan_table(table), columns={}, skipped={"v": "type variant has no statistics"})
    with pytest.raises(icestats.CallError, match="no statistics can be made of v: type variant"):
        Statistics(table._source, found).commit()


def test_a_point_in_time_is_the_snapshot_that_was_current_then(small_table, catalog_properties):
    first, second = small_table.history()
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    open_as_of = functools.partial(icestats.load, "db.small", catalog=catalog_properties)
    assert open_as_of(as_of=moment).snapshot.snapshot_id == first.snapshot_id
    assert open_as_of(as_of="2999-01-01").snapshot.snapshot_id == second.snapshot_id
    assert open_as_of(as_of=moment.replace(tzinfo=None).isoformat()).snapshot.snapshot_id == first.snapshot_id
    with pytest.raises(
        icestats.SnapshotNotFoundError, match=r"no .* current at 2001-01-01 00:00:00 UTC: .* begins at 20"
    ):
        open_as_of(as_of="2001-01-01T00:00")
    with pytest.raises(icestats.CallError, match="no point in time"):
        open_as_of(as_of="yesterday")
    with pytest.raises(icestats.CallError, match="give one of them"):
        open_as_of(as_of="2001-01-01", ref="main")


@pytest.mark.parametrize(("times", "expected"), [((100, 100), "last"), ((100, 90), "last"), ((90, 100), "first")])
def test_of_times_that_repeat_or_go_back_the_last_one_counts(small_table, tmp_path, times, expected):
    """Clocks differ between writers: as in Iceberg, the log's last entry that is not later than the time counts."""
    path = local_path(small_table.metadata_location)
    assert path is not None
    for ids in ((1, 2), (2, 1)):
        document = json.loads(path.read_text())
        for snapshot, snapshot_id in zip(document["snapshots"], ids, strict=True):
            snapshot["snapshot-id"] = snapshot_id
        document |= {"current-snapshot-id": ids[1], "refs": {}, "statistics": []}
        document["snapshot-log"] = [
            {"timestamp-ms": ms, "snapshot-id": snapshot_id} for ms, snapshot_id in zip(times, ids, strict=True)
        ]
        changed = tmp_path / f"{ids[0]}.metadata.json"
        changed.write_text(json.dumps(document))
        moment = dt.datetime.fromtimestamp(max(times) / 1000 if expected == "last" else times[0] / 1000, dt.UTC)
        found = icestats.load(str(changed), as_of=moment).snapshot
        assert found.snapshot_id == ids[1 if expected == "last" else 0]


def test_wrong_calls_say_what_exists(small_table, catalog_properties, tmp_path, monkeypatch):
    """Each message is one line and names what there is."""
    monkeypatch.setenv("ICESTATS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    text = tmp_path / "notes.txt.json"
    text.write_text("hello")
    no_table = tmp_path / "v1.metadata.json"
    no_table.write_text(json.dumps({"a": 1}))
    cases = [
        (lambda: icestats.load("db.smal", catalog=catalog_properties), icestats.TableNotFoundError, "small"),
        (lambda: icestats.load("dbx.small", catalog=catalog_properties), icestats.TableNotFoundError, "it has db"),
        (lambda: icestats.load("x.db.small", catalog="nowhere"), icestats.CatalogError, "icestats"),
        (lambda: icestats.load("small"), icestats.TableNotFoundError, "expected catalog.namespace.table"),
        (lambda: icestats.load("demo.events"), icestats.TableNotFoundError, "icestats demo"),
        (lambda: icestats.load(str(tmp_path / "none.metadata.json")), icestats.TableNotFoundError, "no file"),
        (lambda: icestats.load(str(tmp_path)), icestats.TableNotFoundError, "metadata"),
        (lambda: icestats.load(str(text)), icestats.MetadataError, "not a metadata.json"),
        (lambda: icestats.load(str(no_table)), icestats.MetadataError, "format-version"),
        (
            lambda: icestats.load("db.small", catalog=catalog_properties, ref="b"),
            icestats.SnapshotNotFoundError,
            "main",
        ),
        (
            lambda: icestats.load("db.small", catalog=catalog_properties, snapshot=7),
            icestats.SnapshotNotFoundError,
            "7",
        ),
        (lambda: icestats.load("db.small", catalog=catalog_properties, snapshot="x"), icestats.CallError, "'x'"),
        (lambda: icestats.load("a.b", catalog={"type": "sql"}), icestats.CatalogError, "uri"),
    ]
    for call, error, part in cases:
        with pytest.raises(error) as caught:
            call()
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_cut_metadata_is_an_error_with_the_path(small_table, tmp_path, cut):
    data = local_path(small_table.metadata_location).read_bytes()
    for packed in (data, gzip.compress(data)):
        path = tmp_path / "cut.metadata.json"
        path.write_bytes(packed[:cut])
        with pytest.raises(icestats.MetadataError) as caught:
            icestats.load(str(path))
        assert caught.value.path == str(path)


@pytest.mark.parametrize("ask", ["orphans", "remove_orphans", "refresh"])
def test_a_metadata_file_that_is_gone_since_is_said(small_table, tmp_path, ask):
    """Writers remove earlier versions where `write.metadata.delete-after-commit.enabled` is set."""
    copy = tmp_path / "copy.metadata.json"
    copy.write_bytes(local_path(small_table.metadata_location).read_bytes())
    table = icestats.load(str(copy))
    copy.unlink()
    with pytest.raises(icestats.IcestatsError) as caught:
        getattr(table, ask)()
    assert f"{copy}: no such file" in str(caught.value) or f"no file {copy}" in str(caught.value)


def test_a_statistics_blob_of_an_unknown_type_does_not_hide_the_table(small_table, tmp_path):
    """PyIceberg refuses such a table whole; the kit reads it."""
    path = local_path(small_table.metadata_location)
    document = json.loads(path.read_text())
    snapshot_id = document["current-snapshot-id"]
    blob = {"type": "somebody-elses-v9", "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [1]}
    document["statistics"] = [
        {
            "snapshot-id": snapshot_id,
            "statistics-path": "file:///gone.stats",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [blob],
        }
    ]
    changed = tmp_path / "v9.metadata.json"
    changed.write_text(json.dumps(document))
    assert icestats.load(str(changed)).metadata.statistics[0].blobs[0].type == "somebody-elses-v9"


@pytest.mark.parametrize("listed_type", ["presto-kll-sketch-bytes-v1", "presto-sum-data-size-bytes-v1", ""])
def test_a_catalogs_table_with_a_statistics_blob_of_an_unknown_type_opens(small_table, catalog_properties, listed_type):
    """As Presto's ANALYZE lists it. What is written through PyIceberg keeps it."""
    snapshot_id = small_table.current_snapshot().snapshot_id
    blob = {
        "type": listed_type,
        "snapshot-id": snapshot_id,
        "sequence-number": 2,
        "fields": [1],
        "properties": {"a": "b"},
    }
    folder = Path(local_path(small_table.metadata_location)).parent
    stored = PuffinBlob(listed_type, (1,), snapshot_id, 2, 0, 3, None, {"a": "b"})
    data = write_puffin([CarriedBlob(stored, b"abc")]).data
    (folder / "theirs.stats").write_bytes(data)
    entry = {"snapshot-id": snapshot_id, "statistics-path": f"file://{folder}/theirs.stats"}
    sizes = {"file-size-in-bytes": len(data), "file-footer-size-in-bytes": 100}
    path = local_path(small_table.metadata_location)
    document = json.loads(path.read_text()) | {"statistics": [{**entry, **sizes, "blob-metadata": [blob]}]}
    path.write_text(json.dumps(document))

    def load() -> icestats.Table:
        return icestats.load("db.small", catalog=catalog_properties)

    def listed(table: icestats.Table) -> list[object]:
        metadata = json.loads(local_path(table._source.metadata_location).read_text())
        return [b for file in metadata["statistics"] for b in file["blob-metadata"]]

    table = load()
    assert table.sketches().select(["type", "listed"]).to_pylist() == [{"type": listed_type, "listed": True}]
    for answer in (table.manifests, table.partitions, table.columns, table.files, table._repr_html_, table.layout):
        answer()
    assert table.plan("id < 5", rows=True).steps[-1].kept == 5
    assert {row["source"] for row in table.estimate("id < 5", actual=True).to_arrow().to_pylist()} >= {"actual"}
    compute_here(table).commit()
    assert blob in listed(load())
    assert len(listed(load())) == 5
    writers.append(load(), small_rows(2))
    assert blob in listed(load())
    load().remove_statistics(restore=True)
    assert load().histogram("price", bins=2).commits_behind == 1


def test_refresh_sees_a_later_commit(small_table, catalog_properties):
    table = icestats.load("db.small", catalog=catalog_properties)
    small_table.append(small_table.scan().to_arrow().slice(0, 100))
    assert table.overview().record_count == 200
    assert table.refresh().overview().record_count == 300


def test_reading_changes_no_file(small_table, catalog_properties, tmp_path):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    table = icestats.load("db.small", catalog=catalog_properties)
    for answer in (table.manifests, table.partitions, table.columns, table.files, table.sketches, table._repr_html_):
        answer()
    assert {path: path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()} == before


def test_no_catalog_is_made_by_reading(tmp_path):
    """Neither a database where there is none, nor tables in one that is something else."""
    gone, other = tmp_path / "gone.db", tmp_path / "other.db"
    other.touch()
    with pytest.raises(icestats.CatalogError, match=f"has no file {gone}: expected the SQLite file"):
        icestats.load("db.small", catalog={"uri": f"sqlite:///{gone}"})
    with pytest.raises(icestats.CatalogError, match=r"cannot load db.small: no such table: iceberg_tables$"):
        icestats.load("db.small", catalog={"uri": f"sqlite:///{other}"})
    assert not gone.exists()
    assert other.stat().st_size == 0


def test_a_demo_folder_that_cannot_be_looked_into_has_no_warehouse(monkeypatch):
    """As one of another user: no folder has such a name, and asking for it is an error."""
    monkeypatch.setenv("ICESTATS_HOME", f"/{'x' * 5_000}")
    with pytest.raises(icestats.TableNotFoundError, match="the demo warehouse is not built in"):
        icestats.load("demo.events")


def test_a_catalog_of_properties_has_the_name_that_they_give(small_table, catalog_properties):
    """SQL catalogs know their tables by it."""
    assert icestats.load("db.small", catalog={**catalog_properties, "name": "catalog"}).refresh().snapshot is not None
    with pytest.raises(icestats.TableNotFoundError):
        icestats.load("db.small", catalog={**catalog_properties, "name": "other"})


@pytest.mark.parametrize("location", ["/a/b", "file:/a", "file:///a%20b", "FILE:///x", "C:\\x\\y", "a:b", ":///", ""])
def test_a_local_location_has_a_path(location: str) -> None:
    assert local_path(location) is not None


@pytest.mark.parametrize("location", ["s3://b/k", "gs://a", "x://"])
def test_a_remote_location_has_no_path(location: str) -> None:
    assert local_path(location) is None


@pytest.mark.parametrize("uri", ["metastore:9083", "thrift://metastore", "thrift://a:1,b:2", "thrift://a:90x"])
def test_a_metastores_uri_without_scheme_host_or_port_is_told_what_is_expected(uri):
    with pytest.raises(icestats.CatalogError, match=r"expected one such as thrift://host:9083$") as caught:
        icestats.load("db.t", catalog={"type": "hive", "uri": uri})
    assert uri not in str(caught.value)


def test_more_than_one_metastore_is_asked():
    with pytest.raises(icestats.CatalogError, match="Could not connect to any of"):
        icestats.load("db.t", catalog={"uri": "thrift://127.0.0.1:1, thrift://127.0.0.1:2/"})
