"""See, explain and complete the statistics of Apache Iceberg tables.

>>> import icestats
>>> table = icestats.load("demo.events")
>>> table.columns().num_rows > 0
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icestats.answers.shown import show
    from icestats.errors import (
        CallError,
        CatalogError,
        ColumnNotFoundError,
        CommitError,
        FilterError,
        IcestatsError,
        MetadataError,
        PuffinFormatError,
        SnapshotNotFoundError,
        SparkUnavailableError,
        StatisticsMissingError,
        TableNotFoundError,
        UnsupportedError,
    )
    from icestats.stats.histogram import Histogram
    from icestats.table.statistics import CommitReport, Statistics
    from icestats.table.table import Table, demo, load

__version__ = "0.1.0"

__all__ = [
    "CallError",
    "CatalogError",
    "ColumnNotFoundError",
    "CommitError",
    "CommitReport",
    "FilterError",
    "Histogram",
    "IcestatsError",
    "MetadataError",
    "PuffinFormatError",
    "SnapshotNotFoundError",
    "SparkUnavailableError",
    "Statistics",
    "StatisticsMissingError",
    "Table",
    "TableNotFoundError",
    "UnsupportedError",
    "__version__",
    "demo",
    "errors",
    "load",
    "preview",
    "schemas",
    "show",
    "writers",
]

_HOMES = {
    "CommitReport": "icestats.table.statistics",
    "Histogram": "icestats.stats.histogram",
    "Statistics": "icestats.table.statistics",
    "Table": "icestats.table.table",
    "demo": "icestats.table.table",
    "load": "icestats.table.table",
    "show": "icestats.answers.shown",
}
_MODULES = {
    "errors": "icestats.errors",
    "preview": "icestats.table.preview",
    "schemas": "icestats.answers.schemas",
    "writers": "icestats.table.writers",
}
"""What is imported when it is first named: a command line that is interrupted meanwhile ends without a traceback."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'icestats' has no attribute {name!r}")
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    return getattr(importlib.import_module(_HOMES.get(name, "icestats.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
