"""A generated table's metadata, registered in a SQLite catalog of its own: statistics can be committed to it."""

from __future__ import annotations

import json
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.peers.table_location import metadata_path

CATALOG, NAME = "benchmark", "db.generated"


def catalog_properties(folder: Path) -> dict[str, str]:
    """Return the properties of the catalog in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def register_table(location: str, folder: Path) -> dict[str, str]:
    """Register a copy of a table's metadata.json, whose location is in `folder`; its manifests stay where they are.

    Parameters
    ----------
    location : str
        A table's folder, with metadata/v1.metadata.json.
    folder : pathlib.Path
        A new folder.

    Returns
    -------
    dict of str to str
        The catalog's properties, for `icestats.load("db.generated", catalog=...)`.
    """
    metadata = folder / "table" / "metadata"
    metadata.mkdir(parents=True)
    document = json.loads(Path(metadata_path(location)).read_bytes())
    document["location"] = f"file://{folder}/table"
    document.setdefault("refs", {"main": {"snapshot-id": document["current-snapshot-id"], "type": "branch"}})
    copy = metadata / "00000-copy.metadata.json"
    copy.write_text(json.dumps(document))
    properties = catalog_properties(folder)
    with SqlCatalog(CATALOG, **properties) as catalog:
        catalog.create_namespace("db")
        catalog.register_table(NAME, f"file://{copy}")
    return {**properties, "name": CATALOG}
