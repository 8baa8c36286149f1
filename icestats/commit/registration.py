"""Writing statistics files and their entries in metadata.json: all of it, or nothing as far as can be known."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
    ValidationException,
)
from pyiceberg.utils.properties import property_as_int

from icestats.answers.text import one_line
from icestats.commit.entries import Entry, EntryChange, commit_changes, set_entry, unset_entry
from icestats.commit.table_state import (
    find_committed,
    known_properties,
    reload_table,
    remove_file,
    shows_all,
    table_name,
    write_file,
)
from icestats.errors import CommitError, IcestatsError, said_if_cut
from icestats.iceberg.catalog import explain_catalog_error

if TYPE_CHECKING:
    from pyiceberg.table import Table

Step = Callable[[str], None]
"""Called with the name of a step as it begins or is done."""

# Errors by which a catalog says that it has not taken the commit.
_REFUSED = (
    AuthorizationExpiredError,
    BadRequestError,
    CommitError,
    ForbiddenError,
    NoSuchTableError,
    NotImplementedError,
    UnauthorizedError,
)
CONFLICTS = (CommitFailedException, ValidationException)
"""Errors by which a write of rows meets those of others."""
REFUSED_ROWS = (*CONFLICTS, *_REFUSED)
"""Errors by which a catalog says that it has not taken a write of rows."""
_LOCKED = re.compile("(acquire|check|waiting for) (the )?lock")
"""What the clients of a Hive metastore say, PyIceberg's and Java's, when they have waited for a lock in vain."""
MOST_ATTEMPTS = 20
"""How often a commit is tried while others commit in between."""
_MOST_WAIT_S = 5.0
WITHOUT_COMMIT = "it answered with a table that is without what was committed"
"""What is said of a catalog that does so."""


class _NotInAnswerError(Exception):
    """A catalog's answer to a commit is a table without the changes."""


def reload_with_snapshot(table: Table, snapshot_id: int) -> Table:
    """Return the table as its catalog has it now; raise CommitError where the snapshot is gone."""
    fresh = reload_table(table)
    if fresh.metadata.snapshot_by_id(snapshot_id) is None:
        raise CommitError(f"snapshot {snapshot_id} of {table_name(table)} was expired meanwhile: nothing is committed")
    return fresh


def write_and_register(
    table: Table, files: Sequence[tuple[Entry, bytes]], step: Step, left: list[str], schema_id: int | None = None
) -> Table | None:
    """Write files of a snapshot, then commit their entries together.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded; its entries of the snapshot are those to replace.
    files : sequence of (entry, bytes)
        Each file with its entry, all of one snapshot.
    step : callable
        Called with `writing` and `written` for each file, then with `committing`.
    left : list of str
        Gets the files that were written in vain and could not be removed.
    schema_id : int, optional
        As `commit_changes`.

    Returns
    -------
    pyiceberg.table.Table or None
        The table then; None where others were faster and nothing changed.

    Raises
    ------
    CommitError
        The storage failed, the catalog refused, or the snapshot was expired: what was written has been removed, or the
        message names it. Or the catalog gave no answer: the files are left, and the message names them.
    """
    paths = [entry.statistics_path for entry, _ in files]
    if not write_files(table, files, step, left):
        return None
    changes = [set_entry(table.metadata, entry) for entry, _ in files]
    committed = commit_entries(table, changes, left, paths, schema_id)
    if committed is None:
        return None
    snapshot_id = files[0][0].snapshot_id
    if committed.metadata.snapshot_by_id(snapshot_id) is None:
        # A server took it for a snapshot that was expired just before.
        what = f"snapshot {snapshot_id} of {table_name(table)} was expired meanwhile"
        try:
            commit_changes(committed, [unset_entry(entry) for entry, _ in files])
        except Exception as error:  # noqa: BLE001 - each catalog has its own errors
            said, cause = explain_catalog_error(error, known_properties(table))
            raise CommitError(
                f"{what}, and its new entries could not be taken out: {said}; "
                f"{', '.join(paths)} left on storage: remove_statistics(expired=True) takes the entries out"
            ) from cause
        raise CommitError(f"{what}: {_discard(table, paths, left)}")
    return committed


def commit_entries(
    table: Table,
    changes: Sequence[EntryChange],
    left: list[str],
    paths: Sequence[str] = (),
    schema_id: int | None = None,
) -> Table | None:
    """Commit changes of entries together, and find out what happened where the catalog does not say.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded.
    changes : sequence of EntryChange
        What to commit.
    left : list of str
        As `write_and_register`.
    paths : sequence of str
        The files that were written for it.
    schema_id : int, optional
        As `commit_changes`.

    Returns
    -------
    pyiceberg.table.Table or None
        The table then; None where others were faster and nothing changed: the files are removed.

    Raises
    ------
    CommitError
        The catalog refused; or it gave no answer, or one without the changes, and they are not seen in the metadata.
    """
    kept = f", and {', '.join(paths)} is left on storage in case it has" if paths else ""
    with said_if_cut(f"interrupted while committing to {table_name(table)}: whether it arrived is unknown{kept}"):
        return _commit_entries(table, changes, left, paths, schema_id)


