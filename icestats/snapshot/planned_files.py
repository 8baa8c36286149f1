"""The files that plans of one snapshot look at: what one plan has read, the next one does not read again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icestats.answers.schemas import PLANNING_STATISTICS, file_metrics_schema
from icestats.iceberg.catalog import Source
from icestats.read.manifests.manifests import ManifestToRead, manifests_to_read, read_file_metrics

_MOST_FILES = 1_000_000
"""About 250 MB; of larger reads nothing is kept."""
_MOST_COLUMNS = 8
"""Columns of earlier plans are kept beside those of the next one as long as there are no more."""


class PlannedFiles:
    """Reads `file_metrics_schema` of a table, and keeps what was read last.

    A person who types a filter plans again with every key, over nearly the same manifests and columns.

    Parameters
    ----------
    source : Source
        The table.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: _Known | None = None

    def read(self, manifests: pa.Table, field_ids: Sequence[int]) -> pa.Table:
        """Return the live files of some manifests, with the statistics of some columns, paths split.

        Parameters
        ----------
        manifests : pyarrow.Table
            `schemas.MANIFEST_FILES`.
        field_ids : sequence of int
            The columns.
        """
        wanted, known = manifests_to_read(manifests), self._known
        if known is not None and not set(field_ids) <= set(known.field_ids):
            known = self._widen(known, wanted, field_ids)
        if known is None:
            known = self._read(wanted, tuple(field_ids))
        elif missing := [one for one in wanted if one not in known.places]:
            more = self._read(missing, known.field_ids)
            known = known.join(more) or self._read(wanted, tuple(field_ids))
        if known.files.num_rows <= _MOST_FILES:
            self._known = known
        return known.select(wanted, field_ids)

    def find_missing(self, manifests: pa.Table, field_ids: Sequence[int]) -> list[ManifestToRead]:
        """Return the manifests that `read` has to read for the same."""
        wanted, known = manifests_to_read(manifests), self._known
        is_known = known is not None and set(field_ids) <= set(known.field_ids)
        return [one for one in wanted if known is None or not is_known or one not in known.places]

    def _widen(self, known: _Known, wanted: Sequence[ManifestToRead], field_ids: Sequence[int]) -> _Known | None:
        """Return the known files of wanted manifests with columns read for them; None where none is worth keeping."""
        more = tuple(dict.fromkeys(one for one in field_ids if one not in known.field_ids))
        kept = known.keep(set(wanted))
        if not kept.places or len(more) + len(known.field_ids) > _MOST_COLUMNS:
            return None
        return kept.widen(self._read(list(kept.places), more, with_paths=False))

    def _read(
        self, manifests: Sequence[ManifestToRead], field_ids: tuple[int, ...], *, with_paths: bool = True
    ) -> _Known:
        source, how = self._source, {"with_paths": with_paths, "splits_paths": with_paths}
        files = read_file_metrics(manifests, source.metadata, source.storage, field_ids, **how)
        return _Known(_find_places(manifests, files), field_ids, files)


@dataclass(frozen=True, slots=True)
class _Known:
    """Files that have been read: for each manifest its rows, from one to before another."""

    places: dict[ManifestToRead, tuple[int, int]]
    field_ids: tuple[int, ...]
    files: pa.Table

    def keep(self, manifests: Collection[ManifestToRead]) -> _Known:
        """Return the files of those of some manifests that are known."""
        shared = [one for one in self.places if one in manifests]
        files = self.select(shared, self.field_ids)
        return _Known(_find_places(shared, files), self.field_ids, files)

    def widen(self, more: _Known) -> _Known | None:
        """Return the files with further columns of the same files; None where these are not the same."""
        if more.places != self.places:
            return None
        files = self.files
        for name in (f"{name}_{field_id}" for field_id in more.field_ids for name in PLANNING_STATISTICS):
            files = files.append_column(more.files.schema.field(name), more.files[name])
        return _Known(self.places, (*self.field_ids, *more.field_ids), files)

    def join(self, more: _Known) -> _Known | None:
        """Return both; None where they differ in types, which old manifests alone may tell."""
        if self.files.schema != more.files.schema:
            return None
        rows = self.files.num_rows
        places = {one: (start + rows, end + rows) for one, (start, end) in more.places.items()}
        return _Known(self.places | places, self.field_ids, pa.concat_tables([self.files, more.files]))

    def select(self, manifests: Sequence[ManifestToRead], field_ids: Sequence[int]) -> pa.Table:
        """Return the files of some manifests in their order; manifests that follow each other cost nothing."""
        places = [self.places[one] for one in manifests]
        heads = [place for place, (start, _) in enumerate(places) if not place or places[place - 1][1] != start]
        tails = [*heads[1:], len(places)][: len(heads)]
        runs = [(places[head][0], places[tail - 1][1]) for head, tail in zip(heads, tails, strict=True)]
        found = pa.concat_tables(
            [self.files.slice(start, end - start) for start, end in runs] or [self.files.slice(0, 0)]
        )
        index = np.repeat(np.arange(len(places), dtype=np.int32), [end - start for start, end in places])
        schema = file_metrics_schema(self.files.schema.field("partition").type, field_ids, splits_paths=True)
        place = schema.get_field_index("manifest_index")
        return found.select(schema.names).set_column(
            place, schema.field(place), pa.array(index, schema.field(place).type)
        )


def _find_places(manifests: Sequence[ManifestToRead], files: pa.Table) -> dict[ManifestToRead, tuple[int, int]]:
    counts = np.bincount(files["manifest_index"].to_numpy(), minlength=len(manifests))
    ends = np.cumsum(counts)
    return {one: (int(end - count), int(end)) for one, count, end in zip(manifests, counts, ends, strict=True)}
