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
# each way that works without a server, and shows what a REST catalog and a Hive metastore answered, and the
# configuration for other catalogs.
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

temporary = tempfile.TemporaryDirectory(prefix="icestats-notebook-")  # removed when the kernel ends
folder = Path(temporary.name)
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
icestats.show(orders.columns(), "name", "value_count", "null_value_count")

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
# ## A REST catalog on S3, as it was run
#
# This page starts no server, so what follows is not run here: it is what was typed and answered with a Nessie 0.99.0
# server, whose tables are on an S3 server. `make interop` runs it again, and compares.
#
# The server says where S3 is. Keys are yours, if it gives none. Spark, which `compute` and `rewrite_manifests` start,
# opens S3 with `iceberg-aws-bundle`: a session that icestats starts for such a table fetches it.
#
# ```pycon
# >>> import icestats
# >>> nessie = {"type": "rest", "uri": "http://127.0.0.1:19120/iceberg/", "warehouse": "lake", "name": "nessie"}
# >>> keys = {"s3.access-key-id": "any", "s3.secret-access-key": "any", "s3.request-timeout": "60"}
# >>> orders = icestats.load("shop.orders", catalog={**nessie, **keys})
# >>> orders
# shop.orders  (format v2 · snapshot 3368694526786832550 · append · 2026-11-23 04:51:05 UTC)
#   records in data files  2,000
#   data files             6
#   manifests              2
#   size of files          20.4 kB
#   delete files           0
#   delete records         0
#   snapshots              1
#   statistics             none
#   ! No statistics have been committed: engines know no NDV, and there is no histogram to draw.
# >>> orders.plan("day = 'b' and price < 50", rows=True).steps[-1].kept
# 167
# >>> report = orders.compute().commit()
# >>> print(report.files[0]["path"])
# s3://bucket/lake/shop/orders_de14ca49-ea52-4104-9145-3bb35538c0fe/metadata/3368694526786832550-078e0fc7-92ea-4eee-b16c-b73e7d0ef4d4.stats
# >>> orders = orders.refresh()
# >>> [(row["columns"], row["ndv"]) for row in orders.sketches().to_pylist() if row["listed"]]
# [(['id'], 2000), (['price'], 2000), (['day'], 3)]
# >>> orders.rewrite_manifests(dry_run=False)
# shop.orders: 2 manifests rewritten, 1 made of them
#   day, manifests that a key lies in, mean: 2 before, 1 predicted, 1 after
# CALL `nessie`.system.rewrite_manifests(table => 'shop.orders')
# ```
#
# Nessie gives the current snapshot of a table and no other, so `refresh_statistics` finds no statistics to add to after
# an append: `compute` makes them anew. It keeps no log of metadata either, and its branches may refer to what one of
# them no longer does: `remove_orphans` keeps what any metadata.json beside the file refers to, unless
# `allow_referred=True`.
#
# The same table by Spark's own configuration, in a session that icestats starts for it:
#
# ```python
# from icestats.spark.session import get_session, spark_catalog_properties
#
# spark = get_session({"nessie": spark_catalog_properties({**nessie, **keys})})
# icestats.load("nessie.shop.orders", spark=spark)
# ```
#
# A session of your own takes `spark.jars.packages=org.apache.iceberg:iceberg-aws-bundle:1.12.0` beside the runtime, and
# `spark.sql.catalog.nessie.header.X-Iceberg-Access-Delegation=vended-credentials`, as PyIceberg has it: without, Nessie
# offers to sign the requests, in a way that Iceberg 1.12 no longer asks for.
#
# ## A Hive metastore, as it was run
#
# The metastore was that of Spark's own jars, Hive 2.3.10 on Derby, with tables in a local folder. It needs
# `pip install 'icestats[hive]'`.
#
# ```pycon
# >>> import icestats
# >>> hive = {"type": "hive", "uri": "thrift://127.0.0.1:9083", "name": "hive"}
# >>> orders = icestats.load("shop.orders", catalog=hive)
# >>> report = orders.compute().commit()
# >>> orders = orders.refresh()
# >>> [(row["columns"], row["ndv"]) for row in orders.sketches().to_pylist() if row["listed"]]
# [(['id'], 2000), (['price'], 2000), (['day'], 3)]
# >>> orders.rewrite_manifests(dry_run=False)
# shop.orders: 2 manifests rewritten, 1 made of them
#   day, manifests that a key lies in, mean: 2 before, 1 predicted, 1 after
# CALL `hive`.system.rewrite_manifests(table => 'shop.orders')
# >>> from icestats.spark.session import get_session, spark_catalog_properties
# >>> spark = get_session({"hive": spark_catalog_properties(hive)})
# >>> orders = icestats.load("hive.shop.orders", spark=spark)
# >>> orders.plan("price < 20", rows=True).steps[-1].kept
# 200
# ```
#
# ## Other catalogs that need a server
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