def _commit_entries(
    table: Table, changes: Sequence[EntryChange], left: list[str], paths: Sequence[str], schema_id: int | None
) -> Table | None:
    known = [table.metadata_location, *(logged.metadata_file for logged in table.metadata.metadata_log)]
    try:
        commit_changes(table, changes, schema_id)
        if not shows_all(table.metadata, changes):
            # A server that knows no statistics, or a redirection that makes a request to read of one to write.
            raise _NotInAnswerError(WITHOUT_COMMIT)
    except Exception as error:  # noqa: BLE001 - each catalog has its own errors
        said, cause = explain_catalog_error(error, known_properties(table))
        answer = "a refusal in answer" if isinstance(error, _REFUSED) else "no answer"
        failed = f"{answer} to the commit of {table_name(table)}: {said}"
        if isinstance(error, _NotInAnswerError):
            failed = f"the catalog has not done the commit of {table_name(table)}: {said}"
        kept = f", and {', '.join(paths)} is left on storage in case it still arrives" if paths else ""
        # A request that was sent twice, since its first answer was lost, fails though the commit has been taken.
        try:
            arrived = find_committed(table, changes, known, paths)
        except Exception as unseen:  # noqa: BLE001 - the catalog, or its storage, cannot be reached: nothing is known
            # A table that is gone by both answers refers to no file.
            if not (isinstance(error, NoSuchTableError) and isinstance(unseen.__context__, NoSuchTableError)):
                why = one_line(unseen).partition("; ")[0]
                raise CommitError(f"{failed}; whether it arrived is unknown ({why}){kept}") from cause
            arrived = None
        if arrived is not None:
            return arrived
        if not isinstance(error, (CommitFailedException, *_REFUSED)):
            raise CommitError(f"{failed}; it is not seen in the metadata{kept}") from cause
        text = _discard(table, paths, left)
        if is_locked := _LOCKED.search(said) is not None:
            text += "; try again once the other writer's lock is gone, one that was killed leaves it for a while"
        if is_locked or isinstance(error, _REFUSED):
            raise CommitError(f"{table_name(table)} took no commit: {said}; {text}") from cause
        return None
    return table


def write_files(table: Table, files: Sequence[tuple[Entry, bytes]], step: Step, left: list[str]) -> bool:
    """Write files; return False, with none of them there, where one of the names is taken.

    Parameters are those of `write_and_register`.

    Raises
    ------
    CommitError
        The storage failed: what was written has been removed, or the message names it.
    """
    written: list[str] = []
    opened: list[str] = []

    def begin() -> None:
        opened.append(written[-1])
        step("writing")

    try:
        for entry, data in files:
            written.append(entry.statistics_path)
            write_file(table, entry.statistics_path, data, begin)
            step("written")
        step("committing")
    except Exception as error:  # noqa: BLE001 - each FileIO has its own errors
        if isinstance(error, FileExistsError) and opened != written:
            _discard(table, written[:-1], left)
            return False
        text = _discard(table, written, left)
        said, cause = explain_catalog_error(error, known_properties(table))
        raise CommitError(f"{written[-1]} cannot be written: {said}; {text}") from cause
    except BaseException:
        _discard(table, written, left)
        raise
    return True


def look_behind_answers(table: Table, is_done: Callable[[], bool]) -> None:
    """Let the table believe neither a refusal of a commit that was taken, nor an answer without what was committed.

    PyIceberg deletes the files of a write of rows at the last refusal, and takes any table for what it wrote, without a
    look.

    Parameters
    ----------
    table : pyiceberg.table.Table
        What is written to.
    is_done : callable
        Whether the table, which has just been loaded anew, has what is written.
    """
    commit = table._do_commit

    def commit_and_look(*args: Any, **options: Any) -> None:
        try:
            commit(*args, **options)
        except CommitFailedException:
            table.refresh()
            if not is_done():
                raise
        if not is_done():
            raise _NotInAnswerError(WITHOUT_COMMIT)

    table._do_commit = commit_and_look  # type: ignore[method-assign] # a transaction commits through its table


def count_attempts(table: Table, most: int = MOST_ATTEMPTS) -> Iterator[int]:
    """Yield the numbers of attempts from 1, with pauses as the table's commit properties say, less a random part."""
    for attempt in range(most):
        if attempt:
            shortest_ms = property_as_int(table.properties, "commit.retry.min-wait-ms", 100) or 0
            longest_s = min(_MOST_WAIT_S, min(max(0, shortest_ms), _MOST_WAIT_S * 1000) / 1000 * 2 ** (attempt - 1))
            time.sleep(random.uniform(0, longest_s))  # noqa: S311 - jitter, no secret
        yield attempt + 1


def explain_exhausted(table: Table, most: int = MOST_ATTEMPTS) -> CommitError:
    """Build the error after the last attempt."""
    what = f"others changed {table_name(table)} in each of {most} attempts"
    return CommitError(f"{what}: nothing was committed, try again")


@contextmanager
def naming_left() -> Iterator[list[str]]:
    """Yield a list for the files that attempts of a commit leave; the error that ends it names them all.

    Raises
    ------
    CommitError
        In place of an error that does not name one of them.
    """
    left: list[str] = []
    try:
        yield left
    except IcestatsError as error:
        unnamed = [path for path in left if path not in str(error)]
        if not unnamed:
            raise
        raise CommitError(f"{error}; {describe_left(unnamed)}") from error


def describe_left(paths: Sequence[str]) -> str:
    """Say which files could not be removed."""
    return f"{', '.join(paths)} could not be removed, and may be left on storage as an orphan"


def _discard(table: Table, paths: Sequence[str], left: list[str]) -> str:
    """Remove files that were written for a commit; return what to say of them."""
    kept = [path for path in paths if not remove_file(table, path)]
    left += kept
    if kept:
        return describe_left(kept)
    return "what was written is removed" if paths else "nothing was written"
