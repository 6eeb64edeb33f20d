"""Candidate designs of a local release with their exact errors, from which one is chosen before the first report.

    mutations   the paper's randomised response over changes
    signs       a sign among fair coins, about one question
    once        the answer itself, in one window
    trees       mutations and signs on the nodes of a tree over time, of arities up to 4 and all heights

The variance of a number per person, if nobody changes, is basis.variance / gain^2 for signs and 2 |R| p / (q - p)^2 for
symbols; divide it by the share of people who report on a node. For a level or a change it is the variance of the
least-squares estimate from all nodes, once all windows have closed (privacy.local.least_squares). Shares minimise the
sum of variances. For people who change, the variance of each is smaller, or larger by less than one part in n.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privacy.local.basis import Floats, best_basis
from privacy.local.bound import LocalBound, differing
from privacy.local.design import SHARES, Design, Layer, ReportedAs, per_report
from privacy.local.least_squares import change_variances, level_variances
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import MOST_SIGNS, Signs, best_signs
from privacy.local.symbols import Symbols, best_symbols

LocalSeries = Literal["level", "change"]
Method = Literal["mutations", "signs", "once"]

MOST_ARITY = 4
"""Largest arity: by least squares more layers are better than higher arities; 2 was best in all cases tried."""

TURNS, STEP = 5, 1e-4
"""Number of turns towards the best shares of layers, and the part of a share for which a derivative is taken."""


_OF = {"level": level_variances, "change": change_variances}


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDesign:
    """A design and the variance of its numbers for one person, if nobody changes.

    Attributes:
        variances: for each series, one variance for each window.
    """

    method: Method
    arity: int | None
    design: Design
    variances: dict[LocalSeries, Floats]

    @property
    def name(self) -> str:
        layers = len(self.design.layers)
        if self.method == "once":
            return f"once, {self.design.layers[0].randomiser.report}"
        return self.method if layers == 1 else f"{self.method}, tree of {layers} layers, {self.arity} to a node"

    def deviation(self, people: int) -> float:
        """Return the root mean square standard deviation of all published numbers, for `people` people."""
        return math.sqrt(people * np.mean([variances.mean() for variances in self.variances.values()]))


def candidates(
    space: MutationSpace,
    bound: LocalBound,
    *,
    windows: int,
    epsilon: float,
    delta: float = 0.0,
    publish: Sequence[LocalSeries] = ("level",),
) -> list[CandidateDesign]:
    """Return all designs, the best first.

    Args:
        space: the answers and their possible changes.
        bound: contribution bound.
        windows: number of windows.
        epsilon, delta: privacy parameters of everything that a device sends.
        publish: series of published numbers.

    >>> best, *others = candidates(MutationSpace(answers=10), LocalBound(at_most=1), windows=1, epsilon=1.0)
    >>> for candidate in (best, *others):
    ...     print(candidate.name, round(candidate.variances["level"][0], 1))
    once, a sign 4.1
    once, a symbol 9.2
    signs 16.5
    mutations 763.5
    """
    found = []
    for method, arity, design in _designs(space, bound, windows=windows, epsilon=epsilon, delta=delta, publish=publish):
        variances = {series: variances_of(design, series) for series in publish}
        found.append(CandidateDesign(method=method, arity=arity, design=design, variances=variances))
    return sorted(found, key=lambda candidate: (candidate.deviation(1), len(candidate.design.layers)))


def tree(
    space: MutationSpace,
    bound: LocalBound,
    *,
    windows: int,
    arity: int,
    height: int,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "signs",
    publish: Sequence[LocalSeries] = ("level",),
) -> Design:
    """Return a tree over time with the best shares; height 1: a report in every window.

    Args:
        space: the answers and their possible changes.
        bound: contribution bound.
        windows: number of windows.
        arity: children of a node.
        height: largest number of layers.
        epsilon, delta: privacy parameters of everything that a device sends.
        method: signs or symbols.
        publish: series of published numbers, whose variances are minimised.
    """
    basis = best_basis(space.answers)
    randomisers: list[Signs | Symbols] = []
    for span in (arity**layer for layer in range(height)):
        if method == "signs":
            randomisers.append(best_signs(bound.changed(span, windows // span), Fraction(epsilon)))
        else:
            limits = per_report(epsilon, delta, differing(bound, span, windows // span))
            randomisers.append(best_symbols(space.count, *limits))
    layers = [Layer(span=arity**number, share=1, randomiser=each) for number, each in enumerate(randomisers)]
    alone = np.array([each.variance_of_change(basis, space) for each in randomisers])
    shares = _best_shares([layer.span for layer in layers], alone, windows, publish)
    return Design(
        space=space,
        windows=windows,
        bound=bound,
        reported="changes",
        basis=basis,
        layers=tuple(
            Layer(span=layer.span, share=share, randomiser=layer.randomiser)
            for layer, share in zip(layers, shares, strict=True)
        ),
        epsilon=epsilon,
        delta=delta if method == "mutations" else 0.0,
    )


def variances_of(design: Design, series: LocalSeries) -> Floats:
    """Return the variance of each number of a series, float64 [windows], for one person, if nobody changes."""
    if design.reported == "once":
        (layer,) = design.layers
        level = np.full(design.windows, design.windows * layer.randomiser.variance_of_level(design.basis))
        both = 2 * level
        both[0] = level[0]  # before the first window nobody is present
        return level if series == "level" else both
    each = [
        layer.randomiser.variance_of_change(design.basis, design.space) * SHARES / layer.share
        for layer in design.layers
    ]
    return _OF[series]([layer.span for layer in design.layers], each, design.windows)


def _designs(
    space: MutationSpace,
    bound: LocalBound,
    *,
    windows: int,
    epsilon: float,
    delta: float,
    publish: Sequence[LocalSeries],
) -> Iterator[tuple[Method, int | None, Design]]:
    own: list[tuple[Signs | Symbols, float]] = [
        (best_symbols(space.answers + 1, Fraction(epsilon), Fraction(delta)), delta),
        (best_signs(1, Fraction(epsilon)), 0.0),
    ]
    for randomiser, of_reports in own:
        reported: ReportedAs = "once"
        design = Design(
            space=space,
            windows=windows,
            bound=bound,
            reported=reported,
            basis=best_basis(space.answers),
            layers=(Layer(span=1, share=SHARES, randomiser=randomiser),),
            epsilon=epsilon,
            delta=of_reports,
        )
        yield "once", None, design
    methods: list[Method] = ["mutations"] if bound.changed(1, windows) > MOST_SIGNS else ["mutations", "signs"]
    for method in methods:
        for arity in range(2, MOST_ARITY + 1 if "level" in publish else 3):
            for height in range(1 if arity == 2 else 2, 64):
                alone = "level" not in publish or (method == "mutations" and space.transitions is not None)
                if windows < arity ** (height - 1) or (height > 1 and alone):
                    break
                design = tree(
                    *(space, bound),
                    windows=windows,
                    arity=arity,
                    height=height,
                    epsilon=epsilon,
                    delta=delta,
                    method=method,
                    publish=publish,
                )
                yield method, arity if height > 1 else None, design


def _best_shares(spans: Sequence[int], alone: Floats, windows: int, publish: Sequence[LocalSeries]) -> list[int]:
    """Return the shares of layers with the least sum of variances, in parts of 2^16.

    `alone` are the variances of nodes if everybody were in their layer. The sum is C_0 / share_0 + C_1 / share_1 + ...,
    where C follows from the weights that are best for given shares; and shares in proportion to the roots of C are best
    for given weights. Each of the alternating steps lowers the sum.
    """
    shares = np.full(len(spans), 1 / len(spans))

    def variance(shares: Floats) -> float:
        return sum(float(_OF[series](spans, list(alone / shares), windows).mean()) for series in publish)

    for _ in range(TURNS if len(spans) > 1 else 0):
        now = variance(shares)
        steps = STEP * np.diag(shares)
        falls = np.array([(now - variance(shares + step)) / step.max() for step in steps])  # C / share^2
        shares = np.maximum(shares * np.sqrt(np.maximum(falls, 0)), 1 / SHARES)
        shares = shares / shares.sum()
    return _shares(shares)


def _shares(weights: Floats) -> list[int]:
    """Return integer parts of 2^16 in proportion to weights, at least 1 each."""
    shares = np.maximum(1, np.floor(SHARES * weights / weights.sum())).astype(int)
    shares[np.argmax(shares)] += SHARES - shares.sum()
    return [int(share) for share in shares]
