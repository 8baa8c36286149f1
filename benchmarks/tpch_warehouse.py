"""TPC-H as Iceberg tables in a SQLite catalog, once as it is and once skewed, with committed statistics."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from benchmarks.skewed_tpch import SkewedTpch
from benchmarks.tpch_files import generate_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "bench"
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
NAMESPACES = ("tpch", "skewed")
_FILES = 6
_BUILT = "built"


def catalog_properties(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": f"file://{home}", "name": CATALOG}


def build_warehouse(home: Path, scale_factor: float, spark: SparkSession, k: int) -> None:
    """Make the tables `tpch.*` and `skewed.*` in a folder, and commit their statistics, unless they are there.

    The statistics are those of `compute(k=k).commit()`: the NDV of each column is listed in metadata.json.
    """
    built = home / _BUILT
    if not built.exists():
        _build_tables(home, scale_factor)
        built.touch()
    if built.read_text() != str(k):
        for namespace in NAMESPACES:
            for name in TABLES:
                print(f"statistics of {namespace}.{name}", file=sys.stderr)
                table = icestats.load(f"{namespace}.{name}", catalog=catalog_properties(home))
                table.compute(k=k, spark=spark).commit()
        built.write_text(str(k))


def _build_tables(home: Path, scale_factor: float) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    skewed = SkewedTpch(scale_factor)
    with SqlCatalog(**catalog_properties(home)) as catalog:
        for namespace in NAMESPACES:
            catalog.create_namespace(namespace)
        for name in TABLES:
            print(f"making {name}", file=sys.stderr)
            files = generate_table(name, home / "parquet", scale_factor, _FILES)
            schema = pq.read_schema(files[0])
            tables = [catalog.create_table(f"{namespace}.{name}", schema) for namespace in NAMESPACES]
            for part, file in enumerate(files):
                rows: pa.Table = pq.read_table(file)
                tables[0].append(rows)
                tables[1].append(skewed.skew(name, part, rows))
    shutil.rmtree(home / "parquet")
