"""What Spark's cost-based optimizer makes of a table's statistics: estimates, plans and times, side by side.

    python -m benchmarks spark_optimizer [--scale-factor 3] [--k 1000] [--runs 3] [--sets 0,1,2]
        [--queries NAME,NAME...] [--join-reorder] [--scratch FOLDER] [--details FILE] [--write]

tpchgen-cli (`pip install 'icestats[bench]'`) makes TPC-H, of which `skewed_tpch` makes the uneven variant; both become
Iceberg tables with committed statistics, and nothing is downloaded but Spark's jars. Each query is planned in three
ways, all with `spark.sql.cbo.enabled`: *stock*, as Spark plans an Iceberg table without statistics; *NDV*, with the
numbers of distinct values that metadata.json lists; *kit*, through the views of `Table.to_spark`. One Spark process
runs all three, a session each: first without adaptive execution, which gives estimated and actual rows and warms up,
then as Spark is by default, timed, the ways taking turns. `--details` writes a line for each scan and join; `--write`
puts the figures into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import icestats
from benchmarks.planned_rows import PlannedRows, describe_joins, read_planned_rows
from benchmarks.published import publish
from benchmarks.tpch_warehouse import CATALOG, TABLES, build_warehouse, catalog_properties
from icestats.spark.session import add_catalogs, get_session, spark_catalog_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("stock", "NDV", "kit")
SETS = {
    "TPC-H": ("tpch", "tpch.sql"),
    "TPC-H's queries over the skewed tables": ("skewed", "tpch.sql"),
    "Selective joins over the skewed tables": ("skewed", "joins.sql"),
}
"""For each group of queries its tables and its file."""
_QUERY = re.compile(r"^-- ([QJ]\d+)\b.*\n((?:(?!--).*\n)+?.*;)$", re.MULTILINE)
_LAST_ORDER = re.compile(r"\border by (?!.*\blimit\b)[^()]+;$")
_QUALIFIER = re.compile(r"\b(?:\w+\.)+(?=\w)")
_SETTINGS = {"spark.sql.cbo.enabled": "true", "spark.sql.statistics.histogram.enabled": "true"}
_COUNTING = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "8"}
_MOST_SECONDS = 600.0


@dataclass
class Measured:
    """One query in one way."""

    rows: list[PlannedRows] = field(default_factory=list)
    answer: list[Any] = field(default_factory=list)
    planned: str = ""
    executed: str = ""
    seconds: list[float] = field(default_factory=list)
    error: str = ""


Query = tuple[str, str]
"""The name of the set, and of the query."""


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        home = (arguments.scratch or Path(temporary)) / f"spark-optimizer-{arguments.scale_factor:g}"
        spark = get_session({CATALOG: _catalog(home)}, master="local[2]", driver_memory="6g")
        build_warehouse(home, arguments.scale_factor, spark, arguments.k)
        found = _measure(arguments, home, spark)
    if arguments.details:
        _write_details(arguments.details, found)
    text = "\n\n".join([_conditions(arguments), *_report(found)])
    print(text)
    if arguments.write:
        publish("spark_optimizer", text)


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks spark_optimizer")
    parser.add_argument("--scale-factor", type=float, default=3, help="6 million rows of lineitem each, 300 MB on disk")
    parser.add_argument("--k", type=int, default=1000, help="size of the KLL sketches, from which histograms are made")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each query in each way")
    parser.add_argument("--queries", type=lambda text: text.split(","), default=(), help="Q1 to Q22, J1 to J10")
    titles = ", ".join(f"{place}: {title}" for place, title in enumerate(SETS))
    chosen = lambda text: [list(SETS)[int(one)] for one in text.split(",")]  # noqa: E731 - argparse wants a function
    parser.add_argument("--sets", type=chosen, default=SETS, help=titles)
    parser.add_argument("--join-reorder", action="store_true", help="with spark.sql.cbo.joinReorder.enabled")
    parser.add_argument("--scratch", type=Path, help="keep the tables in this folder, and take them from there")
    parser.add_argument("--details", type=Path, help="a CSV file for the rows of each scan and join")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    return parser.parse_args(options)


def _catalog(home: Path) -> dict[str, str]:
    return spark_catalog_properties(catalog_properties(home)) or {}


def _measure(arguments: argparse.Namespace, home: Path, spark: SparkSession) -> dict[Query, dict[str, Measured]]:
    found: dict[Query, dict[str, Measured]] = {}
    for title in arguments.sets:
        namespace, file = SETS[title]
        sessions = {way: _open_session(arguments, home, spark, way, namespace) for way in WAYS}
        for name, text in _QUERY.findall((Path(__file__).with_name("queries") / file).read_text()):
            if arguments.queries and name not in arguments.queries:
                continue
            found[title, name] = query = {way: Measured() for way in WAYS}
            for way in WAYS:
                _count_rows(sessions[way], text, query[way])
            for run in range(arguments.runs):
                for way in (*WAYS[run % 3 :], *WAYS[: run % 3]):
                    _time(sessions[way], text, query[way])
            print(title, name, {way: _seconds(one) for way, one in query.items()}, file=sys.stderr)
    return found


def _open_session(
    arguments: argparse.Namespace, home: Path, spark: SparkSession, way: str, namespace: str
) -> SparkSession:
    session = add_catalogs(spark.newSession(), {CATALOG: _catalog(home)})
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.cbo.joinReorder.enabled", str(arguments.join_reorder).lower())
    session.conf.set("spark.sql.iceberg.report-column-stats", str(way != "stock").lower())
    session.sql(f"use {CATALOG}.{namespace}")
    if way == "kit":
        for name in TABLES:
            icestats.load(f"{namespace}.{name}", catalog=catalog_properties(home)).to_spark(session, view=name)
    return session


def _count_rows(session: SparkSession, text: str, measured: Measured) -> None:
    for name, value in _COUNTING.items():
        session.conf.set(name, value)
    with _failing(session, measured):
        # To sort a whole answer, Spark runs what is below twice, and counts its rows twice.
        frame = session.sql(_LAST_ORDER.sub("", text))
        measured.answer = sorted(map(str, frame.collect()))
        measured.rows = read_planned_rows(session, frame)
        measured.planned = describe_joins(frame._jdf.queryExecution().executedPlan())
    for name in _COUNTING:
        session.conf.unset(name)


def _time(session: SparkSession, text: str, measured: Measured) -> None:
    if measured.error:
        return
    with _failing(session, measured):
        started = time.perf_counter()
        frame = session.sql(text)
        frame.collect()
        measured.seconds.append(time.perf_counter() - started)
        measured.executed = describe_joins(frame._jdf.queryExecution().executedPlan())


@contextmanager
def _failing(session: SparkSession, measured: Measured) -> Iterator[None]:
    """Keep why a query failed, or was ended because it took too long."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    cancel: Callable[[], None] = session.sparkContext.cancelAllJobs
    timer = threading.Timer(_MOST_SECONDS, cancel)
    timer.start()
    try:
        yield
    except (Py4JError, PySparkException) as error:
        measured.error = str(error).splitlines()[0][:120]
    finally:
        timer.cancel()


