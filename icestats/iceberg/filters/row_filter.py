"""A row filter, bound once to a table's schema: what every answer about it starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Literal

from pyiceberg import expressions as e
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind, inclusive_projection, rewrite_not
from pyiceberg.partitioning import PartitionField as IcebergPartitionField
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import HourTransform, TruncateTransform
from pyiceberg.types import IcebergType, NestedField

from icestats.answers.text import one_line
from icestats.errors import FilterError, UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.iceberg.confined_io import UNREAD_SCHEMA, allow_null_structs, leave_out_defaults, leave_out_unknown
from icestats.iceberg.filters.filter_parser import parse_row_filter
from icestats.iceberg.filters.predicates import (
    Condition,
    Constant,
    Junction,
    Operator,
    Predicate,
    find_predicates,
    join,
)
from icestats.iceberg.filters.value_sets import build_values
from icestats.iceberg.metadata_json import find_source_ids, read_document
from icestats.iceberg.types import LEAST_WRAPPED_HOUR, MICROS_AN_HOUR

_BUCKET_OPERATORS = frozenset({"=", "in", "is null", "is not null"})
_UNTOLD = frozenset({"!=", "not in"})
MAX_PARTITION_SPECS = 10_000
"""Filters are projected to the partitions of each."""


@dataclass(frozen=True, slots=True)
class FilterSchema:
    """What filters of a table are bound to."""

    schema: IcebergSchema
    """The schema that the snapshot is read with."""
    specs: Mapping[int, IcebergSpec]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Name and type of each column that `schema` leaves out, as PyIceberg does not know its type."""


@dataclass(frozen=True)
class RowFilter:
    """A filter that fits a schema, and what it says of the table's partitions."""

    text: str
    expression: BooleanExpression
    """As PyIceberg scans with it: unbound, its literals as they were meant."""
    condition: Condition
    bound_to: FilterSchema

    @property
    def schema(self) -> IcebergSchema:
        """The schema that the filter is bound to."""
        return self.bound_to.schema

    @cached_property
    def bound(self) -> BooleanExpression:
        """The expression as PyIceberg binds it, negations pushed down to the predicates."""
        return _bind(self.expression, self.schema)

    @cached_property
    def field_ids(self) -> tuple[int, ...]:
        """The columns that the filter is about."""
        return tuple(dict.fromkeys(predicate.field_id for predicate in find_predicates(self.condition)))

    @cached_property
    def by_spec(self) -> Mapping[int, Condition]:
        """For each partition spec the condition on its partition values that every matching row meets."""
        return {spec_id: self._project(spec) for spec_id, spec in self.bound_to.specs.items()}

    @cached_property
    def partition_field_ids(self) -> Mapping[int, frozenset[int]]:
        """For each spec the partition fields that its condition is about."""
        return {
            spec_id: frozenset(predicate.field_id for predicate in find_predicates(condition))
            for spec_id, condition in self.by_spec.items()
        }

    @cached_property
    def unprojected(self) -> Mapping[int, Mapping[Predicate, str]]:
        """For each spec the predicates that its partitions say nothing about, and why."""
        predicates = tuple(find_predicates(self.condition))
        return {spec_id: _find_unprojected(predicates, spec) for spec_id, spec in self.bound_to.specs.items()}

    def _project(self, spec: IcebergSpec) -> Condition:
        try:
            projected = inclusive_projection(self.schema, spec)(self.expression)
            condition = build_condition(projected, _partition_schema(spec, self.schema))
        except (OverflowError, RecursionError):
            # PyIceberg looks for the year of the day before the first that Python knows, or after the last; it makes
            # as many levels as a spec has fields of one column.
            return Constant(True)
        dates = {field.field_id for field in self.schema.fields if str(field.field_type) == "date"}
        exact = {field.field_id for field in spec.fields if str(field.transform) == "day" and field.source_id in dates}
        return _with_transforms(condition, {field.field_id: str(field.transform) for field in spec.fields}, exact)

    @cached_property
    def may_be_early(self) -> bool:
        """Whether matching rows may be in partitions of times where PyIceberg does not look: see `_or_later`."""
        found = [predicate for condition in self.by_spec.values() for predicate in find_predicates(condition)]
        return any(one.transform in _TIMES and any(value <= 0 for value in one.literals) for one in found)

    @cached_property
    def wrapped(self) -> Mapping[int, Wrapped]:
        """The partition fields of the filter's columns of which writers may have wrapped values, by field id."""
        return {
            field.field_id: found
            for spec in self.bound_to.specs.values()
            for field in spec.fields
            if field.source_id in self.field_ids
            if (found := _find_wrapped(field, self.schema.find_type(field.source_id))) is not None
        }

    @cached_property
    def planned(self) -> BooleanExpression:
        """The expression, or what is in partitions where writers wrap values: PyIceberg looks for them elsewhere."""
        at_least: Any = e.GreaterThanOrEqual
        at_most: Any = e.LessThanOrEqual
        both = (
            e.Or(at_least(name, one.least * one.unit), at_most(name, -one.least * one.unit))
            for one in {*self.wrapped.values()}
            for name in [self.schema.find_column_name(one.column_id)]
        )
        return reduce(e.Or, both, self.expression)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Where a partition field's values may be others, wrapped by writers because its type cannot hold them."""

    column_id: int
    least: int
    """Values may be wrapped from here on, and from its negative on down."""
    unit: int
    """Of the column's own values in one of the field's."""


