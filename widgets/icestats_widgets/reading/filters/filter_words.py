"""Where one is in a filter that is being typed: what comes next, and the first place that is no filter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

Expected = Literal["column", "operator", "list", "value", "text", "null", "joiner"]
"""What comes next: a column, an operator, `(`, a value, a text, `null`, or `and`, `or`, `)`, the end."""

_NAME = r'(?:[A-Za-z_][A-Za-z0-9_$]*|"[^"\n\r]*"?)'
_TEXT = re.compile(r"'(?:[^'\\\n\r]|''|\\.)*'")
_TOKENS = re.compile(
    rf"(?P<name>{_NAME}(?:\s*\.\s*{_NAME})*\.?)"
    r"|(?P<text>'(?:[^'\\\n\r]|''|\\.)*'?)"
    r"|(?P<number>[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d{1,3}(?!\d))?)"
    r"|(?P<sign><=|>=|==|!=|<>|<|>|=)"
    r"|(?P<mark>[(),])"
    r"|(?P<other>\S)"
)
_SAID = {
    "column": "a column",
    "operator": "a comparison such as = or is null",
    "list": "( and values",
    "value": "a value",
    "text": "text such as 'abc%'",
    "null": "null",
}
_WORDS = {"in": "list", "like": "text", "between": "value"}
_LITERALS = ("text", "number")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a filter."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the text goes on."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The word in small letters; empty for all that is none."""
        return self.text.lower() if self.kind == "name" else ""

    @property
    def is_whole(self) -> bool:
        """Whether what has been opened by a quotation mark has been closed, and a full stop has a name behind it."""
        if self.kind == "text":
            return _TEXT.fullmatch(self.text) is not None
        return self.text.count('"') % 2 == 0 and not self.text.endswith(".")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison that has been read as a whole; `true` and `false` have no column."""

    column: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Place:
    """What has been read so far, and what comes next."""

    expected: Expected = "column"
    column: str = ""
    """The column that is compared."""
    operator: str = ""
    begin: int = 0
    """Where its comparison begins."""
    is_list: bool = False
    """Whether values of a list come next."""
    is_between: bool = False
    """Whether `and` and a second value come next."""
    is_negated: bool = False
    """Whether `not` has been read and its word comes next."""
    open_count: int = 0
    """How many brackets are open."""
    finished: tuple[Comparison, ...] = field(default=(), repr=False)

    @property
    def said(self) -> str:
        """What comes next, for a person."""
        if self.expected in ("value", "operator"):
            after = self.operator if self.expected == "value" else self.column
            return f"{_SAID[self.expected]} after {after}"
        if self.expected == "joiner":
            return ", or )" if self.is_list else "and" if self.is_between else "and, or" + ", )" * bool(self.open_count)
        return _SAID[self.expected]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the language that may come next."""
        if self.expected == "joiner":
            return () if self.is_list else ("and",) if self.is_between else ("and", "or")
        if self.expected == "operator":
            return ("in", "like") if self.is_negated else ("is", "in", "like", "between", "not")
        return {"column": ("not", "true", "false"), "null": ("null", "nan", "not"), "value": ("true", "false")}.get(
            self.expected, ()
        )


@dataclass(frozen=True, slots=True)
class Mistake:
    """The first word that does not fit, or that is not whole."""

    token: Token
    place: Place
    """Where it stands."""

    @property
    def expected(self) -> str:
        """What would have fitted."""
        return self.place.said if self.token.is_whole else "the closing quotation mark"

    def __str__(self) -> str:
        return f"expected {self.expected} at character {self.token.start + 1}, found {self.token.text[:30]!r}"


def read_tokens(text: str) -> Iterator[Token]:
    """Yield the words of a filter."""
    for match in _TOKENS.finditer(text):
        yield Token(str(match.lastgroup), match.group(), match.start())


