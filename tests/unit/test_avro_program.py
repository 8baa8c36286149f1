"""Writer schema -> decoding program."""

from __future__ import annotations

from typing import Any

import pytest

from icestats.read.avro.decoding_program import Capture, compile_program, find_field_type
from icestats.read.avro.type_names import SchemaError, resolve_names
from icestats.read.kernel import kernel as k


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def named(avro: Any, field_id: int | None = None, name: str = "f") -> dict[str, Any]:
    return {"name": name, "type": avro} | ({} if field_id is None else {"field-id": field_id})


def compiled(avro: Any, **fields: Capture) -> list[int]:
    wanted = {int(name[1:]): capture for name, capture in fields.items()}
    return compile_program(avro, Capture("record", fields=wanted)).tolist()


def test_fields_go_by_id() -> None:
    """A field is captured by its id wherever it is and whatever its name; the others are skipped."""
    schema = record(named("string", 9), named("long"), named({"type": "long"}, 1, "renamed"), named("double", 2))
    assert compiled(schema, _1=Capture("number", 7)) == [
        *(k.SKIP_BYTES, k.SKIP_VARINT, k.LONG, 7, k.SKIP_FIXED, 8, k.END)
    ]


@pytest.mark.parametrize("branches", [["null", "long"], ["long", "null"]])
def test_optional_fields_in_either_order(branches: list[str]) -> None:
    """The branch that is null captures nothing, be it the first or the second."""
    code = compiled(record(named(branches, 1)), _1=Capture("number", 7))
    assert code[:2] == [k.UNION, 2]
    addresses = code[2:4]
    number = addresses[branches.index("long")]
    null = addresses[branches.index("null")]
    assert code[number : number + 2] == [k.LONG, 7]
    assert code[null] == k.END


def test_usual_maps_have_an_operation_of_their_own() -> None:
    """Key and value records in Java's and PyIceberg's order are read by one operation, others step by step."""
    usual = {"type": "array", "items": record(named("int", 117), named("long", 118))}
    unusual = {"type": "array", "items": record(named("long", 118), named("int", 117))}
    assert compiled(record(named(usual, 108)), _108=Capture("metric", 0)) == [k.COUNTS, 0, k.END]
    code = compiled(record(named(unusual, 108)), _108=Capture("metric", 0))
    assert k.COUNTS not in code[:1]
    assert code[:4] == [k.SEEN, 0, k.ARRAY, len(code) - 1]


def test_a_map_whose_records_have_an_id_twice_is_read_step_by_step() -> None:
    """The operation for the usual maps would take the second one for what follows."""
    twice = {"type": "array", "items": record(named("int", 117), named("long", 118), named("int", 117))}
    code = compiled(record(named(twice, 108)), _108=Capture("metric", 0))
    assert code[:4] == [k.SEEN, 0, k.ARRAY, len(code) - 1]


def test_an_avro_map_in_place_of_a_metrics_map_is_skipped() -> None:
    """Keys of an Avro map are strings, not field ids."""
    schema = record(named({"type": "map", "values": "long"}, 108))
    assert k.COUNTS not in compiled(schema, _108=Capture("metric", 0))


def test_arrays_of_nothing_take_no_loop() -> None:
    """Items without bytes are not stepped through, as 2^60 of them take no more room than one."""
    empty = record(named("null"), named({"type": "fixed", "name": "x", "size": 0}))
    assert compiled(record(named({"type": "array", "items": empty}))) == [k.EMPTY_ITEMS, k.END]


def test_named_types_are_found_by_full_and_by_bare_name() -> None:
    """References follow Avro's rules for namespaces."""
    fixed = {"type": "fixed", "name": "a.b.Id", "size": 4}
    assert compiled(record(named(fixed), named("a.b.Id"), named("Id"))) == [*([k.SKIP_FIXED, 4] * 3), k.END]
    inside = record(named({"type": "enum", "name": "Kind", "symbols": ["A"]}), name="ns.r")
    assert set(resolve_names(inside)) == {"ns.r", "r", "ns.Kind", "Kind"}


