"""Whether a filter that is being typed fits the table; if not, what is wrong, and where."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from icestats.answers.text import one_line
from icestats.errors import FilterError, IcestatsError
from icestats.table.table import Table
from icestats_widgets.reading.filters.filter_words import Mistake, Place, read_place

_MOST_NAMES = 4


@dataclass(frozen=True)
class Check:
    """What is to be said of a filter; nothing if it fits."""

    error: str = ""
    hint: str = ""
    """What comes next, if the filter only goes on."""

    @property
    def fits(self) -> bool:
        """Whether the filter can be planned."""
        return not self.error and not self.hint


def check_filter(text: str, table: Table) -> Check:
    """Check a filter.

    Parameters
    ----------
    text : str
        The filter; an empty one fits.
    table : Table
        The table that it is about; nothing of it is read but the schema.
    """
    if not text.strip():
        return Check()
    try:
        table.bind(text)
    except FilterError as error:
        return _explain(text, error, table)
    except IcestatsError as error:
        return Check(str(error))
    return Check()


def _explain(text: str, error: FilterError, table: Table) -> Check:
    place = read_place(text)
    if isinstance(place, Mistake):
        return _explain_mistake(text, place)
    unknown = next((one for one in place.finished if one.column and not _has(table, one.column)), None)
    column, begin = (unknown.column, unknown.begin) if unknown else (place.column, place.begin)
    if column and not _has(table, column):
        if not unknown and place.expected == "operator" and text.endswith(column) and _starts(table, column):
            return Check(hint=f"{column} …")
        return Check(one_line(f"no column {column[:60]!r} at character {begin + 1}{_similar(table, column, error)}"))
    if place.expected != "joiner" or place.is_list or place.is_between:
        return Check(hint=f"next: {place.said}")
    if place.open_count:
        return Check(hint="next: the closing bracket )")
    return Check(_find_unfit(text, place, table) or _brief(error))


def _explain_mistake(text: str, mistake: Mistake) -> Check:
    token = mistake.token
    if token.end == len(text):
        if not token.is_whole:
            return Check(hint=f"next: {'a name' if token.text.endswith('.') else mistake.expected}")
        if token.word and any(word.startswith(token.word) for word in mistake.place.words):
            return Check(hint=f"next: {mistake.expected}")
    return Check(str(mistake))


def _find_unfit(text: str, place: Place, table: Table) -> str:
    for one in place.finished:
        try:
            table.bind(text[one.begin : one.end])
        except FilterError as error:
            return f"{_brief(error)} (character {one.begin + 1})"
    return ""


def _brief(error: FilterError) -> str:
    said = str(error)
    for cut in ("does not fit the schema: ", "cannot be read: "):
        said = said.partition(cut)[2] or said
    return one_line(said)


def _has(table: Table, column: str) -> bool:
    return any(field.name == column for field in table.schema.fields)


def _starts(table: Table, begin: str) -> bool:
    return any(field.name.lower().startswith(begin.lower()) for field in table.schema.columns)


def _similar(table: Table, column: str, error: FilterError) -> str:
    if "cannot be filtered" in str(error):
        return ": its type cannot be filtered"
    names = [field.name for field in table.schema.columns if not field.repeated]
    close = get_close_matches(column, names, _MOST_NAMES) or names[:_MOST_NAMES]
    return f": is it {', '.join(close)}?" if close else ""
