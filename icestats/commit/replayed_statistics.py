"""What a snapshot's statistics are due to be, where commits have passed each other: their changes, one after the other.

A server that decides alone takes a commit that was planned before another one arrived. Its file lacks what that one
has added, and has what that one has taken out. So each file says what it changes of the one that it was planned with;
these changes, in the order of the metadata's versions, tell what should stand there.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from icestats.commit.puffin_writer import CarriedBlob, PuffinBytes
from icestats.commit.table_state import BlobKey, ExistingFile, blob_key, list_since, read_existing
from icestats.errors import MetadataError
from icestats.iceberg.metadata import BlobMetadata, StatisticsFile
from icestats.read.puffin.puffin import MAX_HIDDEN_BLOBS_LENGTH

if TYPE_CHECKING:
    from pyiceberg.table import Table

CHANGES = "icestats.changes"
"""Property of a file: its name and that of the file that it was planned with, which of its blobs were asked for, and
which have come to these, as bits, and which types and fields it has left out.

A copy by another name is no change of anything: it is put back with all that it holds."""
_EARLIER = "~"
"""Behind a type and fields that were left out as they were made for other snapshots."""

Held = tuple[tuple[CarriedBlob, ...], tuple[BlobMetadata, ...]]
Content = Mapping[BlobKey, Held]
"""The blobs of a file and what metadata.json lists of them; several of a key, as Hive's by partition, stay together."""


_CUT = (
    "the metadata log has dropped versions meanwhile (write.metadata.previous-versions-max), so that not all of what "
    "others committed in between could be looked at: see what stands there now"
)


class Course(NamedTuple):
    """What is due, as far as the versions of the metadata have been looked at."""

    due: Content
    at: str
    """The version that was looked at last."""
    path: str | None
    """The snapshot's file in it."""
    is_taken_back: bool = False
    """Whether it is of a removal that is taken back: what others left out, as they saw it removed, stays then."""
    is_cut: bool = False
    """Whether the log had dropped versions in between, and with them some of the changes."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be checked, as a warning."""
        return (_CUT,) if self.is_cut else ()


def read_content(files: Sequence[ExistingFile]) -> Content:
    """Return what files of a snapshot hold together, the most important one first."""
    content: dict[BlobKey, Held] = {}
    for file in files:
        found: dict[BlobKey, tuple[list[CarriedBlob], list[BlobMetadata]]] = defaultdict(lambda: ([], []))
        for carried in file.blobs:
            found[blob_key(carried.blob)][0].append(carried)
        for entry in file.entry.blobs:
            found[blob_key(entry)][1].append(entry)
        for key, (blobs, listed) in found.items():
            content.setdefault(key, (tuple(blobs), tuple(listed)))
    return content


def as_file(content: Content, entry: StatisticsFile, properties: Mapping[str, str]) -> ExistingFile:
    """Return what is due as if a file held it."""
    blobs = tuple(carried for held, _ in content.values() for carried in held)
    listed = tuple(entry for _, entries in content.values() for entry in entries)
    return ExistingFile(replace(entry, blobs=listed), blobs, properties)


def is_same_as(puffin: PuffinBytes, entry: StatisticsFile, file: ExistingFile | None) -> bool:
    """Whether a snapshot's file has the blobs of another one, and lists the same."""
    if file is None:
        return not puffin.blobs
    theirs = [(repr(replace(c.blob, offset=0)), c.stored) for c in file.blobs]
    ours = [(repr(replace(b, offset=0)), puffin.data[b.offset : b.offset + b.length]) for b in puffin.blobs]
    return sorted(ours) == sorted(theirs) and set(map(repr, entry.blobs)) == set(map(repr, file.entry.blobs))


class Changes(NamedTuple):
    """What a file says that it changes."""

    planned_with: str
    """The name of the snapshot's file before; `-` for none."""
    asked: frozenset[BlobKey]
    joined: frozenset[BlobKey]
    """Blobs of ancestors, or of commits that have passed each other: no newer than what the snapshot has."""
    left_out: frozenset[str]


def describe_changes(
    paths: tuple[str, str | None],
    keys: Sequence[BlobKey],
    new: tuple[set[BlobKey], set[BlobKey]],
    gone: Content,
    snapshot_id: int,
) -> str:
    """Return the value of `CHANGES` for a file and the one before it: of its keys those asked for, and those joined.

    What has `gone` was left out, of a snapshot's own or, marked so, of that made for others.
    """
    bits = [f"{sum(1 << at for at, key in enumerate(keys) if key in some):x}" for some in new]
    left_out = (_name_left_out(key, gone[key], snapshot_id) for key in gone.keys() - set(keys))
    return " ".join([*map(_base_name, paths), *bits, *sorted(left_out)])


def _base_name(path: str | None) -> str:
    # A name of others may have blanks, or be none.
    return "-" if path is None else quote(posixpath.basename(path)) or "%"


def _name(key: BlobKey) -> str:
    return f"{quote(key[0])}:{','.join(map(str, key[1]))}"


