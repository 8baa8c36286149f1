"""A first notebook about a table."""

from __future__ import annotations

import json
import re
from pathlib import Path


def write_notebook(source: str, folder: Path) -> Path:
    """Write a notebook that opens a table in the explorer; one that exists is left as it is.

    Parameters
    ----------
    source : str
        The table, as `icestats.load` takes it.
    folder : pathlib.Path
        Where to write it.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", source.rsplit("/metadata/", 1)[0].rsplit("/", 1)[-1]).strip("_") or "table"
    path = folder / f"icestats_{name}.ipynb"
    if path.exists():
        return path
    cells = [f"import icestats\n\ntable = icestats.load({source!r})\ntable", "table.explore()"]
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{i}",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": cell.splitlines(keepends=True),
            }
            for i, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook, indent=1) + "\n")
    return path
