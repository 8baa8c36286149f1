"""What stands in two places is the same in both."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import icestats
from icestats.spark import session

ROOT = Path(__file__).parents[2]


def test_every_dependency_is_bounded_and_explained():
    """Bounded in pyproject.toml, and named with its reason in ARCHITECTURE.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = (ROOT / "ARCHITECTURE.md").read_text()
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    own = [requirement for requirement in extras if requirement.startswith(("icestats", "pyiceberg["))]
    for requirement in {*project["dependencies"], *extras} - set(own):
        assert "<" in requirement, requirement
        name = requirement.partition("[")[0].partition(">")[0]
        assert name in reasons, name


def test_the_version_is_in_the_changelog():
    assert f"## {icestats.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_a_session_module_starts_no_spark():
    """Importing it costs nothing: pyspark is imported when a session is asked for."""
    import subprocess
    import sys

    code = "import icestats.spark.session, icestats, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert session.get_session.__module__ == "icestats.spark.session"


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/supported.md"])
def test_every_place_and_target_that_a_page_names_is_there(document):
    """Each path, each pattern of paths, and what `make` makes."""
    text = (ROOT / document).read_text()
    places = re.findall(r"`((?:icestats|widgets|tests|docs|binder|voila|benchmarks)/[^` ]*)`", text)
    assert len(places) > 20
    assert [place for place in places if not list(ROOT.glob(place.rstrip("/")))] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= set(targets)