def nested(depth: int) -> Any:
    avro: Any = "long"
    for _ in range(depth):
        avro = {"type": "array", "items": avro}
    return avro


def doubling(depth: int) -> Any:
    avro: Any = record(name="r0")
    for i in range(1, depth):
        avro = record(named(avro), *[named(f"r{i - 1}")] * 3, name=f"r{i}")
    return avro


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (record(named(record(named(["null", "r"]), name="r2"))), "recursive"),
        (record(named(nested(17))), "nests more than 16 arrays"),
        (record(named(nested(100))), "nests more than"),
        (record(named(doubling(40))), "larger than 200,000 operations"),
        (record(named("text")), "unknown Avro type 'text'"),
        (record(named({"type": "fixed", "name": "x", "size": -1})), "fixed of size -1"),
        (record(named({"type": "fixed", "name": "x", "size": 1e9})), "fixed of size"),
        (record(named([])), "union of 0 types"),
        (record(named(7)), "no Avro type"),
        (record(named({"items": "long"})), "no Avro type"),
        (record(named({"type": "record", "name": "x"})), "without fields"),
        (record(named({"type": "array"})), "no Avro type"),
        (record(named("string", 1)), "Avro type string, expected a number"),
        (record(named(record(), 1)), "Avro record, expected a number"),
        (record(named("long", 2)), "Avro type long, expected a text"),
        (record(named({"type": "array", "items": "string"}, 132)), "array of string, expected numbers"),
        (record(named({"type": "array", "items": "string"}, 108)), "array of string, expected key and value"),
        (record(named({"type": "array", "items": record(named("int", 1))}, 108)), "no field of id 117"),
        (record(), "no field of id 5"),
        ("long", "Avro type long, expected a record"),
        (None, "no Avro type"),
    ],
)
def test_what_cannot_be_decoded_is_named(schema: Any, what: str) -> None:
    """A schema that is no manifest's, or has no end, is an error that says where and why."""
    fields = {
        1: Capture("number", 7),
        2: Capture("text", 8),
        132: Capture("numbers", 9),
        108: Capture("metric", 0),
        5: Capture("number", 10, required=what.endswith("5")),
    }
    with pytest.raises(SchemaError, match=what):
        compile_program(schema, Capture("record", fields=fields))


@pytest.mark.parametrize("kind", [{"type": ["null", "int"]}, {"type": {"type": "int"}}])
def test_a_type_may_be_wrapped_in_another(kind: Any) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "n", "type": kind, "field-id": 1}]}
    plain = {**record, "fields": [{"name": "n", "type": kind["type"], "field-id": 1}]}
    wanted = Capture("record", fields={1: Capture("number", slot=6)})
    unwrapped = {**plain, "fields": [{**plain["fields"][0], "type": "int"}]} if "type" in kind["type"] else plain
    assert compile_program(record, wanted).tolist() == compile_program(unwrapped, wanted).tolist()


@pytest.mark.parametrize("fields", [5, ["a"], [{"name": "a"}], {"type": "int"}])
def test_fields_that_are_none_are_passed_over_where_types_are_looked_for(fields: Any) -> None:
    odd = {"name": "a", "type": {"type": "array", "items": {"type": "record", "name": "q", "fields": fields}}}
    schema = {"type": "record", "name": "r", "fields": [odd, "b", {"name": "c", "type": "r", "field-id": 2}]}
    assert find_field_type(schema, (2,)) == schema
    metric = {**schema, "fields": [{**odd, "field-id": 108}]}
    with pytest.raises(SchemaError, match=r"without fields|has no field of id"):
        compile_program(metric, Capture("record", fields={108: Capture("metric", 0)}))


def test_a_namespace_that_each_type_would_repeat_is_refused() -> None:
    """Ten thousand types in one of a megabyte are ten gigabytes of names."""
    inner = {"name": "a", "type": {"type": "fixed", "name": "f", "size": 1}}
    with pytest.raises(SchemaError, match="a name of more than 1,000 characters"):
        resolve_names({"type": "record", "name": "r", "namespace": "n" * 1_000, "fields": [inner]})
