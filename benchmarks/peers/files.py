"""icestats: one row a live file, all flat columns, no metrics."""

from __future__ import annotations

import icestats
from benchmarks.peers.reporting import argument, report
from benchmarks.peers.table_location import metadata_path


def main() -> None:
    report(lambda: icestats.load(metadata_path(argument())).files())


if __name__ == "__main__":
    main()
