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
# # Generate statistics, and commit them
#
# This page takes a table without statistics to one whose statistics Spark plans with, and back again. Everything
# happens on a scratch copy in a temporary folder, so you can run it as often as you like. `demo.flights` does not
# change.

# %%
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.iceberg.catalog import demo_catalog_properties

icestats.demo("flights")
flights = SqlCatalog("icestats", **demo_catalog_properties()).load_table("demo.flights").scan().to_arrow()

folder = Path(tempfile.mkdtemp(prefix="icestats-"))
properties = {
    "name": "scratch",
    "type": "sql",
    "uri": f"sqlite:///{folder / 'catalog.db'}",
    "warehouse": f"file://{folder}",
}
catalog = SqlCatalog(**properties)
catalog.create_namespace("lab")
scratch = catalog.create_table("lab.flights", flights.schema)
scratch.append(flights.filter(pc.less(flights["month"], 12)))

table = icestats.load("lab.flights", catalog=properties)
table

# %% [markdown]
# The table has eleven months of flights, and only the statistics in its manifests. What do these say about a column?

# %%
columns = ["carrier", "dep_delay", "distance"]


def known(table):
    found = table.columns()
    wanted = found.filter(pc.is_in(found["name"], pa.array(columns)))
    return icestats.show(wanted, "name", "value_count", "null_value_count", "ndv")


known(table)

# %% [markdown]
# ## What Spark makes of it
#
# With `spark.sql.cbo.enabled`, Spark asks Iceberg for statistics. It gets the number of rows but no number of distinct
# values, so it cannot tell how many rows an equality keeps. (The first use of Spark starts a JVM, which takes a few
# seconds.)

# %%
import re

from icestats.spark.session import get_session, spark_catalog_properties

spark = get_session({"scratch": spark_catalog_properties({k: v for k, v in properties.items() if k != "name"})})
spark.conf.set("spark.sql.cbo.enabled", "true")


def estimated_rows(where):
    spark.sql("REFRESH TABLE scratch.lab.flights")
    rows = spark.table("scratch.lab.flights").where(where)
    plan = rows._jdf.queryExecution().stringWithStats()
    return float(re.search(r"Filter.*rowCount=([\d.E+]+)", plan)[1])


filters = ["carrier = 'HA'", "origin = 'JFK'", "tailnum = 'N14228'"]
actual = {where: scratch.scan(where).count() for where in filters}
before = {where: estimated_rows(where) for where in filters}
before

# %% [markdown]
# ## One scan
#
# `compute` reads each row once. For each column it makes a Theta sketch (distinct values), a KLL sketch (distribution),
# the most common values, and exact extremes, null counts and lengths; for columns that are named together, the most
# common pairs. Nothing on the table changes.

# %%
wanted = ["carrier", "origin", "tailnum", "dep_delay", "distance"]
statistics = table.compute(columns=wanted, together=[("carrier", "origin")])
statistics

# %%
sizes = ("theta_size_bytes", "kll_size_bytes")
icestats.show(statistics, "name", "value_count", "null_value_count", "ndv", "ndv_relative_error", *sizes)

# %% [markdown]
# Look at a distribution before you commit it: half of all flights leave early, and one in a hundred leaves more than
# three hours late.

# %%
statistics.histogram("dep_delay").quantiles

# %% [markdown]
# ## A dry run
#
# A dry run shows the file, each blob, the entry in metadata.json before and after, and what engines will do
# differently. One of its warnings is worth reading: with an NDV and no bounds, Spark estimates 0 rows for an equality
# on a number (SPARK-52868).

# %%
print(statistics.commit(dry_run=True))

# %% [markdown]
# `list_ndv` chooses the columns whose NDV is listed in metadata.json, where engines see it. The strings are safe. The
# sketches of the numbers are still written, for icestats.

# %%
strings = ["carrier", "origin", "tailnum"]
print(statistics.commit(dry_run=True, list_ndv=strings))

# %% [markdown]
# ## Commit

# %%
report = statistics.commit(list_ndv=strings)
table = table.refresh()
print(report)

# %% [markdown]
# The same questions again:

# %%
known(table)

# %%
after = {where: estimated_rows(where) for where in filters}
ways = {"Spark before": before, "Spark after": after, "actual": actual}
icestats.show(pa.table({"filter": filters, **{way: list(rows.values()) for way, rows in ways.items()}}))

# %% [markdown]
# Spark now divides the rows by the number of distinct values. That is right on average and wrong for a skewed column:
# `HA` is a rare carrier. [04 estimates against the truth](04_estimates_against_the_truth.ipynb) shows what a histogram
# would add, and [07 engines](07_engines.ipynb) gives it to Spark.
#
# ## Common values, and columns that go together
#
# icestats itself has more to go by: the rows of the most common values, and of the most common pairs. Hawaiian Airlines
# flies from JFK alone. Who takes carrier and origin for independent expects a third of its flights there.

# %%
icestats.show(table.frequent_values("carrier").slice(0, 3), "value", "rows_at_least", "rows_at_most", "share")

# %%
table.estimate("carrier = 'HA' and origin = 'JFK'", sources=["ndv", "frequent-items", "combined"], actual=True)

# %% [markdown]
# ## New data arrives
#
# December arrives. Statistics describe one snapshot, and Spark looks only for those of the snapshot it reads. The new
# one has none.

# %%
catalog.load_table("lab.flights").append(flights.filter(pc.equal(flights["month"], 12)))
table = table.refresh()
stale = {where: estimated_rows(where) for where in filters}
table.overview().statistics_commits_behind, stale

# %% [markdown]
# `refresh_statistics` reads only the new files and merges the results.

# %%
refreshed = table.refresh_statistics()
refreshed

# %%
refreshed.commit(list_ndv=strings)
table = table.refresh()
{where: estimated_rows(where) for where in filters}

# %% [markdown]
# ## Undo
#
# `remove_statistics` removes this snapshot's entry from metadata.json. Spark is back to where it was.

# %%
print(table.remove_statistics(dry_run=True))

# %%
table.remove_statistics()
table = table.refresh()
{where: estimated_rows(where) for where in filters}

# %% [markdown]
# The file stays on storage until someone removes it. `remove_orphans` shows which files nothing refers to. Unless you
# say otherwise, it deletes none that is younger than a day.

# %%
icestats.show(table.remove_orphans(), "path", "size_bytes", "removed", "kept_because")

# %% [markdown]
# Remove the scratch copy. To play with it first, stop above this cell.

# %%
shutil.rmtree(folder)
