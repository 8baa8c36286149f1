"""Writing a planned statistics file and its entry in metadata.json."""

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

from icestats.answers.text import one_line
from icestats.commit.statistics_plan import CommitPlan
from icestats.commit.statistics_update import set_statistics, unset_statistics
from icestats.commit.table_state import (
    find_committed,
    remove_file,
    write_file,
)
from icestats.errors import CommitError

if TYPE_CHECKING:
    from pyiceberg.table import Table

Step = Callable[[str], None]

# What catalogs raise when they have certainly not taken a commit. After anything else it may have been taken.
REFUSED = (AuthorizationExpiredError, BadRequestError, ForbiddenError, NoSuchTableError, UnauthorizedError)
_MOST_WAIT_S = 5.0


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
        raise CommitError(f"{path} cannot be written: {one_line(error)}; {discard(table, path)}") from error
    except BaseException:
        discard(table, path)
        raise
    before = None if plan.before is None else plan.before.statistics_path
    try:
        set_statistics(table, plan.after, before, plan.current_schema_id)
    except CommitFailedException:
        discard(table, path)
        return None
    except REFUSED as error:
        raise CommitError(f"{plan.table_name} took no commit: {one_line(error)}; {discard(table, path)}") from error
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
    text = discard(table, plan.statistics_path)
    raise CommitError(f"snapshot {plan.snapshot_id} of {plan.table_name} was expired meanwhile: {text}")


def discard(table: Table, path: str) -> str:
    """Remove a file that was written for a commit; return what to say of it."""
    return (
        "what was written is removed" if remove_file(table, path) else f"{path} could not be removed and is an orphan"
    )


def wait_before_retry(table: Table, attempt: int) -> None:
    """Wait as long as the table's commit properties say, less a random part."""
    shortest_ms = property_as_int(table.properties, "commit.retry.min-wait-ms", 100) or 0
    longest_s = min(_MOST_WAIT_S, max(0, shortest_ms) / 1000 * 2 ** (attempt - 1))
    time.sleep(random.uniform(0, longest_s))  # noqa: S311 - jitter, no secret
