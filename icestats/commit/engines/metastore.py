"""A Hive metastore's Thrift API: the statistics of a table's columns are written to it.

PyIceberg brings the generated client (`hive_metastore`), the package thrift its transport. The client is of a version
without histograms: they are field 6 of the structs of numbers, dates and timestamps. A server that has no such field
leaves it out, as Thrift does with every field that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from icestats.answers.text import counted, one_line, printable_lines
from icestats.commit.engines.exported_table import ExportedColumn, ExportedTable
from icestats.commit.engines.hive_figures import HiveFigures, find_hive_figures
from icestats.commit.engines.statements import describe_figures
from icestats.errors import CallError, CatalogError, TableNotFoundError, UnsupportedError
from icestats.stats.rollup_cells import Figure

if TYPE_CHECKING:
    from hive_metastore.ThriftHiveMetastore import Client

_TIMEOUT_MS = 20_000
_DEFAULT_PORT = 9083
_HISTOGRAM = 6
_TYPES = {
    "boolean": ("boolean",), "long": ("tinyint", "smallint", "int", "bigint"), "double": ("float", "double"),
    "decimal": ("decimal",), "date": ("date",), "timestamp": ("timestamp",), "string": ("string", "char", "varchar"),
    "binary": ("binary",),
}  # fmt: skip
"""The metastore's types of a kind. It takes statistics of others too, such as timestamp with local time zone, and then
cannot give them back."""


@dataclass(frozen=True, slots=True)
class ColumnSketches:
    """A column's sketches as Hive keeps them; None: there is none."""

    bit_vector: bytes | None = None
    histogram: bytes | None = None
    notes: tuple[str, ...] = ()
    """Where they come from, and how far they can be trusted."""


def write_to_metastore(uri: str, table: ExportedTable, sketches: Mapping[str, ColumnSketches], *, dry_run: bool) -> str:
    """Write the statistics of a table's columns to a Hive metastore; return in words what was written.

    Parameters
    ----------
    uri : str
        `thrift://host:port`.
    table : ExportedTable
        Its name is that of the database and the table in the metastore.
    sketches : mapping of str to ColumnSketches
        By column name.
    dry_run : bool
        Whether only to say what would be written.

    Raises
    ------
    CallError
        `uri` is none of a metastore.
    CatalogError
        The metastore does not answer, or refuses the statistics.
    TableNotFoundError
        It has no such table.
    UnsupportedError
        The package thrift is missing.

    Notes
    -----
    The columns are written in one call. The row count is not: Iceberg writes it with each commit to a Hive catalog, and
    to alter the table here could undo a commit of somebody else.
    """
    database, name = table.name
    with _connect(uri) as client:
        known = _read_columns(client, uri, database, name)
        written, lines = [], []
        for column in table.columns:
            found, kept = _check(column, known), sketches.get(column.name, ColumnSketches())
            lines.append(_describe(column, found, kept))
            if not found.is_refused:
                written.append(_build_statistics(column.name.lower(), known[column.name.lower()], found, kept))
        if written and not dry_run:
            _send(client, uri, database, name, written)
    done = "would be written to" if dry_run else "were written to"
    head = f"-- Statistics of {counted(len(written), 'column')} of {table.describe()} {done} {uri}, {database}.{name}."
    plans = "-- Hive 4 plans with them only where hive.iceberg.stats.source is metastore. Nobody updates them."
    return printable_lines([head, plans, *lines]) + "\n"


@contextmanager
def _connect(uri: str) -> Iterator[Client]:
    try:
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.Thrift import TException
        from thrift.transport import TSocket, TTransport
    except ImportError:
        raise UnsupportedError("a Hive metastore needs the package thrift: pip install 'icestats[hive]'") from None
    host, port = _split_uri(uri)
    socket = TSocket.TSocket(host, port)
    socket.setTimeout(_TIMEOUT_MS)
    transport = TTransport.TBufferedTransport(socket)
    try:
        transport.open()
        yield Client(TBinaryProtocol(transport))
    except (TException, OSError, EOFError, UnicodeDecodeError) as error:
        said = one_line(getattr(error, "message", None) or error)
        raise CatalogError(f"the Hive metastore {uri} does not answer as expected: {said}") from error
    finally:
        transport.close()


