"""Named types of an Avro schema, and the fields of its records by Iceberg's field id.

Sources: Avro 1.12 specification, "Names"; Iceberg spec, "Avro" (Appendix A).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_SCHEMA_DEPTH = 64


class SchemaError(ValueError):
    """The writer's schema has not what the file's kind has, or cannot be decoded."""


def find_record(schema: Any) -> Any:
    """Return the record that a file's values are."""
    return _unwrap(schema, resolve_names(schema))


def find_field_type(schema: Any, field_ids: Sequence[int]) -> Any:
    """Return the Avro type, null left out, of a record's field, of the field of another id in that one, and so on.

    Raises
    ------
    SchemaError
        There is no such field.
    """
    names = resolve_names(schema)
    for field_id in field_ids:
        record = _unwrap(schema, names)
        schema = next((f["type"] for f in record.get("fields", ()) if f.get("field-id") == field_id), None)
        if schema is None:
            raise SchemaError(f"it has no field of id {field_id}")
    return _unwrap(schema, names)


def _unwrap(schema: Any, names: Mapping[str, Any]) -> Any:
    for _ in range(MAX_SCHEMA_DEPTH):
        if isinstance(schema, list):
            schema = next((branch for branch in schema if branch != "null"), None)
        elif isinstance(schema, str):
            schema = names.get(schema)
        elif isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            schema = schema["type"]
        elif isinstance(schema, dict):
            return schema
    raise SchemaError("it has no record")


def resolve_names(schema: Any) -> dict[str, Any]:
    """Return the named types of a schema, by full name and by bare name."""
    names: dict[str, Any] = {}
    stack: list[tuple[Any, str]] = [(schema, "")]
    while stack:
        part, namespace = stack.pop()
        if isinstance(part, list):
            stack.extend((branch, namespace) for branch in part)
        if not isinstance(part, dict):
            continue
        if part.get("type") in ("record", "enum", "fixed") and isinstance(part.get("name"), str):
            namespace = _register(part, namespace, names)
        stack.extend((part[key], namespace) for key in ("type", "items", "values") if key in part)
        fields = part.get("fields")
        stack.extend((f.get("type"), namespace) for f in fields or () if isinstance(f, dict))
    return names


def _register(part: dict[str, Any], namespace: str, names: dict[str, Any]) -> str:
    name = part["name"]
    own = name.rpartition(".")[0] or str(part.get("namespace", namespace))
    bare = name.rpartition(".")[2]
    names[f"{own}.{bare}" if own else bare] = part
    names.setdefault(bare, part)
    return own
