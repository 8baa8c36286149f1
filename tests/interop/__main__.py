"""Tries the kit with real engines: `python -m tests.interop`; `--write` puts what was seen into docs/interop.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks.published import DOCS, publish
from tests.interop.engine_server import CACHE, ENGINES, describe_downloads, fetch

PAGE = DOCS / "interop.md"


class Seen:
    """A plugin of pytest: what came of each test, by its docstring and engine."""

    def __init__(self) -> None:
        self._tests: dict[str, tuple[str, str]] = {}
        self._outcomes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        for item in items:
            self._tests[item.nodeid] = (str(item.function.__doc__), str(item.callspec.params["server"]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        title, engine = self._tests[report.nodeid]
        said = str(report.longrepr[2]).removeprefix("Skipped: ") if report.skipped else ""
        outcome = said or ("yes" if report.passed else "**no**")
        if outcome not in self._outcomes[title][engine]:
            self._outcomes[title][engine].append(outcome)

    def to_markdown(self) -> str:
        """A row a test, a column an engine."""
        engines = [str(engine) for engine in ENGINES]
        lines = [["what was tried", *engines], ["---"] * (1 + len(engines))]
        for title, outcomes in self._outcomes.items():
            lines.append([title, *("; ".join(outcomes[engine]) for engine in engines)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Fetch what is missing, run the tests, and return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write what was seen into {PAGE.name}")
    options = parser.parse_args()
    missing = describe_downloads()
    if missing:
        print(f"downloads, once, into {CACHE}, where 1.1 GB of them stay:", *missing, sep="\n  ")
    print("the tests take 5 minutes on two cores, and 5 GB of memory: one engine at a time, and Spark", flush=True)
    for engine in ENGINES:
        started = time.monotonic()
        fetch(engine)
        if missing:
            print(f"{engine} is there after {time.monotonic() - started:.0f} s", flush=True)
    seen = Seen()
    code = pytest.main([str(Path(__file__).parent)], plugins=[seen])
    if options.write:
        publish("interop", seen.to_markdown(), PAGE)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
