"""Writing a statistics file and its entry in metadata.json: both, or neither as far as can be known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.utils.properties import property_as_int

from icestats.answers.text import one_line
from icestats.commit.entries import Entry, find_path, set_entry, unset_entry
from icestats.commit.table_state import find_committed, reload_table, remove_file, table_name, write_file
from icestats.errors import CommitError

if TYPE_CHECKING:
    from pyiceberg.table import Table

Step = Callable[[str], None]
"""Called with the name of a step as it begins or is done."""

# Errors after which a catalog has certainly not taken the commit. After any other error it may have.
_REFUSED = (AuthorizationExpiredError, BadRequestError, ForbiddenError, NoSuchTableError, UnauthorizedError)
MOST_ATTEMPTS = 20
"""How often a commit is tried while others commit in between."""
_MOST_WAIT_S = 5.0


def reload_with_snapshot(table: Table, snapshot_id: int) -> Table:
    """Return the table as its catalog has it now; raise CommitError where the snapshot is gone."""
    fresh = reload_table(table)
    if fresh.metadata.snapshot_by_id(snapshot_id) is None:
        raise CommitError(f"snapshot {snapshot_id} of {table_name(table)} was expired meanwhile: nothing is committed")
    return fresh


def write_and_register(
    table: Table, entry: Entry, data: bytes, step: Step, *, schema_id: int | None = None
) -> Table | None:
    """Write a file and its entry.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded; its entry of the snapshot is the one to replace.
    entry : StatisticsFile or PartitionStatisticsFile
        The file's entry.
    data : bytes
        The file.
    step : callable
        Called with `writing`, `written` and `committing`.
    schema_id : int, optional
        As `set_entry`.

    Returns
    -------
    pyiceberg.table.Table or None
        The table then; None where others were faster and nothing changed.

    Raises
    ------
    CommitError
        The catalog refused, or the snapshot was expired: what was written has been removed. Or it gave no answer: the
        file is left, and the message says so.
    """
    path = entry.statistics_path
    try:
        write_file(table, path, data, lambda: step("writing"))
        step("written")
        step("committing")
    except FileExistsError:
        return None
    except OSError as error:
        raise CommitError(f"{path} cannot be written: {one_line(error)}; {_discard(table, path)}") from error
    except BaseException:
        _discard(table, path)
        raise
    try:
        set_entry(table, entry, find_path(table.metadata, entry), schema_id)
    except CommitFailedException:
        _discard(table, path)
        return None
    except _REFUSED as error:
        raise CommitError(f"{table_name(table)} took no commit: {one_line(error)}; {_discard(table, path)}") from error
    except Exception as error:
        arrived = _look_for(table, entry)
        if arrived is None:
            raise CommitError(
                f"no answer to the commit of {table_name(table)}: {one_line(error)}; it is not seen in the metadata, "
                f"and {path} is left on storage in case it still arrives"
            ) from error
        table = arrived
    if table.metadata.snapshot_by_id(entry.snapshot_id) is None:
        # A server took it for a snapshot that was expired just before.
        unset_entry(table, entry)
        text = _discard(table, path)
        raise CommitError(f"snapshot {entry.snapshot_id} of {table_name(table)} was expired meanwhile: {text}")
    return table


def count_attempts(table: Table, most: int = MOST_ATTEMPTS) -> Iterator[int]:
    """Yield the numbers of attempts from 1, with pauses as the table's commit properties say, less a random part."""
    shortest_ms = property_as_int(table.properties, "commit.retry.min-wait-ms", 100) or 0
    for attempt in range(most):
        if attempt:
            longest_s = min(_MOST_WAIT_S, max(0, shortest_ms) / 1000 * 2 ** (attempt - 1))
            time.sleep(random.uniform(0, longest_s))  # noqa: S311 - jitter, no secret
        yield attempt + 1


def explain_exhausted(table: Table, most: int = MOST_ATTEMPTS) -> CommitError:
    """Build the error after the last attempt."""
    return CommitError(
        f"others changed {table_name(table)} in each of {most} attempts: nothing was committed, try again"
    )


def _look_for(table: Table, entry: Entry) -> Table | None:
    try:
        return find_committed(table, entry)
    except Exception:  # noqa: BLE001 - the catalog, or its storage, cannot be reached: nothing is known
        return None


def _discard(table: Table, path: str) -> str:
    """Remove a file that was written for a commit; return what to say of it."""
    return (
        "what was written is removed" if remove_file(table, path) else f"{path} could not be removed and is an orphan"
    )
