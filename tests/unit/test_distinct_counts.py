"""Numbers of distinct values: never more than there are values, never called exact where an empty one is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch
from icestats.table.statistics import Statistics
from tests.computed_statistics import scan_table

Make = Callable[[pa.Array], tuple[icestats.Table, Statistics]]


@pytest.fixture
def make(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> Make:
    """Return a table of one column `v` with committed statistics, and these as they were computed."""

    def made(values: pa.Array) -> tuple[icestats.Table, Statistics]:
        rows = pa.table({"v": values})
        catalog.create_table("db.t", rows.schema).append(rows)
        table = icestats.load("db.t", catalog=catalog_properties)
        found = scan_table(table)
        computed = Statistics(table._source, found)
        computed.commit()
        return icestats.load("db.t", catalog=catalog_properties), computed

    return made


def ndv_of(table: icestats.Table) -> tuple[Any, str]:
    row = table.columns().to_pylist()[0]
    return row["ndv"], dict(row["provenance"])["ndv"]


def find_overestimated(count: int) -> list[int]:
    """Return whole numbers, all different, of which a Theta sketch counts more than there are."""
    for start in range(0, 100 * count, count):
        values = np.arange(start, start + count)
        sketch = ThetaSketch()
        sketch.update(hash_values(pa.array(values), "long"))
        if sketch.ndv > count:
            return values.tolist()
    raise AssertionError("no such numbers")


def test_an_estimate_above_the_number_of_values_is_cut(make: Make) -> None:
    """All values differ, and Theta says 50,213 of them where there are 50,000."""
    table, computed = make(pa.array([*find_overestimated(50_000), None], pa.int64()))
    theta = ThetaSketch.from_bytes(computed.found.find("v").theta)
    assert theta.ndv > 50_000
    ndv, provenance = ndv_of(table)
    assert ndv == 50_000
    assert "cut to the number of values that are not null" in provenance
    assert computed.to_arrow()["ndv"].to_pylist() == [50_000]
    assert max(table.sketches()["ndv"].drop_null().to_pylist()) == 50_000
    estimate = table.estimate("v = 7")["ndv"]
    assert estimate.rows == pytest.approx(1.0)
    assert "the NDV of v is cut to the number of values that are not null" in estimate.assumes
    join = table.estimate_join(table, "v")
    assert join["join-ndv"].rows == pytest.approx(50_000)
    assert all("is cut to the number of values that are not null" in one.assumes for one in join)


@pytest.mark.parametrize("values", [["", "a", "b", None], [b"", b"a", b"b", None]])
def test_the_empty_value_is_said_to_be_left_out(make: Make, values: list[Any]) -> None:
    """Iceberg's sketches hold two of three values: the count is not called exact without saying so."""
    table, _ = make(pa.array(values))
    ndv, provenance = ndv_of(table)
    assert ndv == 2
    assert "the empty value, if there is one, is not counted" in provenance
    assert "the NDV of v does not count an empty value" in table.estimate(e.EqualTo("v", values[1]))["ndv"].assumes


def test_where_the_smallest_value_is_not_empty_the_count_is_exact(make: Make) -> None:
    table, _ = make(pa.array(["a", "b", None]))
    ndv, provenance = ndv_of(table)
    assert (ndv, "not counted" in provenance) == (2, False)
