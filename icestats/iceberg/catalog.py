"""Find a table by its name in a catalog, or by the location of a metadata.json."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestats.answers.redaction import hide_secrets, safe_cause
from icestats.answers.text import one_line
from icestats.errors import (
    CallError,
    CatalogError,
    CommitError,
    IcestatsError,
    MetadataError,
    TableNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.configuration import check_configuration, check_readable, find_catalog_type, read_configuration
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.metadata_json import read_metadata
from icestats.iceberg.storage import Storage, expand_home, find_own_folder, local_path, unreadable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as IcebergTable

    from icestats.iceberg.foreign_catalog import ForeignCatalog

_METASTORE = re.compile(r"\s*\w+://[^/]+:\d+(/|\s*$)", re.ASCII)
_HADOOP_VERSION = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)

DEMO_CATALOG = "icestats"
DEMO_NAMESPACE = "demo"


@dataclass(frozen=True)
class Source:
    """A table that was found: where it is, and one version of its metadata."""

    name: str
    identifier: tuple[str, ...] | None
    """Namespace and name in the catalog; None for a bare metadata.json."""
    catalog_name: str | None
    catalog_properties: Mapping[str, Any] = field(repr=False)
    """Texts, and mappings where PyIceberg has nested properties (`auth`)."""
    metadata_location: str
    metadata: TableMetadata = field(repr=False)
    storage: Storage = field(repr=False, compare=False)
    catalog: ForeignCatalog | None = field(default=None, repr=False, compare=False)
    """The catalog itself, where it is none that PyIceberg opens by name or properties."""


def demo_home() -> Path:
    """Return the folder of the embedded demo warehouse: ICESTATS_HOME, or the user's data folder."""
    home = os.environ.get("ICESTATS_HOME")
    if home:
        named = expand_home(home, "ICESTATS_HOME").absolute()
        # A URL ends the path of an SQLite file at `?`, SQLAlchemy 2.1 decodes `%20` in it, and PyIceberg ends a path at
        # `#`.
        if wrong := re.search(r"[?#]|%[0-9A-Fa-f]{2}", str(named)):
            raise CallError(
                f"ICESTATS_HOME is '{named}': the catalog there cannot have {wrong[0]!r} in its path, name another"
            )
        return named
    from platformdirs import user_data_path

    folder = find_own_folder(user_data_path)
    if folder is None:
        raise CallError("there is no home folder for the demo warehouse: name one by ICESTATS_HOME")
    return folder


def demo_catalog_properties(home: Path | None = None) -> dict[str, str]:
    """Return PyIceberg's properties for the embedded catalog: one SQLite file, one folder."""
    folder = demo_home() if home is None else home
    return {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}


def open_source(name_or_location: str, catalog: str | Mapping[str, Any] | None = None) -> Source:
    """Find a table and read the current version of its metadata.

    Parameters
    ----------
    name_or_location : str
        `catalog.namespace.table`, `namespace.table` (default catalog), or the location of a metadata.json or of a
        table's folder. `demo.events` and `demo.flights` are the tables of the embedded demo warehouse.
    catalog : str or mapping, optional
        A catalog's name in PyIceberg's configuration, or its properties; the table's name is then `namespace.table`.
        For a location: the catalog whose FileIO properties to read it with, or the properties (`s3.endpoint`, ...).

    Raises
    ------
    CatalogError
        No such catalog, or it cannot be opened.
    TableNotFoundError
        The catalog, or the location, has no such table.
    MetadataError
        The metadata is missing, truncated or damaged.
    """
    name = str(name_or_location)
    if not isinstance(catalog, str | Mapping | None):
        # Not its text: pairs of properties have secrets among them.
        raise CallError(f"catalog is of type {type(catalog).__name__}: expected a catalog's name, or its properties")
    is_location = _is_location(name) and (catalog is None or "/" in name)
    if is_location:
        return _open_location(name, _location_properties(catalog))
    check_configuration()
    return _open_in_catalog(name, *_resolve(name, catalog))


