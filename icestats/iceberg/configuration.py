"""PyIceberg's configuration: which file it is, whether it is the user's, and whether it can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestats.errors import CatalogError

if TYPE_CHECKING:
    from pyiceberg.utils.config import Config

_NAME = ".pyiceberg.yaml"
_HOME = "~"


def check_configuration() -> None:
    """Refuse PyIceberg's configuration where it is a file of the current folder: that may be a table's, of a stranger.

    Raises
    ------
    CatalogError
        It is, and neither PYICEBERG_HOME nor the user's home has one.
    """
    here = next(filter(_is_file, _files_here()), None)
    if here is not None and not any(map(_says_something, _own_files())):
        raise CatalogError(
            f"{here.absolute()} would say which catalogs there are and what code to run, as it lies in the current "
            "folder: if it is yours, set PYICEBERG_HOME to that folder, else work in another one"
        )


def check_readable(*catalogs: str) -> None:
    """Refuse a configuration that PyIceberg cannot read, before PyIceberg is imported, which reads it too.

    Raises
    ------
    CatalogError
        It cannot be read, or the current folder is gone, in which PyIceberg looks for it.
    """
    _check_current_folder()
    if _find_file() is not None or any(name.lower().startswith("pyiceberg_") for name in os.environ):
        read_configuration(catalogs)


def read_configuration(catalogs: Collection[str] | None = None) -> Config:
    """Read PyIceberg's configuration: its errors show lines and values, which may be secrets.

    Parameters
    ----------
    catalogs : collection of str, optional
        The catalogs that are asked for; by default all.

    Raises
    ------
    CatalogError
        It cannot be read.
    """
    _check_current_folder()
    from pyiceberg.utils.config import Config

    try:
        config = Config()
        if catalogs is None:
            catalogs = (config.get_default_catalog_name(), *config.get_known_catalogs())
        for name in catalogs:
            config.get_catalog_config(name)
        config.get_int("max-workers")
        for name in ("legacy-current-snapshot-id", "downcast-ns-timestamp-to-us-on-write"):
            config.get_bool(name)
    except Exception as error:  # noqa: BLE001 - its parser has many
        path, mark = _find_file(), getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        variable = [] if mark else ["a variable of the environment, PYICEBERG_...,"]
        what = " or ".join([*([str(path.absolute())] if path else []), *variable])
        raise CatalogError(
            f"PyIceberg's configuration cannot be read: {what} is not what it should be{where}; expected "
            "the YAML that PyIceberg documents: names and texts below `catalog:`, indented by spaces"
        ) from None
    return config


def _check_current_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise CatalogError(
            "the current folder is gone, and PyIceberg looks for its configuration there: change to another one"
        ) from error


def _find_file() -> Path | None:
    return next(filter(_is_file, (*_own_files(), *_files_here())), None)


def _own_files() -> list[Path]:
    folders = (os.environ.get("PYICEBERG_HOME"), os.path.expanduser(_HOME))  # noqa: PTH111 - as PyIceberg finds it
    return [Path(folder, _NAME) for folder in folders if folder and folder != _HOME]


def _files_here() -> list[Path]:
    # Where a user has no home folder, PyIceberg looks into one that is called `~`, in the current one.
    folders = (_HOME, ".") if os.path.expanduser(_HOME) == _HOME else (".",)  # noqa: PTH111 - as PyIceberg finds it
    return [Path(folder, _NAME) for folder in folders]


def _says_something(path: Path) -> bool:
    # PyIceberg goes on to the next file where one is empty.
    if not _is_file(path):
        return False
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        # PyIceberg fails on it too.
        return True
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines)


def _is_file(path: Path) -> bool:
    # As PyIceberg asks: Path.is_file() raises where a folder on the way is closed to the user.
    return os.path.isfile(path)  # noqa: PTH113


def find_catalog_type(properties: Mapping[str, Any]) -> str:
    """Return what type of catalog properties are of: what they say, or what PyIceberg takes from the `uri`'s scheme.

    Examples
    --------
    >>> find_catalog_type({"uri": "sqlite:////data/c.db"}), find_catalog_type({"type": "Hive", "uri": ""})
    ('sql', 'hive')
    """
    if stated := properties.get("type"):
        return str(stated).lower()
    scheme = str(properties.get("uri", "")).partition(":")[0].partition("+")[0]
    return {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}.get(scheme, "")


def find_sqlite_path(uri: str) -> str | None:
    """Return the file that a SQL catalog's `uri` names; None where it names none, or is in memory.

    Examples
    --------
    >>> find_sqlite_path("sqlite:////data/c.db?timeout=5"), find_sqlite_path("sqlite:///:memory:")
    ('/data/c.db', None)
    """
    path = re.fullmatch(r"sqlite(?:\+\w+)?:///([^?]+)(?:\?.*)?", uri)
    return None if path is None or path[1] == ":memory:" else path[1]
