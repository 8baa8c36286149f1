"""Tables of the catalogs that a Spark session knows: opened, and committed to, through Iceberg's own Java library.

A commit is built on the metadata that Java has just read, and Java swaps exactly this metadata for it: Iceberg's
`updateStatistics` would put the entries on top of whatever others have committed in between.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table

from icestats.answers.redaction import hide_secrets
from icestats.answers.text import quote_name
from icestats.errors import (
    CallError,
    CatalogError,
    IcestatsError,
    SparkUnavailableError,
    TableNotFoundError,
    UnsupportedError,
)
from icestats.iceberg.catalog import Source, open_in_foreign_catalog
from icestats.iceberg.confined_io import ConfinedFileIO, find_unsafe_deletes, find_unsafe_write
from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.reach import folder_of
from icestats.iceberg.storage import local_path
from icestats.spark.connect import is_connect, refuse_connect
from icestats.spark.java_file_io import JavaFileIO
from icestats.spark.jobs import explained_errors, first_line, list_settings
from icestats.spark.jvm import explain_end
from icestats.spark.session import active, check_iceberg, find_running_session, get_session

if TYPE_CHECKING:
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier
    from pyspark.sql import SparkSession

_CATALOG = "spark.sql.catalog."
_ICEBERG = "org.apache.iceberg.spark."
_OF_REWRITES = frozenset({f"{_ICEBERG}SparkRewriteTableCatalog", f"{_ICEBERG}SparkCachedTableCatalog"})
"""What Iceberg's procedures put into a session for the files that they rewrite: no table is looked up there by name."""
_ERRORS: dict[str, type[Exception]] = {
    "NoSuchTableException": NoSuchTableError,
    **dict.fromkeys(("CommitFailedException", "RetryableValidationException"), CommitFailedException),
    "CommitStateUnknownException": CommitStateUnknownException,
    "ForbiddenException": ForbiddenError,
    "NotAuthorizedException": UnauthorizedError,
    "BadRequestException": BadRequestError,
}
"""What PyIceberg raises where Iceberg's Java library raises these."""
_ANSWERS: tuple[type[Exception], ...] = (CatalogError, *_ERRORS.values())
"""What says what a server has answered, which may repeat what it was sent."""
_VERSION = re.compile("(branch|tag|snapshot_id|at_timestamp)_")
"""How the last part of a name begins by which Spark reads another version of the table before it."""
_MISSING = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"})


