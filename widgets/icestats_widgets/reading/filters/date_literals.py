"""What a date means where a filter compares it with a column of times: midnight, not the day."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from icestats.errors import ColumnNotFoundError
from icestats.iceberg.metadata import Schema
from icestats_widgets.reading.filters.filter_words import Comparison, Mistake, read_place, read_tokens

_MOST_NAMED = 2
"""Of the days of a list, in what is said; the filter that is offered has all."""
_DATE = re.compile(r"'(\d{4}-\d{2}-\d{2})'")


@dataclass(frozen=True)
class DateHint:
    """A comparison with a date that means less, or more, than a day."""

    text: str
    """What it means, and what to write for the whole day."""
    row_filter: str
    """The filter with whole days."""


def find_date_hint(text: str, schema: Schema) -> DateHint | None:
    """Return what to say of the first comparison of a column of times with a date that cuts into the day.

    Parameters
    ----------
    text : str
        A filter that fits the table.
    schema : Schema
        The types of its columns.

    Examples
    --------
    >>> from icestats.iceberg.metadata import Field, Schema
    >>> schema = Schema(0, (Field(1, "at", "timestamp", True, True),))
    >>> find_date_hint("at <= '2026-09-09'", schema).text
    "at <= '2026-09-09' ends at the first moment of that day. With the whole day: at < '2026-09-10'"
    >>> find_date_hint("at < '2026-09-09'", schema) is None
    True
    """
    place = read_place(text)
    for one in () if isinstance(place, Mistake) else place.finished:
        if one.column and _has_times(schema, one.column) and (found := _explain(text[one.begin : one.end])) is not None:
            said, meant = found
            return DateHint(said, _put(text, one, meant))
    return None


def _has_times(schema: Schema, column: str) -> bool:
    try:
        return schema.find(column).type.startswith("timestamp")
    except ColumnNotFoundError:
        return False


def _explain(comparison: str) -> tuple[str, str] | None:
    column, sign, *rest = (token.text for token in read_tokens(comparison))
    if rest and rest[-1] == ")":
        is_negated = sign.lower() == "not"
        return _explain_list(column, [one for one in rest if one.lower() not in ("in", "(", ",", ")")], is_negated)
    last = _DATE.fullmatch(rest[-1]) if rest else None
    following = None if last is None else _next_day(last[1])
    if last is None or following is None:
        return None
    day, after = last[0], f"'{following}'"
    if sign == "<=":
        meant = f"{column} < {after}"
        return f"{comparison} ends at the first moment of that day. With the whole day: {meant}", meant
    if sign == ">":
        meant = f"{column} >= {after}"
        return f"{comparison} has that day but for its first moment. Without the day: {meant}", meant
    if sign in ("=", "=="):
        meant = _whole_day(column, day)
        return f"{comparison} is the first moment of that day alone. For the whole day: {meant}", meant
    if sign in ("!=", "<>"):
        meant = _other_days(column, day)
        return f"{comparison} leaves out the first moment of that day alone. Without the day: {meant}", meant
    if sign.lower() == "between" and len(rest) == 3:
        meant = f"{column} >= {rest[0]} and {column} < {after}"
        return f"{comparison} ends at the first moment of {last[1]}. With the whole day: {meant}", meant
    return None


def _explain_list(column: str, literals: list[str], is_negated: bool) -> tuple[str, str] | None:
    days = [one for one in literals if _is_day(one)]
    if not days:
        return None
    build, sign, joiner = (_other_days, "!=", " and ") if is_negated else (_whole_day, "=", " or ")
    parts = [f"({build(column, one)})" if one in days else f"{column} {sign} {one}" for one in literals]
    what = "leaves out the first moment of each day alone" if is_negated else "has the first moment of each day alone"
    whole = "Without the days" if is_negated else "For the whole days"
    meant = joiner.join(parts) if len(parts) > 1 else build(column, days[0])
    named = "not in" if is_negated else "in"
    said = meant if len(parts) <= _MOST_NAMED else f"{joiner.join(parts[:_MOST_NAMED])}{joiner}…"
    return f"{column} {named} (…) {what}. {whole}: {said}", meant


def _is_day(literal: str) -> bool:
    found = _DATE.fullmatch(literal)
    return found is not None and _next_day(found[1]) is not None


def _whole_day(column: str, day: str) -> str:
    return f"{column} >= {day} and {column} < '{_next_day(day[1:-1])}'"


def _other_days(column: str, day: str) -> str:
    return f"{column} < {day} or {column} >= '{_next_day(day[1:-1])}'"


def _next_day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text) + dt.timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def _put(text: str, comparison: Comparison, meant: str) -> str:
    is_all = not text[: comparison.begin].strip() and not text[comparison.end :].strip()
    is_joined = " and " in meant or " or " in meant
    put = f"({meant})" if is_joined and not is_all else meant
    return text[: comparison.begin] + put + text[comparison.end :]
