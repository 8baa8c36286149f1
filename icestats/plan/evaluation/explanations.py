"""Why one manifest or file was skipped, or could not be: the predicates, the kind of reason, the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.plan.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.plan.evaluation.evaluator import MOST_LITERALS, Evaluation, Why, deciding_predicates
from icestats.plan.filters.literals import display_bytes, display_value
from icestats.plan.filters.predicates import Predicate

_REASONS = {
    Why.BELOW: "all values are below",
    Why.ABOVE: "all values are above",
    Why.NONE_WITHIN: "no literal is within the bounds",
    Why.ALL_NULL_OR_NAN: "nothing but null or NaN",
    Why.NO_NULLS: "no nulls",
    Why.NO_NANS: "no NaN",
    Why.ALL_START: "all values start so",
    Why.EQUAL: "the value is ruled out",
    Why.OVERLAP: "bounds overlap",
    Why.MISSING: "statistic missing",
    Why.NOT_DECIDABLE: "bounds cannot tell",
    Why.NULLS: "nulls",
    Why.NANS: "NaN",
    Why.MANY_LITERALS: "too many literals",
    Why.VALUES: "values that are not null",
    Why.MATCHES: "the value matches",
}
_RELATIONS = {"<": "below", "<=": "not above", ">": "above", ">=": "not below"}
_OPPOSITES = {"<": "not below", "<=": "above", ">": "not above", ">=": "below"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why, in three parts: several predicates stand behind each other with semicolons."""

    predicate: str
    reason: str
    evidence: str
    sentence: str
    """All of it, predicate by predicate."""


def explain(evaluation: Evaluation, row: int, unprojected: Mapping[Predicate, str] | None = None) -> Explanation:
    """Explain what an evaluation says of one group.

    Parameters
    ----------
    evaluation : Evaluation
        Of one step.
    row : int
        The group.
    unprojected : mapping of Predicate to str, optional
        Predicates of the filter that the step could not use, and why: for groups that are kept.
    """
    parts = [_explain(predicate, evaluation, row) for predicate in deciding_predicates(evaluation, row)]
    if evaluation.kept[row]:
        parts += [_part(str(predicate), _kind(why), why) for predicate, why in (unprojected or {}).items()]
    return join_explanations(parts)


def join_explanations(parts: Iterable[Explanation]) -> Explanation:
    """Join explanations; of no predicate at all it is said that none applies."""
    found = list(dict.fromkeys(parts))
    if not found:
        return Explanation("", "no predicate applies", "", "no predicate applies")
    return Explanation(
        "; ".join(part.predicate for part in found),
        "; ".join(dict.fromkeys(part.reason for part in found)),
        "; ".join(part.evidence for part in found),
        "; ".join(part.sentence for part in found),
    )


def _part(predicate: str, reason: str, evidence: str) -> Explanation:
    return Explanation(predicate, reason, evidence, f"{predicate}: {reason}, {evidence}")


def _kind(reason: str) -> str:
    return "transform not order-preserving" if "order-preserving" in reason else "not a partition predicate"


def _explain(predicate: Predicate, evaluation: Evaluation, row: int) -> Explanation:
    why = Why(int(evaluation.codes[predicate][row]))
    metrics = evaluation.metrics.get(predicate.field_id)
    if metrics is None:
        return _part(str(predicate), _REASONS[why], f"no statistics of {predicate.name}")
    evidence = _Evidence(predicate, metrics, row).text(why)
    reason = "the value does not match" if metrics.is_exact and why < 0 else _REASONS[why]
    return _part(str(predicate), reason, evidence)


