"""How far off sums over cells are where the data decide when a query is published anew: in windows that were sampled.

How many units of the budget a sample took follows from which windows were sampled, which is public
(privacy.adaptive.carry). Two samples have noise of their own each. Of a repeated window no error is known.
"""

import numpy as np

from privacy.adaptive.carry import units_of
from privacy.answers.sums import over_cells, spread, weights_of
from privacy.cells.kdtree import KdTree
from privacy.cells.sums import Floats
from privacy.estimates import CONFIDENCE
from privacy.planning.adaptive_part import AdaptivePart
from transforms.common.errors import SpecError


def refuse_uneven(part: AdaptivePart, name: str) -> None:
    """
    Raises:
        SpecError: its numbers have a bias that no error tells.
    """
    if part.grouped:
        raise SpecError(
            f"query {name}: its numbers are smoothed over windows that the data chose, so how far off a sum is is not "
            "known; use another policy"
        )
    if isinstance(part.over, KdTree):
        raise SpecError(
            f"query {name}: its cells share what was counted in regions, so how far off a sum is is not known; use a "
            "quadtree or tree"
        )


def spreads_of_samples(
    part: AdaptivePart, sampled: np.ndarray, query: Floats, wanted: np.ndarray, others: np.ndarray | None
) -> Floats:
    """Standard deviations and half widths, [2, numbers], in grid steps; NaN where they are not known.

    Args:
        sampled: whether each window was, from the first on.
        query: of the cells that are added up ones, else zeros.
        wanted: windows.
        others: windows whose sums are taken from these.
    """
    assert not isinstance(part.over, KdTree)
    units, of_cells, once = (
        units_of(part.adaptive, sampled.tolist()),
        over_cells(query, part.over),
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
