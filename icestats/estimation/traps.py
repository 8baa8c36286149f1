"""Known traps of engines: statistics that make their estimates worse than none, found on the table that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icestats.answers.findings import Finding
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.plan.filters.value_sets import Leaf
from icestats.read.puffin.listed_statistics import find_listed_blobs, find_listed_traps
from icestats.snapshot.snapshot_reader import SnapshotReader

_TEXTUAL = ("string", "binary")
_CBO_NDV = "spark-cbo-ndv"


def find_traps(reader: SnapshotReader, question: Question, found: Sequence[SourceEstimate]) -> Iterator[Finding]:
    """Find the traps that a filter runs into on this snapshot.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    question : Question
        The filter.
    found : sequence of SourceEstimate
        Engines' answers, where they were asked: evidence.
    """
    metadata, snapshot = reader.source.metadata, reader.snapshot
    yield from find_listed_traps(metadata, snapshot)
    listed = {field_id for blob in find_listed_blobs(metadata, snapshot) for field_id in blob.field_ids}
    hit = [leaf for leaf in question.leaves if leaf.field_id in listed and _is_zeroed(leaf)]
    if hit:
        said = next((one for one in found if one.source == _CBO_NDV), None)
        evidence = f"{hit[0].column} is {hit[0].type} and has a listed NDV, but engines are given no bounds"
        if said is not None and said.rows is not None:
            evidence += f"; Spark estimates {said.rows:,.0f} rows here"
        yield Finding(
            "warning",
            f"with spark.sql.cbo.enabled, Spark estimates 0 rows for {hit[0].text} (SPARK-52868, SPARK-56485)",
            evidence,
            "set spark.sql.iceberg.report-column-stats=false",
        )


def _is_zeroed(leaf: Leaf) -> bool:
    return bool(leaf.values.points) and not leaf.values.ranges and leaf.type not in _TEXTUAL
