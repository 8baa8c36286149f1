"""Reads the open parts of the manifest tree, and flattens it to a list of rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_rows
from icestats.errors import IcestatsError
from icestats.iceberg.metadata import Field
from icestats.snapshot.pruning.plan import Plan
from icestats.table.table import Table
from icestats_widgets.reading.plan_outcomes import SkippedRows
from icestats_widgets.reading.selection import Selection
from icestats_widgets.reading.tree.file_listing import find_file, read_file_listing, read_listed_files
from icestats_widgets.reading.tree.outline import Block, Outline, arrange
from icestats_widgets.reading.tree.tree_blocks import (
    SNAPSHOT,
    column_block,
    file_block,
    manifest_block,
    note_block,
    row_group_block,
    snapshot_block,
)

_MOST_KEPT = 12
"""Number of manifests whose files stay in memory, so reopening one reads nothing."""
Path = tuple[str, ...]
Show = Callable[[Outline | None, int, int], bool]


class NotWantedError(Exception):
    """Something else is wanted by now."""


class TreeWish(NamedTuple):
    """Which parts of the tree are wanted: everything that they depend on."""

    table: Table
    overview: Any
    manifests: pa.Table
    """`schemas.MANIFEST_FILES` or `schemas.MANIFESTS`."""
    mode: str = "tree"
    """`tree`, or `files` for all files in one list."""
    column: str | None = None
    sort: tuple[str, bool] | None = None
    words: str = ""
    selection: Selection | None = None
    plan: Plan | None = None
    """Of the filter: what it skips is grey."""
    marked_paths: frozenset[str] | None = None
    """Manifests that may hold files of the selected partitions; None if none are selected."""
    opened: frozenset[Path] = frozenset({(SNAPSHOT,)})

    @property
    def field(self) -> Field | None:
        """The selected column."""
        return next((f for f in self.table.schema.columns if f.name == self.column), None)

    def is_same(self, other: TreeWish) -> bool:
        """Return whether it equals another wish."""
        return all(map(_is_same, self, other))


class TreeReader:
    """Builds the tree, and keeps what it has read."""

    def __init__(self) -> None:
        self._read_files = lru_cache(_MOST_KEPT)(_read_files)
        self._roots: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self._listing: tuple[tuple[Any, ...], pa.Table] | None = None
        self._unfinished: tuple[tuple[Any, ...], Iterator[tuple[pa.Table, int, int]]] | None = None
        self._one_lists = threading.Lock()

    def read(self, wish: TreeWish, show: Show | None = None) -> Outline:
        """Return the wanted tree.

        Parameters
        ----------
        wish : TreeWish
            What is wanted.
        show : callable, optional
            Called while the list of all files is read, with the rows so far (None if they are not in order yet), the
            number of manifests read and of all manifests; returning False stops the reading.

        Raises
        ------
        NotWantedError
            `show` stopped the reading.
        IcestatsError
            The list of all files cannot be read. In the tree, an unreadable manifest shows the error in its place.
        """
        if wish.mode == "files":
            return Outline(self._listed(wish, show))
        root = snapshot_block(wish.table, wish.overview)
        if (SNAPSHOT,) in wish.opened and root.row_count:
            root.open[0] = self._manifests(wish)
        return Outline(root)

    def _manifests(self, wish: TreeWish) -> Block:
        block = self._root(
            "tree",
            (wish.manifests, wish.overview, wish.column, wish.plan),
            lambda: manifest_block(wish.manifests, wish.overview, wish.field, self._skipped(wish)),
        )
        only = None
        if wish.marked_paths is not None:
            only = pc.is_in(wish.manifests["manifest_path"], pa.array(sorted(wish.marked_paths), pa.string()))
        block = self._arranged(block, wish, only, words=wish.words)
        paths = wish.manifests["manifest_path"].to_pylist()
        numbers = {path: row for row, path in enumerate(paths)}
        for path in self._opened(wish, (SNAPSHOT,)):
            if path in numbers:
                block.open[numbers[path]] = _or_note(self._files_of, wish, (SNAPSHOT, path))
        return block

    def _files_of(self, wish: TreeWish, path: Path) -> Block:
        files = self._read_files(wish.table, path[-1], wish.field)
        only = wish.selection.mask(files) if wish.selection is not None and wish.selection.ranges else None
        block = self._arranged(file_block(files, wish.table, wish.field, self._skipped(wish)), wish, only)
        self._open_files(wish, block, files, path)
        return block if len(block.order) else note_block("this manifest has no files in the selected partitions")

    def _listed(self, wish: TreeWish, show: Show | None) -> Block:
        key = (wish.table, wish.column)
        with self._one_lists:
            if self._listing is None or not all(map(_is_same, self._listing[0], key)):
                self._listing = None
                self._listing = (key, self._read_listing(wish, key, show))
            files = self._listing[1]
        skipped = self._skipped(wish)
        made = self._root("files", (*key, wish.plan), lambda: file_block(files, wish.table, wish.field, skipped))
        only = None if wish.selection is None else wish.selection.mask(files)
        block = self._arranged(made, wish, only, words=wish.words)
        self._open_files(wish, block, files, ())
        return block

    def _read_listing(self, wish: TreeWish, key: tuple[Any, ...], show: Show | None) -> pa.Table:
        # What was stopped goes on from there; rows stay where they are only if they are neither sorted nor filtered.
        is_plain = wish.sort is None and not wish.words and wish.selection is None
        started, self._unfinished = self._unfinished, None
        if started is None or not all(map(_is_same, started[0], key)):
            started = (key, read_file_listing(wish.table, wish.field))
        for files, done, total in started[1]:
            if show is not None and done < total:
                rows = file_block(files, wish.table, wish.field, self._skipped(wish)) if is_plain else None
                if not show(None if rows is None else Outline(rows), done, total):
                    self._unfinished = started
                    raise NotWantedError
        return files

    def _open_files(self, wish: TreeWish, block: Block, files: pa.Table, path: Path) -> None:
        for file_path in self._opened(wish, path):
            found = find_file(files, file_path)
            if found >= 0:
                manifest_path = str(files["manifest_path"][found].as_py())
                block.open[found] = _or_note(self._columns_of, wish, (*path, file_path), manifest_path)

    def _columns_of(self, wish: TreeWish, path: Path, manifest_path: str) -> Block:
        schema = wish.table.schema
        names = [field.name for field in schema.columns]
        files = wish.table.files(columns=names, manifest_paths=[manifest_path])
        file = files.filter(pc.equal(files["file_path"], path[-1])).slice(0, 1)
        (entry,) = to_rows(file)
        block = self._arranged(column_block(entry, schema.columns, entry["content"] == "data"), wish, None)
        for name in self._opened(wish, path):
            if name in names:
                place = names.index(name)
                block.open[place] = _or_note(_row_groups_of, wish.table, file, schema.columns[place])
        return block

    def _skipped(self, wish: TreeWish) -> SkippedRows:
        found: SkippedRows = self._root("skipped", (wish.plan,), lambda: SkippedRows(wish.plan))
        return found

    def _root(self, name: str, key: tuple[Any, ...], build: Any) -> Any:
        kept = self._roots.get(name)
        if kept is None or not all(map(_is_same, kept[0], key)):
            kept = self._roots[name] = (key, build())
        return kept[1]

    @staticmethod
    def _arranged(block: Block, wish: TreeWish, only: Any, words: str = "") -> Block:
        column, descending = wish.sort or (None, False)
        order = arrange(block, column, descending=descending, words=words, only=only)
        return replace(block, order=order, open={})

    @staticmethod
    def _opened(wish: TreeWish, path: Path) -> Iterator[str]:
        for opened in sorted(wish.opened):
            if len(opened) == len(path) + 1 and opened[:-1] == path:
                yield opened[-1]


def _or_note(build: Callable[..., Block], *arguments: Any) -> Block:
    """Return the rows below another one; where they cannot be read, a row that says why."""
    try:
        return build(*arguments)
    except IcestatsError as error:
        return note_block(str(error))


def _row_groups_of(table: Table, file: pa.Table, column: Field) -> Block:
    return row_group_block(table.row_groups(file, columns=[column.name]), column)


def _read_files(table: Table, manifest_path: str, column: Field | None) -> pa.Table:
    manifests = table.manifest_files()
    return read_listed_files(table, manifests.filter(pc.equal(manifests["manifest_path"], manifest_path)), column)


def _is_same(one: Any, other: Any) -> bool:
    # Tables are compared by identity: comparing their contents would take long.
    return one is other or (isinstance(one, str | tuple | frozenset | Selection) and one == other)