def read_filter_schema(source: Source, schema_id: int) -> FilterSchema:
    """Read what filters are bound to from a metadata.json, which may be one that PyIceberg refuses as a whole.

    Parameters
    ----------
    source : Source
        The table.
    schema_id : int
        The schema that the snapshot is read with.

    Raises
    ------
    UnsupportedError
        The schema or a partition spec holds what PyIceberg does not know; or there are more than `MAX_PARTITION_SPECS`.
    """
    document = read_document(source.storage, source.metadata_location)
    schemas = document.get("schemas") or [document["schema"]]
    found = next((s for s in schemas if s.get("schema-id", 0) == schema_id), schemas[-1])
    specs = document.get("partition-specs") or [{"spec-id": 0, "fields": document.get("partition-spec") or []}]
    if len(specs) > MAX_PARTITION_SPECS:
        raise UnsupportedError(
            f"{source.name} cannot be filtered: it has {len(specs):,} partition specs, "
            f"expected {MAX_PARTITION_SPECS:,} at most"
        )
    try:
        schema = allow_null_structs(_read_schema(found))
        left_out = [one for one in found["fields"] if one["id"] not in schema._lazy_id_to_field]
        unreadable = {str(one["name"]): _name_type(one["type"]) for one in left_out}
        return FilterSchema(schema, {s["spec-id"]: _read_spec(s) for s in specs}, unreadable)
    except UNREAD_SCHEMA as error:
        raise UnsupportedError(
            f"{source.name} cannot be filtered, PyIceberg does not read its schema: {one_line(error)}"
        ) from error


def _read_spec(document: dict[str, Any]) -> IcebergSpec:
    """Read a spec without fields of several columns or unknown transforms: no filter is about one."""
    fields = [field for field in document["fields"] if len(find_source_ids(field)) == 1]
    spec = IcebergSpec.model_validate(leave_out_unknown({**document, "fields": fields}, IcebergPartitionField))
    return IcebergSpec(*map(_with_wrapping, spec.fields), spec_id=spec.spec_id)


def _with_wrapping(field: IcebergPartitionField) -> IcebergPartitionField:
    if not isinstance(field.transform, TruncateTransform):
        return field
    wrapping = _WrappingTruncate(field.transform.width)  # type: ignore[arg-type]  # mypy takes pydantic's for its own
    return field.model_copy(update={"transform": wrapping})


class _WrappingTruncate(TruncateTransform):  # type: ignore[type-arg]  # its values are of its column
    """Cuts whole numbers as writers do: what would be less than the least of its type wraps, and is large.

    PyIceberg 0.12 takes a literal that is cut so for one that no value is equal to, or less than.
    """

    def transform(self, source: IcebergType) -> Callable[[Any], Any]:
        """Return what cuts a value."""
        cut, bits = super().transform(source), _BITS.get(str(source))
        if bits is None:
            return cut

        def wrap(value: Any) -> Any:
            number = cut(value)
            return number if number is None or number >= -(1 << (bits - 1)) else number + (1 << bits)

        return wrap

    # PyIceberg's returns a predicate, and what calls it joins any expression.
    def project(self, name: str, pred: e.BoundPredicate) -> BooleanExpression | None:  # type: ignore[override]
        """Return what partitions must meet: those of the least numbers, which are at the top, too.

        None: any may, as where values are at least one whose cut wraps.
        """
        found: BooleanExpression | None = super().project(name, pred)
        top = _find_top(self, pred.term.ref().field.field_type)
        if top is None or not isinstance(found, e.LiteralPredicate):
            return found
        if isinstance(pred, e.BoundGreaterThan | e.BoundGreaterThanOrEqual):
            return None if found.literal.value > pred.literal.value + 1 else found
        if isinstance(pred, e.BoundLessThan | e.BoundLessThanOrEqual):
            at_least: Any = e.GreaterThanOrEqual
            return e.Or(found, at_least(name, top))
        return found


