"""What is public, and that each public name and module can be found: it stands in one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import icestats

ERRORS = [
    "CallError",
    "CatalogError",
    "ColumnNotFoundError",
    "CommitError",
    "FilterError",
    "IcestatsError",
    "MetadataError",
    "PuffinFormatError",
    "SnapshotNotFoundError",
    "SparkUnavailableError",
    "StatisticsMissingError",
    "TableNotFoundError",
    "UnsupportedError",
]
PUBLIC = {
    "icestats": [
        *ERRORS,
        *("CommitReport", "Histogram", "Statistics", "Table", "__version__", "demo", "load", "show"),
        *("errors", "preview", "schemas", "writers"),
    ],
    "errors": ERRORS,
    "preview": ["build_content_stats", "read_preview_manifest_list", "write_preview_manifest_list"],
    "schemas": [
        *("COLUMNS", "COMPUTED", "COVERAGE", "ESTIMATES", "LAYOUT", "MANIFESTS", "MANIFEST_FILES", "MANIFEST_REWRITE"),
        *("PLAN_MANIFESTS", "PLAN_ROW_GROUPS", "PLAN_STEPS", "REFS", "REPORTED", "SKETCHES", "SNAPSHOTS", "WHAT_IF"),
        *("WORKLOAD", "WORKLOAD_SUMMARY"),
        *("files_schema", "partitions_schema", "plan_files_schema", "row_group_metrics_schema"),
    ],
    "writers": ["Written", "append", "append_dataframe", "overwrite", "overwrite_partitions"],
}
LEFT: set[str] = set()
"""Names that still stand twice."""
MODULES = [path for path in Path(icestats.__file__).parent.rglob("*.py") if not path.name.startswith("__")]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_names_are_these(name):
    """A name that is added or lost is a change of the contract."""
    module = icestats if name == "icestats" else getattr(icestats, name)
    assert sorted(module.__all__) == sorted(PUBLIC[name])
    assert all(hasattr(module, public) for public in PUBLIC[name])
    assert set(module.__all__) <= set(dir(module))


def test_a_public_function_or_class_is_defined_in_one_module():
    """Who looks for a name finds one definition; what only one module uses begins with an underscore."""
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                places[node.name].append(path.name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in LEFT} == {}


def test_no_two_modules_have_one_name():
    """A traceback, a search and an import name a module by its last part."""
    names = [path.stem for path in MODULES]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
