"""Writer schema -> decoding program: which bytes of a manifest entry to skip, and which to capture where.

Fields go by their `field-id`, never by name or position. Sources: Iceberg spec, "Manifests" and "Avro" (Appendix A);
Avro 1.12 specification, "Data Serialization and Deserialization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from icestats.errors import MetadataError
from icestats.read.avro.avro_file import CUT, LONG_VARINT, NEGATIVE, Batch
from icestats.read.avro.type_names import SchemaError, record_fields, resolve_names
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Frame, Words

_MAX_SCHEMA_DEPTH = 64
_MAX_PROGRAM_LENGTH = 200_000

Kind = Literal["number", "text", "numbers", "record", "metric", "real", "boolean"]

ERRORS = {
    k.CUT: CUT,
    k.LONG_VARINT: LONG_VARINT,
    k.NO_BRANCH: "a union has no such branch",
    k.NEGATIVE: NEGATIVE,
    k.TOO_MANY: "a block of an array or map has more items than bytes are left",
    k.BAD_STATUS: "a status is none of 0 (existing), 1 (added), 2 (deleted)",
    k.BAD_CONTENT: "a content is none of 0 (data), 1 (position deletes), 2 (equality deletes)",
    k.IS_NULL: "a required field is null",
    k.IMPOSSIBLE_COUNT: "a record count or file size is negative or above 2**53",
    k.LEFT_OVER: "bytes are left over behind the block's last entry",
    k.OVERFLOW: "a sum exceeds 64 bits",
}
"""What the kernel's errors say."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What is wanted of a field."""

    kind: Kind
    slot: int = 0
    """The slot that takes it; of a metrics map, the metric."""
    fields: Mapping[int, Capture] | None = None
    """Of a record: what is wanted of its fields, by field id."""
    required: bool = False
    """The writer's schema must have the field."""


_ACCEPTED: dict[Kind, dict[str, int]] = {
    "number": {"int": k.LONG, "long": k.LONG},
    "text": {"bytes": k.SPAN, "string": k.SPAN, "fixed": k.FIXED},
    "real": {"float": k.FLOAT, "double": k.DOUBLE},
    "boolean": {"boolean": k.BOOLEAN},
}
_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
# Field ids of the key and the value of each metrics map (spec, "Manifests").
_METRIC_FIELDS = {0: (117, 118), 1: (119, 120), 2: (121, 122), 3: (138, 139), 4: (126, 127), 5: (129, 130)}


def compile_program(schema: Any, wanted: Capture, names: dict[str, Any] | None = None) -> Words:
    """Compile the decoding program of an Avro schema.

    Parameters
    ----------
    schema : dict, list or str
        The writer's schema, as JSON.
    wanted : Capture
        What to capture of it.
    names : dict, optional
        Named types that the schema refers to, where it is a part of another; see `resolve_names`.

    Returns
    -------
    numpy.ndarray of int64
        Operations of `kernel` with their operands.

    Raises
    ------
    SchemaError
        A required field is missing, a field has another type than its id says, a type is unknown, recursive, or nested
        too deep.

    Examples
    --------
    >>> record = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
    >>> compile_program(record, Capture("record", fields={1: Capture("number", slot=6)})).tolist()
    [4, 6, 0]
    """
    compiler = _Compiler(names)
    compiler.emit(schema, wanted, "entry")
    return np.array([*compiler.code, k.END], np.int64)


