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
# Click a column to see its distribution. The band around the bars is the error of the sketch: each count lies within
# it, at 99 % confidence. Click a manifest, or drag over the partitions, and every part shows that piece of the table.
# Type a filter to see what a query with it reads, and what an optimizer would estimate. If no statistics are committed
# yet, the panel at the end computes them.

# %%
explorer = events.explore()
explorer

# %% [markdown]
# You can make every choice from Python, and get what is shown as an Arrow table. `code()` returns the lines that do so.

# %%
explorer.state.column = "device_id"
explorer.state.bins = 20
explorer.wait()
explorer.columns.to_arrow().num_rows

# %%
print(explorer.code())

# %% [markdown]
# ## Columns, and how far to trust each figure
#
# A figure is exact, a bound, an estimate with its error, or unknown. `provenance` says which, and why.

# %%
columns = events.columns()
columns.select(["name", "type", "value_count", "null_value_count", "nan_value_count", "ndv"]).to_pandas()

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
partitions.select(["partition", "data_record_count", "data_file_count"]).slice(0, 5).to_pandas()

# %% [markdown]
# ## Compute and commit what is missing
#
# The panel at the end of the explorer computes missing statistics: one scan with PySpark, a preview, then the commit.
# To do it in Python, see [05 generate and commit](05_generate_and_commit.ipynb).
