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
# A cost-based optimizer never sees the rows. It estimates how many rows a filter keeps, from the statistics it has.
# Here each kind of statistics answers the same question, with what it assumes, what it read, and how far off it is. The
# q-error is the factor by which an estimate is off, in either direction: 1 is perfect.
#
# Everything except the true counts comes from metadata. Spark is not started.

# %%
import icestats

events = icestats.demo("events").read()
cheap = events.estimate("price < 3", actual=True)
cheap

# %% [markdown]
# `price` has a long tail: its values are not spread evenly between the smallest and the largest, so every source that
# has only bounds is far off. The KLL sketch knows the distribution. If a source cannot answer, the answer is unknown,
# with the reason; it is never 0.

# %%
icestats.show(cheap, "source", "rows", "q_error", "reason")

# %% [markdown]
# ## Partition filters, and filtering twice
#
# The manifest-level proposal puts statistics into the manifest list. Its formula: filters on partition columns drop
# manifests, the statistics of the others are rolled up, and the *other* filters are applied to the result. Applying the
# partition filter again would filter the rows twice. Events arrive up to three days late, so manifests of the last day
# reach back three days.

# %%
last_day = events.estimate("event_time >= '2026-09-10'", double_filtering=True, actual=True)
last_day

# %% [markdown]
# ## Conjunctions
#
# Estimates assume that columns are independent; bounds do not. A bound that is called certain holds whatever the data
# looks like. It comes from Fréchet's inequalities, applied to what each group's bounds and null counts leave possible.

# %%
both = events.estimate("event_time >= '2026-09-10' and price < 3", actual=True)
icestats.show(both, "source", "rows_lower", "rows", "rows_upper", "bound")

# %% [markdown]
# ## Bytes to broadcast
#
# With `columns=`, `bytes` covers the projected columns of the rows that the filter keeps. `scan_bytes` covers the files
# that cannot be skipped.

# %%
narrow = events.estimate("event_time >= '2026-09-10' and price < 3", columns=["device_id", "price"])
icestats.show(narrow, "source", "rows", "bytes", "scan_bytes")

# %% [markdown]
# ## Row-level deletes
#
# Position deletes are deducted in proportion to the rows. All three results are shown, whichever one is chosen as
# `rows`.

# %%
withdrawn = "device_id = 13 and event_time >= '2026-09-03' and event_time < '2026-09-06'"
deletes = events.estimate(withdrawn, actual=True)
icestats.show(deletes, "source", "rows_deletes_ignored", "rows_positions_deducted", "rows_deletes_deducted")

# %%
deletes.actual

# %% [markdown]
# All rows of this device and these days were deleted, so the true count is 0. A deduction in proportion cannot know
# which rows were deleted. The committed sketches describe live rows.

# %% [markdown]
# ## What an engine makes of it
#
# This asks DuckDB's optimizer about the files that a scan must open. `engines="spark"` asks Spark's optimizer, with the
# cost-based part off and on. That starts a session, so this page does not do it. Findings say what would go wrong
# there.

# %%
asked = events.estimate("quantity = 3", engines=["duckdb"], actual=True)
icestats.show(asked, "source", "rows", "q_error", "reason")

# %%
for finding in asked.findings:
    print(finding)

# %% [markdown]
# ## Joins
#
# The classic estimate assumes that every key of one side is on the other. Intersecting the two Theta sketches counts
# the keys that both sides have, within a known error. Both methods assume that every key has the same number of rows.
# That is far from true for devices: a few send far more than the rest.

# %%
flights = icestats.demo("flights").read()
flights.estimate_join(flights, "tailnum", row_filter="month = 1", actual=True)

# %%
events.estimate_join(events, "device_id", other_filter="price < 3")

# %% [markdown]
# ## A whole workload
#
# The filters are generated; the same seed gives the same filters. Their columns are read once to count all of them.

# %%
workload = events.estimate_workload(n=21, seed=7, double_filtering=True)
workload

# %%
from IPython.display import SVG

from icestats_widgets.drawing.q_error_figure import build_q_error_figure

SVG(build_q_error_figure(workload.to_arrow(), width=900).svg)

# %% [markdown]
# Every estimate of the workload as an Arrow table, worst first:

# %%
answers = workload.to_arrow().sort_by([("q_error", "descending")])
icestats.show(answers, "source", "row_filter", "rows", "actual", "q_error", rows=10)
