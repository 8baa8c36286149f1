"""What notebook 06 shows of catalogs that need a server: examples with the answers that they gave."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Mapping
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "06_bring_your_own_table.py"
_OF_THIS_RUN = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\d{15,}"), "<snapshot>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r"[\d.]+ kB"), "<size>"),
    (re.compile(r"[\d.,]+ ms"), "<duration>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"file:/\S*?/shop\.db"), "<warehouse>"),
)
"""What is another one each time."""


def read_examples(heading: str) -> str:
    """Return the lines of a section of the notebook that have a prompt, with the answers below them."""
    (section,) = (part for part in NOTEBOOK.read_text().split("\n# ## ") if part.partition("\n")[0].startswith(heading))
    (block,) = re.findall(r"# ```pycon\n(.*?)# ```", section, re.DOTALL)
    return "".join(line.removeprefix("#").removeprefix(" ") for line in block.splitlines(keepends=True))


def run_examples(examples: str, replaced: Mapping[str, str]) -> str:
    """Run examples as a person at a prompt would, and return them with the answers of this run.

    Parameters
    ----------
    examples : str
        Lines with prompts and answers.
    replaced : mapping of str to str
        For what the page says of a server what it is in this run.
    """
    names: dict[str, object] = {}
    shown = []
    for example in doctest.DocTestParser().get_examples(examples):
        source = example.source
        for before, after in replaced.items():
            source = source.replace(before, after)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(source, "<notebook>", "single"), names)
        first, *more = example.source.splitlines()
        shown += [f">>> {first}", *(f"... {line}" for line in more), *said.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in shown)


def without_details(transcript: str) -> str:
    """Return a transcript without what is another one each time."""
    for pattern, name in _OF_THIS_RUN:
        transcript = pattern.sub(name, transcript)
    return transcript
