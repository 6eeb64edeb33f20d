"""How far one privacy unit can move the sums that get noise, for the person who approves a release."""

from pipelines.spec.series import series_label
from privacy.planning.plan import Plan
from privacy.upward import shown


def movements(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Return for each part of each query its name, its L1 and L2 sensitivity, and the standard deviation of its noise.

    The unit is the largest value that a state can add to a sum.
    """
    rows = []
    for part in plan.parts:
        demand = plan.demands[part.query]
        kinds = ", ".join(series_label(series, plan) for series in part.series)
        moved, deviation = part.movement(demand.measure)
        norms = ("-", "-") if moved is None else (shown(moved[0], 4), shown(moved[1], 4))
        rows.append((f"{demand.name}: {kinds}", *norms, f"{deviation:.4g}"))
    return rows


INSIDE = (
    "These sums are inside the mechanism, and a strategy weighs them. They are not the published numbers, which are "
    "made from them and have the margins of error above. The ratio of noise to sensitivity decides the protection."
)
"""Note to the table of `movements`."""


def sampled(plan: Plan) -> list[str]:
    """Return the note to the table of `movements` about adaptive queries; empty without any."""
    adaptive = any(demand.adaptive is not None for demand in plan.demands)
    return ["-: published adaptively, so the noise is that of the first new numbers."] if adaptive else []
