"""What to look at first: what is wrong with the table, on which evidence, what fixes it, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from icestats.answers.findings import Finding, order_findings
from icestats.answers.text import counted
from icestats.table.overview import Overview
from icestats_widgets.drawing.manifest_figure import find_manifests, find_overlaps, sort_manifests
from icestats_widgets.page.blocks import Block, button, card_block, code_block, form_block, text_block
from icestats_widgets.page.part import AskingPart
from icestats_widgets.parts.manifests import find_key
from icestats_widgets.reading.compute_request import UNCHANGED, ComputeRequest, describe_cost, request_update
from icestats_widgets.reading.filters.asked_filter import name_manifests
from icestats_widgets.reading.question_coordinator import is_small

_MOST_SHOWN = 8
_TONES = {"error": "bad", "warning": "fair", "note": "quiet"}
_MOST_NAMED = 6
_PLACES = {
    "statistics": ("Show the statistics", "statistics", "statistics"),
    "manifests": ("Show where manifests overlap", "layout", "manifests"),
    "files": ("Show the files", "layout", "outline"),
    "sizes": ("Show the sizes", "layout", "sizes"),
}
"""What the button says that opens a place of the explorer, its tab and its part, by what a finding is about."""
_UNKNOWN_TIME = "How long it takes is not known before it runs."


class FindingsPart(AskingPart):
    """Findings from the manifest list, statistics that cannot be used, and the layout; each opens to its evidence."""

    name = "findings"
    title = "What to look at first"
    tab = "overview"
    follows = ("overview", "layout_report", "estimates", "manifests", "sketches", "columns")
    hears = ("layout_report", "manifests")

    def build(self) -> None:
        """Open none."""
        self._opened: frozenset[str] = frozenset()
        self._shows_all = False

    def blocks(self) -> list[Block]:
        """Return a card a finding, and the buttons for more."""
        found = self._find()
        cards = [self._build_card(number, one) for number, one in enumerate(found)]
        shown = cards if self._shows_all else cards[:_MOST_SHOWN]
        fields = []
        if len(shown) < len(cards):
            fields.append(button("findings.all", f"Show all {len(cards):,}"))
        if self._can_look:
            about = "Reads the statistics of every file"
            fields.append(button("findings.look", "Check the layout", about=about, is_disabled=self.is_loading))
        note = [text_block(self.note, "bad")] if self.note else []
        return [*note, *shown, *([form_block(*fields)] if fields else [])]

    def caption(self) -> str:
        """Return how many findings there are."""
        counts = Counter[str](finding.severity for finding in self._find())
        texts = [counted(counts[severity], severity) for severity in _TONES if counts[severity]]
        if self.is_loading:
            texts.append("checking the layout …")
        if texts or self.note or self.state.overview is None:
            return ", ".join(texts)
        return "No problems found." if self.state.layout_report else "No problems found, the layout is not checked yet."

    def to_arrow(self) -> pa.Table | None:
        """Return the findings: `severity`, `title`, `evidence`, `fix`, `cost`; null if there is none."""
        return findings_table(self._find())

    def code(self) -> str:
        """Return the Python line that gives the layout's findings."""
        return "table.layout()"

    def act(self, verb: str, value: Any) -> None:
        """Open or close a finding, or do what a button says."""
        number = verb.removesuffix(".open")
        found = self._find()
        if number != verb and number.isdecimal() and int(number) < len(found) and isinstance(value, dict):
            title = found[int(number)].title
            self._opened = self._opened | {title} if value.get("open") is True else self._opened - {title}
            self.redraw()
        else:
            super().act(verb, value)

    def on_all(self, _: object) -> None:
        """Show all findings."""
        self._shows_all = True
        self.redraw()

    def on_look(self, _: object) -> None:
        """Measure the layout."""
        if self._can_look and not self.is_loading:
            self.questions.read_layout()

    @property
    def _can_look(self) -> bool:
        state = self.state
        return (
            state.overview is not None
            and state.layout_report is None
            and state.manifests is not None
            and not is_small(state)
        )

    def _find(self) -> tuple[Finding, ...]:
        state = self.state
        found = [] if state.overview is None else list(overview_findings(state.overview))
        found += () if state.layout_report is None else state.layout_report.findings
        found += () if state.estimates is None else state.estimates.findings
        found += state.table._reader.findings
        return order_findings(dict.fromkeys(found))

    def _build_card(self, number: int, finding: Finding) -> Block:
        blocks = [text_block(finding.evidence)] if finding.evidence else []
        if deepest := self._name_deepest(finding):
            blocks.append(text_block(deepest))
        if finding.fix is not None:
            live = UNCHANGED if finding.fix.startswith("table.") else ""
            blocks += [code_block(finding.fix), text_block(self._describe_cost(finding), "quiet", live=live)]
        key = find_key(self.state.table)
        is_drawn = not finding.fields or (key is not None and finding.fields == (key.field.name,))
        label, tab, part = _PLACES[finding.subject]
        if finding.subject == "manifests" and not is_drawn:
            # The curve is of another field: the tree has the bounds of this one by manifest.
            label, part = "Show the manifests", "outline"
        column = next(iter(finding.fields), "") if part == "outline" else ""
        show = {**button("page.tab", label), "value": {"name": tab, "part": part, "column": column}}
        actions = [] if self.state.table.snapshot is None else [show]
        is_open = finding.title in self._opened
        title = f"{finding.severity}: {finding.title}"
        return card_block(
            str(number), title, *blocks, tone=_TONES[finding.severity], is_open=is_open, actions=actions,
        )  # fmt: skip

    def _name_deepest(self, finding: Finding) -> str:
        """Return which manifests overlap most, if that is what the finding is about; else nothing."""
        overview, key = self.state.overview, find_key(self.state.table)
        if finding.subject != "manifests" or key is None or overview is None or finding.fields != (key.field.name,):
            return ""
        rows = sort_manifests(self.state.table.manifest_files(), overview.key_ranges, key)
        steps = find_overlaps([row.interval for row in rows if row.interval and row.content == "data"])
        start, end, depth = max(steps, key=lambda step: step[2], default=(0.0, 0.0, 0))
        paths = find_manifests(f"over {start!r} {end!r}", rows)
        names = name_manifests(paths, _MOST_NAMED)
        return f"{counted(depth, 'manifest')} share one key: {names}." if paths else ""

    def _describe_cost(self, finding: Finding) -> str:
        if finding.fix is not None and finding.fix.startswith("table."):
            request = request_update(self.state.table, self.state.sketches)
            if request is None and "refresh" in finding.fix:
                return "What it reads is not known yet."
            return describe_cost(request or ComputeRequest(), self.state)
        cost = "What it reads and writes is not known." if finding.cost is None else f"It {finding.cost}."
        lasting = "The property stays set until somebody takes it back. " if finding.is_lasting else ""
        return f"{cost} {lasting}{_UNKNOWN_TIME}"


def findings_table(found: Iterable[Finding]) -> pa.Table:
    """Return findings as a table, one row a finding."""
    names = ("severity", "title", "evidence", "fix", "cost")
    schema = pa.schema([pa.field(name, pa.string(), nullable=name in ("fix", "cost")) for name in names])
    return pa.Table.from_pylist([finding.to_json() for finding in found], schema=schema)


def overview_findings(overview: Overview) -> Iterator[Finding]:
    """Yield what the manifest list and metadata.json show."""
    for text in overview.findings:
        title, _, evidence = text.partition(": ")
        is_missing = overview.statistics_commits_behind is None and overview.snapshot is not None
        is_old = bool(overview.statistics_commits_behind)
        fix = None
        if text.startswith(("No statistics", "The statistics of")) and is_missing:
            fix = "table.compute().commit()"
        elif text.startswith(("The statistics are", "The statistics of")) and is_old:
            fix = "table.refresh_statistics().commit()"
        of_files = "delete record" in title
        yield Finding("warning" if fix else "note", title, evidence, fix, subject="files" if of_files else "statistics")
