"""Predicates as sets of a column's values: intervals between cuts, and whether null and NaN belong to them.

Every predicate on one column is such a set, so that predicates on the same column can be intersected and united
exactly, instead of being taken for independent.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context
from itertools import pairwise
from typing import Any, Final, TypeAlias

from icestats.iceberg.filters.predicates import Condition, Constant, Predicate
from icestats.iceberg.types import encode_unscaled, encode_value, parse_type, to_integer

Cut = tuple[Any, ...]
"""A place between values: `(0, value, 0)` just below a value, `(0, value, 1)` just above it; tuples in that order."""

_DIGITS = Context(prec=80)
BOTTOM: Final[Cut] = (-1,)
TOP: Final[Cut] = (1,)


def below(value: Any) -> Cut:
    """Return the cut just below a value."""
    return (0, value, 0)


def above(value: Any) -> Cut:
    """Return the cut just above a value."""
    return (0, value, 1)


@dataclass(frozen=True, slots=True)
class Interval:
    """The values between two cuts."""

    low: Cut
    high: Cut

    @property
    def is_point(self) -> bool:
        """Whether it holds one value only."""
        return len(self.low) == 3 and self.low == below(self.low[1]) and self.high == above(self.low[1])


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Some of a column's values: intervals that do not touch, in order; null and NaN lie outside of all intervals."""

    intervals: tuple[Interval, ...]
    has_null: bool = False
    has_nan: bool = False

    @property
    def points(self) -> tuple[Interval, ...]:
        """The intervals that hold one value."""
        return tuple(interval for interval in self.intervals if interval.is_point)

    @property
    def ranges(self) -> tuple[Interval, ...]:
        """The intervals that hold more than one."""
        return tuple(interval for interval in self.intervals if not interval.is_point)

    @property
    def gaps(self) -> tuple[Interval, ...]:
        """The values that are missing where the set has all others, as for `!=` and `not in`; else none.

        Examples
        --------
        >>> build_gaps([5], has_null=False).gaps
        (Interval(low=(0, 5, 0), high=(0, 5, 1)),)
        """
        whole = self.intervals
        if len(whole) < 2 or (whole[0].low, whole[-1].high) != (BOTTOM, TOP):
            return ()
        between = tuple(Interval(one.high, other.low) for one, other in pairwise(whole))
        return between if all(gap.is_point for gap in between) else ()

    def union(self, other: ValueSet) -> ValueSet:
        """Return the values of either.

        Examples
        --------
        >>> point = ValueSet((Interval(below(1), above(1)),))
        >>> point.union(ValueSet((Interval(above(1), TOP),))).intervals
        (Interval(low=(0, 1, 0), high=(1,)),)
        """
        intervals = (*self.intervals, *other.intervals)
        return build_set(intervals, has_null=self.has_null or other.has_null, has_nan=self.has_nan or other.has_nan)

    def intersection(self, other: ValueSet) -> ValueSet:
        """Return the values of both."""
        pairs = ((a, b) for a in self.intervals for b in find_meeting(other.intervals, a))
        intervals = (Interval(max(a.low, b.low), min(a.high, b.high)) for a, b in pairs)
        return build_set(intervals, has_null=self.has_null and other.has_null, has_nan=self.has_nan and other.has_nan)


def find_meeting(intervals: Sequence[Interval], other: Interval) -> Sequence[Interval]:
    """Return those of some intervals, in their order, that have values in common with another."""
    start = bisect_right(intervals, other.low, key=lambda interval: interval.high)
    return intervals[start : bisect_left(intervals, other.high, key=lambda interval: interval.low)]


def build_set(intervals: Iterable[Interval], *, has_null: bool = False, has_nan: bool = False) -> ValueSet:
    """Return the values of intervals, which may be in any order and overlap.

    Examples
    --------
    >>> build_set([Interval(below(4), above(6)), Interval(BOTTOM, above(5)), Interval(above(8), below(8))]).intervals
    (Interval(low=(-1,), high=(0, 6, 1)),)
    """
    return ValueSet(tuple(_united(one for one in intervals if one.low < one.high)), has_null, has_nan)


NOTHING: Final = ValueSet(())
VALUES: Final = ValueSet((Interval(BOTTOM, TOP),), has_nan=True)
"""All that is not null."""
NUMBERS: Final = ValueSet((Interval(BOTTOM, TOP),))
"""All that is neither null nor NaN."""


def build_points(values: Iterable[Any]) -> ValueSet:
    """Build the set of some values."""
    return ValueSet(tuple(_united(Interval(below(value), above(value)) for value in values)))


