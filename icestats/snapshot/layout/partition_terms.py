"""Partition fields in the words of Spark's DDL for Iceberg: read, checked against a schema, and written.

Source: Iceberg spec, "Partition Transforms"; Iceberg's documentation of Spark's `PARTITIONED BY`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField

from icestats.answers.text import quote_name
from icestats.errors import CallError
from icestats.iceberg.metadata import Field, PartitionField, Schema, split_transform

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([^\s`(),.]+)|([(),.]))")
_TIMES = {word: name for name in ("year", "month", "day", "hour") for word in (name, f"{name}s")}
_TIMES |= {"date": "day", "date_hour": "hour"}
_NUMBERED = ("bucket", "truncate")
_MOST_FIELDS = 5
_MOST_CHARACTERS = 2_000
_MOST = 2**31 - 1
_FIRST_FIELD_ID = 1000
_EXPECTED = "expected fields such as day(event_time), bucket(16, device_id), joined by commas"
_TRANSFORMS = "year, month, day, hour, bucket(16, column), truncate(4, column)"


def parse_partition_fields(text: str, schema: Schema) -> tuple[PartitionField, ...]:
    """Read the partition fields of a spec that the table has not.

    Parameters
    ----------
    text : str
        Fields with commas between: `column`, `year(column)`, `month`, `day`, `hour`, `bucket(16, column)` or
        `truncate(4, column)`. The parts of a column's name may be in backticks.
    schema : Schema
        The columns.

    Raises
    ------
    CallError
        It cannot be read, or a transform does not fit its column's type.
    ColumnNotFoundError
        There is no such column.

    Examples
    --------
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True), Field(2, "id", "long", True, True)))
    >>> [(field.source_id, field.transform) for field in parse_partition_fields("days(at), bucket(16, `id`)", schema)]
    [(1, 'day'), (2, 'bucket[16]')]
    """
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise CallError(f"partition_by {text!r:.80} is no text of at most {_MOST_CHARACTERS:,} characters: {_EXPECTED}")
    fields: dict[tuple[int, str], PartitionField] = {}
    for name, transform in list(_Reader(text).read()):
        column = schema.find(name)
        _check(column, transform)
        field_id = _FIRST_FIELD_ID + len(fields)
        field = PartitionField(field_id, column.field_id, f"{name}_{transform}", transform)
        if fields.setdefault((column.field_id, transform), field) is not field:
            raise CallError(f"partition_by {text!r:.80} has {write_term(field, schema)} twice: leave one out")
    if len(fields) > _MOST_FIELDS:
        raise CallError(f"partition_by {text!r:.80} has {len(fields)} fields: give {_MOST_FIELDS} at most")
    return tuple(fields.values())


def write_term(field: PartitionField, schema: Schema) -> str:
    """Return a partition field as Spark's DDL has it; by its name where its column is gone, or its transform unknown.

    Examples
    --------
    >>> schema = Schema(0, (Field(2, "id", "long", True, True),))
    >>> write_term(PartitionField(1000, 2, "id_bucket", "bucket[16]"), schema)
    'bucket(16, `id`)'
    """
    column = schema.get(field.source_id)
    if column is None:
        return quote_name(field.name)
    name = quote_name(*column.path)
    word, number = split_transform(field.transform)
    if number:
        return f"{word}({number}, {name})"
    if word in _TIMES:
        return f"{word}({name})"
    return name if word == "identity" else quote_name(field.name)


def write_new_term(field: PartitionField, schema: Schema, taken: Collection[str]) -> str:
    """Return a partition field as Spark's DDL adds it: with a name where a column, or what is taken, has Iceberg's own.

    Examples
    --------
    >>> schema = Schema(0, (Field(1, "at", "date", True, True), Field(2, "at_day", "date", True, True)))
    >>> write_new_term(PartitionField(1000, 1, "at_day", "day"), schema, ())
    'day(`at`) AS `at_day_2`'
    """
    term, column = write_term(field, schema), schema.get(field.source_id)
    word, number = split_transform(field.transform)
    if column is None or word == "identity":
        return term
    end = f"{'trunc' if word == 'truncate' else word}_{number}" if number else word
    own = name = f"{column.name}_{end}"
    known, count = {*taken, *(one.name for one in schema.fields)}, 1
    while name in known:
        count += 1
        name = f"{own}_{count}"
    return term if name == own else f"{term} AS {quote_name(name)}"


def order_fields(
    wanted: Sequence[PartitionField], current: Sequence[PartitionField]
) -> tuple[list[PartitionField], list[PartitionField], list[PartitionField]]:
    """Return the fields of a new spec in the order that statements give them, those to drop, and those to add.

    A field that the table has already stays where it is. One that was dropped before, `void`, is none.
    """
    there = [(field.source_id, field.transform) for field in current]
    asked = {(field.source_id, field.transform): field for field in wanted}
    kept = [asked[key] for key in dict.fromkeys(there) if key in asked]
    added = [field for key, field in asked.items() if key not in there]
    dropped = [field for key, field in zip(there, current, strict=True) if key not in asked and key[1] != "void"]
    return kept + added, dropped, added


class _Reader:
    """Reads fields from text, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = 0

    def read(self) -> Iterator[tuple[str, str]]:
        """Yield the column's full name and the transform of each field."""
        while True:
            yield self._field()
            if self._peek() is None and not self._text[self._next :].strip():
                return
            self._take(",")

    def _field(self) -> tuple[str, str]:
        start = self._next
        word = self._name()
        if self._peek() != "(":
            return word, "identity"
        self._take("(")
        arguments = [self._name()]
        while self._peek() == ",":
            self._take(",")
            arguments.append(self._name())
        self._take(")")
        shown = self._text[start : self._next].strip()
        word = word.lower()
        if word in _TIMES and len(arguments) == 1:
            return arguments[0], _TIMES[word]
        if word in _NUMBERED and len(arguments) == 2:
            # Spark takes the number first; `truncate(column, 4)` is seen as well.
            number, name = arguments if arguments[0].isdecimal() else reversed(arguments)
            return name, f"{word}[{_read_number(number, shown)}]"
        raise CallError(f"{shown!r:.80} is no partition field: expected a column, or one of {_TRANSFORMS}")

    def _name(self) -> str:
        parts = [self._part()]
        while self._peek() == ".":
            self._take(".")
            parts.append(self._part())
        return ".".join(parts)

    def _part(self) -> str:
        match = _TOKEN.match(self._text, self._next)
        if match is None or match[3]:
            raise self._error()
        self._next = match.end()
        quoted: str | None = match[1]
        return match[2] if quoted is None else quoted[1:-1].replace("``", "`")

    def _peek(self) -> str | None:
        match = _TOKEN.match(self._text, self._next)
        return None if match is None else match[3]

    def _take(self, mark: str) -> None:
        match = _TOKEN.match(self._text, self._next)
        if match is None or match[3] != mark:
            raise self._error()
        self._next = match.end()

    def _error(self) -> CallError:
        rest = self._text[self._next :].lstrip()
        where = f"character {len(self._text) - len(rest) + 1}, {rest[:20]!r}" if rest else "its end"
        return CallError(f"partition_by {self._text!r:.80} cannot be read at {where}: {_EXPECTED}")


def _read_number(text: str, shown: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= _MOST:
        raise CallError(f"{shown!r:.80} has {text[:20]!r} for its number: expected one from 1 to {_MOST:,}")
    return number


def _check(column: Field, transform: str) -> None:
    if column.repeated or not column.is_primitive:
        raise CallError(
            f"{column.name!r} is no column to partition by: expected one with a single value a row, not one of type "
            f"{column.type}{' in a list or map' if column.repeated else ''}"
        )
    try:
        kind = NestedField(column.field_id, "column", field_type=column.type).field_type
        fits = parse_transform(transform).can_transform(kind)
    except ValueError:
        fits = False
    if not fits:
        raise CallError(
            f"{split_transform(transform)[0]} does not fit {column.name!r}, a column of type {column.type}: give a "
            "transform of Iceberg's that takes this type, or another column"
        )
