"""Everything that the explorer shows and has chosen, in one object."""

from __future__ import annotations

from traitlets import Any, Bool, Dict, Enum, HasTraits, Instance, Int, List, Tuple, Unicode

PARTITION_VALUES = ("records", "files", "bytes")
KINDS = ("equi-width", "equi-height")
PHASES = (
    "idle",
    "starting",
    "scanning",
    "cancelling",
    "found",
    "previewing",
    "previewed",
    "committing",
    "committed",
)


class ExplorerState(HasTraits):
    """The explorer's state: views observe it, the coordinator reads into it, and setting a choice redraws."""

    table = Any()
    """The table that is shown.

    Type: `icestats.Table`. Default: None.
    """

    overview = Any(None)
    """The figures of the manifest list.

    Type: `icestats.overview.Overview` or None. Default: None, not read yet.
    """

    columns = Any(None)
    """`Table.columns()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    partitions = Any(None)
    """`Table.partitions()`.

    Type: `pyarrow.Table` or None. Default: None, not read yet.
    """

    partition_value = Enum(PARTITION_VALUES, default_value="records")
    """What the picture of the partitions shows.

    Type: `records`, `files` or `bytes`. Default: `records`.
    """

    column = Unicode(None, allow_none=True)
    """The selected column.

    Type: str or None. Default: None; the explorer selects one when it opens.
    """

    bins = Int(20, min=1)
    """Bins of the histogram that are seen.

    Type: int, from 1. Default: 20.
    """

    kind = Enum(KINDS, default_value="equi-width")
    """Bins of the same width, or of about the same count.

    Type: `equi-width` or `equi-height`. Default: `equi-width`.
    """

    whole_range = Bool(False)
    """Whether far tails are drawn too, instead of the middle 99 % of the values.

    Type: bool. Default: False.
    """

    histogram = Any(None)
    """The selected column's histogram.

    Type: `histogram_part.HistogramPart` or None. Default: None, not read or not there.
    """

    loading = Instance(frozenset, args=())
    """The parts that are being read.

    Type: frozenset of str. Default: empty.
    """

    notes = Dict()
    """Why a part shows nothing, by part.

    Type: dict of str to str. Default: empty.
    """

    phase = Enum(PHASES, default_value="idle")
    """How far computing and committing is.

    Type: one of `PHASES`. Default: `idle`.
    """

    progress = Tuple(Int(), Int(), default_value=(0, 0))
    """Finished and known tasks of the scan.

    Type: tuple of two int. Default: (0, 0).
    """

    statistics = Any(None)
    """What the scan has found.

    Type: `icestats.Statistics` or None. Default: None.
    """

    report = Any(None)
    """What the commit would change, or has changed.

    Type: `icestats.CommitReport` or None. Default: None.
    """

    steps = List(Unicode())
    """The steps of the commit so far.

    Type: list of str. Default: empty.
    """

    def set_note(self, part: str, text: str | None) -> None:
        """Say why a part shows nothing, or take that back."""
        others = {name: note for name, note in self.notes.items() if name != part}
        self.notes = others if text is None else {**others, part: text}

    def set_loading(self, part: str, *, loading: bool) -> None:
        """Say that a part is being read, or that it no longer is."""
        self.loading = self.loading | {part} if loading else self.loading - {part}