def build_gaps(values: Iterable[Any], *, has_null: bool) -> ValueSet:
    """Build the set of all values, NaN among them, but some."""
    gaps = []
    low = BOTTOM
    for point in build_points(values).intervals:
        gaps.append(Interval(low, point.low))
        low = point.high
    return ValueSet((*gaps, Interval(low, TOP)), has_null=has_null, has_nan=True)


def build_prefix(prefix: str | bytes) -> ValueSet:
    """Build the set of the texts, or bytes, that start with a prefix.

    Examples
    --------
    >>> build_prefix("ab").intervals
    (Interval(low=(0, 'ab', 0), high=(0, 'ac', 0)),)
    """
    after = _after_prefix(prefix)
    return ValueSet((Interval(below(prefix), TOP if after is None else below(after)),))


def build_other_prefixes(prefix: str | bytes) -> ValueSet:
    """Build the set of the texts, or bytes, that do not start with a prefix."""
    if not prefix:
        return NOTHING
    after = _after_prefix(prefix)
    rest = () if after is None else (Interval(below(after), TOP),)
    return ValueSet((Interval(BOTTOM, below(prefix)), *rest))


def _after_prefix(prefix: str | bytes) -> str | bytes | None:
    if isinstance(prefix, bytes):
        start = prefix.rstrip(b"\xff")
        return start[:-1] + bytes([start[-1] + 1]) if start else None
    last = chr(0x10FFFF)
    kept = prefix.rstrip(last)
    if not kept:
        return None
    code = ord(kept[-1]) + 1
    # Surrogates are no characters: the next one after U+D7FF is U+E000.
    return kept[:-1] + chr(0xE000 if 0xD800 <= code < 0xE000 else code)


def _united(intervals: Iterable[Interval]) -> Iterator[Interval]:
    current: Interval | None = None
    for interval in sorted(intervals, key=lambda i: (i.low, i.high)):
        if current is None:
            current = interval
        elif interval.low <= current.high:
            current = Interval(current.low, max(current.high, interval.high))
        else:
            yield current
            current = interval
    if current is not None:
        yield current


def build_item(type_text: str, value: Any) -> Any:
    """Return a value as statistics order it: an integer for whole numbers, decimals, booleans, dates and times.

    These are the items of KLL sketches (`kll_items.item_type_of`): decimals unscaled, times in their column's unit;
    text stays text, and what has no such item stays bytes.

    Examples
    --------
    >>> from decimal import Decimal
    >>> build_item("decimal(9, 2)", Decimal("1.50")), build_item("boolean", True)
    (150, 1)
    """
    kind = parse_type(type_text)
    if kind.name == "decimal":
        return int(value.scaleb(kind.scale, _DIGITS))
    if kind.name == "float":
        return _single_precision(value)
    if kind.name == "double":
        return float(value)
    if kind.name == "string":
        return str(value)
    if kind.name in ("uuid", "fixed", "binary"):
        return getattr(value, "bytes", value)
    return to_integer(value)


def encode_item(type_text: str, item: Any) -> bytes:
    """Return an item as the single-value bytes of its value.

    Raises
    ------
    OverflowError
        The type has no such value.

    Examples
    --------
    >>> encode_item("decimal(9, 2)", 150).hex(), encode_item("date", 1).hex()
    ('0096', '01000000')
    """
    return encode_unscaled(item) if parse_type(type_text).name == "decimal" else encode_value(type_text, item)


