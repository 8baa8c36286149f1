"""Statistics of manifests and partitions: making, committing, reading; and the proposed formats beside each other.

    python -m benchmarks manifest_statistics [--table LOCATION | --days 90 --files-per-day 5000
        --manifests-per-day 24 --columns 50] [--runs 3] [--no-spark] [--scratch FOLDER] [--write]

The table is one of `generated_table`, or a folder with metadata/v1.metadata.json, registered in a SQLite catalog for
the time of the benchmark. Each case is a process of its own with the local cache off, timed after its imports.
`--write` puts the figures into docs/benchmarks.md and docs/manifest-statistics.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generated_table import Shape, generate
from benchmarks.measured_process import ProcessError, Run, run_module
from benchmarks.metadata_page import describe_conditions, load_average
from benchmarks.published import DOCS, publish
from benchmarks.registered_table import register_table

HEAD = ("what", "seconds", "CPU", "peak MB", "bytes")


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = Path(temporary)
        shape = Shape(arguments.days, arguments.files_per_day, arguments.manifests_per_day, arguments.columns)
        location = arguments.table or str(generate(arguments.scratch or scratch, shape))
        bench = _Bench(location, scratch, arguments.runs)
        before = load_average()
        making = bench.making(spark=not arguments.no_spark)
        designs = bench.designs()
        conditions = (
            f"{describe_conditions(location, arguments.runs)} Load average {before} before the first run, "
            f"{load_average()} after the last."
        )
    print(f"{conditions}\n\n{making}\n\n{designs}")
    if arguments.write:
        publish("manifest_statistics", f"{conditions}\n\n{making}")
        publish("designs", f"{conditions}\n\n{designs}", DOCS / "manifest-statistics.md")


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks manifest_statistics")
    shape = Shape()
    parser.add_argument("--table", help="a table's folder, with metadata/v1.metadata.json")
    for name in ("days", "files_per_day", "manifests_per_day", "columns"):
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=getattr(shape, name), help="of the generated table")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case")
    parser.add_argument("--no-spark", action="store_true", help="leave Iceberg's procedure out")
    parser.add_argument("--scratch", type=Path, help="keep the table in this folder")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/")
    return parser.parse_args(options)


class _Bench:
    """The cases, on one table."""

    def __init__(self, location: str, scratch: Path, runs: int) -> None:
        self.location = location
        self.scratch = scratch
        self.runs = runs
        self.folder = scratch / "registered"
        register_table(location, self.folder)

    def making(self, *, spark: bool) -> str:
        manifests = sum(path.stat().st_size for path in Path(self.location, "metadata").glob("*-m0.avro"))
        build = self._run("build")
        partitions = self._run("partitions")
        rows = [
            _row("statistics of all manifests: read the manifests, build the blob", build),
            _row("partition statistics file with the statistics of all columns, computed", partitions),
        ]
        if spark:
            other = self.scratch / "iceberg"
            register_table(self.location, other)
            try:
                found = [run_module("benchmarks.peers.manifest_figures", str(other), "iceberg")]
                rows.append(_row("Iceberg's `compute_partition_stats`, no columns (one run)", found))
            except ProcessError as error:
                rows.append(("Iceberg's `compute_partition_stats`", f"not measured: {error}", "", "", ""))
        self._run("commit", runs=1)
        stored = sum(path.stat().st_size for path in (self.folder / "table/metadata").glob("*.stats"))
        rows.append(_row("`manifests()` from the committed blob", self._run("read"), stored))
        rows.append(_row("`columns()` from the committed blob", self._run("read_columns"), stored))
        self._run("append", runs=1)
        refreshed = self._run("commit", runs=1)
        rows.append(_row("after one commit: its manifest read, the blob made anew and committed", refreshed))
        share = f"The blob has {stored / manifests:.2%} of the manifests' {manifests / 1e6:,.0f} MB."
        return f"{_table(rows)}\n\n{share}"

    def designs(self) -> str:
        self._run("write_designs", runs=1)
        preview = sum(path.stat().st_size for path in (self.folder / "preview/metadata").glob("snap-*.avro"))
        content = (self.folder / "content_stats.parquet").stat().st_size
        stored = sum(path.stat().st_size for path in (self.folder / "table/metadata").glob("*.stats")) // 2
        plain = next((self.folder / "table/metadata").glob("snap-*.avro")).stat().st_size
        rows = [
            _row("the manifest list as it is", self._run("read_list"), plain),
            _row("manifest list with fields 521 to 527, all columns", self._run("read_preview"), preview),
            _row("blob with `content_stats`, all columns: `manifests()`", self._run("read"), stored),
            _row("blob with `content_stats`, the roll-up of one column", self._run("read_one_column"), stored),
            _row(
                "the same `content_stats` as a file, all columns, by pyarrow", self._run("read_content_stats"), content
            ),
        ]
        return _table(rows)

    def _run(self, case: str, runs: int | None = None) -> list[Run]:
        arguments = ("benchmarks.peers.manifest_figures", str(self.folder), case)
        return [run_module(*arguments) for _ in range(runs or self.runs)]


def _row(title: str, runs: Sequence[Run], size: int | None = None) -> tuple[str, ...]:
    seconds = [run.seconds for run in runs]
    spread = f" ({min(seconds):.2f} to {max(seconds):.2f})" if len(seconds) > 1 else ""
    stated = runs[0].sums if size is None else size
    return (
        title,
        f"{statistics.median(seconds):.2f}{spread}",
        f"{statistics.median(run.call_cpu_seconds for run in runs):.2f}",
        f"{statistics.median(run.peak_mb for run in runs):,.0f}",
        f"{stated:,}" if isinstance(stated, int) else "",
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


if __name__ == "__main__":
    main(sys.argv[1:])