class SessionCatalog(ForeignCatalog):
    """A catalog of a Spark session, as PyIceberg asks catalogs.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        A classic session with Iceberg on its class path.
    name : str
        The catalog's name there.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        super().__init__(name)
        self.session = session

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return the table as Spark's catalog has it now."""
        return self._open(self.identifier_to_tuple(identifier))[-1]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates, on the condition that the metadata which meets the requirements is still the table's."""
        operations, base, current = self._open(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        refusal = find_unsafe_write(current) or find_unsafe_deletes(current)
        if refusal is not None:
            raise refusal
        with self._answered(f"the commit to {'.'.join(table.name())}"):
            iceberg = self._jvm.org.apache.iceberg
            changed = iceberg.TableMetadata.buildFrom(base)
            for update in updates:
                document = update.model_dump_json(by_alias=True, exclude_none=True)
                iceberg.MetadataUpdateParser.fromJson(document).applyTo(changed)
            operations.commit(base, changed.build())
        committed = self.load_table(table.name())
        return CommitTableResponse(
            metadata=committed.metadata,
            metadata_location=committed.metadata_location,  # type: ignore[call-arg]  # as PyIceberg's own catalogs have it
        )

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the tables of a namespace."""
        names = self.identifier_to_tuple(namespace)
        with self._answered("listing tables"):
            return [(*names, str(one.name())) for one in self._find_plugin().listTables(self._names(names))]

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces below one, by default those on top."""
        names = self._names(self.identifier_to_tuple(namespace))
        with self._answered("listing namespaces"):
            return [tuple(map(str, one)) for one in self._find_plugin().listNamespaces(names)]

    def list_files(self, folder: str) -> Iterator[tuple[str, int, datetime]]:
        """Yield the location, size in bytes and time of the files in a folder that Java opens."""
        if isinstance(self.file_io, JavaFileIO):
            for location, size_bytes, modified_at in self.file_io.list_files(folder):
                if folder_of(location) == folder_of(f"{folder}/file"):
                    yield location, size_bytes, modified_at

    @property
    def _jvm(self) -> Any:
        return self.session.sparkContext._jvm

    def _names(self, names: Sequence[str]) -> Any:
        array = self.session.sparkContext._gateway.new_array(self._jvm.java.lang.String, len(names))  # type: ignore[union-attr]  # a running context has its gateway
        for place, name in enumerate(names):
            array[place] = name
        return array

    def _find_plugin(self) -> Any:
        # Spark makes a catalog, at its first use, by the settings of the active session, whoever's it is.
        with active(self.session):
            return self.session._jsparkSession.sessionState().catalogManager().catalog(self.name)

    def _open(self, identifier: Identifier) -> tuple[Any, Any, Table]:
        """Return Java's operations of the table, the metadata that they have just read, and the same for PyIceberg."""
        name = ".".join(identifier)
        with self._answered(f"loading {name}"):
            loaded = self._load(identifier)
            operations = loaded.operations()
            base = operations.refresh()
            location = base.metadataFileLocation()
            self.swaps_metadata = not self._is(operations, "org.apache.iceberg.rest.RESTTableOperations")
        if location is None:
            raise UnsupportedError(f"Spark's catalog {self.name!r} does not say where the metadata.json of {name} is")
        path = local_path(str(location))
        if path is not None and not Path(path).exists():
            raise UnsupportedError(
                f"the metadata of {name} is in {location}, which is no file of this machine: give the warehouse of "
                f"Spark's catalog {self.name!r} with its scheme, such as hdfs://host/folder"
            )
        self.file_io = JavaFileIO(self.session, loaded.io()) if path is None else None
        io = ConfinedFileIO(self.file_io or load_file_io({}, location), location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return operations, base, Table(identifier, metadata, location, io, self)

    def forget(self, identifier: Identifier) -> bool:
        """Let the session read a table's metadata anew; return whether the catalog is Iceberg's, which keep it."""
        with self._answered(f"REFRESH TABLE of {'.'.join(identifier)}"):
            plugin = self._find_plugin()
            kind = str(plugin.getClass().getName())
            if not kind.startswith(_ICEBERG) or kind in _OF_REWRITES:
                return False
            plugin.invalidateTable(self._identify(identifier))
        return True

    def keeps_rows(self, identifier: Identifier) -> bool:
        """Whether the session keeps a table's rows, as CACHE TABLE lets it, and with them the plan of then."""
        with self._answered(f"asking whether {'.'.join(identifier)} is cached"):
            if self.session._jsparkSession.sharedState().cacheManager().isEmpty():
                return False
            is_there = bool(self._find_plugin().tableExists(self._identify(identifier)))
            return is_there and self.session.catalog.isCached(quote_name(self.name, *identifier))

    def _identify(self, identifier: Identifier) -> Any:
        kind = self._jvm.org.apache.spark.sql.connector.catalog.Identifier
        return kind.of(self._names(identifier[:-1]), identifier[-1])

    def _load(self, identifier: Identifier) -> Any:
        plugin, found = self._find_plugin(), self._identify(identifier)
        # Iceberg's catalogs in Spark keep tables for 30 s, a dropped one too.
        plugin.invalidateTable(found)
        table = plugin.loadTable(found)
        name, kind = ".".join((self.name, *identifier)), table.getClass().getSimpleName()
        if not self._is(table, "org.apache.iceberg.spark.source.SparkTable"):
            raise UnsupportedError(f"{name} is no Iceberg table: Spark's catalog has it as a {kind}")
        loaded = table.table()
        if not self._is(loaded, "org.apache.iceberg.HasTableOperations"):
            raise CallError(f"{name} is one of Iceberg's metadata tables: name the table itself")
        if _VERSION.match(identifier[-1]) and not str(loaded.name()).endswith(identifier[-1]):
            raise CallError(f"{name} names a version of a table: name the table, and the version by ref= or snapshot=")
        return loaded

    def _is(self, found: Any, kind: str) -> bool:
        from py4j.java_gateway import is_instance_of

        return bool(is_instance_of(self.session.sparkContext._gateway, found, kind))

    @contextmanager
    def _answered(self, doing: str) -> Iterator[None]:
        """Raise what PyIceberg's catalogs raise, and for what they have no error, CatalogError; without secrets."""
        failed = f"Spark's catalog {self.name!r} failed: {doing}"
        try:
            with explained_errors(self.session, doing, lambda said: CatalogError(f"{failed}: {said}")), _translated():
                yield
        except _ANSWERS as error:
            own = list_settings(self.session)
            shown = "".join(traceback.format_exception(error))
            if hide_secrets(shown, own) == shown:
                raise
            raise type(error)(hide_secrets(str(error), own)) from None


@contextmanager
def _translated() -> Iterator[None]:
    """Raise PyIceberg's errors where Spark and Iceberg's Java library raise theirs for the same."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        # PySpark 3.5 has no getCondition, and 4 warns of getErrorClass.
        named = getattr(error, "getCondition", error.getErrorClass)
        if named() not in _MISSING:
            raise
        raise NoSuchTableError(first_line(error)) from error
    except Py4JJavaError as error:
        kind = _ERRORS.get(error.java_exception.getClass().getSimpleName())
        if kind is None:
            raise
        raise kind(first_line(error)) from error


def open_in_session(session: SparkSession, name: str) -> Source:
    """Find a table by the name that Spark's SQL has for it.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        A classic session with Iceberg on its class path.
    name : str
        `catalog.namespace.table`, parts with dots or the like in backticks; what is left out is the session's current
        catalog and namespace.

    Raises
    ------
    SparkUnavailableError
        The session has no Iceberg, or its JVM has ended.
    TableNotFoundError
        It is no name, or there is no such table.
    UnsupportedError
        It is no Iceberg table, or the session is one of Spark Connect.
    CatalogError
        The catalog fails.
    """
    from pyspark.errors import ParseException

    _check_session(session)
    with explained_errors(session, f"opening {name}"), active(session):
        check_iceberg(session)
        state: Any = session._jsparkSession.sessionState()
        try:
            parsed = state.sqlParser().parseMultipartIdentifier(name)
        except ParseException as error:
            raise TableNotFoundError(
                f"{name!r} is no name of a table in Spark: expected catalog.namespace.table, a part that has other "
                "characters than letters, digits and _ in backticks"
            ) from error
        parts = tuple(str(parsed.apply(place)) for place in range(parsed.length()))
        known = sorted({*_list_catalogs(session), "spark_catalog"})
        manager = state.catalogManager()
        if len(parts) > 1 and parts[0] in known:
            return open_in_foreign_catalog(SessionCatalog(session, parts[0]), name, parts[1:])
        current = str(manager.currentCatalog().name())
        namespace = tuple(map(str, manager.currentNamespace())) if len(parts) == 1 else ()
    try:
        return open_in_foreign_catalog(SessionCatalog(session, current), name, (*namespace, *parts))
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"{name!r} names no catalog of the session ({', '.join(known)}), so it was looked for in the current one, "
            f"and not found: {error}"
        ) from error


def find_session(source: Source, spark: SparkSession | None) -> SparkSession:
    """Return the session to read a table with: the given one, the one whose catalog has it, or `get_session`'s.

    Raises
    ------
    CallError
        What is given is no session.
    """
    if spark is not None:
        _check_kind(spark)
        return spark
    if isinstance(source.catalog, SessionCatalog):
        return source.catalog.session
    return get_session(location=source.metadata_location)


def refresh_running_sessions(source: Source) -> str:
    """Let the Spark sessions of this process plan with what was committed to a table: Iceberg's catalogs keep metadata.

    Parameters
    ----------
    source : Source
        The table. A session may know it in any catalog, by any name.

    Returns
    -------
    str
        What was done, or why it could not be, in a line; nothing where no session runs here, or has used a catalog of
        Iceberg's.

    Notes
    -----
    This is what REFRESH TABLE does, but that rows which a session keeps (CACHE TABLE) stay, as no row has changed.
    """
    if source.identifier is None:
        return ""
    own = source.catalog.session if isinstance(source.catalog, SessionCatalog) else None
    done: dict[str, None] = {}
    left: dict[str, None] = {}
    try:
        for session in {id(one): one for one in (own, find_running_session()) if one is not None}.values():
            for catalog in (SessionCatalog(session, name) for name in _list_loaded(session)):
                try:
                    if catalog.forget(source.identifier):
                        done[catalog.name] = None
                        if catalog.keeps_rows(source.identifier):
                            left[f"its rows are cached in {catalog.name}"] = None
                except IcestatsError as error:
                    left[str(error)] = None
    except IcestatsError as error:
        left[str(error)] = None
    anew = f"the running Spark session reads the table anew in {', '.join(done)}; make DataFrames of before anew"
    said = [anew] if done else []
    said += [f"the running Spark session may plan as before until REFRESH TABLE: {reason}" for reason in left]
    return "; ".join(said)


def _list_loaded(session: SparkSession) -> list[str]:
    """Return the catalogs that a session has used, which Spark lists, with its own one."""
    with explained_errors(session, "listing its catalogs"):
        nothing = session.sparkContext._jvm.scala.Option.empty()  # type: ignore[union-attr]  # a running context has its JVM
        found = session._jsparkSession.sessionState().catalogManager().listCatalogs(nothing)
        return [str(found.apply(place)) for place in range(found.length())]


def _check_session(session: SparkSession) -> None:
    _check_kind(session)
    refuse_connect(
        session,
        "opening a table of its catalogs",
        "open it with PyIceberg's configuration, and give the session to what computes, such as compute(spark=spark)",
    )
    end = explain_end(session.sparkContext)
    if end is not None:
        raise SparkUnavailableError(f"no table is opened by this session: {end}")


def _check_kind(session: object) -> None:
    if not (is_connect(session) or hasattr(session, "sparkContext")):
        raise CallError(f"spark is {type(session).__name__}, expected a SparkSession")


def _list_catalogs(session: SparkSession) -> list[str]:
    named = (key.removeprefix(_CATALOG) for key in list_settings(session) if key.startswith(_CATALOG))
    return [name for name in named if "." not in name]