def _single_precision(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def close(interval: Interval) -> Interval:
    """Return the same whole numbers with both ends inside.

    Examples
    --------
    >>> close(Interval(above(3), below(7)))
    Interval(low=(0, 4, 0), high=(0, 6, 1))
    """
    low = below(interval.low[1] + interval.low[2]) if len(interval.low) == 3 else interval.low
    high = above(interval.high[1] - 1 + interval.high[2]) if len(interval.high) == 3 else interval.high
    return Interval(low, high)


def is_discrete(type_text: str) -> bool:
    """Return whether between two neighbouring items of a type there is none: whole numbers, dates, decimals."""
    return parse_type(type_text).name not in ("float", "double", "string", "uuid", "fixed", "binary")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows whose value of one column is in a set."""

    field_id: int
    column: str
    type: str
    values: ValueSet
    text: str
    """The predicate as a person writes it."""


@dataclass(frozen=True, slots=True)
class All:
    """Rows that satisfy every part; without parts, all rows."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Rows that satisfy one part or more; without parts, none."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = Leaf | All | Some


def build_tree(condition: Condition) -> Tree:
    """Build the tree of a row filter's condition.

    Parameters
    ----------
    condition : Predicate, Junction or Constant
        As `predicates.build_condition` has it: negations are pushed down to the predicates.

    Returns
    -------
    Leaf, All or Some
        Predicates of one AND or OR on the same column are made one, exactly. It holds for the rows that a PyIceberg
        scan with the filter returns: null satisfies `is null` and `not in` alone, NaN satisfies `is nan`, `!=`,
        `not in` and `is not null`.

    Examples
    --------
    >>> from icestats.iceberg.filters.predicates import Junction
    >>> parts = (Predicate(">=", 1, "x", "long", (2,)), Predicate("<", 1, "x", "long", (5,)))
    >>> build_tree(Junction("and", parts)).values.intervals
    (Interval(low=(0, 2, 0), high=(0, 5, 0)),)
    """
    if isinstance(condition, Constant):
        return All(()) if condition.holds else Some(())
    if isinstance(condition, Predicate):
        return build_leaf(condition)
    is_and = condition.operator == "and"
    return _merged([part for child in condition.children for part in _flat(build_tree(child), is_and)], is_and)


def build_leaf(predicate: Predicate) -> Leaf:
    """Build the leaf of a predicate."""
    return Leaf(predicate.field_id, predicate.name, predicate.type, build_values(predicate)[0], str(predicate))


def list_leaves(predicate: Tree) -> list[Leaf]:
    """Return the leaves of a tree, from left to right."""
    if isinstance(predicate, Leaf):
        return [predicate]
    return [leaf for part in predicate.parts for leaf in list_leaves(part)]


def _flat(predicate: Tree, is_and: bool) -> tuple[Tree, ...]:
    return predicate.parts if isinstance(predicate, All if is_and else Some) else (predicate,)


def _merged(parts: list[Tree], is_and: bool) -> Tree:
    by_column: dict[int, list[Leaf]] = {}
    for part in parts:
        if isinstance(part, Leaf):
            by_column.setdefault(part.field_id, []).append(part)
    merged: list[Tree] = [_join_leaves(leaves, is_and) for leaves in by_column.values()]
    merged += [part for part in parts if not isinstance(part, Leaf)]
    if len(merged) == 1:
        return merged[0]
    return All(tuple(merged)) if is_and else Some(tuple(merged))


def _join_leaves(leaves: Sequence[Leaf], is_and: bool) -> Leaf:
    if len(leaves) == 1:
        return leaves[0]
    sets, join = [leaf.values for leaf in leaves], ValueSet.intersection if is_and else ValueSet.union
    # Two by two, and these again: one behind the other, thousands would take time by the square of their number.
    while len(sets) > 1:
        sets = [join(*pair) for pair in zip(sets[::2], sets[1::2], strict=False)] + sets[len(sets) // 2 * 2 :]
    text = (" and " if is_and else " or ").join(leaf.text for leaf in leaves)
    return replace(leaves[0], values=sets[0], text=text if is_and else f"({text})")


_RANGES: dict[str, Callable[[Any], Interval]] = {
    "<": lambda value: Interval(BOTTOM, below(value)),
    "<=": lambda value: Interval(BOTTOM, above(value)),
    ">": lambda value: Interval(above(value), TOP),
    ">=": lambda value: Interval(below(value), TOP),
}
_UNARY = {
    "is null": ValueSet((), has_null=True),
    "is not null": VALUES,
    "is nan": ValueSet((), has_nan=True),
    "is not nan": NUMBERS,
}
_BUILDERS: dict[str, Callable[[list[Any]], ValueSet]] = {
    "=": build_points,
    "in": build_points,
    "!=": lambda items: build_gaps(items, has_null=False),
    # A scan's filter keeps nulls for `not in` and drops them for `!=`.
    "not in": lambda items: build_gaps(items, has_null=True),
    "starts with": lambda items: build_prefix(items[0]),
    "not starts with": lambda items: build_other_prefixes(items[0]),
}


def build_values(predicate: Predicate) -> tuple[ValueSet, ...]:
    """Build the set of the values that satisfy a predicate, as a PyIceberg scan takes it.

    Returns
    -------
    tuple of ValueSet
        Two where a `float` column is compared with what no `float` is: engines compare either with the `float` next to
        it, as PyIceberg does (the first set), or with the literal itself.
    """
    operator = predicate.operator
    if operator in _UNARY:
        return (_UNARY[operator],)
    as_stored = [build_item(predicate.type, literal) for literal in predicate.literals]
    sets = [_build_set(operator, as_stored)]
    if predicate.type == "float" and as_stored != list(predicate.literals):
        sets.append(_build_set(operator, list(predicate.literals)))
    return tuple(sets)


def _build_set(operator: str, items: list[Any]) -> ValueSet:
    # No value equals NaN.
    items = [item for item in items if not (isinstance(item, float) and math.isnan(item))]
    if operator in _RANGES:
        return ValueSet((_RANGES[operator](items[0]),)) if items else NOTHING
    return _BUILDERS[operator](items)
