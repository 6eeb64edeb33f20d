"""Comparisons of computed costs in which the last digits of floating-point arithmetic do not decide.

Results of BLAS depend on the processor, the number of threads and the alignment of arrays, so equal costs can differ
in their last digits. Without a tolerance, the machine would choose between equal candidates.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

TOLERANCE = 1e-9
"""Relative difference up to which costs are equal: far above rounding errors, far below differences that matter."""

Candidate = TypeVar("Candidate")


def cheapest_first(candidates: Iterable[Candidate], cost: Callable[[Candidate], float]) -> list[Candidate]:
    """Sort candidates by cost; candidates with equal costs keep their order.

    Args:
        candidates: in the order in which equal ones are preferred.
        cost: of a candidate, at least 0.

    >>> cheapest_first(["b", "a", "c"], {"a": 1.0, "b": 1.0 + 1e-15, "c": 0.5}.__getitem__)
    ['c', 'b', 'a']
    """
    given = list(candidates)
    costs = [cost(one) for one in given]
    equal: list[list[int]] = []
    for place in sorted(range(len(given)), key=costs.__getitem__):
        if equal and costs[place] <= (1 + TOLERANCE) * costs[equal[-1][0]]:
            equal[-1].append(place)
        else:
            equal.append([place])
    return [given[place] for places in equal for place in sorted(places)]


def cheapest(candidates: Iterable[Candidate], cost: Callable[[Candidate], float]) -> Candidate:
    """Return the first of the candidates with the least cost, see `cheapest_first`.

    >>> cheapest(["b", "a"], {"a": 1.0, "b": 1.0 + 1e-15}.__getitem__)
    'b'
    """
    return cheapest_first(candidates, cost)[0]
