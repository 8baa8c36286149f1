"""Estimates of icestats beside those of Spark, DuckDB and PostgreSQL: the same questions, drawn from the data.

    python -m benchmarks estimates [--quick] [--write] [--scale-factor 0.3] [--seed 1] [--scratch FOLDER]
        [--sets flights events tpch planted] [--estimators icestats spark duckdb postgresql]
        [--filters 1000] [--joins 200] [--groups 100] [--details FILE]

Filters, joins and GROUP BYs over four sets of tables; DuckDB counts the truth. PostgreSQL runs in a folder of its own
for the time of the benchmark. `--quick` asks a tenth over small sets, `--details` writes a line for each question, and
`--write` puts the figures into docs/estimates-benchmark.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.estimates.data_sets import QUICK_SCALE_FACTOR, SETS, DataSet, Pairs, build_sets
from benchmarks.estimates.duckdb_estimates import DuckDb
from benchmarks.estimates.error_report import Answer, build_report, report_dependencies
from benchmarks.estimates.estimator import Cost, Estimator
from benchmarks.estimates.workload import Workload, draw_workload
from benchmarks.published import DOCS, publish
from icestats.errors import IcestatsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.estimates.iceberg_estimates import Kit
    from benchmarks.estimates.postgres_server import PostgresServer

ESTIMATORS = ("icestats", "spark", "duckdb", "postgresql")


@dataclass
class Asked:
    """What all estimators have said so far."""

    answers: list[Answer] = field(default_factory=list)
    costs: dict[tuple[str, str], Cost] = field(default_factory=dict)
    empty_count: int = 0
    dependencies: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    try:
        with ExitStack() as stack:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="icestats-benchmark-"))
            asked = _ask_all(arguments, arguments.scratch or Path(temporary), stack)
    except IcestatsError as error:
        sys.exit(f"benchmarks: {error}")
    if arguments.details:
        _write_details(arguments.details, asked)
    parts = [_conditions(arguments, options, asked), *build_report(asked.answers, asked.costs), asked.dependencies]
    text = "\n\n".join(filter(None, parts))
    print(text)
    if arguments.write:
        publish("estimates", text, DOCS / "estimates-benchmark.md")


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks estimates")
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions over small sets")
    parser.add_argument("--scale-factor", type=float, default=0.3, help="of TPC-H: 6 million rows of lineitem each")
    parser.add_argument("--seed", type=int, default=1, help="what questions are drawn from")
    parser.add_argument("--filters", type=int, default=1000)
    parser.add_argument("--joins", type=int, default=200)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=ESTIMATORS)
    parser.add_argument("--scratch", type=Path, help="make the tables in this folder, and keep TPC-H's files there")
    parser.add_argument("--details", type=Path, help="a CSV file for each question with its estimates")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/estimates-benchmark.md")
    return parser.parse_args(list(options))


def _ask_all(arguments: argparse.Namespace, scratch: Path, stack: ExitStack) -> Asked:
    home, asked = scratch / "estimates", Asked()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    server, spark = None, None
    if "postgresql" in arguments.estimators:
        from benchmarks.estimates.postgres_server import PostgresServer

        server = stack.enter_context(PostgresServer())
    if {"icestats", "spark"} & set(arguments.estimators):
        from benchmarks.estimates.iceberg_estimates import start_spark

        spark = start_spark(home)
    asked.versions = {"PostgreSQL": server.version} if server else {}
    share = len(arguments.sets) * (10 if arguments.quick else 1)
    counts = [max(1, round(count / share)) for count in (arguments.filters, arguments.joins, arguments.groups)]
    for name in arguments.sets:
        (data,) = build_sets((name,), arguments.scale_factor, arguments.quick, scratch)
        duckdb = DuckDb(home / f"{name}.duckdb", data)
        workload = draw_workload(data, counts[0], counts[1], counts[2], arguments.seed, duckdb.count)
        _ask_set(asked, data, workload, _open_estimators(arguments, home, data, duckdb, spark, server, asked))
    return asked


def _ask_set(asked: Asked, data: DataSet, workload: Workload, estimators: Iterator[Estimator]) -> None:
    said: dict[str, list[float | None]] = {}
    for one in estimators:
        asked.costs[data.name, one.name] = cost = one.prepare(data)
        begin = time.perf_counter()
        said[one.name] = one.estimate(workload.questions)
        taken = f"statistics {cost.seconds:.1f} s, questions {time.perf_counter() - begin:.1f} s"
        print(f"{data.name}, {len(workload.questions):,} questions, {one.name}: {taken}", file=sys.stderr)
    asked.empty_count += workload.empty_count
    for place, (question, actual) in enumerate(zip(workload.questions, workload.actual, strict=True)):
        estimates = {name: rows[place] for name, rows in said.items()}
        asked.answers.append(Answer(data.name, question, actual, estimates))


def _open_estimators(
    arguments: argparse.Namespace,
    home: Path,
    data: DataSet,
    duckdb: DuckDb,
    spark: SparkSession | None,
    server: PostgresServer | None,
    asked: Asked,
) -> Iterator[Estimator]:
    """Give one estimator after another: those that come later use what earlier ones have made."""
    pairs = data.pairs
    if spark is not None:
        from benchmarks.estimates.iceberg_estimates import SPARK_NAMES, Kit, SparkCbo, write_tables

        write_tables(home, data)
        kit = Kit(home, spark)
        if "icestats" in arguments.estimators:
            yield kit
            pairs = _note_dependencies(asked, data, kit) or pairs
        else:
            kit.prepare(data)
        for name in SPARK_NAMES if "spark" in arguments.estimators else ():
            yield SparkCbo(home, spark, name)
    if "duckdb" in arguments.estimators:
        yield duckdb
    if server is not None:
        from benchmarks.estimates.postgres_estimates import TARGETS, Postgres, load_tables

        load_tables(server, data, duckdb)
        for target in TARGETS:
            yield Postgres(server, target)
            yield Postgres(server, target, pairs)


def _note_dependencies(asked: Asked, data: DataSet, kit: Kit) -> dict[str, Pairs] | None:
    found = kit.find_pairs()
    if data.name == "planted":
        asked.dependencies = report_dependencies(data, found)
    return found


def _conditions(arguments: argparse.Namespace, options: Sequence[str], asked: Asked) -> str:
    names = [f"{name} {version(name)}" for name in ("icestats", "pyspark", "pyiceberg", "duckdb")]
    names += [f"{name} {text}" for name, text in asked.versions.items()]
    shown = " ".join(["python -m benchmarks estimates", *options])
    scale_factor = QUICK_SCALE_FACTOR if arguments.quick else arguments.scale_factor
    return (
        f"`{shown}`: {len(asked.answers):,} questions drawn with seed {arguments.seed}, and {asked.empty_count:,} left "
        f"out, as their answer is empty; TPC-H at scale factor {scale_factor:g}. {platform.machine()}, "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, {', '.join(names)}."
    )


def _write_details(file: Path, asked: Asked) -> None:
    names = list(asked.answers[0].estimates)
    with file.open("w", newline="", encoding="utf-8") as output:
        writer = csv.writer(output)
        writer.writerow(("set", "kind", "question", "rows", *names, *(f"q-error, {name}" for name in names)))
        for one in asked.answers:
            errors = [f"{one.error(name):.3f}" for name in names]
            query = one.question.write("duckdb")
            writer.writerow((one.set_name, one.question.kind, query, one.actual, *one.estimates.values(), *errors))
