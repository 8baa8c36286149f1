"""How far each estimator is off, and where the kit loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.estimates.data_sets import DataSet, Pairs
from benchmarks.estimates.estimator import Cost
from benchmarks.estimates.planted_rows import DEPENDENCIES
from benchmarks.estimates.questions import Question
from benchmarks.estimates.workload import FILTERS, KINDS
from icestats.estimation.formulas.source_estimates import q_error

KIT = "icestats"
_MEASURES = ("median", "90 %", "99 %", "worst")
_CLEARLY = 1.05
"""How many times smaller a q-error is that counts as better."""
_CLASSES: dict[str, Callable[[str], bool]] = {
    "filters": lambda kind: kind in FILTERS,
    "joins": lambda kind: kind.startswith("join"),
    "GROUP BY": lambda kind: kind.startswith("GROUP BY"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, its truth, and what each estimator says."""

    set_name: str
    question: Question
    actual: int
    estimates: Mapping[str, float | None]

    def error(self, name: str) -> float:
        """Return an estimator's q-error; infinite where the rows are unknown to it."""
        found = q_error(self.estimates[name], self.actual)
        return float("inf") if found is None else found


Groups = Mapping[tuple[str, ...], Sequence[Answer]]
"""Answers by what a table's first columns say."""


@dataclass(frozen=True, slots=True)
class Errors:
    """The q-errors of one estimator over some questions."""

    count: int
    unknown: int
    measures: tuple[float, ...]
    """Median, 90th and 99th percentile and worst of those that are known; NaN: none is."""


def summarize(answers: Sequence[Answer], name: str) -> Errors:
    """Return an estimator's q-errors over some answers: each percentile is one of them, the nearest rank.

    Examples
    --------
    >>> from benchmarks.estimates.questions import Question, Side
    >>> ask = Question("join", (Side("t"),))
    >>> summarize([Answer("s", ask, 10, {"a": rows}) for rows in (5.0, 10.0, 0.0, None)], "a")
    Errors(count=4, unknown=1, measures=(2.0, 10.0, 10.0, 10.0))
    """
    known = [error for one in answers if np.isfinite(error := one.error(name))]
    found = np.quantile(known, (0.5, 0.9, 0.99, 1.0), method="inverted_cdf") if known else np.full(4, np.nan)
    return Errors(len(answers), len(answers) - len(known), tuple(map(float, found)))


def write_table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return a Markdown table whose first so many columns are texts."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * texts + "---:|" * (len(head) - texts)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def build_report(answers: Sequence[Answer], costs: Mapping[tuple[str, str], Cost]) -> Iterator[str]:
    """Write what is measured: q-errors by kind and by set, costs, where the kit loses, and its worst estimates."""
    names = list(answers[0].estimates)
    yield "**By kind of question, all sets together**"
    groups: Groups = {(kind,): [one for one in answers if one.question.kind == kind] for kind in KINDS}
    yield _table_of_errors(("question",), groups, names)
    yield "**By set**"
    sets = list(dict.fromkeys(one.set_name for one in answers))
    by_set: Groups = {
        (name, title): [one for one in answers if one.set_name == name and belongs(one.question.kind)]
        for name in sets
        for title, belongs in _CLASSES.items()
    }
    yield _table_of_errors(("set", "questions"), by_set, names)
    yield "**What the statistics cost**"
    head = ("estimator", *(f"{name}: {what}" for name in sets for what in ("kB", "seconds")))
    rows = [(name, *(cell for one in sets for cell in _cost(costs.get((one, name))))) for name in names]
    yield write_table(head, rows, 1)
    if KIT in names:
        yield f"**Where {KIT} loses**"
        yield _table_of_losses(groups, names)
        yield f"**The three estimates of {KIT} that are off most, by kind of question**"
        yield _table_of_worst(groups, names)


def _cost(cost: Cost | None) -> tuple[str, str]:
    if cost is None:
        return "", ""
    return "" if cost.size_bytes is None else f"{cost.size_bytes / 1000:,.0f}", f"{cost.seconds:,.1f}"


