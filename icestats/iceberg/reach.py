"""Which places a table's own metadata may name: those where it is itself, behind endpoints that the user has chosen."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from icestats.errors import MetadataError

LOCAL = "file"
PLACES_OF_DATA = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""Properties by which a table says where its next data files go, the latter two for Java before Iceberg 1.9."""
_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
_STORES = {
    "file": LOCAL,
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "abfs"),
    **{scheme: scheme for scheme in ("hdfs", "viewfs", "oss", "hf")},
}
"""The storage that a scheme is of."""
_AUTHORITY = re.compile(r"([\w$.-]*@)?([\w.-]*|\[[0-9A-Fa-f:.]*\])(:\d*)?", re.ASCII)
"""Without `?` and `#`, which end an authority for those who open files."""
_AZURE = {
    "adls.dfs-storage-authority": ".dfs.core.windows.net",
    "adls.blob-storage-authority": ".blob.core.windows.net",
}
"""What follows an account's name in hosts, where the user's properties say nothing else."""
_NAMED_BY = {
    **dict.fromkeys(("hdfs", "viewfs"), "hdfs.host"),
    "abfs": "adls.account-name, with adls.dfs-storage-authority where that is not .dfs.core.windows.net",
}
_BUCKET = re.compile(r"[A-Za-z0-9._:-]*")
_CUT = re.compile(r"[\x00-\x1f]|^ |^[^/]*:[^?#]*[?#]")
"""PyIceberg, and Iceberg's own clients of S3 and Google's storage, end a URL at `?` and `#`, and drop these others.

A path that begins with a slash is taken as it is.
"""


def store_of(location: str) -> str:
    """Return what kind of storage a location is on.

    Examples
    --------
    >>> store_of("s3a://bucket/key"), store_of("file:///data"), store_of("/data"), store_of("ftp://host/file")
    ('s3', 'file', 'file', 'ftp')
    """
    found = _LOCATION.match(location)
    return LOCAL if found is None else _STORES.get(found[1].lower(), found[1].lower())


def check_reach(location: str, home: str, properties: Mapping[str, str]) -> None:
    """Refuse a location that a table's metadata has no business to name.

    Parameters
    ----------
    location : str
        As the table's metadata names it.
    home : str
        Where its metadata.json is: as the user or the catalog says. A table on a storage names no file elsewhere. One
        whose metadata.json is a local file may name files on the storages that Iceberg knows.
    properties : mapping of str to str
        FileIO's, of the user or the catalog.

    Raises
    ------
    MetadataError
        It is on another kind of storage, or its host is neither the metadata's nor in the properties.
    """
    found, store, own = _LOCATION.match(location), store_of(location), store_of(home)
    if store == LOCAL == own:
        return
    if store == LOCAL:
        raise MetadataError(f"the table is on {own} and names a local file, which is not opened", location)
    authority = found[2] if found is not None else None
    known = store in _STORES.values() or "py-io-impl" in properties
    if store != own and not (own == LOCAL and known):
        raise MetadataError(f"the table is {_say(own)} and names a file on {store}, which is not opened", location)
    if authority is None:
        raise MetadataError("expected two slashes behind the scheme", location)
    if store in ("abfs", "hdfs", "viewfs"):
        if authority and not _is_known_host(store, authority, home, properties):
            raise MetadataError(
                f"{authority} is not where the table's metadata is: what it names there is opened where the catalog's "
                f"properties name the host, in {_NAMED_BY[store]}",
                location,
            )
    elif store in _STORES.values() and not _BUCKET.fullmatch(authority):
        raise MetadataError("what it names behind the scheme is no bucket", location)


def check_writes(location: str, home: str, properties: Mapping[str, str]) -> None:
    """Refuse a location that a table's metadata has no business to have written: one on another storage, too.

    Parameters
    ----------
    location, home, properties
        As of `check_reach`.

    Raises
    ------
    MetadataError
        It is on another kind of storage than the table's metadata.json, or `check_reach` refuses it.
    """
    check_reach(location, home, properties)
    store, own = store_of(location), store_of(home)
    if store != own:
        raise MetadataError(f"the table is {_say(own)} and names a place on {store} to write to", location)


def _say(store: str) -> str:
    return "local" if store == LOCAL else f"on {store}"


def is_whole(location: str) -> bool:
    """Whether what opens a location takes all of it, so that it opens what was looked at.

    Examples
    --------
    >>> is_whole("s3://bucket/t/a.stats"), is_whole("s3://bucket/other?/../t/a.stats"), is_whole("/data/a#b")
    (True, False, True)
    """
    return location.startswith("/") or _CUT.search(location) is None


def folder_of(location: str) -> str:
    """Return the folder of a location, in one form for all schemes of a storage; of one that is not whole, itself.

    Examples
    --------
    >>> folder_of("s3a://bucket/t/metadata/a.stats") == folder_of("s3://bucket/t//metadata/b.json")
    True
    """
    return posixpath.dirname(_plain(location)) if is_whole(location) else location


def is_same(location: str, other: str) -> bool:
    """Whether two locations name one file, whatever scheme of the storage names it.

    Examples
    --------
    >>> is_same("file:/w/a.json", "/w/a.json"), is_same("s3a://bucket/a.json", "s3://other/a.json")
    (True, False)
    """
    return location == other or (is_whole(location) and is_whole(other) and _plain(location) == _plain(other))


def is_below(location: str, folder: str) -> bool:
    """Whether a location is below a folder, whatever scheme of the storage names them."""
    path, start = _plain(location), _plain(folder).rstrip("/") + "/"
    return is_whole(location) and path.startswith(start) and ".." not in path[len(start) :].split("/")


def _plain(location: str) -> str:
    # As it is written: what writes and deletes takes `a%2Fb` for one folder, and a host for a folder of a local path.
    found, store = _LOCATION.match(location), store_of(location)
    authority, path = (found[2] or "", found[3]) if found is not None else ("", location)
    if found is not None and ".." in path.split("/"):
        # Behind a symbolic link it leads elsewhere, and to a storage of objects it is a name.
        return f"{store}:{authority}/{path.lstrip('/')}"
    normal = posixpath.abspath(path) if store == LOCAL else posixpath.normpath("/" + path.lstrip("/"))
    return f"{store}:{authority}{normal}"


def _is_known_host(store: str, authority: str, home: str, properties: Mapping[str, str]) -> bool:
    own = _LOCATION.match(home)
    if store_of(home) == store and own is not None and own[2] == authority and not re.search("[?#]", authority):
        return True
    if not _AUTHORITY.fullmatch(authority):
        return False
    host = authority.rpartition("@")[2].lower()
    if store_of(home) == store and own is not None and (own[2] or "").rpartition("@")[2].lower() == host:
        return True
    if store == "abfs":
        account = properties.get("adls.account-name", "").lower()
        ends = ("", *(properties.get(name, default).lower() for name, default in _AZURE.items()))
        return bool(account) and host in [account + end for end in ends]
    return host.partition(":")[0] == properties.get("hdfs.host", "").lower() != ""