def read_place(text: str) -> Place | Mistake:
    """Read a filter, or its beginning.

    Parameters
    ----------
    text : str
        The filter.

    Returns
    -------
    Place or Mistake
        What comes next, or the first word that does not fit.

    Examples
    --------
    >>> read_place("price < 3 and device_id =").said
    'a value after ='
    >>> str(read_place("price << 3"))
    "expected a value after < at character 8, found '<'"
    """
    place = Place()
    for token in read_tokens(text):
        following = _STEPS[place.expected](place, token) if token.is_whole else None
        if following is None:
            return Mistake(token, place)
        place = following
    return place


def split_name(text: str) -> str:
    r"""Return the full name that a column has, of how a filter has it.

    Examples
    --------
    >>> split_name('person."first name"'), split_name('"5\\ disk"')
    ('person.first name', '5" disk')
    """
    parts = re.findall(_NAME, text)
    return ".".join(part.strip('"').replace("\\", '"') if part.startswith('"') else part for part in parts)


def _after_column(place: Place, token: Token) -> Place | None:
    if token.word == "not":
        return replace(place)
    if token.text == "(":
        return replace(place, open_count=place.open_count + 1)
    if token.word in ("true", "false"):
        return _finish(replace(place, begin=token.start), token)
    if token.kind == "name":
        return replace(place, expected="operator", column=split_name(token.text), begin=token.start)
    return None


def _after_operator(place: Place, token: Token) -> Place | None:
    word = token.word
    if place.is_negated and word not in ("in", "like"):
        return None
    if word == "not":
        return replace(place, is_negated=True)
    if token.kind == "sign":
        return replace(place, expected="value", operator=token.text)
    if word == "is":
        return replace(place, expected="null", operator="is")
    if word in _WORDS:
        operator = f"not {word}" if place.is_negated else word
        expected: Expected = "list" if word == "in" else "text" if word == "like" else "value"
        return replace(place, expected=expected, operator=operator, is_negated=False, is_between=word == "between")
    return None


def _after_list(place: Place, token: Token) -> Place | None:
    return replace(place, expected="value", is_list=True) if token.text == "(" else None


def _after_value(place: Place, token: Token) -> Place | None:
    if token.kind in _LITERALS or token.word in ("true", "false"):
        return replace(place, expected="joiner") if place.is_list or place.is_between else _finish(place, token)
    return None


def _after_text(place: Place, token: Token) -> Place | None:
    return _finish(place, token) if token.kind == "text" else None


def _after_null(place: Place, token: Token) -> Place | None:
    if token.word == "not" and not place.is_negated:
        return replace(place, is_negated=True, operator="is not")
    return _finish(place, token) if token.word in ("null", "nan") else None


def _after_joiner(place: Place, token: Token) -> Place | None:
    if place.is_list:
        if token.text == ",":
            return replace(place, expected="value")
        return _finish(place, token) if token.text == ")" else None
    if place.is_between:
        return replace(place, expected="value", is_between=False) if token.word == "and" else None
    if token.text == ")" and place.open_count:
        return replace(place, open_count=place.open_count - 1)
    return replace(place, expected="column", column="", operator="") if token.word in ("and", "or") else None


def _finish(place: Place, token: Token) -> Place:
    found = (*place.finished, Comparison(place.column, place.begin, token.end))
    return Place("joiner", open_count=place.open_count, finished=found)


_STEPS = {
    "column": _after_column,
    "operator": _after_operator,
    "list": _after_list,
    "value": _after_value,
    "text": _after_text,
    "null": _after_null,
    "joiner": _after_joiner,
}


def join_filters(parts: list[str]) -> str:
    """Return the filter that all of some filters make, with brackets where they are needed.

    Examples
    --------
    >>> join_filters(["a = 1 or b = 2", "c < 3"])
    '(a = 1 or b = 2) and c < 3'
    """
    if len(parts) < 2:
        return "".join(parts)
    return " and ".join(
        f"({part})" if any(token.word == "or" for token in read_tokens(part)) else part for part in parts
    )
