"""Captured entries as NumPy arrays, and taken from there as Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestats.read import kernel_layout as k
from icestats.read.captured_columns import build_array
from icestats.read.kernel_layout import Bytes, Frame, Words

_BYTE_SLOTS = (
    k.FILE_PATH,
    k.FILE_FORMAT,
    k.SPLIT_OFFSETS,
    k.EQUALITY_IDS,
    k.REFERENCED_DATA_FILE,
    k.KEY_METADATA,
)
