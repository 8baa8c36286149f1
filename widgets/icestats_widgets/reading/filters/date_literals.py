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
_DATE = re.compile(r"'\d{4}-\d{2}-\d{2}'")
_MEANT = {
    "<=": ("{column} < {after}", "ends at the first moment of that day. With the whole day"),
    ">": ("{column} >= {after}", "has that day but for its first moment. Without the day"),
    "=": ("{column} >= {day} and {column} < {after}", "is the first moment of that day alone. For the whole day"),
    "!=": ("{column} < {day} or {column} >= {after}", "leaves out the first moment of that day alone. Without the day"),
}
"""Of a sign before a date: the comparison that is meant, and what it says as it stands."""
_SAME_SIGNS = {"==": "=", "<>": "!="}


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
    if not rest or not _is_day(rest[-1]):
        return None
    day = rest[-1]
    if sign.lower() == "between" and len(rest) == 3:
        meant = f"{column} >= {rest[0]} and {_mean('<=', column, day)}"
        return f"{comparison} ends at the first moment of {day[1:-1]}. With the whole day: {meant}", meant
    sign = _SAME_SIGNS.get(sign, sign)
    if sign not in _MEANT:
        return None
    meant = _mean(sign, column, day)
    return f"{comparison} {_MEANT[sign][1]}: {meant}", meant


def _explain_list(column: str, literals: list[str], is_negated: bool) -> tuple[str, str] | None:
    days = [one for one in literals if _is_day(one)]
    if not days:
        return None
    sign, joiner, named = ("!=", " and ", "not in") if is_negated else ("=", " or ", "in")
    parts = [f"({_mean(sign, column, one)})" if one in days else f"{column} {sign} {one}" for one in literals]
    what = "leaves out the first moment of each day alone" if is_negated else "has the first moment of each day alone"
    whole = "Without the days" if is_negated else "For the whole days"
    meant = joiner.join(parts) if len(parts) > 1 else _mean(sign, column, days[0])
    said = meant if len(parts) <= _MOST_NAMED else f"{joiner.join(parts[:_MOST_NAMED])}{joiner}…"
    return f"{column} {named} (…) {what}. {whole}: {said}", meant


def _is_day(literal: str) -> bool:
    return _DATE.fullmatch(literal) is not None and _next_day(literal) is not None


def _mean(sign: str, column: str, day: str) -> str:
    return _MEANT[sign][0].format(column=column, day=day, after=f"'{_next_day(day)}'")


def _next_day(literal: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(literal[1:-1]) + dt.timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def _put(text: str, comparison: Comparison, meant: str) -> str:
    is_all = not text[: comparison.begin].strip() and not text[comparison.end :].strip()
    is_joined = " and " in meant or " or " in meant
    put = f"({meant})" if is_joined and not is_all else meant
    return text[: comparison.begin] + put + text[comparison.end :]
