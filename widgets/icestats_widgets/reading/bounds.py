"""Bounds as metadata stores them, as values of their column."""

from __future__ import annotations

from typing import Any

from icestats.iceberg.types import decode_value


def decode_bound(type_text: str, data: bytes | None) -> Any:
    """Return single-value bytes as a value; None for None, and for bytes that are no value of the type."""
    try:
        return None if data is None else decode_value(type_text, data)
    except ValueError:
        return None