class _Evidence:
    """The bounds, counts and literals behind one answer."""

    def __init__(self, predicate: Predicate, metrics: ColumnMetrics, row: int) -> None:
        self._predicate = predicate
        self._metrics = metrics
        self._row = row

    def text(self, why: Why) -> str:
        """Return the evidence as text."""
        if self._metrics.is_exact:
            return f"{self._predicate.name} is {self._bound(self._metrics.lower_bytes)}"
        if why in (Why.BELOW, Why.ABOVE):
            return self._outside(why)
        if why is Why.OVERLAP:
            return self._overlap()
        return self._other(why)

    def _other(self, why: Why) -> str:
        metrics, row = self._metrics, self._row
        count = len(self._predicate.literals)
        texts: dict[Why, Callable[[], str]] = {
            Why.NONE_WITHIN: lambda: f"none of {count} literals is within {self._range()}",
            Why.ALL_NULL_OR_NAN: self._nothing,
            Why.NO_NULLS: lambda: "the null count is 0",
            Why.NO_NANS: lambda: "the NaN count is 0",
            Why.ALL_START: lambda: f"{self._range()} start with {self._literal()}",
            Why.MISSING: self._missing,
            Why.NOT_DECIDABLE: lambda: f"{self._range()} may hold other values",
            Why.NULLS: lambda: _count(int(metrics.null_counts[row]), "nulls"),
            Why.NANS: lambda: _count(int(metrics.nan_counts[row]), "NaN"),
            Why.MANY_LITERALS: lambda: f"{count:,} literals: engines compare no more than {MOST_LITERALS} with bounds",
            Why.VALUES: lambda: f"{_known(metrics.value_counts[row])} values, {_known(metrics.null_counts[row])} nulls",
        }
        return texts[why]()

    def _outside(self, why: Why) -> str:
        bound = self._bound(self._metrics.upper_bytes if why is Why.BELOW else self._metrics.lower_bytes)
        relation = _OPPOSITES.get(self._predicate.operator, "below" if why is Why.BELOW else "above")
        side = "upper" if why is Why.BELOW else "lower"
        return f"the {side} bound {bound} is {relation} {self._literal()}"

    def _overlap(self) -> str:
        operator = self._predicate.operator
        if operator in ("<", "<="):
            return (
                f"the lower bound {self._bound(self._metrics.lower_bytes)} is {_RELATIONS[operator]} {self._literal()}"
            )
        if operator in (">", ">="):
            return (
                f"the upper bound {self._bound(self._metrics.upper_bytes)} is {_RELATIONS[operator]} {self._literal()}"
            )
        if operator == "in":
            return f"one of {len(self._predicate.literals)} literals is within {self._range()}"
        return f"{self._literal()} is within {self._range()}"

    def _missing(self) -> str:
        operator = self._predicate.operator
        if operator in ("is null", "is not null"):
            return "no null count"
        if operator in ("is nan", "is not nan"):
            return "no NaN count"
        lacking = [
            side
            for side, keys in (("lower", self._metrics.lower), ("upper", self._metrics.upper))
            if not keys.known[self._row]
        ]
        return f"no {' and no '.join(lacking)} bound"

    def _nothing(self) -> str:
        if self._metrics.all_null[self._row]:
            return "every value is null"
        return "every value is NaN" if self._metrics.all_nan[self._row] else "every value is null or NaN"

    def _literal(self) -> str:
        return display_value(self._predicate.type, self._predicate.literals[0], self._predicate.transform)

    def _range(self) -> str:
        return f"{self._bound(self._metrics.lower_bytes)} to {self._bound(self._metrics.upper_bytes)}"

    def _bound(self, bounds: pa.Array) -> str:
        value: Any = bounds[self._row]
        if not value.is_valid:
            return "null" if self._metrics.is_exact else "unknown"
        if self._metrics.is_exact:
            return _display_scalar(self._metrics.type, value, self._predicate.transform)
        return display_bytes(self._metrics.type, value.as_py(), self._predicate.transform)


def _display_scalar(type_text: str, scalar: pa.Scalar, transform: str) -> str:
    integer = pa.types.is_date(scalar.type) or pa.types.is_timestamp(scalar.type) or pa.types.is_time(scalar.type)
    value = scalar.value if integer else scalar.as_py()
    return display_value(type_text, value, transform)


def _count(count: int, what: str) -> str:
    return f"{what}, how many is unknown" if count == MISSING else f"{count:,} {what}"


def _known(count: int) -> str:
    return "unknown" if count == MISSING else f"{int(count):,}"
