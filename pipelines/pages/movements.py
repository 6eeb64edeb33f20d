"""How far one privacy unit can move the sums that get noise, for the person who approves a release."""

import math
from collections.abc import Callable, Sequence

from pipelines.spec.series import series_label
from privacy.planning.plan import Plan


def movements(plan: Plan, label: Callable[[str], str]) -> list[tuple[str, str, str, str]]:
    """Return for each part of each query its name, its L1 and L2 sensitivity, and the standard deviation of its noise.

    The unit is the largest value that a state can add to a sum.

    Args:
        plan: The plan.
        label: Returns the label of a query.
    """
    names, moves = [], [part.movement(plan.demands[part.query].measure) for part in plan.parts]
    for part in plan.parts:
        kinds = ", ".join(series_label(series, plan) for series in part.series)
        names.append(f"{label(plan.demands[part.query].name)}: {kinds}")
    columns = [_aligned([None if moved is None else moved[norm] for moved, _ in moves], up=True) for norm in (0, 1)]
    return [*zip(names, *columns, _aligned([deviation for _, deviation in moves], up=False), strict=True)]


def _aligned(numbers: Sequence[float | None], *, up: bool) -> list[str]:
    """Return a column of positive numbers with one number of decimals: the least has four digits, whole ones have none.

    Args:
        numbers: Numbers; None for one that has no meaning.
        up: Whether no text is below its number.

    >>> _aligned([39.6, 3.2341, None], up=True), _aligned([86, 16], up=True)
    (['39.600', '3.235', '-'], ['86', '16'])
    """
    known = [one for one in numbers if one is not None]
    whole = all(float(one).is_integer() for one in known)
    digits = 0 if whole else max(0, 3 - math.floor(math.log10(min(one for one in known if one > 0))))
    size = 10.0**digits
    return [
        "-" if one is None else f"{math.ceil(one * size - 1e-6) / size if up else one:.{digits}f}" for one in numbers
    ]


INSIDE = (
    "These sums are inside the mechanism, and a strategy weighs them. They are not the published numbers, which are "
    "made from them and have the margins of error above. The ratio of noise to sensitivity decides the protection."
)
"""Note to the table of `movements`."""


def sampled(plan: Plan) -> list[str]:
    """Return the note to the table of `movements` about adaptive queries; empty without any."""
    adaptive = any(demand.adaptive is not None for demand in plan.demands)
    return ["-: published adaptively, so the noise is that of the first new numbers."] if adaptive else []