class _Compiler:
    def __init__(self, names: dict[str, Any] | None) -> None:
        self.code: list[int] = []
        self._names = names
        self._root: Any = None
        self._open: list[int] = []
        self._depth = 0
        self._arrays = 0
        self._steps = 0

    def emit(self, schema: Any, wanted: Capture | None, where: str) -> None:
        if self._root is None:
            self._root = schema
        self._depth += 1
        if self._depth > _MAX_SCHEMA_DEPTH:
            raise SchemaError(f"{where} nests more than {_MAX_SCHEMA_DEPTH} types")
        self._steps += 1
        if max(len(self.code), self._steps) > _MAX_PROGRAM_LENGTH:
            raise SchemaError(f"{where} makes the schema larger than {_MAX_PROGRAM_LENGTH:,} operations")
        kind, body = self._unwrap(schema, where)
        if kind == "union":
            self._union(body, wanted, where)
        elif kind == "record":
            self._record(body, wanted, where)
        elif wanted is None:
            self._skip(kind, body, where)
        else:
            self._capture(kind, body, wanted, where)
        self._depth -= 1

    def _unwrap(self, schema: Any, where: str) -> tuple[str, Any]:
        for _ in range(_MAX_SCHEMA_DEPTH):
            if isinstance(schema, list):
                return "union", schema
            if isinstance(schema, str):
                if schema in _SIMPLE:
                    return schema, {}
                schema = self._named(schema, where)
            elif not isinstance(schema, dict) or "type" not in schema:
                break
            elif isinstance(schema["type"], str) and schema["type"] in _COMPLEX:
                return schema["type"], schema
            else:
                schema = schema["type"]
        raise SchemaError(f"{where} has no Avro type: {str(schema)[:80]}")

    def _named(self, name: str, where: str) -> Any:
        if self._names is None:
            self._names = resolve_names(self._root)
        found = self._names.get(name, self._names.get(name.rpartition(".")[2]))
        if found is None:
            raise SchemaError(f"{where} has the unknown Avro type {name[:80]!r}")
        return found

    def _union(self, branches: list[Any], wanted: Capture | None, where: str) -> None:
        if not branches or len(branches) > _MAX_PROGRAM_LENGTH:
            raise SchemaError(f"{where} is a union of {len(branches)} types")
        self.code += [k.UNION, len(branches), *([0] * len(branches))]
        table = len(self.code) - len(branches)
        jumps: list[int] = []
        for number, branch in enumerate(branches):
            self.code[table + number] = len(self.code)
            if branch == "null" or (isinstance(branch, dict) and branch.get("type") == "null"):
                jumps.append(table + number)
                continue
            self.emit(branch, wanted, where)
            if number + 1 < len(branches):
                self.code += [k.JUMP, 0]
                jumps.append(len(self.code) - 1)
        for jump in jumps:
            self.code[jump] = len(self.code)

    def _record(self, body: dict[str, Any], wanted: Capture | None, where: str) -> None:
        fields = body.get("fields")
        if not isinstance(fields, list) or not all(isinstance(f, dict) and "type" in f for f in fields):
            raise SchemaError(f"{where} is an Avro record without fields")
        if id(body) in self._open:
            raise SchemaError(f"{where} is of a recursive type")
        if wanted is not None and wanted.kind != "record":
            raise SchemaError(f"{where} is an Avro record, expected {_expected(wanted)}")
        inner = {} if wanted is None or wanted.fields is None else wanted.fields
        present = {_field_id(field) for field in fields}
        missing = [i for i, c in inner.items() if c.required and i not in present]
        if missing:
            raise SchemaError(f"{where} has no field of id {missing[0]}")
        self._open.append(id(body))
        if wanted is not None and wanted.slot:
            self.code += [k.OPEN, wanted.slot]
        for field in fields:
            self.emit(field["type"], inner.get(_field_id(field)), f"{where}.{str(field.get('name'))[:80]}")
        if wanted is not None and wanted.slot:
            self.code += [k.CLOSE, wanted.slot]
        self._open.pop()

    def _skip(self, kind: str, body: dict[str, Any], where: str) -> None:
        if kind in _FIXED_SIZES or kind == "fixed":
            size = _FIXED_SIZES[kind] if kind in _FIXED_SIZES else _fixed_size(body, where)
            if size:
                self.code += [k.SKIP_FIXED, size]
        elif kind in ("bytes", "string"):
            self.code += [k.SKIP_BYTES]
        elif kind in ("int", "long", "enum"):
            self.code += [k.SKIP_VARINT]
        elif kind == "map":
            self._loop([k.SKIP_BYTES], body.get("values"), None, where)
        else:
            self._loop([], body.get("items"), None, where)

    def _capture(self, kind: str, body: dict[str, Any], wanted: Capture, where: str) -> None:
        operation = _ACCEPTED.get(wanted.kind, {}).get(kind)
        if operation is not None:
            self.code += [operation, wanted.slot]
            if operation == k.FIXED:
                self.code.append(_fixed_size(body, where))
        elif wanted.kind == "metric" and kind == "array":
            self._metric(body, wanted.slot, where)
        elif wanted.kind == "metric" and kind == "map":
            self._skip(kind, body, where)
        elif wanted.kind == "numbers" and kind == "array":
            item, _ = self._unwrap(body.get("items"), where)
            if item not in _ACCEPTED["number"]:
                raise SchemaError(f"{where} is an Avro array of {item}, expected numbers")
            self.code += [k.OPEN, wanted.slot]
            self._skip(kind, body, where)
            self.code += [k.CLOSE, wanted.slot]
        elif kind != "null":
            raise SchemaError(f"{where} is of the Avro type {kind}, expected {_expected(wanted)}")

    def _metric(self, body: dict[str, Any], metric: int, where: str) -> None:
        kind, item = self._unwrap(body.get("items"), where)
        if kind != "record":
            raise SchemaError(f"{where} is an Avro array of {kind}, expected key and value records")
        key_id, value_id = _METRIC_FIELDS[metric]
        fields = record_fields(item)
        types = {_field_id(f): f.get("type") for f in fields}
        value_kind: Kind = "number" if metric < 4 else "text"
        plain = (("int", "long"), ("long", "int") if metric < 4 else ("bytes", "string"))
        if (
            [_field_id(f) for f in fields] == [key_id, value_id]
            and types[key_id] in plain[0]
            and types[value_id] in plain[1]
        ):
            self.code += [k.COUNTS if metric < 4 else k.BOUNDS, metric]
            return
        captures = {
            key_id: Capture("number", k.KEY, required=True),
            value_id: Capture(value_kind, k.VALUE, required=True),
        }
        self.code += [k.SEEN, metric]
        before = [k.CLEAR, k.KEY, k.CLEAR, k.VALUE]
        self._loop(before, item, Capture("record", fields=captures), where, [k.PUT, metric])

    def _loop(
        self, before: list[int], items: Any, wanted: Capture | None, where: str, after: list[int] | None = None
    ) -> None:
        self._arrays += 1
        if self._arrays > k.MAX_DEPTH:
            raise SchemaError(f"{where} nests more than {k.MAX_DEPTH} arrays and maps")
        start = len(self.code)
        self.code += [k.ARRAY, 0, *before]
        self.emit(items, wanted, where)
        if len(self.code) == start + 2:
            self.code[start:] = [k.EMPTY_ITEMS]
        else:
            self.code += [*(after or ()), k.NEXT, start + 2]
            self.code[start + 1] = len(self.code)
        self._arrays -= 1


