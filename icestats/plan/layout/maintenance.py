"""The statements of Spark SQL that mend a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MANIFEST_SIZE = "commit.manifest.target-size-bytes"
_FILE_SIZE = "write.target-file-size-bytes"
_DEFAULTS = {_MANIFEST_SIZE: 8 << 20, _FILE_SIZE: 512 << 20}


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What statements are about: a table in a catalog, and its properties."""

    catalog: str
    identifier: str
    """Namespace and name, with dots between."""
    properties: Mapping[str, str]

    @property
    def manifest_size_bytes(self) -> int:
        """The size that manifests of the table are to have."""
        return self._size(_MANIFEST_SIZE)

    @property
    def file_size_bytes(self) -> int:
        """The size that data files of the table are to have."""
        return self._size(_FILE_SIZE)

    def rewrite_manifests(self, sort_by: str | None = None, manifest_size_bytes: int | None = None) -> str:
        """Return what regroups files in manifests.

        Examples
        --------
        >>> Maintenance("prod", "db.events", {}).rewrite_manifests("event_time_day")
        "CALL `prod`.system.rewrite_manifests(table => 'db.events', sort_by => array('event_time_day'))"
        """
        order = f", sort_by => array({_quote(sort_by)})" if sort_by else ""
        call = f"CALL {_name(self.catalog)}.system.rewrite_manifests(table => {_quote(self.identifier)}{order})"
        if manifest_size_bytes is None or manifest_size_bytes == self.manifest_size_bytes:
            return call
        return f"{self.set_property(_MANIFEST_SIZE, str(manifest_size_bytes))};\n{call}"

    def set_property(self, name: str, value: str) -> str:
        """Return what sets a table property."""
        table = ".".join(_name(part) for part in (self.catalog, *self.identifier.split(".")))
        return f"ALTER TABLE {table} SET TBLPROPERTIES ({_quote(name)} = {_quote(value)})"

    def sort_files(self, columns: Sequence[str]) -> str:
        """Return what sorts the files of each partition: by one column, or along a z-order curve by several.

        Examples
        --------
        >>> "sort_order => 'zorder(`a`, `b`)'" in Maintenance("prod", "db.events", {}).sort_files(("a", "b"))
        True
        """
        names = ", ".join(_name(column) for column in columns)
        order = f"zorder({names})" if len(columns) > 1 else f"{names} ASC NULLS LAST"
        return self._rewrite_files(f", strategy => 'sort', sort_order => {_quote(order)}, {_options('rewrite-all')}")

    def compact_files(self) -> str:
        """Return what puts small files together."""
        return self._rewrite_files("")

    def apply_deletes(self) -> str:
        """Return what rewrites the data files that delete files apply to."""
        return self._rewrite_files(", options => map('delete-file-threshold', '1')")

    def _rewrite_files(self, more: str) -> str:
        return f"CALL {_name(self.catalog)}.system.rewrite_data_files(table => {_quote(self.identifier)}{more})"

    def _size(self, name: str) -> int:
        text = self.properties.get(name, "")
        return int(text) if text.isdecimal() and int(text) > 0 else _DEFAULTS[name]


def _options(name: str) -> str:
    return f"options => map('{name}', 'true')"


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"
