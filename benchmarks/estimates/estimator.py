"""What every estimator of the comparison does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.estimates.data_sets import DataSet
from benchmarks.estimates.questions import Question


@dataclass(frozen=True, slots=True)
class Cost:
    """What an estimator's statistics of a set take."""

    size_bytes: int | None
    """None: the engine does not say."""
    seconds: float


class Estimator(Protocol):
    """One way to estimate rows."""

    name: str

    def prepare(self, data: DataSet) -> Cost:
        """Make the statistics of a set's tables."""

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        """Return the rows that each question of that set is estimated to have; None: unknown."""