def _conditions(arguments: argparse.Namespace) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("icestats", "pyspark", "pyiceberg", "pyarrow"))
    runs = "One timed run" if arguments.runs == 1 else f"Medians of {arguments.runs} timed runs"
    reorder = "on" if arguments.join_reorder else "off, Spark's default"
    return (
        f"Scale factor {arguments.scale_factor:g}; KLL sketches of k = {arguments.k}; cost-based optimizer on, join "
        f"reordering {reorder}. "
        f"{platform.machine()}, {os.cpu_count()} cores, Spark in local[2] with a heap of 6 GB; "
        f"Python {platform.python_version()}, {packages}. {runs} after one that counts "
        f"rows, ways taking turns; load average at the end {os.getloadavg()[0]:.1f}."
    )


def _report(found: dict[Query, dict[str, Measured]]) -> Iterator[str]:
    for title in SETS:
        queries = {name: query for (group, name), query in found.items() if group == title}
        if queries:
            yield f"**{title}**"
            yield _table_of_errors(queries)
            yield _table_of_times(queries)
            yield _judge(queries)
    yield "**All of these together**"
    yield _table_of_errors({f"{title}, {name}": query for (title, name), query in found.items()})


def _table_of_errors(queries: dict[str, dict[str, Measured]]) -> str:
    head = ("rows of", "way", "number", "not estimated", "estimated 0", "q-error: median", "95 %", "worst")
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    known = {(name, _key(rows)) for name, query in queries.items() for rows in query["kit"].rows if rows.by_histogram}
    kinds: dict[str, Callable[[str, PlannedRows], bool]] = {
        "scans below a filter": lambda _, rows: rows.filtered,
        "of these, by histograms": lambda name, rows: (name, _key(rows)) in known,
        "joins": lambda _, rows: rows.kind == "join",
    }
    for kind, belongs in kinds.items():
        for way in WAYS:
            rows = [one for name, query in queries.items() for one in query[way].rows if belongs(name, one)]
            errors = sorted(one.q_error for one in rows if one.q_error is not None)
            zeros = sum(one.estimated == 0 < one.actual for one in rows)
            cells = (kind, way, str(len(rows)), str(len(rows) - len(errors)), str(zeros), *_quantiles(errors))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _key(rows: PlannedRows) -> str:
    """What is the same in all ways: a view's columns have no catalog in their names."""
    return _QUALIFIER.sub("", rows.text)


