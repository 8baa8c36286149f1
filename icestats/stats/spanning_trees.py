"""Which pairs of columns are used where several are known: those that say most, without going in a circle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

_Node = TypeVar("_Node")


def list_trees(weights: Mapping[tuple[_Node, _Node], float]) -> list[list[tuple[_Node, _Node]]]:
    """Return the pairs of the trees of greatest weight (Kruskal), by which Chow and Liu approximate a distribution.

    Examples
    --------
    >>> list_trees({("a", "b"): 2.0, ("b", "c"): 1.0, ("a", "c"): 0.5, ("d", "e"): 0.1})
    [[('a', 'b'), ('b', 'c')], [('d', 'e')]]
    """
    trees: dict[_Node, tuple[set[_Node], list[tuple[_Node, _Node]]]] = {}
    for pair in sorted(weights, key=lambda pair: -weights[pair]):
        one, other = (trees.setdefault(node, ({node}, [])) for node in pair)
        if one is not other:
            joined = one[0] | other[0], [*one[1], *other[1], pair]
            trees.update(dict.fromkeys(joined[0], joined))
    return [pairs for _, pairs in {id(tree): tree for tree in trees.values()}.values() if pairs]
