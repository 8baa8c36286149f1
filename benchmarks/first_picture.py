"""From a fresh Python process to the first picture of `demo.events`; no JVM may be started."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import icestats
from benchmarks.measuring import print_table, run_fresh, spread

_NO_JVM = "import sys; assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules"
CASES = {
    "python, nothing else": "pass",
    "from icestats import load": "from icestats import load",
    "load and the table's own picture": f"import icestats; icestats.load('demo.events')._repr_html_(); {_NO_JVM}",
    "load and the explorer's first picture": f"import icestats; icestats.load('demo.events').explore(); {_NO_JVM}",
}


def main(options: Sequence[str] = ()) -> None:
    argparse.ArgumentParser("python -m benchmarks first_picture").parse_args(options)
    try:
        icestats.load("demo.events")
    except icestats.IcestatsError as error:
        sys.exit(f"benchmarks: {error}")
    print("First picture of demo.events, wall seconds of a whole fresh process: median (least to most) of 5\n")
    print_table(("what", "seconds"), [(what, spread(run_fresh(code))) for what, code in CASES.items()])
