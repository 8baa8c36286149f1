"""Run the benchmarks that are named, or all of them, and print a Markdown table of each.

Options behind a name go to that benchmark: `python -m benchmarks metadata_reading --runs 1`.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys

NAMES = (
    *("first_picture", "metadata_reading", "table_statistics", "statistics_refresh", "planning_concurrency"),
    *("estimates", "estimate_times", "explorer", "manifest_statistics", "installation", "spark_optimizer", "clusters"),
)


def main() -> None:
    arguments = sys.argv[1:]
    first_option = next((place for place, text in enumerate(arguments) if text.startswith("-")), len(arguments))
    names, options = arguments[:first_option] or NAMES, arguments[first_option:]
    if options and not arguments[:first_option]:
        sys.exit(f"{str(__doc__).strip()}\n\nBenchmarks: {', '.join(NAMES)}.")
    for name in names:
        if name not in NAMES:
            sys.exit(f"benchmarks: no benchmark {name!r}: expected some of {', '.join(NAMES)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        module.main(options)


if __name__ == "__main__":
    main()
