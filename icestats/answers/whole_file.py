"""Writing an answer to a file: the file has all of it, or is as it was."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file; where that fails half-way, one that is new is removed, and another one is as it was.

    What is no regular file (a device, a pipe, a link) is written to as it is.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    is_new = not os.path.lexists(path)
    if not is_new and (path.is_symlink() or not path.is_file() or not os.access(path.parent, os.W_OK)):
        with path.open("wb") as file:
            file.writelines(parts)
        return
    written = path if is_new else _name_beside(path)
    # A link that somebody has put there in the meantime is not written through.
    file = written.open("xb" if is_new else "wb")
    try:
        with file:
            file.writelines(parts)
        if not is_new:
            shutil.copymode(path, written)
            written.replace(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise


def _name_beside(path: Path) -> Path:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".icestats-", suffix=".part")
    os.close(descriptor)
    return Path(name)
