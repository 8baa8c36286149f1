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
# # icestats in five minutes
#
# An Apache Iceberg table carries its own index: a list of manifests, a list of data files in each manifest, the counts
# and bounds of each file's columns, and sometimes a file of sketches. Engines use this index to decide what to read and
# in which order to join. icestats shows what is in it, what an engine makes of it, and fills in what is missing.
#
# Below is `demo.events`: ten days of an event stream, partitioned by day and by device bucket. Everything on this page
# comes from metadata; it opens no data file and does not start Spark.

# %%
import icestats

events = icestats.demo("events")
events

# %% [markdown]
# This picture comes from two small files, `metadata.json` and the manifest list, so it takes as long for 450,000 files
# as for 50. The bars are the key ranges of manifests: where they overlap, a query for one day reads several of them.
#
# ## Look around
#
# Choose a column to see how its values are distributed. The bars are drawn from a committed KLL sketch of a few
# kilobytes. The band around them is the sketch's error at 99 % confidence.

# %%
events.explore()

# %% [markdown]
# ## How far can you trust each figure?
#
# A figure is **exact**, a **bound**, an **estimate** with its error, or **unknown**, and unknown is never shown as 0.
# `app_version` was added to the table later. The older files say nothing about its size, so that is unknown, and the
# provenance says why. Its counts and extremes are exact: they were committed for this snapshot.

# %%
columns = events.columns()
icestats.show(columns, "name", "type", "value_count", "null_value_count", "ndv", "column_size")

# %%
import pyarrow as pa

provenance = {row["name"]: dict(row["provenance"]) for row in columns.to_pylist()}
both = [
    {"figure": figure, **{name: provenance[name][figure] for name in ("price", "app_version")}}
    for figure in provenance["price"]
]
icestats.show(pa.Table.from_pylist(both))

# %% [markdown]
# ## Why does a query read what it reads?
#
# A scan walks down the tree. The manifest list rules out manifests, partitions rule out data files, and column bounds
# rule out more. Each step says what it kept, with the evidence.

# %%
plan = events.plan("device_id = 74 and event_time >= '2026-09-01T10:00:00'")
plan

# %%
icestats.show(plan.files(), "partition", "record_count", "reason", "evidence", rows=3)

# %% [markdown]
# ## What would an optimizer estimate?
#
# One filter, estimated from each kind of statistics that the table has. Where the estimates are far apart, the
# statistics decide the join order, not the data.

# %%
events.estimate("price > 100 and event_type = 'purchase'")

# %% [markdown]
# ## What is missing?
#
# Statistics describe one snapshot. These are the blobs committed for this table, and how many commits each one is
# behind.

# %%
icestats.show(events.sketches(), "type", "columns", "commits_behind", "ndv", "length", "listed", rows=6)

# %% [markdown]
# `events.compute()` makes missing ones in one scan with PySpark. `.commit(dry_run=True)` shows what a commit would
# change, and `.commit()` makes it.
#
# Next: [01 explore](01_explore.ipynb),
# [02 why this query reads what it reads](02_why_this_query_reads_what_it_reads.ipynb),
# [03 manifest statistics](03_manifest_statistics.ipynb),
# [04 estimates against the truth](04_estimates_against_the_truth.ipynb),
# [05 generate and commit](05_generate_and_commit.ipynb),
# [06 bring your own table](06_bring_your_own_table.ipynb), and [07 engines](07_engines.ipynb).
