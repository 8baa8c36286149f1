"""Runs Spark's tests on each Spark: `python -m tests.spark`; `--write` puts what was seen into docs/spark.md.

The version of this environment is tried in it, each other one in `.venv-spark-VERSION`, with everything else as locked.
"""

from __future__ import annotations

import argparse
import ast
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.published import DOCS, ROOT, publish
from icestats.spark.java import find_java
from icestats.spark.jvm import find_runtime

VERSIONS = ("3.5", "4.0", "4.1")
PAGE = DOCS / "spark.md"
UV = Path(sys.executable).with_name("uv")

Column = dict[str, str]
"""What came of each module of tests, by its path."""


def find_python(version: str) -> Path:
    """Return the Python of the environment for a version of Spark; it is made, or brought up to date, where need be."""
    if _find_spark(Path(sys.executable)).startswith(f"{version}."):
        return Path(sys.executable)
    folder = ROOT / f".venv-spark-{version}"
    python = folder / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True)
    install = [UV, "pip", "install", "--quiet", "--python", python]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as override:
        override.write(f"pyspark=={version}.*\n")
        override.flush()
        locked = ["--requirement", ROOT / "requirements.lock", "--override", override.name]
        subprocess.run([*install, *locked], check=True)
    subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
    return python


def _find_spark(python: Path) -> str:
    command = [python, "-c", "import pyspark; print(pyspark.__version__)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run_tests(python: Path) -> tuple[int, Column]:
    """Run the tests in an environment; return pytest's exit code, and what came of each module."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        options = ["-m", "spark", f"--junitxml={report.name}"]
        code = subprocess.call([python, "-m", "pytest", *options, "tests/spark"], cwd=ROOT)
        return code, read_outcomes(ElementTree.parse(report.name))


def read_outcomes(report: ElementTree.ElementTree) -> Column:
    """Return how many tests of each module passed or failed, and what it says of those that were left out."""
    said: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for case in report.iter("testcase"):
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        outcome = "**{} failed**" if failed else "{} passed" if skipped is None else str(skipped.get("message"))
        said[str(case.get("classname"))][outcome] += 1
    return {module: "; ".join(text.format(n) for text, n in found.items()) for module, found in said.items()}


def to_markdown(columns: dict[str, Column]) -> str:
    """A row a module of tests, by the first line of what it says of itself; a column a version of Spark."""
    heads = [f"Spark {version}, Iceberg {find_runtime(version).rpartition(':')[2]}" for version in columns]
    lines = [["what was tried", *heads], ["---"] * (1 + len(heads))]
    for module in sorted({module for column in columns.values() for module in column}):
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text()
        title = str(ast.get_docstring(ast.parse(source))).partition("\n")[0]
        lines.append([title, *(column.get(module, "") for column in columns.values())])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"Python {platform.python_version()}, Java {find_java().version}.\n\n{table}"


def main() -> int:
    """Run the tests on each version; return whether some failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark", description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help=f"by default {', '.join(VERSIONS)}")
    parser.add_argument("--write", action="store_true", help=f"write what all versions showed into {PAGE.name}")
    options = parser.parse_args()
    columns, codes = {}, []
    for version in options.versions:
        print(f"Spark {version}: an environment is made, and the tests take 10 minutes on two cores", flush=True)
        python = find_python(version)
        code, columns[_find_spark(python)] = run_tests(python)
        codes.append(code)
    if options.write and set(options.versions) == set(VERSIONS):
        publish("spark", to_markdown(columns), PAGE)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