def _find_wrapped(field: IcebergPartitionField, kind: IcebergType) -> Wrapped | None:
    if isinstance(field.transform, TruncateTransform):
        top = _find_top(field.transform, kind)
        return None if top is None else Wrapped(field.source_id, top, 1)
    if isinstance(field.transform, HourTransform) and str(kind) in ("timestamp", "timestamptz"):
        return Wrapped(field.source_id, LEAST_WRAPPED_HOUR, MICROS_AN_HOUR)
    return None


_BITS = {"int": 32, "long": 64}


def _find_top(transform: Any, kind: IcebergType) -> int | None:
    """Return the least value where `truncate` may have put the least numbers of a type; None: it wraps none of them."""
    bits = _BITS.get(str(kind))
    width: int = transform.width
    return None if bits is None else (1 << (bits - 1)) - width


def _name_type(document: Any) -> str:
    """Return a type's name: the text that it is, or that of a nested type."""
    return str(document["type"]) if isinstance(document, dict) else str(document)


def _read_schema(document: dict[str, Any]) -> IcebergSchema:
    """Read a schema, without the columns whose types PyIceberg does not know (variant, geometry and the like)."""
    document = leave_out_defaults(document)
    try:
        return IcebergSchema.model_validate(document)
    except UNREAD_SCHEMA:
        return IcebergSchema.model_validate(leave_out_unknown(document))


def bind_row_filter(row_filter: str | BooleanExpression, known: FilterSchema) -> RowFilter:
    """Read a filter and bind it to a schema.

    Parameters
    ----------
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter.
    known : FilterSchema
        The schema and the partition specs.

    Raises
    ------
    FilterError
        The filter cannot be read, or does not fit the schema.
    """
    expression = parse_row_filter(row_filter, known.schema, known.unreadable)
    condition = build_condition(expression, known.schema)
    return RowFilter(row_filter if isinstance(row_filter, str) else str(condition), expression, condition, known)


def carry_over(row_filter: RowFilter, other: RowFilter, column: str, field_id: int) -> RowFilter:
    """Return a filter, and of a column of its own all that another filter demands of one of its columns.

    What the column's type has no values for, such as fractions, is left out.

    Parameters
    ----------
    row_filter, other : RowFilter
        The filters.
    column : str
        The column of the first.
    field_id : int
        The column of the second, whose values are compared in the same type.
    """
    parts = []
    for part in _split(other.bound):
        if _find_columns(part) == {field_id}:
            with suppress(FilterError):
                said = parse_row_filter(_say_of(column, part), row_filter.schema)
                both = join("and", (_build(part, other.schema), build_condition(said, row_filter.schema)))
                # Compared with what no float is, a float column is compared with the float next to it.
                parts += [said] if all(len(build_values(one)) == 1 for one in find_predicates(both)) else []
    if not parts:
        return row_filter
    expression = reduce(e.And, parts, row_filter.expression)
    return replace(row_filter, expression=expression, condition=build_condition(expression, row_filter.schema))


def _split(expression: BooleanExpression) -> list[BooleanExpression]:
    return [*_split(expression.left), *_split(expression.right)] if isinstance(expression, e.And) else [expression]


def _find_columns(expression: Any) -> set[int]:
    if isinstance(expression, e.And | e.Or):
        return _find_columns(expression.left) | _find_columns(expression.right)
    return {expression.term.ref().field.field_id} if isinstance(expression, e.BoundPredicate) else set()


def _say_of(column: str, expression: Any) -> BooleanExpression:
    """Return an unbound expression that says of a column what a bound one says of its own."""
    if isinstance(expression, e.And | e.Or):
        return type(expression)(_say_of(column, expression.left), _say_of(column, expression.right))
    said = [getattr(expression, name) for name in ("literal", "literals") if hasattr(expression, name)]
    unbound: BooleanExpression = expression.as_unbound(e.Reference(column), *said)
    return unbound


def build_condition(expression: BooleanExpression, schema: IcebergSchema) -> Condition:
    """Build the condition that an unbound expression is about a schema.

    Parameters
    ----------
    expression : pyiceberg.expressions.BooleanExpression
        Of `parse_row_filter`, or projected to a partition spec.
    schema : pyiceberg.schema.Schema
        The fields; those of a partition spec for a projected expression.

    Raises
    ------
    UnsupportedError
        The expression holds something that PyIceberg's filter language has not.
    """
    return _build(_bind(expression, schema), schema)


def _bind(expression: BooleanExpression, schema: IcebergSchema) -> BooleanExpression:
    """Bind an expression to a schema, as PyIceberg does, negations pushed down to the predicates."""
    return bind(schema, rewrite_not(expression), case_sensitive=True)


def _build(expression: Any, schema: IcebergSchema) -> Condition:
    if isinstance(expression, e.And | e.Or):
        operator: Literal["and", "or"] = "and" if isinstance(expression, e.And) else "or"
        return join(operator, (_build(expression.left, schema), _build(expression.right, schema)))
    if isinstance(expression, e.AlwaysTrue | e.AlwaysFalse):
        return Constant(isinstance(expression, e.AlwaysTrue))
    if isinstance(expression, e.BoundPredicate):
        return _build_predicate(expression, schema)
    raise UnsupportedError(f"{type(expression).__name__} is no expression of the filter language")


