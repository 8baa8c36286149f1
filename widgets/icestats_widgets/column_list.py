"""The list of columns that a person clicks in."""

from __future__ import annotations

from pathlib import Path

import anywidget
from traitlets import Dict, List, Unicode


class ColumnList(anywidget.AnyWidget):
    """Columns in lines, of which one is selected, by mouse or by keyboard."""

    _esm = Path(__file__).with_name("column_list.js")

    rows = List(Dict()).tag(sync=True)
    """The lines, as `column_cards` builds them.

    Type: list of dict of str to str. Default: empty.
    """

    selected = Unicode(None, allow_none=True).tag(sync=True)
    """The name of the selected column.

    Type: str or None. Default: None.
    """
