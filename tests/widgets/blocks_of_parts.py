"""What a part shows, found in its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icestats_widgets.page.part import Part


def find_blocks(part: Part, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of one kind, those inside cards and of lines of controls among them."""

    def walk(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for block in blocks:
            if block["is"] == kind:
                yield block
            for name in ("blocks", "fields", "actions"):
                yield from walk(block.get(name, []))

    yield from walk(part.document()["blocks"])


def find_button(part: Part, action: str) -> dict[str, Any]:
    """Return a button by what it does."""
    return next(block for block in find_blocks(part, "button") if block["action"] == action)


def find_texts(part: Part) -> str:
    """Return all sentences and code."""
    blocks = (block for kind in ("text", "code") for block in find_blocks(part, kind))
    return "\n".join(f"{block['text']} {block.get('live', '')}".strip() for block in blocks if "text" in block)


def find_rows(part: Part, grid: str) -> list[dict[str, str]]:
    """Return the rows of a grid that is shown, by the names of its columns, with their `key`."""
    block = next(block for block in find_blocks(part, "grid") if block["id"] == grid)
    names = [column["name"] for column in block["columns"]]
    texts = [[f"{cell['t']}{' +' * ('do' in cell)}" for cell in row["cells"]] for row in block["rows"]]
    return [
        {"key": row["key"], **dict(zip(names, own, strict=True))} for row, own in zip(block["rows"], texts, strict=True)
    ]


def click(part: Part, button: dict[str, Any]) -> None:
    """Do what the page does for a click on a button: nothing while it is disabled."""
    if not button["disabled"]:
        name, _, verb = button["action"].partition(".")
        assert name == part.name
        part.act(verb, button.get("value") or {})
