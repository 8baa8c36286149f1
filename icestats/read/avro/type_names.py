"""The named types of an Avro schema. Source: Avro 1.12 specification, "Names"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_NAME_LENGTH = 1_000


class SchemaError(ValueError):
    """The writer's schema has not what the file's kind has, or cannot be decoded."""


def record_fields(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is a field of a record's JSON; none where its fields are no list."""
    fields = record.get("fields")
    return [f for f in fields if isinstance(f, dict) and "type" in f] if isinstance(fields, list) else []


def resolve_names(schema: Any) -> dict[str, Any]:
    """Return the named types of a schema, by full name and by bare name; SchemaError if a name is too long."""
    names: dict[str, Any] = {}
    stack: list[tuple[Any, str]] = [(schema, "")]
    while stack:
        part, namespace = stack.pop()
        if isinstance(part, list):
            stack.extend((branch, namespace) for branch in part)
        if not isinstance(part, dict):
            continue
        if part.get("type") in ("record", "error", "enum", "fixed") and isinstance(part.get("name"), str):
            namespace = _register(part, namespace, names)
        stack.extend((part[key], namespace) for key in ("type", "items", "values") if key in part)
        stack.extend((f["type"], namespace) for f in record_fields(part))
    return names


def _register(part: dict[str, Any], namespace: str, names: dict[str, Any]) -> str:
    name = part["name"]
    own = name.rpartition(".")[0] or str(part.get("namespace", namespace))
    bare = name.rpartition(".")[2]
    if len(own) + len(bare) > _MAX_NAME_LENGTH:
        # Each type within a namespace has its name again.
        raise SchemaError(f"the type {bare[:80]!r} has a name of more than {_MAX_NAME_LENGTH:,} characters")
    names[f"{own}.{bare}" if own else bare] = part
    names.setdefault(bare, part)
    return own
