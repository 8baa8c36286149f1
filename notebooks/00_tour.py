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
# An Apache Iceberg table carries an index of itself: a list of manifests, in each manifest a list of data files, beside
# each file the counts and bounds of its columns, and here and there a file of sketches. Engines decide by it what they
# read and in which order they join. icestats shows what is in it, what an engine makes of it, and fills in what is
# missing.
#
# Below is `demo.events`: ten days of an event stream, partitioned by day and by bucket of device. Everything on this
# page is read from metadata; no data file is opened and no Spark is started.

# %%
import icestats

events = icestats.demo("events")
events

# %% [markdown]
# That picture comes from two small files, `metadata.json` and the manifest list, so it takes as long for 450,000 files
# as for 50. The bars are the key ranges of manifests: where they overlap, a query about one day reads several of them.
#
# ## Look around
#
# Choose a column to see how its values are distributed. The bars are drawn from a committed KLL sketch of some
# kilobytes; the band around them is the sketch's error at 99 % confidence.

# %%
events.explore()

# %% [markdown]
# ## What is each figure worth?
#
# A figure is **exact**, a **bound**, an **estimate** with its error, or **unknown**, and unknown is never shown as 0.
# `app_version` was added to the table half way. The older files say nothing about it, so its counts are unknown, and
# the reason stands beside them.

# %%
columns = events.columns()
columns.select(["name", "type", "value_count", "null_value_count", "ndv"]).to_pandas().style.format(
    na_rep="unknown", thousands=",", precision=0
).hide(axis="index")

# %%
import pandas as pd

provenance = {row["name"]: dict(row["provenance"]) for row in columns.to_pylist()}
pd.DataFrame({name: provenance[name] for name in ("price", "app_version")}).style.set_properties(
    **{"text-align": "left", "white-space": "normal", "max-width": "26em"}
)

# %% [markdown]
# ## Why does a query read what it reads?
#
# A scan goes down the tree: the manifest list leaves out manifests, partitions leave out data files, bounds of columns
# leave out more. Each step says what it kept and on which evidence.

# %%
plan = events.plan("device_id = 74 and event_time >= '2026-09-01T10:00:00'")
plan

# %%
plan.files("all").select(["kept", "step", "reason", "evidence"]).to_pandas().groupby(
    "step"
).first().style.set_properties(**{"text-align": "left", "white-space": "normal"})

# %% [markdown]
# ## What would an optimizer guess?
#
# The same filter, estimated from each kind of statistics that the table has. Where they are far apart, the statistics
# decide the join order, not the data.

# %%
events.estimate("price > 100 and event_type = 'purchase'")

# %% [markdown]
# ## And what is missing?
#
# Statistics are about one snapshot. These are the blobs that have been committed for this table, and how many commits
# behind each is.

# %%
events.sketches().select(["type", "columns", "commits_behind", "ndv", "length", "listed"]).slice(
    0, 6
).to_pandas().style.format(na_rep="–", thousands=",", precision=0).hide(axis="index")

# %% [markdown]
# `events.compute()` makes missing ones in one scan with PySpark, `.commit(dry_run=True)` says what it would change, and
# `.commit()` does it.
#
# Next: [01 explore](01_explore.ipynb),
# [02 why this query reads what it reads](02_why_this_query_reads_what_it_reads.ipynb),
# [03 manifest statistics](03_manifest_statistics.ipynb),
# [04 estimates against the truth](04_estimates_against_the_truth.ipynb),
# [05 generate and commit](05_generate_and_commit.ipynb), and
# [06 bring your own table](06_bring_your_own_table.ipynb).
