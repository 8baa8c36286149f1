"""The skewed TPC-H of the benchmark of Spark's optimizer: always the same, with all its references whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.skewed_tpch import SkewedTpch
from benchmarks.tpch_files import generate_table

SCALE_FACTOR = 0.01


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    folder: Path = tmp_path_factory.mktemp("tpch")
    names = ("orders", "lineitem", "partsupp")
    return {name: pq.read_table(generate_table(name, folder, SCALE_FACTOR, 1)[0]) for name in names}


@pytest.fixture(scope="module")
def skewed(plain: dict[str, pa.Table]) -> dict[str, pa.Table]:
    tables = SkewedTpch(SCALE_FACTOR)
    return {name: tables.skew(name, 0, rows) for name, rows in plain.items()}


def test_the_same_rows_are_drawn_again(plain: dict[str, pa.Table], skewed: dict[str, pa.Table]) -> None:
    again = SkewedTpch(SCALE_FACTOR)
    assert all(again.skew(name, 0, rows).equals(skewed[name]) for name, rows in plain.items())


def test_rows_and_types_stay(plain: dict[str, pa.Table], skewed: dict[str, pa.Table]) -> None:
    assert all(skewed[name].schema == rows.schema for name, rows in plain.items())
    assert all(len(skewed[name]) == len(rows) for name, rows in plain.items())


def test_each_line_has_its_part_and_supplier(skewed: dict[str, pa.Table]) -> None:
    lines, supplies = ["l_partkey", "l_suppkey"], ["ps_partkey", "ps_suppkey"]
    missing = skewed["lineitem"].select(lines).join(skewed["partsupp"].select(supplies), lines, supplies, "left anti")
    assert len(missing) == 0


def test_a_line_is_shipped_after_its_order(skewed: dict[str, pa.Table]) -> None:
    orders = skewed["orders"].select(["o_orderkey", "o_orderdate"])
    joined = skewed["lineitem"].select(["l_orderkey", "l_shipdate"]).join(orders, "l_orderkey", "o_orderkey")
    days = joined["l_shipdate"].cast(pa.int32()).to_numpy() - joined["o_orderdate"].cast(pa.int32()).to_numpy()
    assert days.min() >= 1
    assert np.median(days) < 40


def test_few_keys_have_most_rows(plain: dict[str, pa.Table], skewed: dict[str, pa.Table]) -> None:
    counts = [tables["lineitem"]["l_partkey"].value_counts().field("counts") for tables in (plain, skewed)]
    of_plain, of_skewed = (max(found.to_pylist()) for found in counts)
    assert of_skewed > 50 * of_plain
