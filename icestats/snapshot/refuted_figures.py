"""What data files refute of the exact figures that are committed for a column: counts, and extremes beyond bounds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from icestats.answers.text import one_line
from icestats.errors import PuffinFormatError
from icestats.iceberg.filters.value_sets import build_item
from icestats.iceberg.types import decode_value
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.stats.rollup_cells import Figure

_COUNTS = {
    "row_count": ("row_count", "rows"),
    "value_count": ("row_count", "rows"),
    "null_value_count": ("null_value_count", "nulls"),
    "nan_value_count": ("nan_value_count", "NaN"),
}
_ENDS: Mapping[str, Callable[[Any, Any], bool]] = {"lower_bound": operator.lt, "upper_bound": operator.gt}


def check_figures(
    found: CommittedBlob, figures: Mapping[str, Figure], files: Mapping[str, Any], *, has_deletes: bool
) -> None:
    """Refuse a column's figures of this snapshot that its data files refute.

    Parameters
    ----------
    found : CommittedBlob
        The blob that has them.
    figures : mapping
        The figures.
    files : mapping
        What data files say of the column: a row of `schemas.COLUMNS`, and their `row_count`, where each row has one
        value. None is unknown.
    has_deletes : bool
        Whether there are live delete files: then fewer rows are live.

    Raises
    ------
    PuffinFormatError
        The files refute one.
    """
    for name, (counted, what) in _COUNTS.items():
        stated, listed = _of(figures, name), files[counted]
        if None not in (stated, listed) and (stated > listed or (stated < listed and not has_deletes)):
            reason = f"column {files['name']!r}: {stated:,} {what}, and its data files have {listed:,}"
            raise _refused(found, reason)
    for name, is_beyond in _ENDS.items():
        stated, listed = _of(figures, name), files[name]
        # Java has ordered uuids in two ways.
        if None not in (stated, listed) and files["type"] != "uuid":
            ends = (build_item(files["type"], decode_value(files["type"], end)) for end in (stated, listed))
            if is_beyond(*ends):
                reason = f"column {files['name']!r}: values beyond the bounds of data files"
                raise _refused(found, reason)


def _of(figures: Mapping[str, Figure], name: str) -> Any:
    figure = figures.get(name)
    return figure.value if figure is not None and figure.is_current else None


def _refused(found: CommittedBlob, reason: str) -> PuffinFormatError:
    reason = f"{one_line(reason)}: compute the statistics anew"
    return PuffinFormatError(reason, found.statistics_path, found.blob.offset)
