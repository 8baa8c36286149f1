"""Run the benchmarks that are named, or all of them, and print a Markdown table of each."""

from __future__ import annotations

import importlib
import os
import platform
import sys

NAMES = ("first_picture",)


def main() -> None:
    names = sys.argv[1:] or NAMES
    for name in names:
        if name not in NAMES:
            sys.exit(f"benchmarks: no benchmark {name!r}: expected some of {', '.join(NAMES)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    for name in names:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