def open_in_foreign_catalog(catalog: ForeignCatalog, name: str, identifier: tuple[str, ...]) -> Source:
    """Find a table in a catalog that another library has opened; raises as `open_source`."""
    check_readable()
    return _open_in_catalog(name, catalog.name, {}, identifier, catalog)


def reopen_source(source: Source) -> Source:
    """Return the same table with its newest metadata."""
    if source.identifier is None or source.catalog_name is None:
        return open_source(source.name, source.catalog_properties or None)
    return _open_in_catalog(
        source.name, source.catalog_name, source.catalog_properties, source.identifier, source.catalog
    )


def find_configured_name(source: Source) -> str | None:
    """Return what alone is enough for `open_source` to find a table; None: that takes its session, or properties."""
    if source.catalog is not None or (source.identifier is None and source.catalog_properties):
        return None
    if source.identifier is None or source.catalog_name is None:
        return source.name
    for name in (source.name, ".".join((source.catalog_name, *source.identifier))):
        with suppress(IcestatsError):
            found = _resolve(name, None)
            if not _is_location(name) and found == (source.catalog_name, source.catalog_properties, source.identifier):
                return name
    return None


def load_iceberg_table(source: Source) -> IcebergTable:
    """Return PyIceberg's table for a source, at its newest version; a bare metadata.json gives a read-only one.

    Raises
    ------
    TableNotFoundError
        The catalog has no table of the name any more, or another one.
    MetadataError
        The metadata.json is gone, or cannot be read any more.
    UnsupportedError
        PyIceberg refuses the metadata.json.
    """
    if source.identifier is None or source.catalog_name is None:
        from icestats.iceberg.confined_io import UNREAD_SCHEMA, open_static_table

        try:
            return open_static_table(source.metadata_location, source.storage)
        except UNREAD_SCHEMA as error:
            # PyIceberg looks into some members before it has checked what they are.
            raise UnsupportedError(
                f"PyIceberg, which reads rows, cannot read {source.name}: {explain_invalid(error)}; "
                "plans, estimates and roll-ups, from metadata alone, can be had"
            ) from None
        except OSError as error:
            properties = source.storage.properties
            raise unreadable(source.metadata_location, error, properties) from safe_cause(error, properties)
    table = _load(source.catalog_name, source.catalog_properties, source.identifier, source.catalog)
    # Metadata of version 1 need not have a UUID, and PyIceberg takes one in braces too.
    known = source.metadata.table_uuid.lower().replace("-", "")
    if known and table.metadata.table_uuid.hex not in known:
        raise TableNotFoundError(f"{source.name} is another table now, dropped and made anew: load it anew")
    return table


def explain_invalid(error: Exception) -> str:
    """Say why PyIceberg refuses a metadata.json, without what pydantic shows of the file."""
    from pydantic import ValidationError as PydanticValidationError

    if unknown := re.search(r"Unsupported field type: '([^']+)'", str(error)):
        return f"it does not know the type {unknown[1]}"
    # PyIceberg passes pydantic's error on as text of its own.
    invalid = error.__cause__ or error
    if not isinstance(invalid, PydanticValidationError):
        return one_line(error, 160)
    said = invalid.errors(include_url=False, include_context=False, include_input=False)
    return one_line("; ".join(" ".join((*map(str, one["loc"]), one["msg"])) for one in said[:5]), 160)


def load_writable_table(source: Source) -> IcebergTable:
    """Return PyIceberg's table for a commit.

    Raises
    ------
    CommitError
        The source is a bare metadata.json, which accepts no commits, or the table's properties name code to run.
    """
    if source.identifier is None:
        raise CommitError(
            f"{source.metadata_location} is a metadata file and read-only: open the table through its catalog to "
            "commit (one that only Spark knows: icestats.load(name, spark=session))"
        )
    from icestats.iceberg.confined_io import find_unsafe_write

    table = load_iceberg_table(source)
    refusal = find_unsafe_write(table)
    if refusal is not None:
        raise refusal
    return table


