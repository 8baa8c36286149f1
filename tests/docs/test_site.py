"""The documentation site is built without a warning, and a reader without a network misses nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Assets(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in LOADING and values.get("rel") not in {"canonical", "next", "prev"}:
            self.found.append(values.get(LOADING[tag]) or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    """A page a Markdown file; the reference has the methods of a table, the inherited ones too."""
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {path for path in pages if not (site / path).exists()} == set()
    reference = (site / "reference/table.html").read_text()
    for method in ("manifests", "sql", "histogram", "compute", "plan", "estimate", "explore"):
        assert f'id="icestats.Table.{method}"' in reference


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No script, style, font or picture has an address with a host."""
    found = {}
    for path in site.rglob("*.html"):
        assets = Assets()
        assets.feed(path.read_text())
        assert assets.found
        found[path.name] = [asset for asset in assets.found if re.match(r"(https?:)?//", asset)]
    assert {name: assets for name, assets in found.items() if assets} == {}
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(\s*['\"]?(https?:)?//", path.read_text())]
    assert styles == []
