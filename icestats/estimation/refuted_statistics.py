"""What the manifests refute of committed statistics: numbers of rows, and values beyond the bounds of data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from icestats.estimation.formulas.grouped_sources import GroupedEvidence, count_live_rows
from icestats.estimation.formulas.sketch_sources import SketchedRows
from icestats.iceberg.filters.value_sets import Interval, ValueSet, above, below
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.snapshot.evaluation.evaluator import count_met

NEVER_IN_TABLE = ", which the table never had"
NEVER_IN_PARTITION = " of a partition that never had so many, or so few"


def check_rows(found: CommittedBlob, what: str, rows: SketchedRows, live: GroupedEvidence, never: str) -> None:
    """Refuse a blob of other numbers of rows than each group can have had; unknown numbers are not refuted.

    `what` is the blob and its verb, as in "the frequent items are"; `never` is one of the two above.

    Raises
    ------
    PuffinFormatError
        The manifests leave no such number possible.
    """
    possible, counts = count_live_rows(live.groups, live.deletes, "deduct"), rows.row_counts
    refuted = (counts - rows.removed > possible.most) | (counts + rows.added < possible.least)
    if np.any(refuted):
        raise found.refuse(f"{what} of {counts[refuted][0]:,.0f} rows{never}")


def check_values(
    found: CommittedBlob,
    what: str,
    values: Sequence[Any],
    rows: SketchedRows,
    field_id: int,
    read_table: Callable[[Sequence[int]], GroupedEvidence],
) -> None:
    """Refuse a column's blob of values beyond the bounds of data files; of rows that have gone since, it may be.

    Raises
    ------
    PuffinFormatError
        A value lies beyond.
    """
    if not values or rows.removed.any():
        return
    column = read_table([field_id]).groups.columns.get(field_id)
    if column is None:
        return
    for value in (min(values), max(values)):
        if not count_met(ValueSet((Interval(below(value), above(value)),)), column.metrics)[0]:
            raise found.refuse(f"{what} values beyond the bounds of data files")
