"""Known traps of engines: statistics that make their estimates worse than none, found on the table that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icestats.findings import Finding
from icestats.metadata import BlobMetadata, Field
from icestats.plan.kept_groups import Question
from icestats.plan.source_estimates import SourceEstimate
from icestats.plan.value_predicates import Leaf, list_leaves
from icestats.read.statistics_files import THETA
from icestats.snapshot_reader import SnapshotReader

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
    yield from find_table_traps(reader)
    listed = {field_id for blob in _listed(reader) for field_id in blob.field_ids}
    hit = [leaf for leaf in list_leaves(question.predicate) if leaf.field_id in listed and _is_zeroed(leaf)]
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


def find_table_traps(reader: SnapshotReader) -> Iterator[Finding]:
    """Find the traps that any query of this snapshot runs into."""
    broken = [blob for blob in _listed(reader) if _is_broken(blob, reader)]
    if broken:
        ids = ", ".join(str(field_id) for blob in broken for field_id in blob.field_ids) or "none"
        yield Finding(
            "error",
            "with spark.sql.cbo.enabled, joins of this table fail in Spark with an internal error: for this snapshot "
            "statistics of columns are listed that the schema does not have",
            f"{len(broken):,} listed blobs, of field ids {ids}",
            "set spark.sql.iceberg.report-column-stats=false",
        )


def _listed(reader: SnapshotReader) -> list[BlobMetadata]:
    """The blobs that Spark reads: those that metadata.json lists for exactly this snapshot."""
    snapshot = reader.snapshot
    files = reader.source.metadata.statistics
    return [
        blob
        for file in files
        if snapshot is not None and file.snapshot_id == snapshot.snapshot_id
        for blob in file.blobs
        if blob.type == THETA
    ]


def _is_broken(blob: BlobMetadata, reader: SnapshotReader) -> bool:
    fields: list[Field | None] = [reader.source.metadata.schema.get(field_id) for field_id in blob.field_ids]
    return not fields or None in fields


def _is_zeroed(leaf: Leaf) -> bool:
    return bool(leaf.values.points) and not leaf.values.ranges and leaf.type not in _TEXTUAL
