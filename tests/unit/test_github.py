"""What GitHub is told in .github/ fits its schemas, and the rest of the repository. zizmor in `make lint` judges it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from check_jsonschema import main
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (GITHUB / "workflows").iterdir()}


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", "workflows/*"),
        ("github-issue-forms", "ISSUE_TEMPLATE/[!c]*"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        ("dependabot", "dependabot.yml"),
    ],
)
def test_files_fit_githubs_schemas(schema, pattern):
    files = [str(path) for path in GITHUB.glob(pattern)]
    done = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", *files])
    assert done.exit_code == 0, done.output


def test_jobs_wait_for_jobs_and_make_what_the_makefile_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = set(WORKFLOWS["by-hand"][True]["workflow_dispatch"]["inputs"]["target"]["options"])
    for workflow in WORKFLOWS.values():
        jobs = workflow["jobs"]
        assert {job["needs"] for job in jobs.values() if "needs" in job} <= set(jobs)
        for command in [step.get("run", "") for job in jobs.values() for step in job["steps"]]:
            if command.startswith("make "):
                made |= set(re.findall(r" ([a-z-]+)(?= |$)", command))
    assert {"lint", "docs", "test", "test-quick", "dist", "audit"} <= made <= targets


def test_each_python_that_pyproject_names_is_tested():
    """The one of all tests, and those of the matrix that are not allowed to fail."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    jobs = WORKFLOWS["ci"]["jobs"]
    [setup] = [step["with"] for step in jobs["test"]["steps"] if "setup-python" in step.get("uses", "")]
    matrix = jobs["python"]["strategy"]["matrix"]["python"]
    named = [name.rpartition(" ")[2] for name in classifiers if re.search(r"Python :: 3\.\d", name)]
    assert [setup["python-version"], *[v for v in matrix if v not in jobs["python"]["continue-on-error"]]] == named
