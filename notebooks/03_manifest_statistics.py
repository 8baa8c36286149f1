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
# # What an optimizer reads: files, manifests, partitions, the table
#
# A cost-based optimizer wants a few figures for each column: smallest and largest value, null and NaN counts, size.
# Iceberg keeps them for each data file, so a roll-up reads N files times D columns times C statistics. The
# manifest-level statistics proposal does the arithmetic for a table with 5,000 data files a day, 90 days, 50 columns
# and 5 statistics, in 24 manifests a day:
#
# - data files: 5,000 x 90 x 50 x 5 = 112.5 million values;
# - manifests: 24 x 90 x 50 x 5. The document says 864k; the product is **540,000**.
#
# This page measures it on a smaller table that it generates: real metadata, but no data files. Nothing here needs
# Spark.

# %%
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["ICESTATS_CACHE"] = "off"  # each level is to be read, not remembered
sys.path.insert(0, str(Path.cwd().parent))  # the generator is in the project's folder `benchmarks`

import pyarrow as pa
import pyarrow.parquet as pq

import icestats
from benchmarks.generated_table import Shape, generate
from benchmarks.registered_table import register_table

print(f"{24 * 90 * 50 * 5:,} values at the manifests, {5000 * 90 * 50 * 5:,} at the data files")

# %% [markdown]
# ## A table
#
# The table has 30 days, 1,000 data files and 24 manifests a day, 50 columns of 16 types, and is partitioned by day and
# by 64 device buckets. It has what real tables have: rewritten manifests, files without statistics, all-null columns, a
# column added later, deletes. It is registered in a SQLite catalog in a temporary folder, so you can commit statistics.

# %%
shape = Shape(days=30, files_per_day=1000, manifests_per_day=24, columns=50)
scratch = tempfile.TemporaryDirectory(prefix="icestats-notebook-")  # removed when the kernel ends
folder = Path(scratch.name)
location = generate(folder, shape)
catalog = register_table(str(location), folder / "registered")


def load():
    return icestats.load("db.generated", catalog=catalog)


load()

# %% [markdown]
# ## The data file level
#
# This reads all manifests, each entry, each column. The first read on a machine compiles the reader, so the second one
# is timed.

# %%
STATISTICS = 5  # as the proposal counts: size, null count, NaN count, lower and upper bound
levels = []


def measure(level, count, read, size_bytes):
    started = time.perf_counter()
    answer = read()
    seconds = time.perf_counter() - started
    values = count * shape.columns * STATISTICS
    levels.append({"level": level, "items": count, "values": values, "seconds": round(seconds, 4), "bytes": size_bytes})
    return answer


load().columns()
table = load()
manifests = table.manifest_files()
file_count = shape.days * shape.files_per_day
manifest_bytes = sum(manifests["manifest_length"].to_pylist())
from_files = measure("data files", file_count, table.columns, manifest_bytes)

# %% [markdown]
# ## Statistics of manifests and partitions, committed
#
# One call reads the manifests and makes both: a blob with a row for each manifest, and Iceberg's partition statistics
# file, with the statistics of columns as further, optional columns. A statistic that one live file lacks is not
# aggregated; the lines below the counts say which.

# %%
statistics = table.compute(manifests=True, partitions=True, with_column_stats=True)
statistics

# %%
report = statistics.commit()
print(report)

# %% [markdown]
# ## The manifest level and the partition level
#
# The same questions, answered from the committed statistics. The answers are equal, down to the last cell.

# %%
sizes = {Path(file["path"]).suffix: file["bytes"] for file in report.to_json()["files"]}
data_manifests = sum(content == "data" for content in manifests["content"].to_pylist())
fresh = load()
from_manifests = measure("manifests", data_manifests, fresh.columns, sizes[".stats"])
partitions = measure("partitions", len(table.partitions()), fresh.partitions, sizes[".parquet"])
(
    from_manifests.drop_columns(["provenance"]).equals(from_files.drop_columns(["provenance"])),
    partitions.equals(table.partitions()),
)

# %% [markdown]
# ## The table level
#
# Only one row per column is left, so the file is tiny. No standard says yet where it should be stored.

# %%
path = folder / "columns.parquet"
pq.write_table(from_files, path)
measure("table", 1, lambda: pq.ParquetFile(path).read(), path.stat().st_size)
icestats.show(pa.Table.from_pylist(levels))

# %% [markdown]
# ## What each level can tell you
#
# Each level has fewer values to read than the one below, and knows less. At the table level, a filter on a day changes
# nothing. At the manifest level, it rules out manifests of other days. At the partition level, it is exact for the
# partition columns.
#
# There are not always fewer partitions than manifests: here each day has 64 partitions and 24 manifests, so the
# partition level is larger.

# %%
by_level = {row["level"]: row["values"] for row in levels}
{level: f"1 / {by_level['data files'] / values:,.0f} of the data files' values" for level, values in by_level.items()}

# %% [markdown]
# ## Staying current
#
# A manifest never changes once it is written. After a commit, only the new manifests have to be read;
# `icestats.writers` does that in the same call. Here is what is left to do when nothing has changed.

# %%
started = time.perf_counter()
again = load().compute(manifests=True, partitions=True, with_column_stats=True)
print(f"{time.perf_counter() - started:.2f} s")
again
