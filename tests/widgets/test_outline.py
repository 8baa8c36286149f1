from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icestats_widgets.reading.tree.outline import Block, Outline, arrange

COUNTS = st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=30)


def block(count: int, prefix: str = "a") -> Block:
    return Block(prefix, count, lambda row: [{"t": f"{prefix}{row}"}], opens=True)


def flatten(one: Block, path: str = "") -> list[str]:
    keys = []
    for row in one.order.tolist():
        key = f"{path}{one.prefix}{row}"
        keys.append(key)
        if row in one.open:
            keys += flatten(one.open[row], f"{key}/")
    return keys


@st.composite
def trees(draw: Any, depth: int = 0) -> Block:
    one = block(draw(st.integers(0, 6)), "abc"[depth])
    one.order = np.array(draw(st.permutations(range(one.row_count)))[: draw(st.integers(0, 6))], np.int64)
    if depth < 2:
        for row in draw(st.sets(st.integers(0, 5), max_size=3)):
            if row < one.row_count:
                one.open[row] = draw(trees(depth + 1))
    return one


@given(trees(), st.integers(0, 40), st.integers(0, 12))
def test_a_window_is_a_piece_of_the_whole(tree: Block, offset: int, count: int) -> None:
    """Whatever is open, sorted or filtered out: some rows are those rows of the tree written out."""
    outline = Outline(tree)
    keys = flatten(tree)
    assert outline.row_count == len(keys)
    assert [row["key"] for row in outline.window(offset, count)] == keys[offset : offset + count]
    for key in keys:
        found, row = outline.find(key)[-1]
        assert (f"{found.prefix}{row}", len(outline.find(key))) == (key.rsplit("/", 1)[-1], key.count("/") + 1)
    # As a click asks that comes after fewer rows.
    assert outline.find(f"{tree.prefix}{tree.row_count}") == []


@given(COUNTS, st.booleans())
def test_unknown_values_come_last(counts: list[int | None], descending: bool) -> None:
    """Sorting keeps every row; what is unknown is neither the smallest nor the largest."""
    one = Block("a", len(counts), lambda _: [], values={"n": lambda: pa.array(counts, pa.int64())})
    order = arrange(one, "n", descending=descending).tolist()
    found = [counts[row] for row in order]
    known = [value for value in found if value is not None]
    assert sorted(order) == list(range(len(counts)))
    assert found == sorted(known, reverse=descending) + [None] * (len(counts) - len(known))


def test_words_and_comparisons_filter() -> None:
    """A row is shown that has all the words and meets all the comparisons; units are known; unknown meets none."""
    sizes = pa.array([1_000, 2_000_000, None, 5_000_000])
    names = pa.array(["a/one.parquet", "a/two.parquet", "b/three", "b/TWO"])
    one = Block("a", 4, lambda _: [], values={"size": lambda: sizes}, texts=lambda: names)
    texts = {
        "two": [1, 3],
        "size > 1 MB": [1, 3],
        "size>1MB and a/": [1],
        "size <= 1 kB": [0],
        "": [0, 1, 2, 3],
        "%": [],
    }
    assert {text: arrange(one, None, descending=False, words=text).tolist() for text in texts} == texts
