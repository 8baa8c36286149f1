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
# # Why this query reads what it reads
#
# Iceberg's metadata is an index: a manifest list over manifests, manifests over data files, footers over row groups. A
# scan checks the query's filter at each level in turn and does not read what cannot match. This page follows one query
# through all levels, on `demo.events`: events that devices send, written every eight hours, partitioned by day and by
# device bucket.
#
#     SELECT * FROM events WHERE device_id = 74
#       AND event_time > '2026-09-01T10:00:00' AND event_time < '2026-09-04T20:00:00'
#
# Nothing here reads data before the section *Row groups, and rows*, and nothing changes the table.

# %%
import icestats

events = icestats.demo("events")
query = "device_id = 74 and event_time > '2026-09-01T10:00:00' and event_time < '2026-09-04T20:00:00'"
plan = events.plan(query)
plan

# %% [markdown]
# ## The filter becomes a partition filter
#
# Partitions hold days and bucket numbers, not times and devices. So the row filter is projected: a time range becomes a
# range of days, and a device becomes the one bucket that it can be in. A row that matches the row filter is in a
# partition that matches the partition filter, but not every row of such a partition matches.

# %%
print(plan.partition_filters[events.metadata.default_spec_id])

# %% [markdown]
# A range of devices cannot be projected, because buckets are hashes and keep no order. The plan says so.

# %%
for predicate, reason in events.plan("device_id < 75").unprojected[events.metadata.default_spec_id].items():
    print(f"{predicate}: {reason}")

# %% [markdown]
# ## Manifests, by the manifest list
#
# The manifest list has the range of days and buckets of each manifest. Every manifest holds all buckets, so here only
# the days rule out manifests.

# %%
manifests = plan.manifests()
icestats.show(manifests, "kept", "record_count", "predicate", "evidence", rows=12)

# %% [markdown]
# Some manifests hold later days only. Others were written days later but are still opened: they hold a few late events,
# which stretch their range of days back to where the query looks.

# %%
skipped = manifests.filter(manifests["kept"].to_numpy() == 0)
print(f"{skipped.num_rows} of {manifests.num_rows} manifests are not opened")
print(f"manifests that are opened hold {plan.steps[0].kept_rows:,} records")

# %% [markdown]
# ## Manifests, by the bounds of their columns
#
# Iceberg keeps column bounds for files, not for manifests. Rolled up by manifest, as the manifest-level statistics
# proposal would have it, they rule out manifests that partitions cannot. `event_id` increases in the order in which
# events came in. No partition field is derived from it, and yet each manifest covers its own range.

# %%
without = events.plan("event_id < 1000", manifest_statistics=False)
with_statistics = events.plan("event_id < 1000", manifest_statistics=True)
for name, found in (("without", without), ("with", with_statistics)):
    read = sum(step.bytes_read for step in found.steps)
    opened = [step.kept for step in found.steps if step.unit == "manifest"][-1]
    print(f"{name} manifest-level statistics: {opened} manifests opened, {read:,} bytes of them read")

# %% [markdown]
# ## Data files, by their partition
#
# The opened manifests list the day and the bucket of each file. Here the bucket does what it could not do above: it
# keeps one file in 64.

# %%
by_partition = plan.step("data files by partition tuple")
print(f"{by_partition.kept:,} of {by_partition.total:,} files are left")
files = plan.files("skipped")
sample = files.filter(files["step"].to_numpy(zero_copy_only=False) == by_partition.step)
icestats.show(sample, "partition", "predicate", "evidence", rows=3)

# %% [markdown]
# ## Data files, by the bounds of their columns
#
# Last come the bounds of each file's columns. Device 74 shares its bucket with other devices. A file is skipped if 74
# is outside its range of devices, or if all its times are outside the query's range.

# %%
by_bounds = files.filter(files["step"].to_numpy(zero_copy_only=False) == "data files by column bounds")
icestats.show(by_bounds, "predicate", "record_count", "reason", "evidence", rows=8)

# %% [markdown]
# The remaining files are read. The reason is that their bounds overlap with what the query asks for. Missing
# statistics, nulls, or a transform that keeps no order would be named in the same place.

# %%
kept = plan.files()
print(kept["evidence"][0])
icestats.show(kept, "partition", "record_count", "reason", "delete_files", rows=8)

# %% [markdown]
# Some files are read together with the delete files that apply to them. This query needs none. A query for a device
# whose events were deleted does.

# %%
withdrawn = events.plan("device_id = 13 and event_time < '2026-09-06'").files()
print([len(deletes) for deletes in withdrawn["delete_files"].to_pylist()])

# %% [markdown]
# ## Row groups, and rows
#
# On request, the plan also reads the footers of the remaining files, and then the files themselves.

# %%
plan = events.plan(query, row_groups=True, rows=True)
rows = plan.step("rows")
print(f"{rows.kept:,} rows match, of {events.overview().record_count:,} in the table")
plan

# %% [markdown]
# At each step, what is kept and what is skipped add up to the total.

# %%
print(all(step.kept + step.skipped == step.total for step in plan.steps))
icestats.show(plan, "step", "total", "kept", "skipped", "bytes_read", "values_read")

# %% [markdown]
# ## How well is the metadata clustered?
#
# Late data widens manifests, and files of one partition overlap if nothing sorts them. `layout` measures both for the
# table's keys, and proposes what to do as Spark SQL statements.

# %%
layout = events.layout()
layout

# %% [markdown]
# How much would that help? Here is the same query if manifests were regrouped by day, and then if files were sorted by
# device, both from metadata alone.

# %%
layout.what_if([query], regroup="event_time_day", manifest_size_bytes=65_536)

# %%
layout.what_if([query], sort_by="device_id", manifest_size_bytes=65_536)

# %% [markdown]
# By default, `rewrite_manifests` shows what it would do. With `dry_run=False` it runs Iceberg's procedure through Spark
# and says whether the prediction held.

# %%
events.rewrite_manifests(sort_by="event_time_day", manifest_size_bytes=65_536, workload=[query])
