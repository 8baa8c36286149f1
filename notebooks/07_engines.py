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
# # What engines make of the statistics
#
# Statistics are worth something when an optimizer reads them. This page shows what each engine has of a table before
# and after a commit, how Spark plans a join with and without the kit's statistics, and what that saves.
#
# Everything happens in a temporary catalog, which the last cell removes. No demo table changes. (The first use of Spark
# starts a JVM, which takes a few seconds.)

# %%
import os
import shutil
import tempfile
from pathlib import Path

import icestats
from icestats.spark.session import get_session, spark_catalog_properties

folder = Path(tempfile.mkdtemp(prefix="icestats-"))
sqlite = {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder}"}
os.environ |= {f"PYICEBERG_CATALOG__WEB__{name.upper()}": value for name, value in sqlite.items()}

spark = get_session({"web": spark_catalog_properties(sqlite)})

# %% [markdown]
# Two tables: a million web requests, most of them fast and a few slow, and two million calls that they made.

# %%
spark.sql("create namespace web.shop")
spark.range(0, 1_000_000, 1, 2).selectExpr(
    "id as request_id",
    "concat('/page/', cast(500 * pow(rand(1), 3) as int)) as page",
    "cast(exp(3 + randn(2)) as int) as ms",
).writeTo("web.shop.requests").create()
spark.range(0, 2_000_000, 1, 2).selectExpr(
    "cast(1000000 * rand(3) as bigint) as request_id", "cast(exp(1 + randn(4)) as int) as call_ms"
).writeTo("web.shop.calls").create()

requests = icestats.load("web.shop.requests")
calls = icestats.load("web.shop.calls")
requests

# %% [markdown]
# ## What each engine has today
#
# `coverage` knows which statistics each engine's optimizer uses, where the engine looks for them, and what this table
# has there. Here is what it says of `ms`, the time that a request took.

# %%
from IPython.display import HTML

from icestats.answers.markup import build_answer, build_table, element
from icestats.estimation.coverage import name_state


def states_of(table, column):
    states = {}
    for row in table.coverage(columns=[column]).to_pylist():
        if row["level"] == "table-column":
            states[row["statistic"], row["engine"]] = name_state(row).replace("not used", "–")
    return states


def show_matrix(title, states, before=None):
    engines = list(dict.fromkeys(engine for _, engine in states))
    rows = []
    for statistic in dict.fromkeys(statistic for statistic, _ in states):
        cells = [(states[statistic, engine], (before or states)[statistic, engine]) for engine in engines]
        rows.append([statistic, *(now if now == then else element("b", now) for now, then in cells)])
    return HTML(build_answer(title, build_table(["statistic", *engines], rows)))


before = states_of(requests, "ms")
show_matrix("ms, before the commit", before)

# %% [markdown]
# *Missing* means that the engine would use it, and the table does not have it. *Ignored* means that the table has it
# where this engine does not look. – means that the engine does not use it. Each gap comes with the command that closes
# it:

# %%
for gaps in requests.coverage(columns=["ms"])["command"].drop_null().value_counts().to_pylist():
    print(f"{gaps['counts']:2} × {gaps['values']}")

# %% [markdown]
# ## How Spark plans without them
#
# The calls of slow requests, by page. Only 3 of 1,000 requests are slow.

# %%
import re

spark.conf.set("spark.sql.cbo.enabled", "true")
slow = """
select page, count(*) as calls, sum(call_ms) as call_ms
from {calls} join {requests} using (request_id) where ms > 300 group by page
"""
filtered = "select * from {requests} where {where}"
of_iceberg = {"calls": "web.shop.calls", "requests": "web.shop.requests"}
of_kit = {"calls": "calls", "requests": "requests"}
filters = ["ms > 300", "ms = 30", "ms between 10 and 12"]


def explain(query):
    return spark.sql(f"explain cost {query}").first()[0]


def estimate(where, tables):
    plan = explain(filtered.format(**tables, where=where))
    return float(re.search(r"Filter.*rowCount=([\d.E+]+)", plan)[1])


def describe_join(tables):
    plan = explain(slow.format(**tables))
    requests = re.search(r"Filter.*ms#\d+ > 300.*rowCount=([\d.E+]+)", plan)[1]
    joined = re.search(r"Join Inner.*rowCount=([\d.E+]+)", plan)[1]
    return [f"{float(requests):,.0f}", f"{float(joined):,.0f}", re.search(r"\w+Join(?= \[)", plan)[0]]


