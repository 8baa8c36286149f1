"""Where a benchmark's figures are published: between two markers of a page."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGE = DOCS / "benchmarks.md"


def publish(name: str, text: str, page: Path = PAGE) -> None:
    """Put a text in place of what stands between the markers of a benchmark."""
    begin, end = f"<!-- {name}: written by the benchmark -->", f"<!-- end of {name} -->"
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")
