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
# # Explore a table
#
# This page shows what an Apache Iceberg table's metadata says about its manifests, partitions and columns, and how
# values are distributed. Two demo tables come with icestats. PySpark builds them once, which needs Java 17. This page
# reads metadata only and starts no JVM.

# %%
import icestats

events = icestats.demo("events")
events

# %% [markdown]
# ## The explorer
#
# Type a filter on top, or drag over a picture to add to it: every tab shows what the query reads, and what it skips.
# The tab *Columns* has a distribution for each column; the band around the bars is the error of the sketch, at 99 %
# confidence. *Statistics* shows what is missing, and computes it.

# %%
explorer = events.explore()
explorer

# %% [markdown]
# You can make every choice from Python, and get what is shown as an Arrow table. `code()` returns the lines that do so.

# %%
explorer.state.column = "device_id"
explorer.state.bins = 20
explorer.wait()
explorer.parts["columns"].to_arrow().num_rows

# %%
print(explorer.code())

# %% [markdown]
# The notebook keeps a picture of what was shown, for readers without a kernel. A report is a file of its own.

# %%
len(explorer.to_html())

# %% [markdown]
# ## Columns, and how far to trust each figure
#
# A figure is exact, a bound, an estimate with its error, or unknown. `provenance` says which, and why.

# %%
columns = events.columns()
icestats.show(columns, "name", "type", "value_count", "null_value_count", "nan_value_count", "ndv")

# %%
{row["name"]: dict(row["provenance"])["ndv"] for row in columns.to_pylist()}

# %% [markdown]
# `app_version` was added later: the older files say nothing about its size, so that is unknown, not 0. Its counts and
# extremes are committed for this snapshot, so they are exact.

# %%
app_version = next(row for row in columns.to_pylist() if row["name"] == "app_version")
dict(app_version["provenance"])

# %% [markdown]
# ## A distribution in numbers
#
# This comes from the committed KLL sketch. No data file is read.

# %%
try:
    histogram = events.histogram("price", bins=20, kind="equi-height")
    print(f"{histogram.n:,} values, {histogram.null_count:,} nulls, rank error {histogram.rank_error:.2%}")
    print({f"{rank:.0%}": value for rank, value in histogram.quantiles.items()})
    print(f"each count is within {histogram.count_error:,.0f} values")
except icestats.StatisticsMissingError as error:
    print(error)

# %% [markdown]
# ## Flights
#
# Flights that left New York in 2013, by month and carrier.

# %%
flights = icestats.demo("flights")
flights.explore()

# %%
partitions = flights.partitions()
newest = partitions.sort_by([("last_updated_at", "descending")])
icestats.show(newest, "partition", "data_record_count", "data_file_count", rows=5)

# %% [markdown]
# ## Compute and commit what is missing
#
# The tab *Statistics* computes what is missing: one scan with PySpark, a preview, then the commit.
# To do it in Python, see [05 generate and commit](05_generate_and_commit.ipynb).
