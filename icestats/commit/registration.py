"""The entry of a statistics file in metadata.json: setting it, and taking it away."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.utils.properties import property_as_int

from icestats.commit.statistics_plan import CommitPlan
from icestats.commit.statistics_update import set_statistics, unset_statistics
from icestats.commit.table_state import (
    find_committed,
    find_statistics,
    one_line,
    reload_table,
    remove_file,
    table_name,
    write_file,
)
from icestats.errors import CommitError, StatisticsMissingError
from icestats.metadata import StatisticsFile

if TYPE_CHECKING:
    from pyiceberg.table import Table

Step = Callable[[str], None]

# What catalogs raise when they have certainly not taken a commit. After anything else it may have been taken.
_REFUSED = (AuthorizationExpiredError, BadRequestError, ForbiddenError, NoSuchTableError, UnauthorizedError)
_MOST_WAIT_S = 5.0
_MOST_REMOVALS = 20


def write_and_register(plan: CommitPlan, step: Step) -> Table | None:
    """Write a plan's file and its entry; return the table then, None where others were faster and nothing changed."""
    table, path = plan.table, plan.statistics_path
    try:
        write_file(table, path, plan.puffin.data, lambda: step("writing"))
        step("written")
        step("committing")
    except FileExistsError:
        return None
    except OSError as error:
        raise CommitError(f"{path} cannot be written: {one_line(error)}; {_discard(table, path)}") from error
    except BaseException:
        _discard(table, path)
        raise
    before = None if plan.before is None else plan.before.statistics_path
    try:
        set_statistics(table, plan.after, before, plan.current_schema_id)
    except CommitFailedException:
        _discard(table, path)
        return None
    except _REFUSED as error:
        raise CommitError(f"{plan.table_name} took no commit: {one_line(error)}; {_discard(table, path)}") from error
    except Exception as error:
        arrived = _look_for(plan)
        if arrived is None:
            raise CommitError(
                f"no answer to the commit of {plan.table_name}: {one_line(error)}; it is not seen in the metadata, and "
                f"{path} is left on storage in case it still arrives"
            ) from error
        table = arrived
    if table.metadata.snapshot_by_id(plan.snapshot_id) is None:
        _undo(table, plan)
    return table


def _look_for(plan: CommitPlan) -> Table | None:
    try:
        return find_committed(plan.table, plan.after)
    except Exception:  # noqa: BLE001 - the catalog, or its storage, cannot be reached: nothing is known
        return None


def _undo(table: Table, plan: CommitPlan) -> NoReturn:
    """Take back what a server took for a snapshot that was expired just before."""
    unset_statistics(table, plan.snapshot_id, plan.statistics_path)
    text = _discard(table, plan.statistics_path)
    raise CommitError(f"snapshot {plan.snapshot_id} of {plan.table_name} was expired meanwhile: {text}")


def _discard(table: Table, path: str) -> str:
    return (
        "what was written is removed" if remove_file(table, path) else f"{path} could not be removed and is an orphan"
    )


def remove_statistics(table: Table, snapshot_id: int, *, delete_file: bool = False) -> StatisticsFile:
    """Remove a snapshot's entry from metadata.json's `statistics`: undo a commit.

    Parameters
    ----------
    table : pyiceberg.table.Table
        From any catalog.
    snapshot_id : int
        Whose statistics to remove. What they replaced, if anything, does not come back.
    delete_file : bool
        Whether to delete the file as well; otherwise it stays, as an orphan.

    Returns
    -------
    StatisticsFile
        The entry that was removed.

    Raises
    ------
    StatisticsMissingError
        The snapshot has no statistics.
    CommitError
        The table is read-only or dropped, or others changed these statistics meanwhile: nothing was removed.
    UnsupportedError
        PyIceberg cannot load the table, or cannot write its format version.
    """
    first: StatisticsFile | None = None
    for attempt in range(1, _MOST_REMOVALS + 1):
        fresh = reload_table(table)
        entry = find_statistics(fresh, snapshot_id)
        if first is not None and entry != first:
            raise CommitError(f"others changed the statistics of snapshot {snapshot_id} meanwhile: nothing was removed")
        if entry is None:
            raise StatisticsMissingError(f"{table_name(table)} has no statistics for snapshot {snapshot_id}")
        first = entry
        try:
            unset_statistics(fresh, snapshot_id, entry.statistics_path)
        except CommitFailedException:
            wait_before_retry(fresh, attempt)
            continue
        if delete_file:
            remove_file(fresh, entry.statistics_path)
        return entry
    raise CommitError(f"others kept committing to {table_name(table)}: nothing was removed, try again")


def wait_before_retry(table: Table, attempt: int) -> None:
    """Wait as long as the table's commit properties say, less a random part."""
    shortest_ms = property_as_int(table.properties, "commit.retry.min-wait-ms", 100) or 0
    longest_s = min(_MOST_WAIT_S, max(0, shortest_ms) / 1000 * 2 ** (attempt - 1))
    time.sleep(random.uniform(0, longest_s))  # noqa: S311 - jitter, no secret
