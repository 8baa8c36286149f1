"""Which statistics the optimizers of engines use, and where they read them: the facts of engine_statistics.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from icestats import __version__

_OF_COLUMNS = ("NDV", "histogram", "bit vectors", "min value", "max value")
_COUNTS = ("null count", "nulls fraction", "NaN count", "num trues", "num falses")
_LENGTHS = ("size in bytes", "avg length", "max length")
LEVELS: Mapping[str, tuple[str, ...]] = {
    "table": ("num rows", "num files", "size in bytes", "num partitions"),
    "table-column": (*_OF_COLUMNS, *_COUNTS, *_LENGTHS),
    "partition": (
        *("num rows", "num rows (eq-del)", "num rows (pos-del)", "num total rows"),
        *("num files", "num files (eq-del)", "num files (pos-del)", "num delete vectors", "size in bytes"),
    ),
    "partition-column": (*_OF_COLUMNS, "num values", *_COUNTS, *_LENGTHS),
}
"""The statistics of each level, by the names of "Extending standardized statistics in Iceberg"."""
_NOT_IN_PATHS = frozenset({"name", "version", "bridge", "fact"})


@dataclass(frozen=True, slots=True)
class EngineFact:
    """What an engine does with a statistic."""

    engine: str
    engine_version: str
    level: str
    statistic: str
    uses: bool
    """Whether its optimizer uses the statistic, of tables of any format."""
    types: str
    """The types of columns that this holds for, as a regular expression; empty: all."""
    reads: tuple[str, ...]
    """Where the engine looks in an Iceberg table, as `Holding` has it."""
    says: str
    source: str
    """The file of the engine's source that shows it."""
    command: str
    """A template: what provides the statistic where the engine does not read it of the table; empty: nothing does."""

    def is_used_of(self, column_type: str) -> bool:
        """Whether the optimizer uses the statistic of a column of this type."""
        base = re.split(r"[(\[]", column_type)[0]
        return self.uses and (not self.types or re.fullmatch(self.types, base) is not None)


@cache
def read_engine_facts() -> tuple[EngineFact, ...]:
    """Return the facts: of each engine in turn, each level and statistic in the order of `LEVELS`.

    Examples
    --------
    >>> fact = read_engine_facts()[0]
    >>> fact.engine, fact.level, fact.statistic, fact.uses
    ('Spark', 'table', 'num rows', True)
    """
    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return tuple(fact for engine in document["engine"] for fact in _build_facts(engine))


def list_engines() -> tuple[str, ...]:
    """Return the names of the engines.

    Examples
    --------
    >>> list_engines()
    ('Spark', 'Trino', 'Presto', 'Hive', 'Impala', 'DuckDB', 'icestats')
    """
    return tuple(dict.fromkeys(fact.engine for fact in read_engine_facts()))


def _build_facts(engine: Mapping[str, Any]) -> list[EngineFact]:
    paths = {name: text for name, text in engine.items() if name not in _NOT_IN_PATHS}
    found = {
        (fact["level"], statistic): EngineFact(
            engine=engine["name"],
            engine_version=__version__ if engine["name"] == "icestats" else engine["version"],
            level=fact["level"],
            statistic=statistic,
            uses=fact["uses"],
            types=fact.get("types", ""),
            reads=tuple(fact["reads"]),
            says=fact["says"],
            source=fact["source"].format(**paths),
            command=fact.get("command", engine.get("bridge", "")),
        )
        for fact in engine["fact"]
        for statistic in fact["statistics"]
    }
    return [found[level, statistic] for level, statistics in LEVELS.items() for statistic in statistics]