def _open_in_catalog(
    name: str,
    catalog_name: str,
    properties: Mapping[str, str],
    identifier: tuple[str, ...],
    catalog: ForeignCatalog | None = None,
) -> Source:
    table = _load(catalog_name, properties, identifier, catalog)
    merged = _texts({**properties, **table.io.properties})
    file_io = None if catalog is None else catalog.file_io
    storage = Storage(merged, table.metadata_location, file_io, "" if file_io is None else catalog_name)
    metadata = read_metadata(storage, table.metadata_location)
    return Source(name, identifier, catalog_name, properties, table.metadata_location, metadata, storage, catalog)


def _is_location(name: str) -> bool:
    return name in (".", "..") or "/" in name or "\\" in name or name.endswith((".json", ".json.gz"))


def _location_properties(catalog: str | Mapping[str, Any] | None) -> Mapping[str, str]:
    if isinstance(catalog, str):
        known = _known_catalogs()
        if catalog.lower() not in known:
            raise CatalogError(f"no catalog {catalog!r}: PyIceberg's configuration has {', '.join(sorted(known))}")
        return known[catalog.lower()]
    check_readable()
    return _texts(catalog or {})


def _texts(properties: Mapping[Any, Any]) -> dict[str, str]:
    """Return properties without nested ones, such as `auth`, which are a catalog's client's alone."""
    return {str(k): str(v) for k, v in properties.items() if not isinstance(v, Mapping)}


def _open_location(location: str, properties: Mapping[str, str]) -> Source:
    path, name = local_path(location), location
    if path is not None:
        path = expand_home(path, "the location").absolute()
        name = str(path)
        try:
            location = str(_find_metadata(path) if path.is_dir() else path)
            exists = Path(location).exists()
        except OSError as error:
            raise TableNotFoundError(f"{location:.80} cannot be opened: {error.strerror}") from error
        if not exists:
            raise TableNotFoundError(f"no file {location}: expected the location of an Iceberg metadata.json")
    storage = Storage(properties, location)
    return Source(name, None, None, properties, location, read_metadata(storage, location), storage)


def _find_metadata(folder: Path) -> Path:
    metadata = folder if folder.name == "metadata" else folder / "metadata"
    versions = _numbered_versions(metadata)
    hint = metadata / "version-hint.text"
    named = Storage().read(str(hint), 0, 100).decode(errors="replace").strip() if hint.is_file() else ""
    if named.isdecimal() and int(named) in versions:
        # The hint is written after the version, and may be late: those that follow without a gap are the table's too.
        version = int(named)
        while version + 1 in versions:
            version += 1
        return versions[version]
    for name in (f"{named}.metadata.json", named):
        # It may have come with the table: a path would have another one opened in its place.
        if named and Path(name).name == name and (metadata / name).is_file():
            return metadata / name
    if versions:
        return versions[max(versions)]
    found = sorted(metadata.glob("*.metadata.json"))
    if not found:
        raise TableNotFoundError(f"no table in {folder}: expected metadata/*.metadata.json below it")
    raise TableNotFoundError(
        f"{folder} has {len(found)} metadata files and no valid version-hint.text: name one, such as {found[-1]}"
    )


def _numbered_versions(metadata: Path) -> dict[int, Path]:
    """Return the versions of a Hadoop table: `v7.metadata.json`, `v7.gz.metadata.json`, `v7.metadata.json.gz`."""
    matches = ((_HADOOP_VERSION.fullmatch(path.name), path) for path in metadata.glob("v*"))
    return {int(match[1]): path for match, path in matches if match is not None}


