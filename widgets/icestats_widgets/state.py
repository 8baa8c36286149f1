"""Everything that the explorer shows and has selected, in one object."""

from __future__ import annotations

import threading

from traitlets import Any, Bool, Dict, Enum, HasTraits, Instance, Int, List, Tuple, Unicode

from icestats_widgets.reading.selected_part import SelectedPart

PARTITION_VALUES = ("records", "files", "bytes")
KINDS = ("equi-width", "equi-height")
TREE_MODES = {"tree": "tree", "files": "all files"}
"""What the manifest tree can show, and what that is called."""
_WIDE = frozenset({"plan", "manifests", "sizes", "outline", "estimates"})
TABS = ("overview", "columns", "query", "layout", "history", "statistics")
PHASES = {
    "idle": "",
    "starting": "Starting Spark; the first time takes a few seconds …",
    "scanning": "Scanning …",
    "cancelling": "Cancelling …",
    "found": "Computed. Nothing has changed yet.",
    "previewing": "Checking what the commit would change …",
    "previewed": "Computed. Nothing has changed yet: below is what the commit would do.",
    "committing": "Committing …",
    "committed": "Committed. All tabs show the table as it is now.",
    "present": "Nothing was written: others have committed the same. All tabs show the table as it is now.",
    "checking": "Checking what undoing it would change …",
    "checked": "Nothing has changed yet: below is what undoing would do.",
    "undoing": "Undoing …",
    "undone": "Undone. All tabs show the table as it is now.",
}
"""The steps of computing, committing and undoing, and what is said at each."""


