"""PyIceberg's models, made to accept statistics blobs of every type.

PyIceberg 0.12 refuses a whole table over one blob in metadata.json's `blob-metadata` that is neither a Theta sketch nor
a deletion vector. The spec leaves the type open, and Presto's ANALYZE lists types of its own.
"""

from __future__ import annotations

import sys

from pyiceberg.table import CommitTableRequest, CommitTableResponse
from pyiceberg.table.metadata import TableMetadataV1, TableMetadataV2, TableMetadataV3, TableMetadataWrapper
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.table.update import SetStatisticsUpdate

# Each after the ones that it consists of: a model keeps what its parts validate by.
_MODELS = (
    BlobMetadata,
    StatisticsFile,
    SetStatisticsUpdate,
    TableMetadataV1,
    TableMetadataV2,
    TableMetadataV3,
    TableMetadataWrapper,
    CommitTableRequest,
    CommitTableResponse,
)


def accept_any_blob_type() -> None:
    """Let PyIceberg load and write tables that list blobs of any type, in this whole process.

    Notes
    -----
    To be removed once PyIceberg's `BlobMetadata.type` is a `str`, as its type of blobs in Puffin files is since 0.12.
    """
    field = BlobMetadata.model_fields["type"]
    if field.annotation is str:
        return
    field.annotation = str
    rest = sys.modules.get("pyiceberg.catalog.rest")
    for model in (*_MODELS, *([] if rest is None else [rest.TableResponse])):
        model.model_rebuild(force=True)
