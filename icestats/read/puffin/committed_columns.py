"""The committed statistics of a column at one snapshot, complete: its sketches and column statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader
from icestats.read.puffin.committed_sketches import find_joint
from icestats.read.puffin.statistics_age import HASHED_ALIKE, MERGED
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    LG_K,
    THETA,
    CommittedBlob,
    CommittedBlobs,
)
from icestats.stats.frequent_items import FrequentValues, read_frequent_values
from icestats.stats.joint_statistics import read_joint_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_type_of
from icestats.stats.table_statistics import (
    DEFAULT_K,
    DEFAULT_LG_K,
    ColumnStatistics,
    find_theta_lg_k,
    read_column_statistics,
)
from icestats.stats.theta import ThetaSketch

_SKETCH = "a committed sketch"
_LG_KS = frozenset(str(lg_k) for lg_k in range(4, 27))


@dataclass(frozen=True, slots=True)
class CommittedColumn:
    """The statistics of a column as an earlier commit has them."""

    snapshot_id: int
    statistics: ColumnStatistics


def find_sketched_fields(blobs: Iterable[CommittedBlob], fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return those of some fields of which an ancestor of the snapshot, or the snapshot itself, has any sketch."""
    known = {
        field_id
        for found in blobs
        if found.commits_behind is not None and found.blob.type in (THETA, KLL, COLUMN_STATISTICS, FREQUENT_ITEMS)
        for field_id in found.blob.field_ids
    }
    return tuple(field for field in fields if field.field_id in known)


def read_committed_column(storage: FileReader, blobs: CommittedBlobs, field: Field) -> CommittedColumn | str:
    """Read the nearest statistics of a column that are whole.

    Parameters
    ----------
    storage : FileReader
        Where to read from.
    blobs : CommittedBlobs
        The table's blobs, as `read_committed_blobs` gives them.
    field : Field
        The column, of the schema that its snapshot is read with.

    Returns
    -------
    CommittedColumn or str
        The statistics; or in words why none can be added to: nothing was committed, only a Theta sketch was (as
        Iceberg and Trino do), the column had another type then, or its statistics contradict one another.

    Raises
    ------
    PuffinFormatError
        A blob is damaged.
    """
    item_type = item_type_of(field.type)
    wanted = (THETA, COLUMN_STATISTICS, FREQUENT_ITEMS, *(() if item_type is None else (KLL,)))
    # What is of one snapshot in two files may have been made when the column had two types.
    by_place: dict[tuple[int, str], dict[str, CommittedBlob]] = {}
    for found in blobs.by_columns.get((field.field_id,), ()):
        by_place.setdefault(_find_place(found), {}).setdefault(found.blob.type, found)
    if not by_place:
        return "nothing has been committed for it"
    whole = next((found for found in by_place.values() if all(kind in found for kind in wanted)), None)
    if whole is None:
        return "its committed statistics lack the KLL sketch, the frequent items or the column statistics"
    figures = whole[COLUMN_STATISTICS].read(
        storage, "not column statistics", lambda data: read_column_statistics(data)[field.field_id]
    )
    if figures.type != field.type:
        return f"its type was {figures.type} and is {field.type} now"
    if item_type is not None and whole[KLL].blob.properties.get("item-type") != item_type:
        return f"its KLL sketch has items of another type than {item_type}"
    theta, sketch = whole[THETA].read(storage, _SKETCH, lambda data: (data, ThetaSketch.from_bytes(data)))
    if lie := _contradiction(whole[THETA], sketch, figures):
        return lie
    items, counted = whole[FREQUENT_ITEMS].read(storage, _SKETCH, lambda data: (data, read_frequent_values(data)))
    if lie := _contradicting_items(counted, figures):
        return lie
    kll = None
    if item_type is not None:
        kll, ranked = whole[KLL].read(storage, _SKETCH, lambda data: (data, KllSketch.from_bytes(item_type, data)))
        if lie := _contradicting_values("KLL sketch is", ranked.n, figures):
            return lie
    made = replace(
        figures,
        theta=theta,
        kll=kll,
        item_type=item_type,
        frequent_items=items,
        lg_k=_find_stated_lg_k(whole[THETA]),
    )
    return CommittedColumn(whole[THETA].blob.snapshot_id, made)


