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
    from icestats.commit_report import CommitReport
    from icestats.demo_opening import demo
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
    from icestats.opening import load
    from icestats.statistics import Statistics
    from icestats.stats.histogram import Histogram
    from icestats.table import Table

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
    "load",
]

_HOMES = {
    "CommitReport": "icestats.commit_report",
    "Histogram": "icestats.stats.histogram",
    "Statistics": "icestats.statistics",
    "Table": "icestats.table",
    "demo": "icestats.demo_opening",
    "load": "icestats.opening",
}
"""What is imported when it is first named: a command line that is interrupted meanwhile ends without a traceback."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'icestats' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "icestats.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
