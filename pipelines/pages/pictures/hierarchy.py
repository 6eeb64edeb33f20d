"""A key with a hierarchy: bars of the nodes below a node, from the root down, for one cell of the other keys."""

import math
from itertools import product
from typing import Any

import numpy as np

from pipelines.pages.pictures.base import Picture, Pictured
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import ALL, Marginal, by_marginal, marginals_of

CHOICES = 1_000
"""Most cells of the other keys that a reader can choose from."""


def _suits(subject: Pictured) -> bool:
    return bool(subject.query.hierarchies) and not subject.of


def _document(subject: Pictured) -> dict[str, Any]:
    """Return the tree, and the cells of the other keys.

    `levels` has the inner nodes of each level, from the deepest up: name, first value, and the value after the last.
    """
    query, (name, hierarchy) = subject.query, subject.query.hierarchies[0]
    at = [key for key, _ in query.by].index(name)
    choices = _choices(query, at)
    return {
        "at": at,
        "values": [str(value) for value in dict(query.listed)[name]],
        "levels": [[*map(list, zip(one.names, one.begins, one.ends, strict=True))] for one in hierarchy.levels],
        "choices": choices,
        "choice": 0 if ALL in choices[0] else _largest(subject, at),
    }


def _choices(query: Query, at: int) -> list[list[str]]:
    """Return the cells of the other keys for which the values of the tree are published; sums over keys first."""
    tables = [Marginal(tuple(0 for _ in query.by)), *marginals_of(query)]
    whole = [one for one in tables if one.levels[at] == 0]
    found = []
    for table in sorted(whole, key=lambda one: -one.levels.count(None)):
        keys = [[str(value) for value in key] for _, key in by_marginal(query, table).listed]
        found += [list(cell) for cell in product(*keys[:at], *keys[at + 1 :])]
    return found[:CHOICES]


def _largest(subject: Pictured, at: int) -> int:
    """Return which cell of the other keys has the largest last numbers."""
    sizes, value = [len(key) for _, key in subject.query.by], subject.numbers[0].value
    if not len(value):
        return 0
    sums = np.nan_to_num(value[-1]).reshape(sizes).sum(axis=at).ravel()
    return int(np.argmax(sums[: min(CHOICES, math.prod(sums.shape))]))


TREE = Picture(suits=_suits, document=_document, whole=True)
