"""Row filters as questions to every source of statistics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.errors import CallError
from icestats.estimation.formulas.kept_groups import Question
from icestats.estimation.formulas.source_estimates import DELETES
from icestats.iceberg.catalog import Source
from icestats.iceberg.metadata import Field, Schema
from icestats.plan.filters.filter_parser import parse_row_filter
from icestats.plan.filters.predicates import build_condition
from icestats.plan.filters.row_filter import FilterSchema, read_filter_schema
from icestats.plan.sets.value_predicates import build_tree

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


class Questioner:
    """Reads row filters against one snapshot's schema.

    Parameters
    ----------
    source : Source
        The table.
    schema : Schema
        The snapshot's schema.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema

    @cached_property
    def filter_schema(self) -> FilterSchema:
        """What filters are bound to."""
        return read_filter_schema(self._source, self._schema.schema_id)

    def ask(self, row_filter: str | BooleanExpression, columns: Sequence[str] | None, deletes: str) -> Question:
        """Return the question that a row filter asks.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter.
        columns : sequence of str or None
            The projected columns; None: all.
        deletes : {"deduct", "positions", "ignore"}
            How row-level deletes count.

        Raises
        ------
        FilterError, ColumnNotFoundError, CallError
            The call is wrong.
        """
        if deletes not in DELETES:
            raise CallError(f"deletes is {deletes!r}: expected one of {', '.join(DELETES)}")
        schema = self.filter_schema.schema
        expression = parse_row_filter(row_filter, schema)
        condition = build_condition(expression, schema)
        projected = None if columns is None else self._field_ids(columns)
        text = row_filter if isinstance(row_filter, str) else str(condition)
        return Question(text, expression, build_tree(condition), schema, projected, deletes)

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