def _table_of_errors(keys: tuple[str, ...], groups: Groups, names: Sequence[str]) -> str:
    rows = []
    for key, answers in groups.items():
        for name in names if answers else ():
            found = summarize(answers, name)
            title = f"**{name}**" if name == KIT else name
            rows.append((*key, title, str(found.count), str(found.unknown), *map(show_error, found.measures)))
    return write_table((*keys, "estimator", "number", "unknown", *_MEASURES), rows, len(keys) + 1)


def show_error(error: float) -> str:
    """Write a q-error with three digits or more; nothing where it is unknown.

    Examples
    --------
    >>> show_error(1.5), show_error(12.34), show_error(12345.6), show_error(1e20), show_error(float("nan"))
    ('1.50', '12.3', '12,346', '1e+20', '')
    """
    if np.isnan(error):
        return ""
    digits = 2 if error < 10 else 1 if error < 100 else 0
    return f"{error:,.{digits}f}" if error < 1e9 else f"{error:.0e}"


def find_losses(answers: Sequence[Answer], names: Sequence[str]) -> list[tuple[str, float, float, str]]:
    """Return each measure in which another estimator is clearly better: the kit's, the best one's, and whose it is."""
    kit = summarize(answers, KIT)
    others = {name: summarize(answers, name) for name in names if name != KIT}
    # One that leaves more questions unknown is not better by those that it answers.
    rivals = {name: one for name, one in others.items() if one.unknown <= kit.unknown}
    losses = []
    for place, measure in enumerate(_MEASURES):
        found = {name: one.measures[place] for name, one in rivals.items() if np.isfinite(one.measures[place])}
        best = min(found, key=lambda name: found[name], default="")
        ours = kit.measures[place]
        if best and (np.isnan(ours) or found[best] * _CLEARLY < ours):
            losses.append((measure, ours, found[best], best))
    return losses


def _table_of_losses(groups: Groups, names: Sequence[str]) -> str:
    rows = [
        (kind, measure, show_error(ours) or "unknown", show_error(theirs), best)
        for (kind,), answers in groups.items()
        if answers
        for measure, ours, theirs, best in find_losses(answers, names)
    ]
    if not rows:
        return "Nowhere: no other is better by more than 5 % in any of the four measures."
    return write_table(("question", "measure", KIT, "the best", "whose"), rows, 2)


def _table_of_worst(groups: Groups, names: Sequence[str]) -> str:
    rows = []
    for (kind,), answers in groups.items():
        known = [one for one in answers if np.isfinite(one.error(KIT))]
        for one in sorted(known, key=lambda one: -one.error(KIT))[:3]:
            best = min((name for name in names if name != KIT), key=one.error, default=KIT)
            text = one.question.describe().replace("|", "\\|")
            estimates = (f"{one.estimates[name] or 0:,.0f}" for name in (KIT, best))
            mine, theirs = estimates
            errors = (show_error(one.error(KIT)), show_error(one.error(best)))
            rows.append((kind, f"`{text}`", f"{one.actual:,}", mine, errors[0], f"{best}: {theirs}", errors[1]))
    head = ("kind", "question", "rows", KIT, "q-error", "the best other", "q-error")
    return write_table(head, rows, 2)


def report_dependencies(data: DataSet, found: Mapping[str, Pairs] | None) -> str:
    """Say which planted dependencies the kit has found, and which independent columns it takes for dependent."""
    if found is None:
        return f"**Planted dependencies**\n\nThis {KIT} does not look for columns that depend on each other."
    known = {frozenset(pair) for pairs in found.values() for pair in pairs}
    planted = [(one.columns, one.noise) for one in DEPENDENCIES]
    rows = [(" → ".join(pair), f"{noise:.0%}", "yes" if frozenset(pair) in known else "no") for pair, noise in planted]
    hits = sum(frozenset(pair) in known for pair, _ in planted)
    false = [" and ".join(pair) for pairs in data.independent.values() for pair in pairs if frozenset(pair) in known]
    said = f"{hits} of {len(planted)} ({hits / len(planted):.0%}) found. Independent, but found: "
    said += f"{', '.join(false) or 'none'}."
    return f"**Planted dependencies**\n\n{write_table(('dependency', 'noise', 'found'), rows, 1)}\n\n{said}"