def find_committed_sizes(storage: FileReader, blobs: CommittedBlobs, fields: Sequence[Field]) -> tuple[int, int]:
    """Return the k and lg_k of the largest committed sketches of some columns: at least 200 and 12, the defaults.

    Of each column those count that column statistics were committed with, also where they cannot be added to, as of an
    earlier type. Those of others and what is damaged do not.
    """
    k, lg_k = DEFAULT_K, DEFAULT_LG_K
    for field in fields:
        own = blobs.by_columns.get((field.field_id,), ())
        complete = {_find_place(one) for one in own if one.blob.type == COLUMN_STATISTICS}
        nearest = [one for one in own if _find_place(one) in complete]
        k = max(k, _find_size(storage, nearest, KLL, _read_k))
        lg_k = max(lg_k, _find_size(storage, nearest, THETA, _read_lg_k))
    known = {field.field_id for field in fields}
    for pair, found in find_joint(blobs).items():
        if known.issuperset(pair):
            lg_k = max(lg_k, _find_size(storage, [found], JOINT_STATISTICS, _read_joint_lg_k))
    return k, lg_k


def _find_place(found: CommittedBlob) -> tuple[int, str]:
    return found.blob.snapshot_id, found.statistics_path


def _find_size(
    storage: FileReader, blobs: Iterable[CommittedBlob], kind: str, read_size: Callable[[CommittedBlob, bytes], int]
) -> int:
    """Return the size of the first blob of a kind that is not damaged; 0: there is none."""
    for found in blobs:
        if found.blob.type == kind:
            with suppress(MetadataError):
                return found.read(storage, _SKETCH, partial(read_size, found))
    return 0


def _read_k(found: CommittedBlob, data: bytes) -> int:
    return KllSketch.from_bytes(found.blob.properties["item-type"], data).k


def _read_lg_k(found: CommittedBlob, data: bytes) -> int:
    return find_theta_lg_k(data, _find_stated_lg_k(found))


def _find_stated_lg_k(found: CommittedBlob) -> int | None:
    stated = found.blob.properties.get(LG_K, "")
    return int(stated) if stated in _LG_KS else None


def _read_joint_lg_k(found: CommittedBlob, data: bytes) -> int:
    first, second = found.blob.field_ids
    return find_theta_lg_k(read_joint_statistics(data, field_ids=(first, second)).theta)


def _contradiction(found: CommittedBlob, theta: ThetaSketch, figures: ColumnStatistics) -> str | None:
    if found.is_merged:
        return f"its Theta sketch is one that {MERGED}"
    hashing = found.find_hashing(figures.type)
    if hashing != "Iceberg" and figures.type not in HASHED_ALIKE:
        whose = f"{hashing}'s" if hashing else "perhaps Presto's"
        return f"its Theta sketch is {whose}, which hashes {figures.type} values in another form"
    said = found.blob.properties.get("ndv")
    if said in (None, str(theta.ndv), str(figures.count_distinct(theta))):
        return None
    return f"its Theta sketch has {theta.ndv} distinct values, and its ndv says {said}"


def _contradicting_items(counted: FrequentValues, figures: ColumnStatistics) -> str | None:
    if counted.type != figures.type:
        return f"its frequent items are of type {counted.type}"
    if lie := _contradicting_values("frequent items are", counted.value_count, figures):
        return lie
    if counted.sample is None or counted.sample.row_count == figures.value_count:
        return None
    sampled = f"its sampled rows are of {counted.sample.row_count:,} rows"
    return f"{sampled}, and its column statistics of {figures.value_count:,}"


def _contradicting_values(what: str, value_count: int, figures: ColumnStatistics) -> str | None:
    filled = figures.filled_count
    if value_count == filled:
        return None
    return f"its {what} of {value_count:,} values, and its column statistics of {filled:,}"
