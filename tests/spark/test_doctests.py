"""Every example in a docstring runs, on the demo warehouse where it loads one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import icestats

pytestmark = pytest.mark.spark

MODULES = sorted(m.name for m in pkgutil.walk_packages(icestats.__path__, "icestats.") if not m.ispkg)


@pytest.mark.parametrize("name", ["icestats", *MODULES])
def test_the_examples_of_a_module_run(demo_home, name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(examples) > 30
