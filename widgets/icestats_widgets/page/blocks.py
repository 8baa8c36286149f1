"""The blocks of which a part is made: plain dictionaries that the page draws, and that become HTML in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icestats.answers.text import printable, printable_lines

Block = dict[str, Any]
"""`is` says what it is; the rest is text, numbers and further blocks."""


def text_block(text: str, tone: str = "", *, live: str = "") -> Block:
    """Return a sentence; `tone` is empty, `quiet`, `good`, `bad` or `busy`.

    `live` goes on with what only makes sense where a kernel answers: no saved picture and no report says it.

    Examples
    --------
    >>> text_block("No problems found.", "good")
    {'is': 'text', 'text': 'No problems found.', 'tone': 'good'}
    """
    said: Block = {"is": "text", "text": printable_lines(text.split("\n")), "tone": tone}
    return {**said, "live": printable_lines(live.split("\n"))} if live else said


def fact(label: str, value: str, about: str = "") -> Block:
    """Return one figure with its name; `about` says where it comes from."""
    return {"label": printable(label), "value": printable(value), "about": printable(about)}


def facts_block(*facts: Block) -> Block:
    """Return figures in a line."""
    return {"is": "facts", "facts": list(facts)}


def code_block(text: str) -> Block:
    """Return code that can be copied."""
    return {"is": "code", "text": printable_lines(text.split("\n"))}


def card_block(
    card_id: str,
    title: str,
    *blocks: Block,
    tone: str = "",
    is_open: bool | None = None,
    actions: Sequence[Block] = (),
) -> Block:
    """Return blocks with a heading of their own.

    Parameters
    ----------
    card_id : str
        Names the card in acts.
    title : str
        The heading.
    *blocks : dict
        What is in it.
    tone : str
        As in `text_block`.
    is_open : bool, optional
        Whether it shows its blocks; None: it cannot be closed.
    actions : sequence of dict
        `button` fields.
    """
    return {
        "is": "card", "id": card_id, "title": printable(title), "tone": tone, "is_open": is_open,
        "blocks": list(blocks), "actions": list(actions),
    }  # fmt: skip


def side_block(*blocks: Block, shares: Sequence[float] = ()) -> Block:
    """Return blocks that stand side by side where there is room; `shares` of the width, by default equal."""
    return {"is": "side", "blocks": list(blocks), "shares": list(shares) or [1.0] * len(blocks)}


def figure_block(
    figure_id: str,
    svg: str,
    label: str,
    *,
    marks: str = "",
    can_zoom: bool = False,
    is_zoomed: bool = False,
    typed: tuple[str, str] | None = None,
    log: bool | None = None,
    name: str = "",
) -> Block:
    """Return a picture.

    Parameters
    ----------
    figure_id : str
        Names the figure in acts.
    svg : str
        As `drawing` makes it.
    label : str
        What a screen reader says.
    marks : {"", "x", "xy"}
        What a drag marks: nothing, a range, a rectangle.
    can_zoom, is_zoomed : bool
        Whether there is a tool to zoom; whether a part is shown.
    typed : tuple of two str, optional
        The shown range as text that a person can change.
    log : bool, optional
        Whether the scale is logarithmic; None: there is no choice.
    name : str
        The name of its file when it is saved.
    """
    return {
        "is": "figure", "id": figure_id, "svg": svg, "label": printable(label),
        "marks": marks, "zoom": can_zoom, "zoomed": is_zoomed, "log": log, "name": name or figure_id,
        "typed": None if typed is None else {"lower": printable(typed[0]), "upper": printable(typed[1])},
    }  # fmt: skip


def form_block(*fields: Block) -> Block:
    """Return controls in a line."""
    return {"is": "form", "fields": list(fields)}


def button(action: str, label: str, *, tone: str = "", about: str = "", is_disabled: bool = False) -> Block:
    """Return a button; `tone` is empty, `primary` or `danger`."""
    return _field("button", action, label, None, tone=tone, about=printable(about), disabled=is_disabled)


def choice(action: str, label: str, value: str, options: Sequence[tuple[str, str]], about: str = "") -> Block:
    """Return a choice of one; `options` are values and their texts."""
    return _field("choice", action, label, value, options=_options(options), about=about)


def many(action: str, label: str, value: Sequence[str], options: Sequence[tuple[str, str]]) -> Block:
    """Return a choice of several; `options` are values and their texts."""
    return _field("many", action, label, list(value), options=_options(options))


def toggle(action: str, label: str, value: bool, about: str = "") -> Block:
    """Return a switch."""
    return _field("toggle", action, label, value, about=about)


def number(action: str, label: str, value: int, least: int, most: int) -> Block:
    """Return a box for a whole number."""
    return _field("number", action, label, value, least=least, most=most)


def text_field(action: str, label: str, value: str, about: str = "") -> Block:
    """Return a box for text."""
    return _field("text", action, label, printable(value), about=about)


def progress(label: str, value: int, most: int) -> Block:
    """Return a bar of work that is done."""
    return _field("progress", "", label, value, most=max(most, 1))


def _options(options: Sequence[tuple[str, str]]) -> list[Block]:
    return [{"value": option, "text": printable(text)} for option, text in options]


def _field(kind: str, action: str, label: str, value: Any, **rest: Any) -> Block:
    return {"is": kind, "name": action, "action": action, "label": printable(label), "value": value, **rest}
