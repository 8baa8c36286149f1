"""What may come next in a filter: columns, comparisons that fit the column's type, values, and, or."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from icestats.errors import IcestatsError
from icestats.iceberg.filters.filter_text import write_column
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats_widgets.reading.filters.filter_values import Item, find_starts, find_values
from icestats_widgets.reading.filters.filter_words import Mistake, Place, Token, read_place, read_tokens, split_name
from icestats_widgets.state import ExplorerState

MOST_ITEMS = 40
_EQUAL = {"=": "equal", "!=": "not equal"}
_ORDERED = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
_SEVERAL = {"in (": "one of", "not in (": "none of"}
_BETWEEN = {"between": "from one value to another, both included"}
_LIKE = {"like": "begins with", "not like": "does not begin with"}
_NULLS = {"is null": "", "is not null": ""}
_NANS = {"is nan": "", "is not nan": ""}


class Completions(NamedTuple):
    """What may take the place of a part of the text."""

    start: int
    end: int
    items: list[Item]


def complete_filter(state: ExplorerState, text: str, cursor: int) -> Completions:
    """Return what may come next at a place in a filter. Nothing is read for it.

    Parameters
    ----------
    state : ExplorerState
        The table, and what has been read of it.
    text : str
        What stands in the box.
    cursor : int
        Where one types.
    """
    cursor = max(0, min(cursor, len(text)))
    begun = _find_begun(text[:cursor])
    start = cursor if begun is None else begun.start
    place = read_place(text[:start])
    if isinstance(place, Mistake):
        return Completions(cursor, cursor, [])
    typed = text[start:cursor]
    items = _fitting(state, text[:start], place, _items(state, place), typed)
    return Completions(start, cursor, list(islice(items, MOST_ITEMS)))


def _find_begun(text: str) -> Token | None:
    """Return the word that is being typed: the last one, if it is not over."""
    last = next(reversed(list(read_tokens(text))), None)
    if last is None or last.kind in ("mark", "other") or (last.end < len(text) and last.is_whole):
        return None
    return last


def _items(state: ExplorerState, place: Place) -> Iterator[Item]:
    if place.expected == "column":
        yield from _columns(state)
        yield Item("not", "", "word")
    elif place.expected == "joiner":
        yield from (Item(word, "", "word") for word in place.words)
        if place.is_list or place.open_count:
            yield Item(")", "", "word")
    elif place.expected == "null":
        yield from (Item(word, "", "word") for word in place.words if word != "not" or not place.is_negated)
    elif place.expected == "list":
        yield Item("(", "", "word")
    else:
        field = next((field for field in _filterable(state) if field.name == place.column), None)
        if field is not None:
            yield from _items_of(state, place, field)


def _items_of(state: ExplorerState, place: Place, field: Field) -> Iterator[Item]:
    if place.expected == "operator":
        begin = "not " if place.is_negated else ""
        for text, about in _operators(field).items():
            if text.startswith(begin):
                yield Item(text.removeprefix(begin), about, "operator")
        return
    yield from find_starts(state, field) if place.expected == "text" else find_values(state, field)


def _filterable(state: ExplorerState) -> list[Field]:
    """Return the columns that a filter can be about, those that partitions are made of first."""
    sources = {field.source_id for spec in state.table.metadata.specs.values() for field in spec.fields}
    columns = [field for field in state.table.schema.columns if not field.repeated]
    return sorted(columns, key=lambda field: field.field_id not in sources)


def _columns(state: ExplorerState) -> Iterator[Item]:
    of_partition = {
        field.source_id: f"{field.transform} partition"
        for spec in state.table.metadata.specs.values()
        for field in spec.fields
    }
    for field in _filterable(state):
        name = write_column(field.name)
        if name is not None:
            about = ", ".join(part for part in (field.type, of_partition.get(field.field_id, "")) if part)
            yield Item(name, about, "column")


def _operators(field: Field) -> dict[str, str]:
    name = parse_type(field.type).name
    if name in ("binary", "fixed", "unknown"):
        return _NULLS
    if name == "boolean":
        return _EQUAL | _NULLS
    ordered = {} if name == "uuid" else _ORDERED | _BETWEEN
    more = _LIKE if name == "string" else _NANS if field.has_nan else {}
    return _EQUAL | ordered | _SEVERAL | more | _NULLS


def _fitting(state: ExplorerState, before: str, place: Place, items: Iterator[Item], typed: str) -> Iterator[Item]:
    """Yield the items that go on as was typed, then those that hold it; values only if they make a filter that fits."""
    wanted, later = _plain(typed), []
    for item in items:
        held = _plain(item.text)
        if wanted not in held or not _binds(state, before, place, item):
            continue
        if held.startswith(wanted):
            yield item
        else:
            later.append(item)
    yield from later


def _plain(text: str) -> str:
    """Return a word in small letters, without quotation marks."""
    return (
        text.strip("'").lower()
        if text[:1] == "'" or not text[:1].strip('"').isidentifier()
        else split_name(text).lower()
    )


def _binds(state: ExplorerState, before: str, place: Place, item: Item) -> bool:
    """Say whether a value makes a comparison that fits the table."""
    if item.kind != "value":
        return True
    begin = before[place.begin :] if not place.is_between else f"{before[place.begin :]} {item.text} and"
    try:
        state.table.bind(f"{begin} {item.text}{')' if place.is_list else ''}")
    except IcestatsError:
        return False
    return True
