"""A tree that builds rows when they become visible: blocks of siblings, with some rows open."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats_widgets.page.grid import Row

Cell = dict[str, Any]
Order = npt.NDArray[np.int64]
_UNITS = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "tb": 10**12}
_COMPARISON = re.compile(r"\b([a-z]+)\s*(<=|>=|=|<|>)\s*(\d[\d_,]*(?:\.\d*)?|\.\d+)\s*([kmgt]?b?)\b", re.IGNORECASE)
_LARGEST = 2**63 - 1
_OPERATORS = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal, "=": pc.equal}


@dataclass(eq=False)
class Block:
    """Siblings: numbered rows, in display order."""

    prefix: str
    """The first letter of its rows' keys."""
    row_count: int
    cells: Callable[[int], list[Cell]]
    """Makes the cells of a row."""
    identify: Callable[[int], str] = str
    """What a row stands for: a path, a field id."""
    values: Mapping[str, Callable[[], pa.Array]] = field(default_factory=dict)
    """The values to sort a column by, and to compare with numbers in the filter."""
    texts: Callable[[], pa.Array] | None = None
    """The texts to search for words."""
    opens: bool = False
    """Whether rows can be opened."""
    order: Any = None
    """Numbers of the rows to show; by default all, in the original order."""
    open: dict[int, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.order is None:
            self.order = np.arange(self.row_count)

    @property
    def size(self) -> int:
        """Number of rows shown, including those below open rows."""
        shown = [block.size for row, block in self.open.items() if self.place(row) is not None]
        return len(self.order) + sum(shown)

    def place(self, row: int) -> int | None:
        """Return the position of a row among its siblings; None if it is filtered out."""
        found = np.flatnonzero(self.order == row)
        return int(found[0]) if found.size else None


def arrange(block: Block, column: str | None, *, descending: bool, words: str = "", only: Any = None) -> Order:
    """Return the rows of a block that match, in order.

    Parameters
    ----------
    block : Block
        The rows.
    column : str or None
        What to sort by; None keeps the original order.
    descending : bool
        Whether the largest comes first; unknown values are always last.
    words : str
        Words that a row's text must all contain, and comparisons such as `records > 1000` or `size < 1 MB`.
    only : pyarrow.Array of bool, optional
        The rows that may be shown.
    """
    masks = [] if only is None else [only]
    masks += list(_masks(block, words))
    order = np.arange(block.row_count)
    if masks:
        kept = reduce(pc.and_, masks)
        order = np.flatnonzero(pc.fill_null(kept, False).to_numpy(zero_copy_only=False))
    if column is not None and column in block.values:
        values = block.values[column]().take(pa.array(order))
        direction = "descending" if descending else "ascending"
        order = order[pc.array_sort_indices(values, order=direction).to_numpy()]
    return order


def _masks(block: Block, words: str) -> Iterator[pa.Array]:
    rest = words.replace(" and ", " ")
    for name, operator, number, unit in _COMPARISON.findall(rest):
        find = block.values.get(name.lower())
        if find is not None and pa.types.is_integer((values := find()).type):
            value = float(number.replace(",", "").replace("_", "")) * _UNITS[unit.lower()]
            yield _OPERATORS[operator](values, int(min(value, _LARGEST)))
    for word in _COMPARISON.sub(" ", rest).split():
        if block.texts is not None:
            yield pc.match_substring(block.texts(), word, ignore_case=True)


class Outline:
    """The rows of a tree as a flat list, as a grid shows them.

    Parameters
    ----------
    root : Block
        The outermost rows.
    """

    def __init__(self, root: Block) -> None:
        self.root = root

    @property
    def row_count(self) -> int:
        """How many rows are shown."""
        return self.root.size

    def window(self, offset: int, count: int) -> list[Row]:
        """Return some of the rows."""
        return list(_walk(self.root, offset, offset + count, "", 0))

    def find(self, key: str) -> list[tuple[Block, int]]:
        """Return the blocks and rows on the way to a key, outermost first; empty if there is no such key."""
        path: list[tuple[Block, int]] = []
        block: Block | None = self.root
        for step in key.split("/"):
            if block is None or step[:1] != block.prefix or not step[1:].isdecimal():
                return []
            row = int(step[1:])
            if row >= block.row_count:
                return []
            path.append((block, row))
            block = block.open.get(row)
        return path


def _walk(block: Block, start: int, end: int, path: str, depth: int) -> Iterator[Row]:
    """Yield the rows from `start` to `end` of a block and its open rows, counted from the block's first row."""
    opened = [(place, child) for row, child in block.open.items() if (place := block.place(row)) is not None]
    opened.sort(key=lambda pair: pair[0])
    position = place = 0
    while place < len(block.order) and position < end:
        following = opened[bisect_left(opened, place, key=lambda pair: pair[0]) :]
        run = following[0][0] + 1 - place if following else len(block.order) - place
        for at in range(max(place, place + start - position), min(place + run, place + end - position)):
            yield _row(block, int(block.order[at]), path, depth)
        position += run
        place += run
        if following:
            child = following[0][1]
            row = int(block.order[place - 1])
            yield from _walk(child, max(0, start - position), end - position, f"{path}{block.prefix}{row}/", depth + 1)
            position += child.size


def _row(block: Block, number: int, path: str, depth: int) -> Row:
    row: Row = {"key": f"{path}{block.prefix}{number}", "depth": depth, "cells": block.cells(number)}
    if block.opens:
        row["open"] = number in block.open
    return row
