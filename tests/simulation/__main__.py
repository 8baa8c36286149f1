"""Runs many seeds: `python -m tests.simulation --seeds 0:10000 --workers 2`. `--write` puts the figures into docs/."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context

from benchmarks.published import DOCS, publish
from tests.simulation.simulation import Outcome, run_seeds
from tests.simulation.turns import FAULTS

PAGE = DOCS / "reliability.md"
_SEEDS_A_TASK = 20
_PACKAGES = ("icestats", "pyiceberg", "pyarrow", "sqlalchemy", "numpy", "datasketches")


def replay(seed: int) -> str:
    """Return the command that runs one seed again, and shows what happens in it."""
    return f"python -m tests.simulation --seeds {seed} --trace"


def main() -> int:
    """Run the seeds, say which of them break a rule, and return 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="one, or the first and the one after the last")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--write", action="store_true", help=f"write the figures into {PAGE.name}")
    options = parser.parse_args()
    first, _, last = options.seeds.partition(":")
    first, end = int(first), int(last or int(first) + 1)
    outcomes, started = [], time.monotonic()
    tasks = [range(i, min(i + _SEEDS_A_TASK, end)) for i in range(first, end, _SEEDS_A_TASK)]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for done in pool.map(run_seeds, tasks, [options.trace] * len(tasks)):
            outcomes += done
            for outcome in done:
                _show(outcome, trace=options.trace)
            sys.stderr.write(f"\r{len(outcomes):,} of {end - first:,} seeds ")
    text = _summarize(outcomes, time.monotonic() - started, options.workers)
    sys.stdout.write(f"\n{text}\n")
    if options.write:
        publish("soak", text, PAGE)
    return int(any(outcome.violations for outcome in outcomes))


def _show(outcome: Outcome, *, trace: bool) -> None:
    if trace:
        sys.stdout.write("\n".join(outcome.trace) + "\n")
    if outcome.violations:
        # A soak that is ended from outside has said what it found.
        print(f"\nseed {outcome.seed}: {outcome.violations[0]}\n  {replay(outcome.seed)}", flush=True)  # noqa: T201


def _summarize(outcomes: list[Outcome], duration_s: float, workers: int) -> str:
    faults: Counter[str] = sum((outcome.faults for outcome in outcomes), Counter())
    broken = [outcome.seed for outcome in outcomes if outcome.violations]
    rows = {
        "seeds": f"{len(outcomes):,}, {outcomes[0].seed:,} to {outcomes[-1].seed:,}",
        "steps": f"{sum(outcome.steps for outcome in outcomes):,}",
        "commits": f"{sum(outcome.commits for outcome in outcomes):,}",
        **{f"calls that {_VERBS[fault]}": f"{faults[fault]:,}" for fault in FAULTS},
        "seeds that broke a rule": f"{len(broken):,}" + (f": {', '.join(map(str, broken[:20]))}" if broken else ""),
        "duration": f"{duration_s / 60:.1f} minutes, {workers} processes",
        "versions": ", ".join([f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in _PACKAGES)]),
    }
    return "\n".join(["| figure | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


_VERBS = dict(zip(FAULTS, ("lagged", "failed", "were cut short", "lost the answer", "ended the process"), strict=True))

if __name__ == "__main__":
    sys.exit(main())
