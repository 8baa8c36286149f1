"""Every example in a docstring runs, on the demo warehouse where it opens one."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import icestats
import icestats_widgets

EXAMPLE = re.compile(r"^ +>>> .*", re.MULTILINE)
DEMO = re.compile(r"""icestats\.demo\(|["']demo\.""")


def modules_with_examples() -> dict[str, str]:
    """Return the lines of examples of each module that has some; no module is imported for it."""
    found = {}
    for package in (icestats, icestats_widgets):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            name = ".".join((package.__name__, *path.relative_to(folder).with_suffix("").parts))
            examples = "\n".join(EXAMPLE.findall(path.read_text()))
            found |= {name.removesuffix(".__init__"): examples} if examples else {}
    return found


EXAMPLES = modules_with_examples()
ON_THE_DEMO = [name for name, examples in EXAMPLES.items() if DEMO.search(examples)]


def run_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
    assert results.attempted > 0, "a line that looks like an example stands where doctest looks for none"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ON_THE_DEMO])
def test_the_examples_of_a_module_run(name: str) -> None:
    run_examples(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_THE_DEMO)
def test_the_examples_of_a_module_run_on_the_demo(demo_home: Path, name: str) -> None:
    run_examples(name)