_SIMPLE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_COMPLEX = frozenset({"record", "enum", "fixed", "array", "map"})


def _field_id(field: dict[str, Any]) -> int:
    field_id = field.get("field-id")
    return field_id if isinstance(field_id, int) else -1


def _fixed_size(body: dict[str, Any], where: str) -> int:
    size = body.get("size")
    if not isinstance(size, int) or not 0 <= size <= 1 << 30:
        raise SchemaError(f"{where} is an Avro fixed of size {str(size)[:40]}")
    return size


def _expected(wanted: Capture) -> str:
    longer = {"numbers": "an array of numbers", "metric": "a map as an array of records"}
    return longer.get(wanted.kind, f"a {wanted.kind}")


def find_field_type(schema: Any, field_ids: Sequence[int]) -> Any:
    """Return the Avro type, null left out, of a record's field, of the field of another id in that one, and so on.

    Raises
    ------
    SchemaError
        There is no such field, or a type's name is too long.
    """
    names = resolve_names(schema)
    for field_id in field_ids:
        record = _unwrap(schema, names)
        schema = next((f["type"] for f in record_fields(record) if f.get("field-id") == field_id), None)
        if schema is None:
            raise SchemaError(f"it has no field of id {field_id}")
    return _unwrap(schema, names)


def _unwrap(schema: Any, names: Mapping[str, Any]) -> Any:
    for _ in range(_MAX_SCHEMA_DEPTH):
        if isinstance(schema, list):
            schema = next((branch for branch in schema if branch != "null"), None)
        elif isinstance(schema, str):
            schema = names.get(schema)
        elif isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            schema = schema["type"]
        elif isinstance(schema, dict):
            return schema
    raise SchemaError("it has no record")


def kernel_error(frame: Frame, path: str, batch: Batch) -> MetadataError:
    """Return the error that the kernel has noted, with its place in the file."""
    block = int(frame.state[k.AT_BLOCK])
    inside = int(frame.state[k.ERROR_BYTE] - batch.blocks[block, 0])
    where = f"entry {frame.state[k.AT_ENTRY]:,} of the block, byte {inside:,} of its inflated data"
    return MetadataError(f"{ERRORS[int(frame.state[k.ERROR])]} ({where})", path, int(batch.offsets[block]))
