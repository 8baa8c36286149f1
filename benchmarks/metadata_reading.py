"""All the metadata of a large table: icestats, the floor below it, and its peers, each in fresh processes.

    python -m benchmarks metadata_reading [--table LOCATION | --days 90 --files-per-day 5000 --manifests-per-day 24
        --columns 50] [--runs 3] [--cases NAME,NAME...] [--scaling] [--scratch FOLDER] [--write]

The table is one of `generated_table`, or a folder with metadata/v1.metadata.json. The figures of docs/benchmarks.md
are of 450,000 data files in 2,160 data manifests, with 90 manifests of deletes, 50 columns of 16 types: 113 million
values. `--scaling` measures smaller tables too and draws how the time grows; `--write` puts both into docs/.

What is measured is from the location of the metadata to the answer, after the imports, with the files in the page
cache. Runs of all cases take turns, so that what else the machine does hits each of them. The sums that peers make, of
four maps and without bounds, are compared with those of icestats in the same run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generated_table import Shape, generate
from benchmarks.metadata_cases import Bench, choose, measure
from benchmarks.metadata_page import build_summary, build_table, describe_conditions, load_average, write_page
from benchmarks.metadata_scaling import draw_scaling


def main(options: Sequence[str] = ()) -> None:
    arguments = _parse(options)
    with tempfile.TemporaryDirectory(prefix="icestats-benchmark-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        shape = Shape(arguments.days, arguments.files_per_day, arguments.manifests_per_day, arguments.columns)
        location = arguments.table or str(generate(scratch, shape))
        conditions = describe_conditions(location, arguments.runs)
        before = load_average()
        runs = measure(Bench(location, scratch), choose(arguments.cases), arguments.runs)
        text = f"{conditions} Load average {before} before the first run, {load_average()} after the last.\n\n"
        text += build_table(runs)
        print(text)
        plot = draw_scaling(scratch, shape, arguments.runs) if arguments.scaling else None
    if arguments.write:
        write_page(text, build_summary(runs), plot)
    if "differ" in text:
        sys.exit("benchmarks: sums differ, see the table")


def _parse(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks metadata_reading", description=(__doc__ or "").split("\n")[0]
    )
    shape = Shape()
    parser.add_argument("--table", help="a table's folder, with metadata/v1.metadata.json")
    for name in ("days", "files_per_day", "manifests_per_day", "columns"):
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=getattr(shape, name), help="of the generated table")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case; those that take minutes run once")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=(), help="names, with commas between")
    parser.add_argument("--scaling", action="store_true", help="measure smaller tables too, and draw")
    parser.add_argument("--scratch", type=Path, help="keep tables and the peers' environment in this folder")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/")
    return parser.parse_args(options)


if __name__ == "__main__":
    main(sys.argv[1:])
