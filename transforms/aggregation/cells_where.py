"""Cells of a query that satisfy a condition: a mask over all cells, computed without a test of each one.

A condition compares keys with constants, and combines comparisons by and, or and not. So along an ordered key its value
is constant at each constant, and between two adjacent constants: these are its *pieces*. From the first to the last
piece of a cell the condition must have one value for every combination of the other keys. Otherwise it cuts the cell,
and no share of the cell's number belongs to it. Listed keys are compared with the names of their cells, including
`other`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transforms.aggregation.expression import Condition, constant, evaluate, parsed
from transforms.aggregation.listed_key import Scalar, as_text
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.instants import to_microseconds
from transforms.common.kinds import to_kind

MOST_PIECES = 1_000_000
"""Largest number of combinations of pieces for which a condition is evaluated."""

LARGEST = 2.0**53
"""Largest constant: beyond it, adjacent floats differ by more than 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pieces:
    """Pieces of one key.

    Attributes:
        values: One value in each piece, [pieces].
        first, last: First and last piece of each cell, int64 [cells].
    """

    values: pa.Array
    first: np.ndarray
    last: np.ndarray


def cells_where(condition: Condition, query: Query, *, whole: frozenset[str] = frozenset()) -> np.ndarray:
    """Return which cells satisfy a condition, bool [cells].

    Args:
        condition: A condition on keys of the query.
        query: The query whose cells are selected.
        whole: Keys whose values are known to be whole numbers.

    Raises:
        SpecError: The condition reads a column that is not a key, compares a key with anything but constants, or cuts a
            cell.
    """
    keys = dict(query.by)
    for column in sorted(condition.columns):
        if column not in keys:
            there = ", ".join(keys) or "none"
            text = any(column in key for _, key in query.listed)
            hint = f"; put a text in single quotes: '{column}'" if text else ""
            raise SpecError(f"where: {column!r} is not a key of query {query.name}; its keys are {there}{hint}")
    compared: dict[str, list[Any]] = {name: [] for name in keys}
    for column, constants in _comparisons(parsed(condition), condition.text):
        compared[column] += constants
    found_pieces = {
        **{name: _ranges(name, key, compared[name], condition, whole=name in whole) for name, key in query.ordered},
        **{name: _names(name, key, compared[name], condition) for name, key in query.listed},
    }
    pieces = {name: found_pieces[name] for name in keys}
    shape = tuple(len(each.values) for each in pieces.values())
    if np.prod(shape, dtype=float) > MOST_PIECES:
        raise SpecError(f"where: {condition.text!r} compares keys with too many constants; ask in parts")
    found = evaluate([condition], _crossed(pieces, shape))[0].reshape(shape)
    for name, key in query.ordered:
        _refuse_cut(found, [*keys].index(name), pieces[name], name, key, condition)
    taken: np.ndarray = found[np.ix_(*(each.first for each in pieces.values()))]
    return taken.ravel()


def _crossed(pieces: Mapping[str, _Pieces], shape: tuple[int, ...]) -> pa.Table:
    """Return every combination of pieces as rows; one row if there are no keys."""
    if not shape:
        return pa.table({"row": [0]})
    places = np.indices(shape).reshape(len(shape), -1)
    return pa.table(
        {name: each.values.take(pa.array(at)) for (name, each), at in zip(pieces.items(), places, strict=True)}
    )


def _refuse_cut(
    found: np.ndarray, axis: int, pieces: _Pieces, name: str, key: OrderedKey, condition: Condition
) -> None:
    answers = np.moveaxis(found, axis, 0).reshape(found.shape[axis], -1)
    changes = np.concatenate([[0], np.cumsum((answers[1:] != answers[:-1]).any(axis=1))])
    cut = np.flatnonzero(changes[pieces.first] != changes[pieces.last])
    if not len(cut):
        return
    cell = int(cut[0])
    edges = [key.text(edge) for edge in (cell - 1, cell) if 0 <= edge <= key.steps]
    quote = "'" if key.moments else ""
    write = " or ".join(f"{name} < {quote}{edge}{quote}" for edge in edges)
    raise SpecError(
        f"where: {condition.text!r} cuts the cell {key.labels(cell, cell + 1)[0]} of {name}; nearest edges: "
        f"{', '.join(edges)}; write {write}, or >= in the place of <"
    )