def _build_predicate(expression: Any, schema: IcebergSchema) -> Condition:
    field = expression.term.ref().field
    operator = _OPERATORS.get(type(expression))
    if operator is None:
        raise UnsupportedError(f"{type(expression).__name__} is no predicate of the filter language")
    literals: tuple[Any, ...] = ()
    if operator in ("in", "not in"):
        literals = tuple(sorted(one.value for one in expression.literals))
    elif hasattr(expression, "literal"):
        literals = (expression.literal.value,)
    name = schema.find_column_name(field.field_id) or field.name
    kind = _type_text(field.field_type)
    if operator.endswith("starts with") and kind.partition("[")[0] not in ("string", "binary", "fixed"):
        raise FilterError(f"LIKE is of text, and {name} of type {kind}: compare it by =, < or >", name)
    for one in literals:
        if isinstance(one, str) and any("\ud800" <= character <= "\udfff" for character in one):
            text = f"{one!r:.80}"
            raise FilterError(f"{name} is compared with {text}: expected text, without halves of characters", text)
    return Predicate(operator, field.field_id, name, kind, literals)


def _type_text(iceberg_type: Any) -> str:
    if iceberg_type.is_primitive:
        return str(iceberg_type)
    return type(iceberg_type).__name__.removesuffix("Type").lower()


_OPERATORS: dict[type, Operator] = {
    e.BoundEqualTo: "=",
    e.BoundNotEqualTo: "!=",
    e.BoundLessThan: "<",
    e.BoundLessThanOrEqual: "<=",
    e.BoundGreaterThan: ">",
    e.BoundGreaterThanOrEqual: ">=",
    e.BoundIn: "in",
    e.BoundNotIn: "not in",
    e.BoundIsNull: "is null",
    e.BoundNotNull: "is not null",
    e.BoundIsNaN: "is nan",
    e.BoundNotNaN: "is not nan",
    e.BoundStartsWith: "starts with",
    e.BoundNotStartsWith: "not starts with",
}


def _partition_schema(spec: IcebergSpec, schema: IcebergSchema) -> IcebergSchema:
    # Every partition field is optional: files of before the field was added have none.
    fields = [
        NestedField(field.field_id, field.name, field.transform.result_type(source.field_type), required=False)
        for field in spec.fields
        if (source := schema._lazy_id_to_field.get(field.source_id)) is not None
    ]
    return IcebergSchema(*fields)


def _with_transforms(condition: Condition, transforms: Mapping[int, str], exact: Set[int]) -> Condition:
    if isinstance(condition, Predicate):
        found = replace(condition, transform=transforms[condition.field_id])
        return found if condition.field_id in exact else _or_later(found)
    if isinstance(condition, Junction):
        children = (_with_transforms(child, transforms, exact) for child in condition.children)
        return join(condition.operator, tuple(children))
    return condition


_TIMES = frozenset({"year", "month", "day", "hour"})


def _or_later(predicate: Predicate) -> Predicate:
    """Add the next year, month, day or hour to those before 1970: early writers put rows there.

    So does Iceberg's Java library (`ProjectionUtil.fixInclusiveTimeProjection`); PyIceberg 0.12 does not. Source:
    Iceberg spec, "Partition Transforms".
    """
    later = [value + 1 for value in predicate.literals if predicate.transform in _TIMES and value < 0]
    if not later or predicate.operator not in ("<=", "=", "in"):
        return predicate
    if predicate.operator == "<=":
        return replace(predicate, literals=tuple(later))
    return replace(predicate, operator="in", literals=tuple(sorted({*predicate.literals, *later})))


def _find_unprojected(predicates: tuple[Predicate, ...], spec: IcebergSpec) -> dict[Predicate, str]:
    found = {}
    for predicate in predicates:
        fields = [field for field in spec.fields if field.source_id == predicate.field_id]
        reasons = [_explain_transform(predicate, str(field.transform)) for field in fields]
        if not fields:
            found[predicate] = f"no partition field is made of {predicate.name}"
        elif all(reasons):
            found[predicate] = str(reasons[0])
    return found


def _explain_transform(predicate: Predicate, transform: str) -> str | None:
    """Say why the values of a partition field tell nothing of a predicate; None where they do."""
    operator = predicate.operator
    if transform == "identity":
        return None
    if transform.startswith("bucket") and operator not in _BUCKET_OPERATORS:
        return f"{transform} is not order-preserving"
    if transform == "void" or operator in _UNTOLD:
        return f"{transform} says nothing of `{operator}`"
    return None
