"""M. Pan's local reports as printed, compared with ours: figure 5, equations 54 and 55, corollaries 5.4 and 5.5.

    python -m benchmarks.local.paper     # ten seconds

Figure 5 shows one query of a randomised-response release. The text that we have lacks the picture, so this query is
another one of that kind: the paper's symbols (R + null)^2, its randomised response, its estimate.

Sliding windows: everybody reports the change over the last w of n windows after each window. A change is in w of them,
so 2 k w reports of two people can differ (corollary 5.4; at most n). Ours is the difference of two levels, which costs
nothing beyond the levels. Numbers are variances for one person, of two answers at epsilon = 1.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.local.basis import best_basis
from privacy.local.bound import LocalBound
from privacy.local.candidates import candidates, variances_of
from privacy.local.design import SHARES, Design
from privacy.local.least_squares import node_weights
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import MOST_SIGNS, best_signs
from privacy.local.symbols import best_symbols

Floats = NDArray[np.float64]

ANSWERS, NONE = ("A", "B"), "null"
SYMBOLS = [(before, after) for before in (*ANSWERS, NONE) for after in (*ANSWERS, NONE)]
ENTRIES = [("A", "B"), (NONE, "A"), (NONE, NONE), ("B", NONE), (NONE, NONE), ("A", "B")]
"""Changes of the answers of six entries: A by -1, B by +1."""

SETTINGS = ((52, 4, 1), (52, 4, 4), (365, 30, 1), (365, 30, 4), (1024, 7, 8))
"""Number of windows, width of a sliding window, number of changes."""


def matrices(epsilon: float) -> tuple[Floats, Floats]:
    """Return the paper's M (42), which maps symbols to changes of the histogram, and its P (34)."""
    changes = [[float(after == answer) - (before == answer) for before, after in SYMBOLS] for answer in ANSWERS]
    odds = np.ones((len(SYMBOLS), len(SYMBOLS))) + np.eye(len(SYMBOLS)) * math.expm1(epsilon)
    return np.array(changes), odds / odds.sum(axis=0)


def query(epsilon: float = 1.0) -> Iterator[str]:
    """Yield lines on one query: responses, the estimate (46), its mean over all responses, and its variance."""
    to_changes, response = matrices(epsilon)
    decoder = to_changes @ np.linalg.inv(response)
    true = np.array([SYMBOLS.index(entry) for entry in ENTRIES])
    heard = [int(np.random.default_rng().choice(len(SYMBOLS), p=response[:, symbol])) for symbol in true]
    for entry, symbol in zip(ENTRIES, heard, strict=True):
        yield f"{'-'.join(entry):>10} is reported as {'-'.join(SYMBOLS[symbol])}"
    tally = np.bincount(heard, minlength=len(SYMBOLS))
    yield "the estimate: " + ", ".join(f"{a} {v:+.3g}" for a, v in zip(ANSWERS, decoder @ tally, strict=True))
    counts = np.bincount(true, minlength=len(SYMBOLS)).astype(float)
    expected = response @ counts
    mean = ", ".join(f"{a} {v:+.3g}" for a, v in zip(ANSWERS, decoder @ expected, strict=True))
    yield f"the mean of the estimate over all responses: {mean}"
    variance = decoder @ np.diag(expected) @ decoder.T - to_changes @ np.diag(counts) @ to_changes.T
    yield f"its variance: A {variance[0, 0]:.1f}"
    printed = [
        (decoder @ (np.diag(o) - np.outer(o, o)) @ decoder.T / len(ENTRIES))[0, 0]
        for o in (expected, expected / len(ENTRIES))
    ]
    yield f"equation 55 with counts: A {printed[0]:.1f}; with shares: A {printed[1]:.1f}"
    space = MutationSpace(answers=len(ANSWERS))
    alone = best_symbols(space.count, Fraction(epsilon)).variance_of_change(best_basis(2), space)
    yield f"with the merged symbols of privacy.local: A {alone * len(ENTRIES):.1f}"


def of_difference(design: Design, width: int) -> float:
    """Return the variance of a change over `width` windows, averaged over the windows, if nobody changes."""
    windows = design.windows
    if design.reported == "once":  # two levels, by different people
        return 2 * float(variances_of(design, "level").mean())
    ends = np.arange(windows)[:, None]
    sums = ((ends - width < np.arange(windows)) & (np.arange(windows) <= ends)).astype(float)
    each = [
        layer.randomiser.variance_of_change(design.basis, design.space) * SHARES / layer.share
        for layer in design.layers
    ]
    spans = [layer.span for layer in design.layers]
    precisions = [np.full(windows // span, 1 / variance) for span, variance in zip(spans, each, strict=True)]
    weights = node_weights(spans, precisions, sums)
    return float(sum((weight**2 * variance).sum(axis=1) for weight, variance in zip(weights, each, strict=True)).mean())


def sliding(windows: int, width: int, changes: int) -> tuple[float, float, float, float]:
    """Return variances of direct reports by symbols and by signs, and of our best designs for levels.

    Args:
        windows: number of windows.
        width: of a sliding window, in windows.
        changes: largest number of changes of a person.
    """
    space, basis, bound = MutationSpace(answers=2), best_basis(2), LocalBound(at_most=changes)
    met = changes * width  # theorem 4.5: windows that hold one change, with one window of `width` at each time
    symbols = best_symbols(space.count, Fraction(1, min(2 * met, windows)))
    signs = min(met, windows)
    direct = [symbols.variance_of_change(basis, space), math.inf]
    if signs <= MOST_SIGNS:
        direct[1] = best_signs(signs, Fraction(1)).variance_of_change(basis, space)
    found = candidates(space, bound, windows=windows, epsilon=1.0)
    once, tree = (
        next(each.design for each in found if (each.method == "once") is alone and each.method != "mutations")
        for alone in (True, False)
    )
    return direct[0], direct[1], of_difference(tree, width), of_difference(once, width)


def main() -> None:
    print(*query(), sep="\n")
    print("\n| windows, width, changes | symbols (corollary 5.4) | signs | tree of signs, least squares | once |")
    print("|---|--:|--:|--:|--:|")
    for setting in SETTINGS:
        print(f"| {', '.join(map(str, setting))} | {' | '.join(f'{each:,.0f}' for each in sliding(*setting))} |")


if __name__ == "__main__":
    main()
