"""What a scan reads of a table, and why; how well its metadata is clustered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from icestats.facets.base import Facet
from icestats.layout_reader import read_layout
from icestats.plan.layout import Layout
from icestats.plan.plan import Plan
from icestats.plan.row_filter import FilterSchema, read_filter_schema
from icestats.plan_reader import plan_scan

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


class Planning(Facet):
    """Plans, and the layout of the metadata."""

    def plan(
        self,
        row_filter: str | BooleanExpression,
        *,
        manifest_statistics: bool | None = None,
    ) -> Plan:
        """Return what a scan with a filter reads of this snapshot, step by step, and why.

        Parameters
        ----------
        row_filter : str or pyiceberg.expressions.BooleanExpression
            The filter, in PyIceberg's language.
        manifest_statistics : bool, optional
            Whether manifests are judged by their columns' bounds too. By default if roll-ups are at hand: read before,
            or in the local cache and worth the reading; True reads what is missing of them.

        Returns
        -------
        Plan
            `.steps`, `.partition_filters`, `.manifests()`, `.files()`.

        Raises
        ------
        FilterError
            The filter cannot be read, or does not fit the schema.
        MetadataError
            A metadata file is missing, cut or damaged.

        Notes
        -----
        A file is skipped only where its metadata proves that no row of it matches: a statistic that is missing keeps
        it. The files that are kept are those of Iceberg's own scan planning. Source: Iceberg spec, "Scan Planning".

        Examples
        --------
        >>> import icestats
        >>> plan = icestats.load("demo.flights").plan("carrier = 'UA' and month = 7")
        >>> [step.kept + step.skipped == step.total for step in plan.steps]
        [True, True, True]
        """
        return plan_scan(self._reader, self._filter_schema, row_filter, manifest_statistics=manifest_statistics)

    def layout(self, *, columns: Sequence[str] | None = None) -> Layout:
        """Measure how well the metadata of this snapshot is clustered: what a lookup of one key opens.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to look at beside the partition fields; by default those that partitions are made of.

        Returns
        -------
        Layout
            `.fields`, `.spread`, `.late`, `.findings`, and `.what_if(...)`.

        Raises
        ------
        ColumnNotFoundError
            There is no such column.
        MetadataError
            A metadata file is missing, cut or damaged.

        Notes
        -----
        Exact over the bounds that files have. A key lies in a range between a lower and an upper bound whether or not a
        row of the file has it; keys are drawn as rows are, each bound of a file standing for half of its rows. All data
        manifests are read.

        Examples
        --------
        >>> import icestats
        >>> layout = icestats.load("demo.flights").layout()
        >>> layout.spread.file_count
        196
        """
        return read_layout(self._reader, lambda: self._filter_schema, columns)

    @cached_property
    def _filter_schema(self) -> FilterSchema:
        return read_filter_schema(self._source, self.schema.schema_id)
