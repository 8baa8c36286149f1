"""Why one manifest or file was skipped, or could not be: the predicates, the kind of reason, the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.iceberg.filters.predicates import Condition, Constant, Predicate, display_bytes, display_value
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.snapshot.evaluation.evaluator import MOST_LITERALS, Evaluation, Why

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
    deciding = dict.fromkeys(_deciding(evaluation.condition, evaluation, row))
    parts = [_explain(predicate, evaluation, row) for predicate in deciding]
    if evaluation.kept[row]:
        parts += [_part(str(predicate), _kind(why), why) for predicate, why in (unprojected or {}).items()]
    return join_explanations(parts)


def _deciding(condition: Condition, evaluation: Evaluation, row: int) -> list[Predicate]:
    """Return the predicates that a group is skipped by, or, where it is kept, those that could not skip it."""
    if isinstance(condition, Predicate):
        return [condition]
    if isinstance(condition, Constant):
        return []
    keeps = [_keeps(child, evaluation, row) for child in condition.children]
    chosen = condition.children
    if condition.operator == "and" and not all(keeps):
        chosen = (chosen[keeps.index(False)],)
    elif condition.operator == "or" and any(keeps):
        chosen = tuple(child for child, kept in zip(chosen, keeps, strict=True) if kept)
    return [predicate for child in chosen for predicate in _deciding(child, evaluation, row)]


def _keeps(condition: Condition, evaluation: Evaluation, row: int) -> bool:
    if isinstance(condition, Predicate):
        return bool(evaluation.codes[condition][row] >= 0)
    if isinstance(condition, Constant):
        return condition.holds
    combine = all if condition.operator == "and" else any
    return combine(_keeps(child, evaluation, row) for child in condition.children)


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


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The bounds, counts and literals behind one answer."""

    predicate: Predicate
    metrics: ColumnMetrics
    row: int

    def text(self, why: Why) -> str:
        """Return the evidence as text."""
        if self.metrics.is_exact:
            return f"{self.predicate.name} is {self._bound(self.metrics.lower_bytes)}"
        metrics, row = self.metrics, self.row
        count = len(self.predicate.literals)
        texts: dict[Why, Callable[[], str]] = {
            Why.BELOW: lambda: self._outside("upper", metrics.upper_bytes, "below"),
            Why.ABOVE: lambda: self._outside("lower", metrics.lower_bytes, "above"),
            Why.EQUAL: lambda: f"every value is {self._bound(metrics.lower_bytes)}",
            Why.OVERLAP: self._overlap,
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

    def _outside(self, side: str, bounds: pa.Array, relation: str) -> str:
        relation = _OPPOSITES.get(self.predicate.operator, relation)
        return f"the {side} bound {self._bound(bounds)} is {relation} {self._literal()}"

    def _overlap(self) -> str:
        operator = self.predicate.operator
        if operator in _RELATIONS:
            side, bounds = "lower", self.metrics.lower_bytes
            if operator.startswith(">"):
                side, bounds = "upper", self.metrics.upper_bytes
            return f"the {side} bound {self._bound(bounds)} is {_RELATIONS[operator]} {self._literal()}"
        if operator == "in":
            return f"one of {len(self.predicate.literals)} literals is within {self._range()}"
        return f"{self._literal()} is within {self._range()}"

    def _missing(self) -> str:
        operator = self.predicate.operator
        if operator in ("is null", "is not null"):
            return "no null count"
        if operator in ("is nan", "is not nan"):
            return "no NaN count"
        sides = (("lower", self.metrics.lower), ("upper", self.metrics.upper))
        lacking = [side for side, keys in sides if not keys.known[self.row]]
        return f"no {' and no '.join(lacking)} bound"

    def _nothing(self) -> str:
        if self.metrics.all_null[self.row]:
            return "every value is null"
        return "every value is NaN" if self.metrics.all_nan[self.row] else "every value is null or NaN"

    def _literal(self) -> str:
        return display_value(self.predicate.type, self.predicate.literals[0], self.predicate.transform)

    def _range(self) -> str:
        return f"{self._bound(self.metrics.lower_bytes)} to {self._bound(self.metrics.upper_bytes)}"

    def _bound(self, bounds: pa.Array) -> str:
        value: Any = bounds[self.row]
        if not value.is_valid:
            return "null" if self.metrics.is_exact else "unknown"
        if self.metrics.is_exact:
            return _display_scalar(self.metrics.type, value, self.predicate.transform)
        return display_bytes(self.metrics.type, value.as_py(), self.predicate.transform)


def _display_scalar(type_text: str, scalar: pa.Scalar, transform: str) -> str:
    integer = pa.types.is_date(scalar.type) or pa.types.is_timestamp(scalar.type) or pa.types.is_time(scalar.type)
    value = scalar.value if integer else scalar.as_py()
    return display_value(type_text, value, transform)


def _count(count: int, what: str) -> str:
    return f"{what}, how many is unknown" if count == MISSING else f"{count:,} {what}"


def _known(count: int) -> str:
    return "unknown" if count == MISSING else f"{int(count):,}"
