"""Row filters as questions to every source of statistics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.catalog import Source, load_iceberg_table
from icestats.errors import CallError
from icestats.metadata import Field, Schema, Snapshot
from icestats.plan.filters import parse_row_filter
from icestats.plan.grouped_sources import Question
from icestats.plan.source_estimates import DELETES
from icestats.plan.value_predicates import build_predicate

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema as IcebergSchema


class Questioner:
    """Reads row filters against one snapshot's schema.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot or None
        The snapshot; None: the current schema.
    schema : Schema
        The snapshot's schema.
    """

    def __init__(self, source: Source, snapshot: Snapshot | None, schema: Schema) -> None:
        self._source = source
        self._snapshot = snapshot
        self._schema = schema

    @cached_property
    def _iceberg_schema(self) -> IcebergSchema:
        table = load_iceberg_table(self._source)
        return (
            table.schema()
            if self._snapshot is None
            else table.scan(snapshot_id=self._snapshot.snapshot_id).projection()
        )

    def ask(self, row_filter: str | BooleanExpression, columns: Sequence[str] | None, deletes: str) -> Question:
        """Return the question that a row filter asks.

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong.
        """
        if deletes not in DELETES:
            raise CallError(f"deletes is {deletes!r}: expected one of {', '.join(DELETES)}")
        expression = parse_row_filter(row_filter, self._iceberg_schema)
        projected = None if columns is None else self._field_ids(columns)
        predicate = build_predicate(expression, self._iceberg_schema)
        return Question(str(row_filter), predicate, self._iceberg_schema, projected, deletes)

    def _field_ids(self, columns: Sequence[str]) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for name in columns:
            field = self._schema.find(name)
            found |= dict.fromkeys(self._primitive_ids(field))
        return tuple(found)

    def _primitive_ids(self, field: Field) -> list[int]:
        if field.is_primitive:
            return [field.field_id]
        return [f.field_id for f in self._schema.columns if f.name.startswith(f"{field.name}.")]
