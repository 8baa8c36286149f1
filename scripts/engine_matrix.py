"""Write the tables of docs/concepts/engines.md: which statistics each engine's optimizer uses, and where it reads them.

Run it after a change of icestats/estimation/engine_statistics.toml: python scripts/engine_matrix.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from icestats.estimation.engine_statistics import LEVELS, EngineFact, list_engines, read_engine_facts

PAGE = Path(__file__).resolve().parents[1] / "docs" / "concepts" / "engines.md"
BEGIN, END = "<!-- written by scripts/engine_matrix.py -->", "<!-- end of what it writes -->"
TITLES = {
    "table": "Of the table",
    "table-column": "Of a column",
    "partition": "Of a partition",
    "partition-column": "Of a column by partition",
}


def build_tables() -> str:
    """Return the tables as Markdown: a matrix for each level, then each engine's facts with their sources."""
    lines: list[str] = []
    for level in LEVELS:
        lines += [f"## {TITLES[level]}", "", *_build_matrix(level), ""]
    for engine in list_engines():
        facts = [fact for fact in read_engine_facts() if fact.engine == engine]
        version = "" if engine == "icestats" else f" {facts[0].engine_version}"
        lines += [f"## {engine}{version}", "", *_build_evidence(facts), ""]
    return "\n".join(lines).rstrip()


def _build_matrix(level: str) -> Iterator[str]:
    engines = list_engines()
    facts = {(fact.statistic, fact.engine): fact for fact in read_engine_facts() if fact.level == level}
    yield f"| statistic | {' | '.join(engines)} |"
    yield f"|---{'|---' * len(engines)}|"
    for statistic in LEVELS[level]:
        cells = (_say_place(facts[statistic, engine]) for engine in engines)
        yield f"| {statistic} | {' | '.join(cells)} |"


def _say_place(fact: EngineFact) -> str:
    if not fact.uses:
        return "–"
    return ", ".join(fact.reads) if fact.reads else "used, not read"


def _build_evidence(facts: list[EngineFact]) -> Iterator[str]:
    yield "| level | statistics | how | source |"
    yield "|---|---|---|---|"
    groups: dict[tuple[str, str, str], list[str]] = {}
    for fact in facts:
        groups.setdefault((fact.level, fact.says, fact.source), []).append(fact.statistic)
    for (level, says, source), statistics in groups.items():
        name = source.rsplit("/", 1)[-1]
        where = f"[{name}]({source})" if source.startswith("https://") else f"`{source}`"
        yield f"| {level} | {', '.join(statistics)} | {says} | {where} |"


def read_page(text: str) -> str:
    """Return a page with the tables as they are now."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{build_tables()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(read_page(PAGE.read_text()))
