"""Named types of an Avro schema.

Source: Avro 1.12 specification, "Names".
"""

from __future__ import annotations

from typing import Any


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
