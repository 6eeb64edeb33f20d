"""Squared L2 norm of the nodes of a filter that one entry moves: the least of all bounds.

States that are vectors: privacy.strategies.factorised.vectors. One cell: components move on lines of lengths h_1, h_2,
..., and by the theorem on lines (docs/proofs/strategies.md#lines) the squared norm is at most (h_1^2 + h_2^2 + ...)
S^2, S^2 that of an entry with states 0 and 1: privacy.strategies.factorised.energy in closed form,
privacy.strategies.factorised.certificate closer and slower.

If the initial level is released, it is the first leaf, and an entry in the initial level appears there. If its later
changes lie in a row, then on a line C z = X C e_1 + C z', and <X C e_1, C z'> <= 0 if the coefficients do not rise: the
worst z' leads away from X at first, and its signs alternate. Hence r^2 N(n) + h^2 S^2.
"""

import math

import numpy as np

from privacy.states import States
from privacy.strategies.factorised import certificate, energy, vectors
from privacy.strategies.factorised.energy import Floats
from privacy.touched import Touched
from privacy.upward import above

MOST_CHANGES = 10_000
"""For more changes on an endless line, a filter's energy is bounded change by change."""


def of_filter(
    coefficients: Floats,
    *,
    leaves: int | None,
    initial_level: bool,
    touched: Touched,
    states: States,
    closely: bool = False,
) -> list[float]:
    """Return squared L2 norms of one entry's nodes y = C x, for 0, 1, ... changes; for adjacent leaves only the last.

    Neighbours differ in one entry. The result does not include the rounding of nodes (`Factorised.rounding`).

    Args:
        coefficients: coefficients of C, float64 [n], non-negative and not increasing.
        leaves: number of leaves, including the initial level if it is the first; None for an endless line.
        initial_level: whether the initial level is the first leaf.
        touched: leaves that the entry can move.
        states: sizes of states in L2, squared, in normalised units.
        closely: whether certificates are computed for one cell.
    """
    if touched.in_a_row:
        met = touched.nodes(1, math.inf if leaves is None else leaves - int(initial_level)).appearing
        return [_within(coefficients, leaves, initial_level, met, states, closely)]
    # An entry that was present at the start, which is not released, has used a change and may still move at each leaf.
    most = math.inf if leaves is None else leaves + int(not initial_level)
    changes = int(min(touched.appearing, most))
    if changes > MOST_CHANGES:
        column = float(energy.columns(coefficients, leaves, 1)[1])
        return [above(states.radius + (changes - 1) * states.diameter) * column]
    fit = changes if leaves is None else min(changes, leaves)
    bounds = np.full(changes + 1, np.inf)
    if not _only_line(states):
        shape = vectors.shapes(coefficients, leaves)
        bounds = vectors.changes(shape, states, fit, present=False)[np.minimum(np.arange(changes + 1), fit)]
        if not initial_level:  # a visit that began before the first leaf, and one change less
            bounds[1:] = np.maximum(bounds[1:], vectors.changes(shape, states, changes - 1, present=True))
    if states.hulls:
        line = above(sum(states.hulls)) * _toggles(coefficients, leaves, fit, closely)
        bounds = np.minimum(bounds, line[np.minimum(np.arange(changes + 1), fit)])
    return [float(bound) for bound in np.maximum.accumulate(bounds)]


def _only_line(states: States) -> bool:
    """Return whether no bound for vectors is ever less than that for the line."""
    return bool(states.hulls) and sum(states.hulls) <= states.radius


def _within(
    coefficients: Floats, leaves: int | None, initial_level: bool, met: int, states: States, closely: bool
) -> float:
    bound = math.inf
    if not _only_line(states):
        bound = vectors.within(vectors.shapes(coefficients, leaves), states, met, initial_level=initial_level)
    if not states.hulls:
        return bound
    on_line = certificate.within if closely else energy.within
    length = above(sum(states.hulls))
    bound = min(bound, length * on_line(coefficients, leaves, met, initial_level=initial_level))
    if initial_level and not _only_line(states):
        later = np.array([length * on_line(coefficients, leaves, met)])
        falls = energy.falling(coefficients, leaves)
        bound = min(bound, float(energy.after_initial_level(falls, above(states.radius), later, met, length)[0]))
    return bound


def _toggles(coefficients: Floats, leaves: int | None, k: int, closely: bool) -> Floats:
    if not closely or leaves is None or leaves > certificate.MOST_LEAVES:
        return energy.toggles(coefficients, leaves, k)
    return certificate.certify(np.pad(coefficients, (0, leaves - len(coefficients))), k)
