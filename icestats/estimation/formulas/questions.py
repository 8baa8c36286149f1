"""A row filter as a question to every source of statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from icestats.errors import CallError
from icestats.estimation.formulas.source_estimates import DELETES
from icestats.iceberg.metadata import Field, Schema
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.filters.value_sets import Leaf, Tree, build_tree, list_leaves


@dataclass(frozen=True)
class Question:
    """What is asked of every source."""

    row_filter: RowFilter
    columns: tuple[int, ...] | None
    """Field ids of the projected columns; None: all."""
    deletes: str
    """One of `source_estimates.DELETES`."""

    @cached_property
    def predicate(self) -> Tree:
        """The filter as sets of values."""
        return build_tree(self.row_filter.condition)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The predicates on columns."""
        return list_leaves(self.predicate)

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The columns of the filter, then the projected ones."""
        filtered = (leaf.field_id for leaf in self.leaves)
        return tuple(dict.fromkeys((*filtered, *(self.columns or ()))))


def build_question(row_filter: RowFilter, schema: Schema, columns: Sequence[str] | None, deletes: str) -> Question:
    """Build the question that a row filter asks.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    schema : Schema
        The snapshot's schema.
    columns : sequence of str or None
        The projected columns; None: all.
    deletes : {"deduct", "positions", "ignore"}
        How row-level deletes count.

    Raises
    ------
    ColumnNotFoundError, CallError
        The call is wrong.
    """
    if deletes not in DELETES:
        raise CallError(f"deletes is {deletes!r}: expected one of {', '.join(DELETES)}")
    found = None if columns is None else [i for name in columns for i in _primitive_ids(schema.find(name), schema)]
    return Question(row_filter, None if found is None else tuple(dict.fromkeys(found)), deletes)


def _primitive_ids(field: Field, schema: Schema) -> list[int]:
    if field.is_primitive:
        return [field.field_id]
    return [f.field_id for f in schema.columns if f.name.startswith(f"{field.name}.")]
