"""Folders of caches: made for the user alone, and used only where nobody else can have put anything there."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_Writer = tuple[str, int]
_FOR_THE_USER = 0o700
_ACCESS_LIST = "system.posix_acl_access"


def make_private(folder: Path, files: str) -> bool:
    """Make a folder, and those that it lies in, for the user alone.

    One that exists is closed to others where it is the user's own and nobody else could write to it; it is left as it
    is where somebody else could, or owns it.

    Parameters
    ----------
    folder : Path
        The folder of a cache.
    files : str
        As in `is_private`.

    Returns
    -------
    bool
        Whether the cache may be used: `is_private`. False where the folder cannot be made.
    """
    try:
        for path in (*reversed(folder.parents), folder):
            if not path.exists():
                path.mkdir(_FOR_THE_USER, exist_ok=True)
        if not is_private(folder, files):
            return False
        if os.name == "posix" and stat.S_IMODE(folder.stat().st_mode) != _FOR_THE_USER:
            folder.chmod(_FOR_THE_USER)
    except OSError:
        return False
    return True


def is_private(folder: Path, files: str) -> bool:
    """Say whether only the user and root can change the files of a cache.

    Parameters
    ----------
    folder : Path
        Where they are. In `__pycache__`, where Python has its bytecode, those who can change the source may change
        compiled code too.
    files : str
        Which files of the folder are the cache's, as a pattern.

    Returns
    -------
    bool
        False where anybody else can write to the folder or to its files, or replace one of its parents. True on
        Windows, where the user's profile is closed to others.
    """
    if os.name != "posix":
        return True
    found = list(folder.glob(files))
    trusted = {("user", 0), ("user", os.getuid())}
    if folder.name == "__pycache__":
        return _find_writers(folder, *found) <= trusted | _find_writers(folder.parent)
    return _find_writers(*_find_steps(folder), *found) <= trusted


def _find_steps(folder: Path) -> set[Path]:
    """Return what a path leads through: its parents, and where each link on the way leads, one behind the other."""
    folder.stat()  # An error where links lead in a circle.
    steps: set[Path] = set()
    left = [folder.absolute()]
    while left:
        step = left.pop()
        if step not in steps:
            steps.add(step)
            left += [step.parent, step.parent / step.readlink()] if step.is_symlink() else [step.parent]
    return steps


def _find_writers(*paths: Path) -> set[_Writer]:
    writers: set[_Writer] = set()
    for path in paths:
        found = path.lstat()
        writers.add(("user", found.st_uid))
        # Links have no permissions of their own; in a sticky folder only owners can replace what they have there.
        if stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX:
            continue
        # Linux gives each user a group of the same number, which others may be put into. Of a list of who may do what,
        # the group's bits are the most that anybody on it may.
        is_own = found.st_gid == found.st_uid and not _has_others(found.st_gid) and not _has_access_list(path)
        if found.st_mode & stat.S_IWGRP and not is_own:
            writers.add(("group", found.st_gid))
        if found.st_mode & stat.S_IWOTH:
            writers.add(("others", 0))
    return writers


def _has_others(number: int) -> bool:
    """Whether the own group of a user lists anybody else."""
    import grp
    import pwd

    listed: list[str] = []
    # In a container neither need have a name.
    with suppress(KeyError):
        listed = grp.getgrgid(number).gr_mem
        listed = [name for name in listed if name != pwd.getpwuid(number).pw_name]
    return bool(listed)


def _has_access_list(path: Path) -> bool:
    try:
        return hasattr(os, "getxattr") and bool(os.getxattr(path, _ACCESS_LIST))
    except OSError:
        return False