def _resolve(name: str, catalog: str | Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
    parts = tuple(name.split("."))
    if not all(parts) or len(parts) < 2:
        expected = "catalog.namespace.table, namespace.table or the location of a metadata.json"
        raise TableNotFoundError(f"{name!r} is no table: expected {expected}")
    if isinstance(catalog, Mapping):
        check_readable(str(catalog.get("name", "catalog")))
        nested = {str(k): v for k, v in catalog.items() if isinstance(v, Mapping)}
        texts = _texts(catalog)
        return texts.pop("name", "catalog"), texts | nested, parts
    if catalog is None and parts[0] == DEMO_NAMESPACE and len(parts) == 2:
        check_readable(DEMO_CATALOG)
        return DEMO_CATALOG, demo_catalog_properties(), parts
    known = _known_catalogs()
    if catalog is None and len(parts) > 2 and (parts[0] == DEMO_CATALOG or parts[0].lower() in known):
        catalog, parts = parts[0], parts[1:]
    catalog_name = catalog or _default_catalog(name, known)
    if catalog_name == DEMO_CATALOG and DEMO_CATALOG not in known:
        return DEMO_CATALOG, demo_catalog_properties(), parts
    if catalog_name.lower() not in known:
        listed = ", ".join(sorted({*known, DEMO_CATALOG}))
        raise CatalogError(f"no catalog {catalog_name!r}: PyIceberg's configuration and icestats have {listed}")
    return catalog_name, known[catalog_name.lower()], parts


def _known_catalogs() -> dict[str, Mapping[str, str]]:
    check_configuration()
    config = read_configuration()
    # PyIceberg takes what is nested, such as `auth`, from its configuration by itself.
    return {name.lower(): _texts(config.get_catalog_config(name) or {}) for name in config.get_known_catalogs()}


def _default_catalog(name: str, known: Mapping[str, Mapping[str, str]]) -> str:
    from pyiceberg.utils.config import Config

    default = Config().get_default_catalog_name()
    if default.lower() not in known:
        listed = ", ".join(sorted({*known, DEMO_CATALOG}))
        raise CatalogError(
            f"{name!r} names no catalog and there is no default one: known are {listed}; "
            "configure one in ~/.pyiceberg.yaml or give the location of a metadata.json"
        )
    return default


def _load(
    catalog_name: str, properties: Mapping[str, str], identifier: tuple[str, ...], opened: ForeignCatalog | None = None
) -> IcebergTable:
    from pydantic import ValidationError as PydanticValidationError
    from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchNamespaceError, NoSuchTableError, ValidationError

    full_name = ".".join(identifier)
    catalog = opened or _open_catalog(catalog_name, properties)
    # A REST server adds its own properties to them.
    opened_with = {"catalog": catalog.properties, **properties}
    try:
        return catalog.load_table(identifier)
    except IcestatsError:
        raise
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchIcebergTableError) as error:
        cause = explain_catalog_error(error, _known(catalog_name, opened_with))[1]
        raise TableNotFoundError(_missing(catalog, catalog_name, identifier)) from cause
    except (ValidationError, PydanticValidationError) as error:
        invalid = hide_secrets(explain_invalid(error), _known(catalog_name, opened_with))
        raise MetadataError(
            f"PyIceberg cannot read the metadata: {invalid}; give the location of its metadata.json instead",
            full_name,
        ) from None
    except FileNotFoundError as error:
        said, cause = explain_catalog_error(error, _known(catalog_name, opened_with))
        raise MetadataError(f"the catalog points to a metadata file that is gone: {said}", full_name) from cause
    except Exception as error:  # noqa: BLE001 - each catalog has its own errors
        failure = _catalog_error(f"catalog {catalog_name!r} cannot load {full_name}", error, catalog_name, opened_with)
        raise failure from failure.__cause__