class ExplorerState(HasTraits):
    """The explorer's state: views observe it, the coordinator reads into it, and setting a choice redraws."""

    table = Any()
    """The table that is shown.

    Type: `icestats.Table`. Default: None.
    """

    overview = Any(None)
    """The totals from the manifest list.

    Type: `icestats.table.overview.Overview` or None. Default: None, not read yet.
    """

    tab = Enum(TABS, default_value=TABS[0])
    """The open tab.

    Type: one of `TABS`. Default: the first.
    """

    collapsed = Instance(frozenset, args=())
    """Names of the parts that show their title only.

    Type: frozenset of str. Default: empty.
    """

    wide = Instance(frozenset, args=(_WIDE,))
    """Names of the parts that take the whole width.

    Type: frozenset of str. Default: those that need it.
    """

    widths = Dict()
    """The widths of figures on the page, in pixels, by part and figure.

    Type: dict of str to int. Default: empty, not known yet.
    """

    selection = Any(None)
    """The selected partitions or manifests; every view shows only these.

    Type: `selection.Selection` or None. Default: None, everything.
    """

    part = Any(None)
    """What the selection contains.

    Type: `selected_part.SelectedPart` or None. Default: None, nothing is selected or it is not read yet.
    """

    reading = Tuple(Int(), Int(), default_value=(0, 0))
    """Manifests read so far, and manifests to read.

    Type: tuple of two int. Default: (0, 0).
    """

    manifests = Any(None)
    """`Table.manifests()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    tree_mode = Enum(tuple(TREE_MODES), default_value="tree")
    """What the manifest tree shows.

    Type: `tree`, or `files` for all files in one list. Default: `tree`.
    """

    tree_sort = Any(None)
    """What the tree is sorted by.

    Type: tuple of a column's name and whether the largest comes first, or None. Default: None, the metadata's order.
    """

    tree_words = Unicode()
    """Words and comparisons that filter the tree's rows.

    Type: str. Default: empty.
    """

    tree_opened = Instance(frozenset, args=([("snapshot",)],))
    """Rows of the tree that are open.

    Type: frozenset of tuple of str. Default: the snapshot.
    """

    outline = Any(None)
    """The tree's rows.

    Type: `outline.Outline` or None. Default: None.
    """

    row_filter = Unicode()
    """The filter that was typed, once it fits the table; planned and estimated with `clauses` and `selection`.

    Type: str, PyIceberg's filter language. Default: empty.
    """

    clauses = Dict()
    """Filters that were made by a click or a mark, by what made them: `histogram:price`.

    Type: dict of str to str. Default: empty.
    """

    ideas = List(Unicode())
    """Filters to try.

    Type: list of str. Default: empty.
    """

    row_groups = Any(None)
    """The row groups of the file that was asked for last.

    Type: tuple of the plan, the row of its file and what `plan_outcomes.read_row_groups` gives, or None. Default: None.
    """

    plan_comparison = Any(None)
    """Two plans side by side.

    Type: `plan_comparison.PlanComparison` or None. Default: None, nothing has been compared.
    """

    workload = Any(None)
    """`Table.estimate_workload`: how far off each source is over many filters.

    Type: `Workload`, of `Table.estimate_workload`, or None. Default: None, not asked for.
    """

    plan = Any(None)
    """`Table.plan` of the filter.

    Type: `Plan`, of `Table.plan`, or None. Default: None.
    """

    outlook = Any(None)
    """What the manifest list says of the plan that is being made.

    Type: tuple of the filter, the selected manifests' paths or None, and a `PlanOutlook`, of `Table.plan_outlook`; or
    None. Default: None.
    """

    estimates = Any(None)
    """`Table.estimate` of the filter.

    Type: `Estimates`, of `Table.estimate`, or None. Default: None.
    """

    earlier_estimates = Any(None)
    """The estimates of the same filter before the last commit.

    Type: as `estimates`. Default: None.
    """

    layout_report = Any(None)
    """`Table.layout()`: how well the metadata is clustered, and what to fix.

    Type: `Layout`, of `Table.layout`, or None. Default: None.
    """

    sketches = Any(None)
    """`Table.sketches()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    together = Any(None)
    """`Table.columns_together()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    coverage = Any(None)
    """`Table.coverage()`: what engines have of the statistics.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    sparks = Dict()
    """Small histograms by column.

    Type: dict of str to `sparks.Spark`. Default: empty.
    """

    asked_part = Any(None)
    """The partitions that are selected, of those that the filter may select rows of.

    Type: `selected_part.SelectedPart` or None. Default: None, nothing is asked or it is not read yet.
    """

    part_sketches = Any(None)
    """What sketches by partition say of the columns of `asked_part`.

    Type: `sparks.PartSketches` or None. Default: None, not read yet, or nothing is asked.
    """

    columns = Any(None)
    """`Table.columns()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    partitions = Any(None)
    """`Table.partitions()` without the maps of column statistics.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    partition_value = Enum(PARTITION_VALUES, default_value="records")
    """What the chart of partitions shows.

    Type: `records`, `files` or `bytes`. Default: `records`.
    """

    column = Unicode(None, allow_none=True)
    """The selected column.

    Type: str or None. Default: None; the explorer selects one when it opens.
    """

    bins = Int(20, min=1)
    """Visible bins of the histogram.

    Type: int, from 1. Default: 20.
    """

    kind = Enum(KINDS, default_value="equi-width")
    """Bins of equal width, or of about equal count.

    Type: `equi-width` or `equi-height`. Default: `equi-width`.
    """

    log_counts = Bool(False)
    """Whether the histogram's counts are on a logarithmic axis.

    Type: bool. Default: False.
    """

    log_values = Bool(False)
    """Whether the histogram's values are on a logarithmic axis.

    Type: bool. Default: False.
    """

    window = Any(None)
    """The range of values to which the histogram is zoomed, as positions on its axis.

    Type: tuple of two float, or None. Default: None.
    """

    whole_range = Bool(False)
    """Whether to draw the far tails too, instead of only the middle 99 % of the values.

    Type: bool. Default: False.
    """

    histogram = Any(None)
    """The selected column's histogram.

    Type: `histogram_part.HistogramPart` or None. Default: None, not read or missing.
    """

    loading = Instance(frozenset, args=())
    """The parts that are being read.

    Type: frozenset of str. Default: empty.
    """

    notes = Dict()
    """Why a part shows nothing, by part.

    Type: dict of str to str. Default: empty.
    """

    phase = Enum(tuple(PHASES), default_value="idle")
    """The progress of computing and committing.

    Type: one of `PHASES`. Default: `idle`.
    """

    progress = Tuple(Int(), Int(), default_value=(0, 0))
    """Finished and known tasks of the scan.

    Type: tuple of two int. Default: (0, 0).
    """

    statistics = Any(None)
    """The results of the scan.

    Type: `icestats.Statistics` or None. Default: None.
    """

    report = Any(None)
    """What the commit would change, or did change.

    Type: `icestats.CommitReport` or None. Default: None.
    """

    steps = List(Unicode())
    """The steps of the commit so far.

    Type: list of str. Default: empty.
    """

    request = Any(None)
    """What to compute next.

    Type: `compute_request.ComputeRequest` or None. Default: None, the sketches and statistics of all columns.
    """

    seconds_to_go = Any(None)
    """How long the scan takes from now on, if its other tasks take as long as those that have finished.

    Type: float, seconds, or None. Default: None, unknown.
    """

    removal = Any(None)
    """What undoing the commit would change, or has changed.

    Type: `icestats.table.statistics.RemovalReport` or None. Default: None.
    """

    engine = Unicode()
    """The engine whose statistics are shown.

    Type: str, of `list_engines`. Default: empty, all of them.
    """

    picked = Any(None)
    """The row of the matrix of statistics, and the kind of statistics, whose details are shown.

    Type: tuple of two str, or None. Default: None; of a whole row the kind is empty.
    """

    compared = Tuple()
    """The snapshots that are chosen, in that order: one, or two to compare.

    Type: tuple of int, snapshot ids. Default: empty.
    """

    comparison = Any(None)
    """What changed between the two chosen snapshots.

    Type: `snapshot_comparison.SnapshotComparison` or None. Default: None, not read yet.
    """

    def __init__(self, **traits: object) -> None:
        self._changing = threading.RLock()
        super().__init__(**traits)

    @property
    def has_part(self) -> bool:
        """Whether `part` belongs to the current selection, not an earlier one; True if nothing is selected."""
        return self.selection is None or self.selected_part is not None

    @property
    def selected_part(self) -> SelectedPart | None:
        """`part`, if it belongs to the current selection, not an earlier one; None if nothing is selected."""
        found: SelectedPart | None = self.part
        return found if found is not None and found.selection == self.selection else None

    def set_note(self, part: str, text: str | None) -> None:
        """Say why a part shows nothing, or clear the note; call it from any thread."""
        with self._changing:
            others = {name: note for name, note in self.notes.items() if name != part}
            self.notes = others if text is None else {**others, part: text}

    def set_loading(self, part: str, *, loading: bool) -> None:
        """Say whether a part is being read; call it from any thread."""
        with self._changing:
            self.loading = self.loading | {part} if loading else self.loading - {part}