def show_plans(**plans):
    heads = ["planned", "slow requests", "rows of the join", "join"]
    rows = [[way.replace("_", " "), *plan] for way, plan in plans.items()]
    return HTML(build_answer("What EXPLAIN COST says", build_table(heads, rows)))


first = {where: estimate(where, of_iceberg) for where in filters}
first_plan = describe_join(of_iceberg)
show_plans(before=first_plan)

# %% [markdown]
# Spark expects that the filter drops nothing and that every call meets every request. A million requests are too many
# to broadcast, so it sorts and shuffles both tables.
#
# ## Compute and commit
#
# One scan of each table. A larger `k` makes a distribution more precise in its tail.

# %%
requests.compute(k=1000).commit()
calls.compute(columns=["request_id"]).commit()
requests, calls = requests.refresh(), calls.refresh()

show_matrix("ms, after the commit", states_of(requests, "ms"), before)

# %% [markdown]
# What has changed is bold. Every engine that looks for an NDV in the table now has one. Spark uses a histogram too, but
# Iceberg does not give it one: the table has it, and Spark ignores it.
#
# ## How Spark plans with them
#
# `to_spark` gives Spark's optimizer all of it: live rows, bounds, nulls, lengths, distinct values, and a histogram. It
# needs no jar. With `view`, SQL can name it. `requests.reported_statistics()` shows each figure.

# %%
requests.to_spark(spark, view="requests")
calls.to_spark(spark, view="calls")
show_plans(before=first_plan, with_to_spark=describe_join(of_kit))
# %% [markdown]
# A few thousand requests are small enough to broadcast: two million calls need no shuffle and no sort.
#
# The rows that Spark expects of a filter, in three ways: without a commit, with the NDV that a commit lists, and with
# `to_spark`.

# %%
rows = []
for where in filters:
    actual = spark.table("requests").where(where).count()
    expected = [first[where], estimate(where, of_iceberg), estimate(where, of_kit)]
    rows.append([where, *(f"{count:,.0f}" for count in [*expected, actual])])
HTML(build_answer("Rows that Spark expects", build_table(["filter", "before", "NDV", "to_spark", "actual"], rows)))

# %% [markdown]
# An NDV without bounds makes Spark expect 0 rows for an equality on a number (SPARK-52868). The histogram knows the
# long tail.
#
# ## What it saves
#
# The same query with what the commit listed and with `to_spark`, three times each, in turns.

# %%
import time

seconds = {"Iceberg's statistics": [], "to_spark": []}
answers = {}
for _ in range(3):
    for way, tables in zip(seconds, (of_iceberg, of_kit), strict=True):
        started = time.perf_counter()
        answers[way] = spark.sql(slow.format(**tables)).toArrow().sort_by("page")
        seconds[way].append(time.perf_counter() - started)

best = {way: min(times) for way, times in seconds.items()}
rows = [
    [
        way,
        describe_join(tables)[-1],
        f"{best[way]:.2f}",
        element("span", class_="bar", style=f"width:{300 * best[way] / max(best.values()):.0f}px"),
    ]
    for way, tables in zip(best, (of_iceberg, of_kit), strict=True)
]
HTML(build_answer("The best of three", build_table(["planned with", "join", "seconds", ""], rows)))

# %% [markdown]
# The answer is the same: only the plan is another.

# %%
answers["to_spark"].equals(answers["Iceberg's statistics"])

# %% [markdown]
# ## Engines that look elsewhere
#
# Hive and Impala keep statistics in a metastore. `export` writes the statements that put them there. Comments, left out
# here, say where each figure comes from and what was left out.

# %%
for engine in ("hive", "impala"):
    script = requests.export(engine)
    print(*(line for line in script.splitlines() if not line.startswith("--")), sep="\n", end="\n\n")

# %% [markdown]
# Trino reads Iceberg's statistics itself. It gets the setting that makes it read them, the traps, and the statement
# that shows them.

# %%
print(requests.export("trino"))

# %% [markdown]
# Remove the tables and the catalog. To play with them first, stop above this cell.

# %%
for view in of_kit.values():
    spark.catalog.dropTempView(view)
spark.conf.unset("spark.sql.cbo.enabled")
shutil.rmtree(folder)
