"""The explorer's parts: in comes the state, out go blocks; acts of a person become choices in the state.

Nothing here reads a table or knows how a page draws.
"""

from __future__ import annotations

from icestats_widgets.page.part import Part
from icestats_widgets.parts.columns import ColumnsPart
from icestats_widgets.parts.compare import ComparePart
from icestats_widgets.parts.compute import ComputePart
from icestats_widgets.parts.details import DetailsPart
from icestats_widgets.parts.estimates import EstimatePart
from icestats_widgets.parts.findings import FindingsPart
from icestats_widgets.parts.histogram import HistogramPanel
from icestats_widgets.parts.manifests import ManifestsPart
from icestats_widgets.parts.partitions import PartitionsPart
from icestats_widgets.parts.plan import PlanPart
from icestats_widgets.parts.sizes import SizesPart
from icestats_widgets.parts.snapshots import SnapshotsPart
from icestats_widgets.parts.statistics import StatisticsPart
from icestats_widgets.parts.together import TogetherPart
from icestats_widgets.parts.tree import TreePart
from icestats_widgets.reading.background import Background
from icestats_widgets.reading.computation import Computation
from icestats_widgets.reading.question_coordinator import QuestionCoordinator
from icestats_widgets.state import ExplorerState


def build_parts(state: ExplorerState, background: Background, questions: QuestionCoordinator) -> list[Part]:
    """Return the parts in the order in which they stand on their tabs.

    Parameters
    ----------
    state : ExplorerState
        What they show.
    background : Background
        Where computing runs.
    questions : QuestionCoordinator
        Plans and estimates what is asked.
    """
    computation = Computation(state, background)
    statistics = StatisticsPart(state, computation)
    return [
        PartitionsPart(state),
        FindingsPart(state, questions),
        ColumnsPart(state),
        HistogramPanel(state),
        TogetherPart(state),
        PlanPart(state, questions),
        EstimatePart(state, questions),
        ComparePart(state, questions),
        ManifestsPart(state),
        SizesPart(state),
        TreePart(state),
        SnapshotsPart(state),
        statistics,
        DetailsPart(state, statistics),
        ComputePart(state, computation),
    ]
