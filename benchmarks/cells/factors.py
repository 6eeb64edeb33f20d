"""Factors of the variance of totals, subtotals and cells: with sums over cells that get noise, and without them.

Variances are exact, those of `slackwater answer` for the last of 31 daily windows. The table of
docs/how-to/sums-over-cells.md has these factors.
"""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.epochs.plans import plan_of
from pipelines.published.sums import sum_errors
from pipelines.spec.load import load
from privacy.series import Series

Floats = NDArray[np.float64]

LEVEL = Series(kind="level")
WINDOWS, REGIONS, TOWNS = 31, 12, 5
CELLS = REGIONS * TOWNS
SPEC = """\
release: factors
changelog: {{format: csv, path: data.csv, entry: entry, time: at}}
privacy: {{unit: entry, epsilon: 1.0, delta: {delta}, mechanism: {mechanism}, constraint: {{at_most: {at_most}}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-02-01T00:00:00Z}}
queries: [{{name: entries, measure: count, {query}}}]
output: {{public: public, private: private}}
"""
LISTED = f"by: {{region: {list(range(REGIONS))}, town: {list(range(TOWNS))}}}"
TREE = ", ".join(f"region {one}: {list(range(TOWNS * one, TOWNS * one + TOWNS))}" for one in range(REGIONS))
ORDERED = f"by: {{age: {{from: 0, to: {CELLS - 2}, step: 1}}}}, publish: [level]"
"""Cells of one year, with `below` and `above`."""

QUERIES = {
    "`marginals: [[], [region]]`": f"{LISTED}, publish: [level, {{marginals: [[], [region]]}}]",
    "`place: {tree: ...}`": f"by: {{place: {{tree: {{{TREE}}}}}}}, publish: [level]",
    "`cells: {for: ranges}`": f"{ORDERED}, cells: {{for: ranges}}",
    "`cells: {strategy: tree, for: ranges}`": f"{ORDERED}, cells: {{strategy: tree, for: ranges}}",
    "`cells: {for: prefixes}`": f"{ORDERED}, cells: {{for: prefixes}}",
    "`cells: {strategy: prefix, for: ranges}`": f"{ORDERED}, cells: {{strategy: prefix, for: ranges}}",
}
SEPARATE = f"{ORDERED}, cells: {{strategy: each}}"
DELTAS = {"laplace": 0.0, "gaussian": 1e-9}


def variances(query: str, *, at_most: int, mechanism: str) -> Floats:
    """Return the variance of the total, and the mean variances of the subtotals and of the cells, float64 [3].

    Args:
        query: Part of the query's section.
        at_most: Number of changes of an entry that count.
        mechanism: Kind of noise.
    """
    text = SPEC.format(query=query, at_most=at_most, mechanism=mechanism, delta=DELTAS[mechanism])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(text)
        spec = load(path)
    plan, asked = plan_of(spec), spec.queries[0]
    last = np.array([WINDOWS - 1])

    def variance(sums: Floats) -> float:
        """Return the mean variance of sums with these weights of cells, [sums, cells]."""
        found = [sum_errors(asked, LEVEL, plan, one, wanted=last, others=None, sampled=())[0, 0] for one in sums]
        return float(np.mean(np.square(found)))

    return np.array(
        [variance(np.ones((1, CELLS))), variance(np.eye(REGIONS).repeat(TOWNS, 1)), variance(np.eye(CELLS))]
    )


def row(key: str, at_most: int) -> str:
    """Return the row of a query, compared with a query whose cells have separate noise."""
    factors = np.concatenate(
        [
            np.divide(*(variances(query, at_most=at_most, mechanism=mechanism) for query in (QUERIES[key], SEPARATE)))
            for mechanism in DELTAS
        ]
    )
    numbers = [f"{one:,.{2 if one < 0.995 else 1 if one < 10 else 0}f}" for one in factors]
    return f"| {key} | {at_most} | {' | '.join(numbers)} |"


def table() -> str:
    lines = ["| key in the spec | `at_most` | Laplace: total | subtotal | cell | Gaussian: total | subtotal | cell |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    return "\n".join(lines + [row(key, at_most) for key in QUERIES for at_most in (1, 4)])
