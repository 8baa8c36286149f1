"""Opening a table by name or location."""

from __future__ import annotations

from collections.abc import Mapping

from icestats.catalog import open_source
from icestats.errors import CallError
from icestats.table import Table


def load(
    name_or_location: str,
    *,
    catalog: str | Mapping[str, str] | None = None,
    snapshot: int | str | None = None,
    ref: str | None = None,
) -> Table:
    """Open an Iceberg table. Reads its metadata.json only; starts no JVM and changes nothing.

    Parameters
    ----------
    name_or_location : str
        `catalog.namespace.table`, `namespace.table` (the default catalog of PyIceberg's configuration), or the location
        of a metadata.json or of a table's folder. `demo.events` and `demo.flights` are the embedded demo warehouse's.
    catalog : str or mapping, optional
        A catalog's name in PyIceberg's configuration, or its properties; SQL catalogs know their tables by the
        catalog's name, which the property `name` gives ("catalog" by default).
    snapshot : int or str, optional
        A snapshot's id; by default the current one.
    ref : str, optional
        A branch or a tag instead.

    Raises
    ------
    CatalogError, TableNotFoundError, MetadataError, SnapshotNotFoundError, CallError
        What does not exist or cannot be read, in one line.

    Examples
    --------
    >>> import icestats
    >>> table = icestats.load("demo.events")
    >>> table.schema.find("price").type
    'double'
    """
    if snapshot is not None and ref is not None:
        raise CallError(f"snapshot {snapshot} and ref {ref!r} were both given: give one of them")
    if isinstance(snapshot, str) and not snapshot.lstrip("-").isdecimal():
        raise CallError(f"snapshot {snapshot!r} is no snapshot id: expected a whole number; branches and tags are refs")
    return Table(open_source(name_or_location, catalog), None if snapshot is None else int(snapshot), ref)