def _quantiles(errors: Sequence[float]) -> tuple[str, str, str]:
    if not errors:
        return ("", "", "")
    at = (statistics.median(errors), errors[-(-len(errors) * 95 // 100) - 1], errors[-1])
    return tuple(f"{error:.3g}" if error < 1e4 else f"{error:.0e}" for error in at)  # type: ignore[return-value]  # three of them


def _table_of_times(queries: dict[str, dict[str, Measured]]) -> str:
    head = ("query", *WAYS, "NDV / stock", "kit / stock", *(f"joins, {way}" for way in WAYS))
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * 5 + "---|" * 3]
    for name, query in queries.items():
        cells = (
            name,
            *(_seconds(query[way]) for way in WAYS),
            *(_ratio(query, way) for way in WAYS[1:]),
            *(_joins(query[way]) for way in WAYS),
        )
        lines.append("| " + " | ".join(cells) + " |")
    done = [query for query in queries.values() if all(one.seconds and not one.error for one in query.values())]
    totals = [sum(statistics.median(query[way].seconds) for query in done) for way in WAYS]
    if done:
        ratios = [f"{total / totals[0]:.2f}" for total in totals[1:]]
        cells = (f"all {len(done)}", *(f"{total:.1f}" for total in totals), *ratios, "", "", "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _seconds(measured: Measured) -> str:
    seconds = measured.seconds
    if measured.error or not seconds:
        return "failed" if measured.error else ""
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def _ratio(query: dict[str, Measured], way: str) -> str:
    ours, theirs = query[way], query["stock"]
    if not ours.seconds or not theirs.seconds:
        return ""
    return f"{statistics.median(a / b for a, b in zip(ours.seconds, theirs.seconds, strict=False)):.2f}"


def _joins(measured: Measured) -> str:
    """The kinds of joins as planned and, where adaptive execution has changed them, as carried out."""
    counts = [
        " ".join(f"{text.count(kind + '(')}{kind}" for kind in "BHSNC" if f"{kind}(" in text) or "none"
        for text in (measured.planned, measured.executed)
    ]
    return counts[0] if counts[0] == counts[1] or not measured.executed else " → ".join(counts)


def _judge(queries: dict[str, dict[str, Measured]]) -> str:
    slower, different, failed = [], [], []
    for name, query in queries.items():
        stock, kit = query["stock"], query["kit"]
        failed += [f"{name} ({way}: {one.error})" for way, one in query.items() if one.error]
        different += [name] if len({tuple(one.answer) for one in query.values() if not one.error}) > 1 else []
        if stock.seconds and kit.seconds and min(kit.seconds) > 1.1 * max(stock.seconds):
            slower.append(name)
    said = [
        ("Each run with the kit more than a tenth slower than each of stock", slower),
        ("Different answers", different),
        ("Failed", failed),
    ]
    return " ".join(f"{title}: {', '.join(names) or 'none'}." for title, names in said)


def _write_details(file: Path, found: dict[Query, dict[str, Measured]]) -> None:
    with file.open("w", newline="") as output:
        writer = csv.writer(output)
        writer.writerow(("set", "query", "way", "kind", "estimated", "actual", "q_error", "by_histogram", "text"))
        for (title, name), query in found.items():
            for way, measured in query.items():
                for one in measured.rows:
                    line = (one.kind, one.estimated, one.actual, one.q_error, one.by_histogram, one.text)
                    writer.writerow((title, name, way, *line))


if __name__ == "__main__":
    main(sys.argv[1:])