def _ranges(name: str, key: OrderedKey, constants: list[Any], condition: Condition, *, whole: bool) -> _Pieces:
    """Return the pieces of an ordered key: piece 2i lies before constant i, and piece 2i + 1 is that constant."""
    kind = pa.timestamp("us", "UTC") if key.moments else pa.float64()
    texts = pa.array([constant(node).cast(pa.string()) for node in constants], pa.string())
    found = to_microseconds(texts, "UTC") if key.moments else to_kind(texts, "float64")
    if found[0].null_count:
        what = "times" if key.moments else "numbers"
        raise SpecError(f"where: {condition.text!r} compares {name} with another kind of value; its values are {what}")
    at = np.unique(found[0].to_numpy())
    if not key.moments and (np.abs(at) >= LARGEST).any():
        raise SpecError(f"where: {condition.text!r} has a number beyond 2^53; floats are too far apart there")
    if key.moments or whole:
        return _of_whole(key, at, kind)
    edges = key.edges(0, key.steps + 1)
    here = np.searchsorted(at, edges)
    touched = np.isin(edges, at)
    first = np.concatenate([[0], 2 * here + touched])
    last = np.concatenate([2 * here, [2 * len(at)]])
    return _Pieces(values=pa.array(_between(at)), first=first, last=last)


def _between(at: np.ndarray) -> np.ndarray:
    """Return a number in each piece, float64 [pieces]: before, at and after the constants."""
    values = np.empty(2 * len(at) + 1)
    values[1::2] = at
    inner = (at[1:] + at[:-1]) / 2
    values[::2] = np.concatenate([at[:1] - 1, inner, at[-1:] + 1]) if len(at) else [0.0]
    return values


def _of_whole(key: OrderedKey, at: np.ndarray, kind: pa.DataType) -> _Pieces:
    """As `_ranges` for whole numbers: a piece begins at a constant or directly after it."""
    begins = np.unique(np.concatenate([np.ceil(at).astype(np.int64), np.floor(at).astype(np.int64) + 1]))
    values = np.concatenate([begins[:1] - 1 if len(begins) else [0], begins])
    edges = np.ceil(key.edges(0, key.steps + 1)).astype(np.int64)
    first = np.searchsorted(begins, edges, side="right")
    last = np.searchsorted(begins, edges - 1, side="right")
    return _Pieces(
        values=pa.array(values).cast(kind),
        first=np.concatenate([[0], first]),
        last=np.concatenate([np.maximum(last, np.concatenate([[0], first[:-1]])), [len(begins)]]),
    )


def _names(name: str, key: tuple[Scalar, ...], constants: list[Any], condition: Condition) -> _Pieces:
    """Return the cells of a listed key as pieces. Only texts may be compared with texts: SQL refuses 'other' = 3."""
    numbers = all(type(value) is int for value in key)
    texts = [as_text(value) for value in key]
    for node in constants:
        value = constant(node).as_py()
        if type(value) is not (int if numbers else str) or str(value) not in texts:
            listed = ", ".join(texts[:12] if numbers else map(repr, texts[:12])) + (", ..." if len(texts) > 12 else "")
            raise SpecError(
                f"where: {condition.text!r} compares {name} with {value!r}, which is not one of its cells: {listed}"
            )
    place = np.arange(len(key))
    values = pa.array([int(text) for text in texts]) if numbers else pa.array(texts, pa.string())
    return _Pieces(values=values, first=place, last=place)


def _comparisons(node: Any, text: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield each compared column with its constants.

    Raises:
        SpecError: The condition does anything else with a column.
    """
    kind = node["class"]
    if kind == "CONJUNCTION" or node["type"] == "OPERATOR_NOT":
        for child in node["children"]:
            yield from _comparisons(child, text)
        return
    members = {
        "COMPARISON": lambda: [node["left"], node["right"]],
        "BETWEEN": lambda: [node["input"], node["lower"], node["upper"]],
        "OPERATOR": lambda: node["children"],
        "CONSTANT": list,
    }
    operands = members[kind]() if kind in members else [node]
    columns = [one for one in operands if one["class"] == "COLUMN_REF"]
    constants = [one for one in operands if one["class"] != "COLUMN_REF"]
    if len(columns) != bool(operands) or kind not in members or not all(map(_is_constant, constants)):
        raise SpecError(f"where: {text!r}: compare keys with numbers, times or names alone, joined by and, or and not")
    if columns:
        yield columns[0]["column_names"][0], constants


def _is_constant(node: Any) -> bool:
    return _is_constant(node["child"]) if node["class"] == "CAST" else bool(node["class"] == "CONSTANT")
