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
# # Estimates against the truth
#
# A cost-based optimizer never sees the rows: it estimates how many of them a filter leaves, from whatever statistics it
# is given. Here each kind of statistics answers the same question, side by side, with what it assumes, what it had to
# read, and how far off it is. The q-error is how many times an estimate is off in either direction: 1 is perfect.
#
# Everything but the counted truth comes from metadata. Spark is not started.

# %%
import icestats

events = icestats.demo("events").read()
cheap = events.estimate("price < 3", actual=True)
cheap

# %% [markdown]
# `price` has a long tail: between its smallest and its largest value, values are anything but evenly spread, so every
# source that has nothing but bounds is far off. The KLL sketch knows the distribution. What a source cannot answer is
# unknown, with the reason; it is never 0.

# %%
{one.source: one.q_error if one.q_error is not None else one.reason for one in cheap}

# %% [markdown]
# ## Partition filters, and filtering twice
#
# The manifest-level proposal puts statistics into the manifest list. Its formula: filters on partition columns drop
# manifests, the statistics of the others are rolled up, and the *other* filters are applied to that. If the partition
# filter were applied to the rest once more, the rows would be filtered twice. Events come in up to three days late, so
# that manifests of the last day reach back three days.

# %%
last_day = events.estimate("event_time >= '2026-09-10'", double_filtering=True, actual=True)
{name: round(last_day[name].q_error, 2) for name in ("manifests", "manifests-double-filtered", "partitions")}

# %%
last_day

# %% [markdown]
# ## Conjunctions
#
# Estimates take columns for independent; bounds do not. Where a bound is called certain it holds whatever the data
# looks like: Fréchet's inequalities over what each group's own bounds and null counts leave possible.

# %%
both = events.estimate("event_time >= '2026-09-10' and price < 3", actual=True)
for one in both:
    if one.rows_lower is not None and one.source != "actual":
        rows = "unknown" if one.rows is None else f"{one.rows:,.0f}"
        print(f"{one.source:18} {one.rows_lower:>10,.0f} <= {rows:>9} <= {one.rows_upper:>10,.0f}   {one.bound}")
print(f"{'counted':18} {both.actual:>24,}")

# %% [markdown]
# ## Bytes to be broadcast
#
# With `columns=`, bytes are those of the projected columns of the rows that are left; `scan_bytes` are those of the
# files that cannot be skipped.

# %%
narrow = events.estimate("event_time >= '2026-09-10' and price < 3", columns=["device_id", "price"])
narrow.to_arrow().select(["source", "rows", "bytes", "scan_bytes"]).to_pandas()

# %% [markdown]
# ## Row-level deletes
#
# Position deletes are deducted in proportion. The three results stand side by side whichever is chosen as `rows`.

# %%
withdrawn = "device_id = 13 and event_time >= '2026-09-03' and event_time < '2026-09-06'"
deletes = events.estimate(withdrawn, actual=True)
columns = ["source", "rows_deletes_ignored", "rows_positions_deducted", "rows_deletes_deducted"]
deletes.to_arrow().select(columns).to_pandas()

# %%
deletes.actual

# %% [markdown]
# All rows of this device and these days were deleted: the truth is 0, and proportion knows nothing of which rows were
# meant. The committed sketches describe live rows.

# %% [markdown]
# ## What an engine makes of it
#
# DuckDB's optimizer is asked over the files that a scan must open. `engines="spark"` asks Spark's, with its cost-based
# part off and on; that starts a session, so this page does not. What would go wrong there is said as a finding.

# %%
asked = events.estimate("quantity = 3", engines=["duckdb"], actual=True)
{one.source: None if one.rows is None else round(one.rows) for one in asked}

# %%
for finding in asked.findings:
    print(finding)

# %% [markdown]
# ## Joins
#
# The classic estimate takes every key of one side to be on the other. Intersecting the two sides' Theta sketches counts
# the keys that they have in common, within a known error. What both take for granted, that each key has as many rows as
# another, is far from true of devices: a few send far more than the rest.

# %%
flights = icestats.demo("flights").read()
flights.estimate_join(flights, "tailnum", row_filter="month = 1", actual=True)

# %%
events.estimate_join(events, "device_id", other_filter="price < 3")

# %% [markdown]
# ## A whole workload
#
# Generated filters, the same for the same seed; their columns are read once to count all of them.

# %%
workload = events.estimate_workload(n=21, seed=7, double_filtering=True)
workload

# %%
from icestats_widgets.q_error_figure import build_q_error_figure

build_q_error_figure(workload.to_arrow())

# %% [markdown]
# Every estimate of the workload as an Arrow table, the worst first:

# %%
answers = workload.to_arrow().sort_by([("q_error", "descending")])
answers.select(["source", "row_filter", "rows", "actual", "q_error"]).slice(0, 10).to_pandas()
