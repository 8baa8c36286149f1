"""See, explain and complete the statistics of Apache Iceberg tables.

>>> import icestats
>>> table = icestats.load("demo.events")
>>> table.columns().num_rows > 0
True
"""

from icestats.commit_report import CommitReport
from icestats.demo import demo
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
