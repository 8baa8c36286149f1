"""What code that is shown takes from a person: a catalog's properties, which may hold secrets, or a Spark session."""

from __future__ import annotations

import re

_GIVEN = {
    "catalog": 'catalog = {"type": ..., "uri": ...}  # put the properties of the table\'s catalog here',
    "spark": "spark = ...  # put the Spark session here that knows the table's catalog",
}


def define_given(code: str) -> str:
    """Return code with a line in front for each name that it takes from a person.

    Examples
    --------
    >>> print(define_given("table = icestats.load('db.t', spark=spark)"))
    spark = ...  # put the Spark session here that knows the table's catalog
    table = icestats.load('db.t', spark=spark)
    >>> define_given("table = icestats.load('demo.events')")
    "table = icestats.load('demo.events')"
    """
    lines = [line for name, line in _GIVEN.items() if re.search(rf"[(,] ?{name}={name}\b", code)]
    return "\n".join([*lines, code])
