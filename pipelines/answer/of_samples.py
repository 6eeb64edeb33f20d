"""Errors of sums over cells of adaptively published queries, in windows that were sampled.

The number of budget units that a sample took follows from which windows were sampled, which is public
(privacy.adaptive.spending). Different samples have independent noise. The error of a repeated window is unknown.
"""

import numpy as np

from privacy.adaptive.spending import units_of
from privacy.answers.sums import over_cells, spread, weights_of
from privacy.cells.sums import Floats
from privacy.estimates import CONFIDENCE
from privacy.planning.adaptive_part import AdaptivePart
from transforms.common.errors import SpecError


def refuse_uneven(part: AdaptivePart, name: str) -> None:
    """Refuse a part whose sums over cells have an unknown bias.

    Raises:
        SpecError: The numbers have a bias that their errors do not include.
    """
    if part.unsummed is not None:
        raise SpecError(f"query {name}: {part.unsummed}")


def spreads_of_samples(
    part: AdaptivePart, sampled: np.ndarray, query: Floats, wanted: np.ndarray, others: np.ndarray | None
) -> Floats:
    """Return standard deviations and half widths, [2, numbers], float64, in grid steps; NaN if unknown.

    Args:
        part: The part of the plan that publishes the query.
        sampled: Whether each window was sampled, [windows], bool, from the first window on.
        query: 1 for each cell that is added up, else 0, [cells], float64.
        wanted: Numbers of the windows, [numbers], int64.
        others: Numbers of the windows whose sums are subtracted, [numbers], int64; None: nothing is subtracted.
    """
    units, of_cells, once = (
        units_of(part.rule, sampled.tolist()),
        over_cells(query, part.over.linear),
        weights_of(np.ones(1)),
    )
    sides = [wanted] if others is None else [wanted, others]
    confidence = 1 - (1 - CONFIDENCE) / len(sides)
    found = np.zeros((2, len(wanted)))
    for side in sides:
        each = [
            spread(part.scales.sample(units[at]), once, of_cells, confidence) if units[at] else (np.nan, np.nan)
            for at in side
        ]
        deviation, half = np.array(each).reshape(-1, 2).T
        found = np.array([np.hypot(found[0], deviation), found[1] + half])
    return found
