"""A Binder session can be built from the repository, and starts warm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from icestats.cli.command_line import cli
from icestats.spark.java import NEWEST_JAVA, OLDEST_JAVA

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def conda_versions() -> dict[str, str]:
    """The packages of environment.yml and the version that each is pinned to."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    return {name: version for name, _, version in (line.partition("=") for line in environment["dependencies"])}


def test_binder_has_the_roots_environment():
    """With a folder `binder`, the file in the root is not looked at: both say the same."""
    assert (ROOT / "binder/environment.yml").read_bytes() == (ROOT / "environment.yml").read_bytes()


def test_conda_brings_a_python_that_the_package_supports():
    """Not older than `requires-python`, and one that the classifiers name."""
    python = conda_versions()["python"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert [int(part) for part in python.split(".")] >= [int(part) for part in oldest.split(".")]
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


def test_conda_brings_a_java_that_spark_runs_on():
    assert OLDEST_JAVA <= int(conda_versions()["openjdk"]) <= NEWEST_JAVA


def test_conda_installs_nothing_that_the_package_brings():
    """What pyproject.toml bounds comes by pip from there alone: two places cannot disagree."""
    requirements = [
        *PROJECT["dependencies"],
        *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
    ]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}
    assert names & conda_versions().keys() == set()
    assert "pip" in conda_versions()


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_the_scripts_are_scripts(name):
    """They can be executed, and bash can read them."""
    script = ROOT / "binder" / name
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


def test_a_build_installs_an_extra_that_exists_and_runs_verbs_that_exist():
    text = (ROOT / "binder/postBuild").read_text()
    assert [extra in PROJECT["optional-dependencies"] for extra in re.findall(r"'\.\[(\w+)\]'", text)] == [True]
    assert [verb in cli.commands for verb in re.findall(r"^icestats (\S+)", text, re.MULTILINE)] == [True]


def test_start_runs_what_the_session_asks_for():
    run = subprocess.run([str(ROOT / "binder/start"), "echo", "two words"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "two words\n")


def test_repo2docker_makes_an_image_of_these_files(tmp_path):
    """Conda's environment, then `postBuild`, then `start`: as repo2docker reads the folder, without Docker."""
    for name in ("binder", "environment.yml", "pyproject.toml"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert f"Building conda environment for python={conda_versions()['python']}" in run.stderr
    steps = [
        r"COPY .*src/binder/environment\.yml .*binder/environment\.yml",
        r'env update .*--file "binder/environment\.yml"',
        r"COPY .*src/ ",
        r"RUN \./binder/postBuild",
        r'ENV R2D_ENTRYPOINT=".*/binder/start"',
    ]
    places = [found.start() for step in steps if (found := re.search(step, run.stdout))]
    assert len(places) == len(steps)
    assert places == sorted(places)
