"""Conditions of `where` as sentences about columns and values, with their labels."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.spec.about import cell_label_of, column_label_of
from transforms.aggregation.expression import Condition, parsed

_COMPARED = {
    "COMPARE_EQUAL": "is",
    "COMPARE_NOTEQUAL": "is not",
    "COMPARE_LESSTHAN": "is below",
    "COMPARE_LESSTHANOREQUALTO": "is at most",
    "COMPARE_GREATERTHAN": "is above",
    "COMPARE_GREATERTHANOREQUALTO": "is at least",
}
"""Comparisons of a column with a value, by their types in DuckDB's tree."""


class _UnknownError(Exception):
    """An expression has no sentence."""


def condition_text(condition: Condition, labels: Mapping[str, str]) -> str:
    """Return a condition as words after a noun; what has no words is shown as in the spec.

    Args:
        condition: The condition.
        labels: Texts of the spec's section `about` by their keys.

    >>> condition_text(Condition.parse("status = 'airborne' and age >= 18"), {"column status": "state"})
    'whose state is airborne and whose age is at least 18'
    >>> condition_text(Condition.parse("ward in ('a', 'b') and left_at is null"), {})
    'whose ward is a or b and whose left_at is missing'
    >>> condition_text(Condition.parse("length(ward) > 2"), {})
    'for which `length(ward) > 2` is true'
    """
    try:
        return " and ".join(_clauses(parsed(condition), labels))
    except (_UnknownError, KeyError, TypeError):
        return f"for which `{condition.text}` is true"


def _clauses(node: Any, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a clause for each condition that must hold."""
    if node["type"] == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _clauses(child, labels)
        return
    if node["type"] in _COMPARED:
        column = _column(node["left"])
        yield _whose(column, f"{_COMPARED[node['type']]} {_value(column, node['right'], labels)}", labels)
        return
    column, *others = node.get("children", [node])
    name = _column(column)
    if node["type"] == "COMPARE_IN":
        *before, last = [_value(name, one, labels) for one in others]
        yield _whose(name, f"is {' or '.join([', '.join(before), last] if before else [last])}", labels)
    elif node["type"] in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        yield _whose(name, "is missing" if node["type"] == "OPERATOR_IS_NULL" else "is not missing", labels)
    else:
        raise _UnknownError


def _whose(column: str, said: str, labels: Mapping[str, str]) -> str:
    return f"whose {labels.get(column_label_of(column), column)} {said}"


def _column(node: Any) -> str:
    if node["type"] != "COLUMN_REF":
        raise _UnknownError
    (name,) = node["column_names"]
    return str(name)


def _value(column: str, node: Any, labels: Mapping[str, str]) -> str:
    if node["type"] != "VALUE_CONSTANT" or not str(node["literal"]["text"]).strip():  # null, or a text without words
        raise _UnknownError
    text = str(node["literal"]["text"])
    return labels.get(cell_label_of(column, text), text)
