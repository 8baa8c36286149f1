"""A figure of the explorer, as a test looks at it: well-formed, in its bounds, without labels that collide."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

from icestats_widgets.drawing.canvas import Picture, text_width

MOST_ELEMENTS = 1_500
MOST_BYTES = 200_000
_SLACK = 1.6
Box = tuple[float, float, float, float]


def parse_svg(svg: str) -> list[ET.Element]:
    """Return the elements, names without their namespace; raise if the XML is not well-formed."""
    elements = list(ET.fromstring(svg).iter())
    for element in elements:
        element.tag = element.tag.rpartition("}")[2]
    return elements


def check_picture(picture: Picture) -> list[ET.Element]:
    """Hold a picture against all that must be so of any; return its elements."""
    elements = parse_svg(picture.svg)
    assert len(picture.svg.encode()) <= MOST_BYTES
    assert len([one for one in elements if one.tag != "title"]) <= MOST_ELEMENTS
    width, height = (float(elements[0].attrib[name]) for name in ("width", "height"))
    for element in elements:
        if (box := find_box(element)) is not None:
            assert is_inside(box, (0, 0, width, height)), ET.tostring(element)
        if "data-key" in element.attrib:
            assert any(is_inside(find_box(element), plot_box(picture, name)) for name in picture.plots), element.attrib
    check_labels(elements)
    return elements


def check_labels(elements: list[ET.Element]) -> None:
    """No two texts overlap."""
    boxes = [(box, shown_text(one)) for one in elements if one.tag == "text" and (box := find_box(one)) is not None]
    for (a, first), (b, second) in combinations(boxes, 2):
        apart = a[2] <= b[0] + 0.1 or b[2] <= a[0] + 0.1 or a[3] <= b[1] + 0.1 or b[3] <= a[1] + 0.1
        assert apart, (first, a, second, b)


def plot_box(picture: Picture, name: str) -> Box:
    plot = picture.plots[name]
    return plot.left, plot.top, plot.right, plot.bottom


def is_inside(inner: Box | None, outer: Box) -> bool:
    return inner is None or (
        all(a >= b - _SLACK for a, b in zip(inner[:2], outer[:2], strict=True))
        and all(a <= b + _SLACK for a, b in zip(inner[2:], outer[2:], strict=True))
    )


def find_box(element: ET.Element) -> Box | None:
    """Return left, top, right and bottom of a mark; None of what is no mark."""

    def number(name: str) -> float:
        return float(element.attrib[name])

    if element.tag == "rect":
        return number("x"), number("y"), number("x") + number("width"), number("y") + number("height")
    if element.tag == "line":
        xs, ys = sorted((number("x1"), number("x2"))), sorted((number("y1"), number("y2")))
        return xs[0], ys[0], xs[1], ys[1]
    if element.tag == "circle":
        x, y, radius = number("cx"), number("cy"), number("r")
        return x - radius, y - radius, x + radius, y + radius
    if element.tag == "text":
        # Rather less than what the canvas reckons with: that is more than a text takes.
        wide = text_width(shown_text(element)) * 0.9
        left = number("x") - wide * {"middle": 0.5, "end": 1}.get(element.attrib.get("text-anchor", ""), 0)
        return left, number("y") - 9, left + wide, number("y") + 2
    return _path_box(element.attrib["d"]) if element.tag == "path" else None


def _path_box(path: str) -> Box:
    x = y = 0.0
    xs, ys = [], []
    for command, text in re.findall(r"([MLhvVz])([^MLhvVz]*)", path):
        numbers = [float(one) for one in text.split()]
        if command in "ML":
            x, y = numbers
        elif command == "h":
            x += numbers[0]
        elif command in "vV":
            y = numbers[0] + (y if command == "v" else 0)
        xs.append(x)
        ys.append(y)
    return min(xs), min(ys), max(xs), max(ys)


def keyed(elements: list[ET.Element]) -> dict[str, list[str]]:
    """Return the titles of the marks that can be clicked, by key."""
    found: dict[str, list[str]] = {}
    for one in elements:
        if "data-key" in one.attrib:
            found.setdefault(one.attrib["data-key"], []).append(one.findtext("title") or "")
    return found


def texts(elements: list[ET.Element]) -> list[str]:
    """Return what is written in the picture."""
    return [shown_text(one) for one in elements if one.tag == "text"]


def shown_text(element: ET.Element) -> str:
    """Return the text of an element without its title."""
    return (element.text or "") + "".join(child.tail or "" for child in element)
