"""What Spark's SQL reads a snapshot by: its id, or a branch, so that the schema is the one that is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from icestats.answers.text import quote_name, quote_text
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata

BARRIER = "icestats_barrier"
"""A column that keeps filters from being pushed into a scan."""
_BY_ROWS = "with (`vectorization-enabled` = 'false')"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a table, as Spark's SQL names it."""

    snapshot_id: int
    clause: str
    """What follows the table's name."""
    is_snapshot: bool
    """Named by the snapshot's id: read with the snapshot's schema, whatever becomes of the table."""
    takes_filters: bool
    """Whether Spark can be trusted with filters: Iceberg 1.12 looks their columns up in another schema where the
    snapshot's is not the current one, and fails."""

    def select_all(self, table: str) -> str:
        """Return a relation of all rows and columns, which filters are not pushed into where that would fail.

        Parameters
        ----------
        table : str
            The table's quoted name.
        """
        relation = f"{table} {self.clause}"
        return relation if self.takes_filters else f"(select *, rand() as {BARRIER} from {relation})"  # noqa: S608 - the name is quoted

    def restrict(self, condition: str) -> str:
        """Return the condition on `select_all`'s rows that has the effect of one on the table's."""
        # Spark pushes no filter below what gives other values each time, as long as that is needed.
        return condition if self.takes_filters else f"({condition}) and {BARRIER} >= 0"


def find_version(metadata: TableMetadata, snapshot: Snapshot, schema: Schema) -> Version:
    """Return what makes Spark read a snapshot with a schema.

    Parameters
    ----------
    metadata : TableMetadata
        The table.
    snapshot : Snapshot
        The snapshot.
    schema : Schema
        Its own schema, or the table's current one where a branch ends at the snapshot: see `TableMetadata.find_schema`.

    Notes
    -----
    `version as of` with an id or a tag reads with the snapshot's schema, with a branch's name with the table's current
    one (`SparkTable.create` of Iceberg 1.12; tried with columns added, renamed and dropped).

    Where files may have variants they are read row by row: Iceberg 1.12 fails on shredded ones where it reads other
    columns alone in batches, which it does also where the variant is no longer in the schema.
    """
    version = _find_version(metadata, snapshot, schema)
    if any(field.type == "variant" for known in metadata.schemas.values() for field in known.fields):
        return replace(version, clause=f"{version.clause} {_BY_ROWS}")
    return version


def _find_version(metadata: TableMetadata, snapshot: Snapshot, schema: Schema) -> Version:
    takes_filters = snapshot.schema_id in (None, metadata.current_schema_id)
    at_snapshot = {name: ref.type for name, ref in metadata.refs.items() if ref.snapshot_id == snapshot.snapshot_id}
    branches = [name for name, kind in at_snapshot.items() if kind == "branch"]
    if snapshot.schema_id in (None, schema.schema_id) or not branches:
        return Version(snapshot.snapshot_id, f"version as of {snapshot.snapshot_id}", True, takes_filters)
    branch = min(branches, key=lambda name: (name != "main", name))
    # A name that is a number, `version as of` takes for a snapshot's id.
    is_number = re.fullmatch(r"[+-]?\d+", branch) is not None
    clause = f".{quote_name(f'branch_{branch}')}" if is_number else f"version as of {quote_text(branch)}"
    return Version(snapshot.snapshot_id, clause, False, takes_filters or branch == "main")