def _name_left_out(key: BlobKey, held: Held, snapshot_id: int) -> str:
    """Return a type and its fields as a word, marked where none of its blobs was made for a snapshot."""
    return _name(key) + ("" if _is_of(held, snapshot_id) else _EARLIER)


def advance(course: Course, table: Table, snapshot_id: int, *, own: tuple[str | None, ...] = ()) -> Course:
    """Follow the versions of the metadata from where a course has been to the present one.

    Parameters
    ----------
    course : Course
        How far it has been followed.
    table : pyiceberg.table.Table
        The table as it is now.
    snapshot_id : int
        The snapshot.
    own : tuple of str or None
        What the caller has put there, and what changes nothing of what is due: the last of these paths, at most one.

    Raises
    ------
    MetadataError, CommitError, UnsupportedError
        A version, or a file, cannot be read.
    """
    due, passed = dict(course.due), {course.path}
    versions = list_since(table, snapshot_id, course.at)
    steps: list[tuple[str | None, StatisticsFile | None]] = [(course.path, None)]
    for entry in versions:
        path = None if entry is None else entry.statistics_path
        if path != steps[-1][0]:
            steps.append((path, entry))
    is_cut = course.is_cut or (len(steps) > 1 and not _logs(table, course.at))
    earlier: set[str | None] | None = None
    skipped = next((at for at in reversed(range(1, len(steps))) if steps[at][0] in own), 0)
    emptied = max((at for at in range(1, len(steps)) if steps[at][1] is None and at != skipped), default=0)
    for at, (path, entry) in enumerate(steps):
        if at < emptied or at in (0, skipped):
            passed.add(path)
            continue
        if entry is None:
            due = {}
        else:
            file = read_existing(table, entry)
            content, changes = read_content([file]), _read_changes(file)
            is_put_back = path in passed
            if changes is not None and not is_put_back:
                earlier = _list_earlier(table, snapshot_id, len(versions)) if earlier is None else earlier
                is_put_back = path in earlier
            if is_put_back:
                due = {**content, **_join(content, due, frozenset(due), snapshot_id)}
            elif changes is None:
                due = dict(content)
            else:
                due = due if course.is_taken_back else dict(_leave_out(due, changes.left_out, snapshot_id))
                due |= {key: content[key] for key in changes.asked}
                # A file that was planned with one of a version that the log has dropped holds what that has added. What
                # it has of what is due may be older: it may have been planned before.
                is_behind = changes.planned_with not in map(_base_name, passed | (earlier or set()))
                is_cut = is_cut or is_behind
                has_seen_all = changes.planned_with == _base_name(steps[at - 1][0])
                if has_seen_all or is_behind or not emptied:
                    joined = frozenset(content) if is_behind else changes.joined
                    due |= _join(due, content, joined, snapshot_id if has_seen_all else None)
        passed.add(path)
    return course._replace(due=due, at=table.metadata_location, path=steps[-1][0], is_cut=is_cut)


def _logs(table: Table, version: str) -> bool:
    """Whether the metadata log still has a version that was replaced."""
    return any(entry.metadata_file == version for entry in table.metadata.metadata_log)


def _leave_out(due: Content, left_out: frozenset[str], snapshot_id: int) -> Content:
    """Return what a file has not left out of what was due."""
    return {
        key: held
        for key, held in due.items()
        if left_out.isdisjoint({_name(key), _name_left_out(key, held, snapshot_id)})
    }


def _join(due: Content, content: Content, joined: frozenset[BlobKey], snapshot_id: int | None) -> Content:
    """Return what of a file is added to what is due: all that this lacks, and what was made for a snapshot."""
    newer = {key for key in joined if _is_of(content[key], snapshot_id)}
    return {key: content[key] for key in joined if key in newer or key not in due}


def _is_of(held: Held, snapshot_id: int | None) -> bool:
    """Whether one of some blobs was made for a snapshot."""
    return any(carried.blob.snapshot_id == snapshot_id for carried in held[0])


def _list_earlier(table: Table, snapshot_id: int, since: int) -> set[str | None]:
    """Return what stood there before the last versions: if it does again, it was put back with all that it holds."""
    with suppress(MetadataError):
        earlier = list_since(table, snapshot_id, "")[:-since]
        return {None if entry is None else entry.statistics_path for entry in earlier}
    return set()


def _read_changes(file: ExistingFile) -> Changes | None:
    """Return what a file says; None where it does not."""
    text = file.properties.get(CHANGES, "")
    with suppress(ValueError):
        name, planned_with, asked, joined, *left_out = text.split() if len(text) <= MAX_HIDDEN_BLOBS_LENGTH else []
        if name == _base_name(file.entry.statistics_path):
            return Changes(planned_with, _pick(file, asked), _pick(file, joined), frozenset(left_out))
    return None


def _pick(file: ExistingFile, bits: str) -> frozenset[BlobKey]:
    if len(bits) > len(file.blobs) // 4 + 1:
        raise ValueError(f"{len(bits)} digits for {len(file.blobs)} blobs")
    mask = reversed(f"{int(bits, 16):b}")
    return frozenset(blob_key(held.blob) for held, bit in zip(file.blobs, mask, strict=False) if bit == "1")
