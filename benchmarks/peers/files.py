"""icestats: one row a live file, all flat columns, no metrics."""

from __future__ import annotations

from benchmarks.peers.reporting import argument, report
from benchmarks.peers.table_location import metadata_path
from icestats import load


def main() -> None:
    report(lambda: load(metadata_path(argument())).files())


if __name__ == "__main__":
    main()
