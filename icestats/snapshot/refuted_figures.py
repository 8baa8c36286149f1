"""What data files refute of the exact figures of a column: counts, and extremes beyond bounds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from icestats.answers.findings import Finding
from icestats.answers.text import one_line
from icestats.iceberg.filters.value_sets import build_item
from icestats.iceberg.types import decode_value
from icestats.stats.table_statistics import Refute, TableStatistics, find_refuted_values

_COUNTS = {
    "row_count": ("row_count", "rows"),
    "value_count": ("row_count", "rows"),
    "null_value_count": ("null_value_count", "nulls"),
    "nan_value_count": ("nan_value_count", "NaN"),
}
# Beside its filters of row groups: https://github.com/apache/iceberg/issues/18173. Spark's vectorized reader takes such
# values for microseconds too where they are in a dictionary, and rewrites them so.
_IN_MILLISECONDS = (
    ", in milliseconds by add_files: engines skip rows, Spark may read 2020 as 1970; set "
    "read.parquet.vectorization.enabled to false, then rewrite these files"
)
_ENDS: Mapping[str, Callable[[Any, Any], bool]] = {"lower_bound": operator.lt, "upper_bound": operator.gt}


def find_refuted(figures: Mapping[str, Any], files: Mapping[str, Any], *, has_deletes: bool) -> str:
    """Return what a snapshot's data files refute of a column's figures of the same snapshot; nothing: it is possible.

    Parameters
    ----------
    figures : mapping
        The figures: counts, and extremes as `lower_bound` and `upper_bound`.
    files : mapping
        What data files say of the column: a row of `schemas.COLUMNS`, and their `row_count`, where each row has one
        value. None is unknown.
    has_deletes : bool
        Whether there are live delete files: then fewer rows are live.
    """
    for name, (counted, what) in _COUNTS.items():
        stated: Any = figures.get(name)
        listed = files[counted]
        if None not in (stated, listed) and (stated > listed or (stated < listed and not has_deletes)):
            return one_line(f"column {files['name']!r}: {stated:,} {what}, and its data files have {listed:,}")
    for name, is_beyond in _ENDS.items():
        stated, listed = figures.get(name), files[name]
        # Java has ordered uuids in two ways.
        if None not in (stated, listed) and files["type"] != "uuid":
            try:
                ends = [build_item(files["type"], decode_value(files["type"], end)) for end in (stated, listed)]
            except ValueError:
                # A bound that is cut inside of a character, or no value of the type, refutes nothing.
                continue
            if is_beyond(*ends):
                scaled = _IN_MILLISECONDS if _is_in_milliseconds(files["type"], *ends) else ""
                return one_line(f"column {files['name']!r}: values beyond the bounds of data files{scaled}")
    return ""


def _is_in_milliseconds(type_text: str, stated: Any, listed: Any) -> bool:
    """Whether a bound is a value in milliseconds, which is read as microseconds."""
    return type_text in ("timestamp", "timestamptz") and listed != 0 and stated // 1000 == listed


def find_refuted_scan(refute: Refute, found: TableStatistics) -> tuple[Finding, ...]:
    """Return a finding for each column in whose values a scan saw what its data files' statistics rule out."""
    refuted = (find_refuted_values(refute, column.field_id, [column]) for column in found.columns.values())
    title = "the statistics of data files are not those of the rows that were read"
    return tuple(Finding("error", title, one) for one in refuted if one)
