"""Sketches by partition: computed in the scan, committed, and merged by a filter without a look at the data."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform

import icestats
from icestats.iceberg.storage import local_path
from icestats.iceberg.types import decode_value
from icestats.read.puffin.statistics_files import PARTITION_SKETCHES
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch

pytestmark = pytest.mark.spark

START = dt.datetime(2026, 9, 1)
ROWS = 20_000


def build_rows() -> pa.Table:
    random = np.random.default_rng(5)
    minutes = random.integers(0, 5 * 1440, ROWS)
    prices = random.lognormal(3, 1, ROWS)
    prices[:50] = np.nan
    regions = random.choice(["eu", "us", None], ROWS)
    return pa.table(
        {
            "at": pa.array([START + dt.timedelta(minutes=int(m)) for m in minutes], pa.timestamp("us")),
            "region": pa.array(regions, pa.string()),
            "device": pa.array(random.integers(0, 300, ROWS), pa.int64()),
            "price": pa.array(prices, mask=random.random(ROWS) < 0.1),
            "code": pa.array([f"{c:04d}" for c in random.integers(0, 2_000, ROWS)]),
            "payload": pa.array([b"x%d" % (i % 77) for i in range(ROWS)], pa.binary()),
        }
    )


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory, demo_home):
    """A table of two partition specs, by day and region and then by device and code, with committed sketches."""
    folder = tmp_path_factory.mktemp("partitioned")
    properties = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    rows = build_rows()
    table = catalog.create_table("db.t", rows.schema)
    with table.update_spec() as update:
        update.add_field("at", DayTransform(), "at_day")
        update.add_field("region", IdentityTransform(), "region")
    table.append(rows.slice(0, ROWS // 2))
    with table.update_spec() as update:
        update.remove_field("at_day")
        update.remove_field("region")
        update.add_field("device", BucketTransform(4), "device_bucket")
        update.add_field("code", TruncateTransform(1), "code_1")
    table.append(rows.slice(ROWS // 2))
    opened = icestats.load("db.t", catalog=properties)
    return opened, rows


@pytest.fixture(scope="module")
def computed(spark, partitioned):
    opened, _ = partitioned
    statistics = opened.compute(by="partition", max_size_bytes=64 << 20)
    statistics.commit()
    data = local_path(opened.metadata.location) / "data"
    hidden = data.with_name("hidden")
    shutil.move(data, hidden)
    yield statistics, opened.refresh()
    shutil.move(hidden, data)


def merged(computed, column, where, **options):
    table = computed[1]
    return table._reader.read_partition_sketches(table.schema.find(column), table.bind(where), **options)


@pytest.mark.parametrize("column", ["at", "region", "device", "price", "code", "payload"])
def test_the_sketches_of_partitions_add_up_to_the_tables(computed, column):
    """Theta to the same hashes; KLL to the same count and ends, and to ranks within both errors."""
    found = computed[0].found.columns[column]
    total = merged(computed, column, "device >= 0", partial="include")
    assert total.theta == ThetaSketch.from_bytes(found.theta)
    assert (total.value_count, total.null_count, total.nan_count) == (
        found.value_count,
        found.null_value_count,
        found.nan_value_count,
    )
    assert (total.kll is None) == (found.kll is None) == (column == "payload")
    if found.kll is not None:
        whole = KllSketch.from_bytes(found.item_type, found.kll)
        assert (total.kll.n, total.kll.min_value, total.kll.max_value) == (whole.n, whole.min_value, whole.max_value)
        probes = whole.quantiles([0.1, 0.25, 0.5, 0.75, 0.9])
        apart = np.abs(np.subtract(total.kll.ranks(probes), whole.ranks(probes)))
        assert apart.max() <= 2 * (whole.rank_error + total.kll.rank_error)


@pytest.mark.parametrize("column", ["at", "region", "device", "price", "code", "payload"])
def test_the_common_values_of_partitions_add_up_to_the_rows(partitioned, computed, column):
    _, table = computed
    found = table._reader.read_partition_items(
        table.schema.find(column), table.bind("device >= 0"), partial="include"
    ).values
    values = partitioned[1][column].drop_null()
    values = values.filter(pc.invert(pc.is_nan(values))) if column == "price" else values
    rows = Counter(values.to_pylist())
    rows = Counter({_as_stored(value): count for value, count in rows.items()})
    assert found.value_count == len(values)
    assert column != "region" or len(found.items) == 2
    assert all(item.lower <= rows[decode_value(found.type, item.value)] <= item.upper for item in found.items)
    kept = {decode_value(found.type, item.value) for item in found.items}
    assert max((count for value, count in rows.items() if value not in kept), default=0) <= found.others_at_most


def _as_stored(value):
    return (
        (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) if isinstance(value, dt.datetime) else value
    )


def test_one_footer_blob_a_column_is_written_and_none_is_listed(computed):
    rows = [row for row in computed[1].sketches().to_pylist() if row["type"] == PARTITION_SKETCHES]
    assert {row["columns"][0] for row in rows} == {"at", "region", "device", "price", "code", "payload"}
    assert {row["listed"] for row in rows} == {False}
    assert "by partition:" in repr(computed[0])


def first_half(rows: pa.Table, keep) -> np.ndarray:
    half = rows.slice(0, ROWS // 2).to_pylist()
    return np.array([row["price"] for row in half if keep(row) and row["price"] is not None])


def test_a_filter_on_partitions_gives_the_histogram_of_their_rows_with_the_data_files_gone(partitioned, computed):
    """Of the rows of the first spec: those of the second one cannot be told apart by day and are left out here."""
    day = dt.datetime(2026, 9, 3)
    where = "at >= '2026-09-03T00:00:00' and at < '2026-09-04T00:00:00'"
    total = merged(computed, "price", where, partial="leave out")
    truth = first_half(partitioned[1], lambda row: day <= row["at"] < day + dt.timedelta(days=1))
    numbers = np.sort(truth[~np.isnan(truth)])
    assert total.partial_partition_count > 0
    assert total.partition_count == 3
    assert total.kll.n == len(numbers)
    assert total.nan_count == np.isnan(truth).sum()
    assert (total.kll.min_value, total.kll.max_value) == (numbers[0], numbers[-1])
    assert int(total.theta.estimate()) == pytest.approx(len(np.unique(truth)), abs=2)
    probes = total.kll.quantiles([0.1, 0.5, 0.9])
    ranks = np.searchsorted(numbers, probes, side="right") / len(numbers)
    assert np.abs(ranks - [0.1, 0.5, 0.9]).max() <= 2 * total.kll.rank_error + 1e-9


def test_a_filter_that_selects_parts_of_partitions_is_refused_with_what_can_be_chosen_by(computed):
    for where in ("price < 3", "at >= '2026-09-03T12:00:00'", "region = 'eu'", "device = 7"):
        with pytest.raises(icestats.FilterError) as caught:
            computed[1].histogram("price", where=where)
        assert "at, region, bucket[4] of device" in str(caught.value) or "day of at, region" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_filter_that_no_partition_can_match_gives_an_empty_histogram(computed):
    found = computed[1].histogram("price", where="code < '0' and at < '1999-01-01T00:00:00' and region = 'mars'")
    assert (found.n, found.null_count, found.edges) == (0, 0, ())


def test_a_wrong_call_is_refused_before_anything_runs(spark, partitioned):
    opened, _ = partitioned
    with pytest.raises(icestats.CallError, match="expected 'partition'"):
        opened.compute(by="day")


def test_what_is_said_before_is_no_less_than_what_is_written(spark, partitioned, computed, capsys):
    """And smaller sizes for partitions leave the table's sketches as they are."""
    opened, _ = partitioned
    data = local_path(opened.metadata.location) / "hidden"
    shutil.copytree(data, data.with_name("data"))
    try:
        small = opened.compute(columns=["device", "price"], by="partition", partition_k=32, partition_lg_k=6)
        said = capsys.readouterr().err
    finally:
        shutil.rmtree(data.with_name("data"))
    assert "sketches of " in said
    assert "x 2 columns (lg_k 6, k 32) will take up to " in said
    (file,) = small.commit(dry_run=True).files
    own = [b for b in file["blobs"] if b["type"] == PARTITION_SKETCHES and b["columns"][0] in ("device", "price")]
    number, unit = re.search(r"take up to ([\d.]+) (kB|MB)", said).groups()
    assert len(own) == 2
    assert 0 < sum(b["length"] for b in own) <= float(number) * {"kB": 1e3, "MB": 1e6}[unit]
    assert small.found.columns["device"].theta == computed[0].found.columns["device"].theta
    sizes = [len(c.theta) for c in small.found.by_partition.columns["price"].values()]
    assert max(sizes) == 24 + 8 * 64


def test_an_unpartitioned_table_is_refused(spark, tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    rows = pa.table({"x": pa.array([1], pa.int64())})
    catalog.create_table("db.t", rows.schema).append(rows)
    with pytest.raises(icestats.CallError, match="is not partitioned"):
        icestats.load("db.t", catalog=properties).compute(by="partition")
    catalog.close()
