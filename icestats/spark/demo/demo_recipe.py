"""What a demo table is made of: its DDL, the rows of each commit, and the statements in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DemoRecipe:
    """How one demo table is built; the same recipe gives the same rows in the same files.

    Attributes
    ----------
    name : str
        The table's name in the namespace ``demo``.
    version : int
        Raised with each change of the recipe: a warehouse of another version is built anew.
    ddl : str
        The CREATE TABLE statement, with ``{table}`` to fill in.
    append_count : int
        The number of appends.
    appends : callable
        Gives the rows of each append, in commit order.
    cluster_by : str
        A Spark SQL expression over the rows, with ``{catalog}`` to fill in; one task writes the rows of one value.
    statements : mapping of int to tuple of str
        Statements that run once that many appends are done, 0 before the first, with ``{table}`` to fill in.
    """

    name: str
    version: int
    ddl: str
    append_count: int
    appends: Callable[[], Iterator[pa.Table]]
    cluster_by: str
    statements: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