def _split_uri(uri: str) -> tuple[str, int]:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        host, port = None, None
    if host is None or parts.scheme != "thrift":
        raise CallError(f"{uri!r:.80} is no Hive metastore: expected thrift://host:{_DEFAULT_PORT}")
    return host, port or _DEFAULT_PORT


def _read_columns(client: Client, uri: str, database: str, name: str) -> Mapping[str, str]:
    """Return the types of a table's columns, by their names in lower case, as the metastore has them."""
    from hive_metastore.ttypes import GetTableRequest, NoSuchObjectException

    try:
        # Hive 4 has no get_table any more, Hive 2.3 has this already.
        found = client.get_table_req(GetTableRequest(dbName=database, tblName=name)).table
    except NoSuchObjectException:
        raise TableNotFoundError(f"the Hive metastore {uri} has no table {database}.{name}: give its name") from None
    return {column.name: column.type for column in found.sd.cols}


def _check(column: ExportedColumn, known: Mapping[str, str]) -> HiveFigures:
    hive_type, found = known.get(column.name.lower()), find_hive_figures(column)
    if hive_type is None:
        return HiveFigures("", {}, "the metastore has no such column", True)
    if not found.is_refused and hive_type.partition("(")[0] not in _TYPES[found.kind]:
        return HiveFigures("", {}, f"the metastore has no such statistics of type {hive_type}", True)
    return found


def _describe(column: ExportedColumn, found: HiveFigures, sketches: ColumnSketches) -> str:
    said = [
        ", ".join(f"{name} {figure.value}" for name, figure in found.values.items()),
        *describe_figures(found.values),
    ]
    said += [] if found.is_refused else sketches.notes
    said += [f"left out: {found.left_out}"] if found.left_out else []
    return f"-- column {column.name}: {'; '.join(filter(None, said))}"


def _send(client: Client, uri: str, database: str, name: str, columns: Sequence[Any]) -> None:
    from hive_metastore.ttypes import (
        ColumnStatistics,
        ColumnStatisticsDesc,
        InvalidInputException,
        InvalidObjectException,
        MetaException,
        NoSuchObjectException,
    )

    described = ColumnStatisticsDesc(isTblLevel=True, dbName=database, tableName=name)
    try:
        client.update_table_column_statistics(ColumnStatistics(described, list(columns), engine="hive"))
    except (InvalidInputException, InvalidObjectException, MetaException, NoSuchObjectException) as error:
        said = one_line(error.message or error)
        raise CatalogError(f"the Hive metastore {uri} refuses the statistics of {database}.{name}: {said}") from error


def _build_statistics(name: str, hive_type: str, found: HiveFigures, sketches: ColumnSketches) -> Any:
    from hive_metastore import ttypes

    # Before Hive 4, a timestamp is a long to the metastore; Hive 4 keeps both in the same place.
    kind = "long" if found.kind == "timestamp" else found.kind
    base = getattr(ttypes, f"{kind.capitalize()}ColumnStatsData")
    values = {key: _to_thrift(found.kind, key, figure) for key, figure in found.values.items()}
    data = _with_histogram(base)(**values, bitVectors=sketches.bit_vector)
    data.histogram = sketches.histogram
    statistics = ttypes.ColumnStatisticsData(**{f"{kind}Stats": data})
    return ttypes.ColumnStatisticsObj(name, hive_type, statistics)


def _with_histogram(base: Any) -> Any:
    """Return a struct of the generated client with the field that it lacks."""
    from thrift.Thrift import TType

    spec = [*base.thrift_spec, *[None] * (_HISTOGRAM - len(base.thrift_spec))]
    spec.append((_HISTOGRAM, TType.STRING, "histogram", "BINARY", None))

    def write(self: Any, protocol: Any) -> None:
        protocol.writeStruct(self, self.thrift_spec)

    return type(base.__name__, (base,), {"thrift_spec": tuple(spec), "write": write})


def _to_thrift(kind: str, name: str, figure: Figure) -> Any:
    from hive_metastore import ttypes

    if name not in ("lowValue", "highValue"):
        return float(figure.value) if name == "avgColLen" else figure.value
    if kind == "decimal":
        sign, digits, exponent = Decimal(figure.value).as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return ttypes.Decimal(scale=-int(exponent), unscaled=unscaled.to_bytes(size, "big", signed=True))
    return ttypes.Date(figure.value) if kind == "date" else figure.value
