"""Whether compiled code that numba has kept may be run: only where nobody else can have put it there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_Writer = tuple[str, int]


def is_private(folder: Path) -> bool:
    """Say whether only the user and root can change the compiled code in a folder.

    numba unpickles the files that it finds there, which runs whatever they say.

    Parameters
    ----------
    folder : Path
        Where numba keeps the code. In `__pycache__`, where Python has its bytecode, those who can change the source
        may change the code too.

    Returns
    -------
    bool
        False where anybody else can write to the folder or to its files, or replace one of its parents. True on
        Windows, where the user's profile is closed to others.
    """
    if os.name != "posix":
        return True
    files = list(folder.glob("*.nb[ic]"))
    trusted = {("user", 0), ("user", os.getuid())}
    if folder.name == "__pycache__":
        return _find_writers(folder, *files) <= trusted | _find_writers(folder.parent)
    whole, real = folder.absolute(), folder.resolve()
    return _find_writers(whole, *whole.parents, real, *real.parents, *files) <= trusted


def _find_writers(*paths: Path) -> set[_Writer]:
    writers: set[_Writer] = set()
    for path in paths:
        found = path.lstat()
        writers.add(("user", found.st_uid))
        # Links have no permissions of their own; in a sticky folder only owners can replace what they have there.
        if stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX:
            continue
        # Linux gives each user a group of the same number, which nobody else is in.
        if found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid:
            writers.add(("group", found.st_gid))
        if found.st_mode & stat.S_IWOTH:
            writers.add(("others", 0))
    return writers
