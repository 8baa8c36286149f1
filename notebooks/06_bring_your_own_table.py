# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Bring your own table
#
# `icestats.load` takes the name of a table in a catalog, or the location of a metadata.json. This page opens a table in
# each way that works without a server, and shows the configuration for catalogs that need one.
#
# | your table is in | pass to `load` |
# |---|---|
# | a catalog of `~/.pyiceberg.yaml` | `"catalog.namespace.table"` |
# | AWS Glue, a REST catalog, a Hive metastore, SQL | the same, or `"namespace.table"` and the catalog's properties |
# | a folder that Spark's Hadoop catalog wrote | the folder |
# | files only, no catalog | the location of a metadata.json |
#
# First, make a table to open: a thousand rows in a catalog that is one SQLite file.

# %%
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import icestats

folder = Path(tempfile.mkdtemp(prefix="icestats-"))
sqlite = {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}
catalog = SqlCatalog("lake", **sqlite)
catalog.create_namespace("shop")
rows = pa.table({"order_id": range(1000), "price": [i / 7 for i in range(1000)]})
catalog.create_table("shop.orders", rows.schema).append(rows)

# %% [markdown]
# ## A catalog by its properties
#
# `name` is the catalog's name. A SQL catalog uses it to find its tables.

# %%
icestats.load("shop.orders", catalog={**sqlite, "name": "lake"})

# %% [markdown]
# ## A catalog by its name
#
# PyIceberg reads its configuration from `~/.pyiceberg.yaml` (or the same file in the folder that `PYICEBERG_HOME`
# names), or from environment variables. This cell writes such a file into the scratch folder:

# %%
lines = [f"    {key}: {value}" for key, value in sqlite.items()]
(folder / ".pyiceberg.yaml").write_text("\n".join(["catalog:", "  lake:", *lines]))
os.environ["PYICEBERG_HOME"] = str(folder)

icestats.load("lake.shop.orders")

# %% [markdown]
# ## A metadata.json
#
# This opens one version of a table, read-only. You can ask and compute everything, but commit nothing.

# %%
metadata_location = catalog.load_table("shop.orders").metadata_location
orders = icestats.load(metadata_location)
orders.columns().select(["name", "value_count", "null_value_count"]).to_pandas()

# %% [markdown]
# On an object store, the location is a URI, and `catalog` takes the properties of FileIO:
#
# ```python
# icestats.load(
#     "s3://bucket/shop/orders/metadata/00007-….metadata.json",
#     catalog={"s3.region": "eu-west-1", "s3.endpoint": "https://minio.example.com"},
# )
# ```
#
# ## A folder of a Hadoop catalog
#
# Spark's Hadoop catalog keeps no list of tables: each folder is a table, and `metadata/version-hint.text` names the
# newest version. This cell makes such a folder from the table above.

# %%
hadoop = folder / "hadoop" / "orders"
(hadoop / "metadata").mkdir(parents=True)
shutil.copy(metadata_location.removeprefix("file://"), hadoop / "metadata" / "v1.metadata.json")
(hadoop / "metadata" / "version-hint.text").write_text("1")

icestats.load(str(hadoop))

# %% [markdown]
# ## Catalogs that need a server
#
# These configurations work with `catalog=`, and in `~/.pyiceberg.yaml` under `catalog: NAME:`. The titles name the
# extra that PyIceberg needs.

# %%
configurations = {
    "REST (Polaris, Nessie, Lakekeeper, Unity, S3 Tables, ...)": {
        "type": "rest",
        "uri": "https://catalog.example.com/api/catalog",
        "warehouse": "analytics",
        "credential": "client-id:client-secret",
        "scope": "PRINCIPAL_ROLE:ALL",
    },
    "AWS Glue: pip install 'pyiceberg[glue]'": {
        "type": "glue",
        "glue.region": "eu-west-1",
        "client.region": "eu-west-1",
    },
    "Hive metastore: pip install 'pyiceberg[hive]'": {
        "type": "hive",
        "uri": "thrift://metastore.example.com:9083",
        "s3.region": "eu-west-1",
    },
    "SQL, such as PostgreSQL: pip install 'pyiceberg[sql-postgres]'": {
        "type": "sql",
        "uri": "postgresql+psycopg2://user:password@db.example.com/iceberg",
        "warehouse": "s3://bucket/warehouse",
    },
}

# %% [markdown]
# Does PyIceberg know each of these types? This needs no server:

# %%
from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType

for title, properties in configurations.items():
    kind = CatalogType(properties["type"])
    print(f"{title}\n  type {kind.value!r} is known: {kind in AVAILABLE_CATALOGS}")

# %% [markdown]
# If a catalog cannot be reached or its package is missing, the error is one line:

# %%
unreachable = {"type": "rest", "uri": "http://127.0.0.1:9/"}
try:
    icestats.load("shop.orders", catalog=unreachable)
except icestats.IcestatsError as error:
    print(error)

# %% [markdown]
# ## Spark
#
# If only Spark knows your catalog (Hadoop, Nessie, a class of your own), pass the session:
# `icestats.load("catalog.namespace.table", spark=spark)` opens the table, and commits through the same catalog.
#
# `compute` plans with PyIceberg and lets Spark's executors read the files, so Spark does not need your catalog. If you
# want Spark to read the same table, `spark_catalog_properties` translates the configuration:

# %%
from icestats.spark.session import spark_catalog_properties

for title, properties in configurations.items():
    print(f"{title}\n  {spark_catalog_properties(properties)}")