def _open_catalog(catalog_name: str, properties: Mapping[str, str]) -> Catalog:
    is_demo = catalog_name == DEMO_CATALOG and properties == demo_catalog_properties()
    # Path.exists() raises where a name is too long, or a folder closed.
    if is_demo and not os.path.exists(demo_home() / "catalog.db"):  # noqa: PTH110
        raise TableNotFoundError(f"the demo warehouse is not built in {demo_home()}: run `icestats demo`")
    uri = str(properties.get("uri", ""))
    if uri and find_catalog_type(properties) == "hive" and not all(map(_METASTORE.match, uri.split(","))):
        raise CatalogError(
            f"the 'uri' of catalog {catalog_name!r} names no scheme, host or port: expected one such as "
            "thrift://host:9083"
        )
    from pyiceberg.exceptions import NotInstalledError

    from icestats.iceberg.confined_io import load_confined

    try:
        catalog = load_confined(catalog_name, properties)
    except IcestatsError:
        raise
    except NotInstalledError as error:
        said = "pip install 'icestats[demo]'" if is_demo else one_line(error)
        raise CatalogError(f"catalog {catalog_name!r} needs a package that is not installed: {said}") from error
    except Exception as error:  # noqa: BLE001 - each catalog has its own errors
        failure = _catalog_error(f"catalog {catalog_name!r} cannot be opened", error, catalog_name, properties)
        raise failure from failure.__cause__
    engine = getattr(catalog, "engine", None)
    if engine is not None:
        # Tables keep their catalog, and nobody else does: a SQL catalog leaves its connections open.
        weakref.finalize(catalog, engine.dispose)
    return catalog


def _catalog_error(failed: str, error: Exception, name: str, properties: Mapping[str, Any]) -> CatalogError:
    """Say why a catalog failed; the error that says it with secrets in it is no cause that a traceback shows."""
    said, cause = explain_catalog_error(error, _known(name, properties))
    failure = CatalogError(f"{failed}: {said}")
    failure.__cause__ = cause
    return failure


def _known(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return all properties that a catalog is opened with."""
    from pyiceberg.utils.config import Config

    return {"configured": Config().get_catalog_config(name) or {}, **properties}


def explain_catalog_error(error: Exception, properties: Mapping[str, Any]) -> tuple[str, Exception]:
    """Return what a catalog failed with, and the cause to raise an error from, both without secrets."""
    from pydantic import ValidationError as PydanticValidationError

    if isinstance(error, PydanticValidationError):
        # pydantic shows the answer, which may be a token.
        error = ValueError(f"it answers otherwise than PyIceberg expects: {explain_invalid(error)}")
    # SQLAlchemy adds its statements to what the database said.
    said = str(getattr(error, "orig", None) or error)
    said = hide_secrets(one_line(said, len(said)) or one_line(error), properties)
    return one_line(said), safe_cause(error, properties)


def _missing(catalog: Catalog, catalog_name: str, identifier: tuple[str, ...]) -> str:
    from pyiceberg.exceptions import NoSuchNamespaceError

    namespace, table = identifier[:-1], identifier[-1]
    try:
        tables = sorted(t[-1] for t in catalog.list_tables(namespace))
    except Exception as error:  # noqa: BLE001 - only to say more in the message
        try:
            found = sorted(catalog.list_namespaces())
        except Exception:  # noqa: BLE001 - only to say more in the message
            found = None
        is_there = found is None or any(one == namespace[: len(one)] for one in found)
        if is_there and not isinstance(error, NoSuchNamespaceError):
            place = f"{catalog_name}.{'.'.join(namespace)}"
            return f"no table {table!r} in {place}, or one that may not be seen: what is there cannot be listed"
        said = f"no namespace {'.'.join(namespace)!r} in catalog {catalog_name!r}"
        if found is None:
            return f"{said}, and what is there cannot be listed: is the catalog's 'uri' right?"
        namespaces = ", ".join(map(".".join, found)) or "none"
        by_name = "; a catalog of type sql has the tables of its own name alone: is 'name' the one they were made with?"
        is_of_names = namespaces == "none" and catalog.properties.get("type") == "sql"
        return f"{said}: it has {namespaces}{by_name if is_of_names else ''}"
    listed = ", ".join(tables[:20]) or "no tables"
    return f"no table {table!r} in {catalog_name}.{'.'.join(namespace)}: it has {listed}"
