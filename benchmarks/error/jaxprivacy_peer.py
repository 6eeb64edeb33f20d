"""The strategies of Google's jax-privacy 2.0.0, in a separate environment (see jaxprivacy.py).

    python benchmarks/error/jaxprivacy_peer.py < QUESTIONS.json > ANSWERS.json

A question is {"strategy", "leaves", "participations", "initial_level", "width"}; the answer is the mean squared error
of the published numbers at noise multiplier 1: the squared sensitivity, as jax-privacy states it, times the mean of its
per-query errors. An entry's k changes are k participations, which may follow each other (min_sep = 1). jax-privacy has
no parameter for their alternating signs.
"""

import json
import sys
from typing import Any

import jax
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz


def coefficients(strategy: str, leaves: int, participations: int) -> Any:
    """Return the square root (best for one participation), or a buffered Toeplitz matrix fitted to the mean error.

    Args:
        strategy: `sqrt` or `blt`.
        leaves: length of the stream.
        participations: largest number of changes of an entry.
    """
    if strategy == "sqrt":
        return toeplitz.optimal_max_error_strategy_coefs(leaves)
    fitted = buffered_toeplitz.optimize(
        n=leaves, min_sep=1, max_participations=participations, error="mean", min_buffers=2, max_buffers=3
    )
    return fitted.toeplitz_coefs(leaves)


def answer(*, strategy: str, leaves: int, participations: int, initial_level: int, width: int | None) -> float:
    """Return the mean squared error of the published numbers at noise multiplier 1.

    Args:
        strategy: `sqrt` or `blt`.
        leaves: length of the stream.
        participations: largest number of changes of an entry.
        initial_level: 1 if the first leaf is the level at the start, which is not published.
        width: of sliding windows; None for levels.
    """
    coef = coefficients(strategy, leaves, participations)
    # A fitted matrix decreases up to rounding, which the library's own check does not allow for.
    squared = toeplitz.minsep_sensitivity_squared(
        coef, min_sep=1, max_participations=participations, skip_checks=strategy == "blt"
    )
    workload = None if width is None else jax.numpy.ones(width)
    errors = toeplitz.per_query_error(strategy_coef=coef, workload_coef=workload)
    first = initial_level if width is None else width - 1
    return float(squared * errors[first:].mean())


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)  # in single precision long filters lose digits
    json.dump([answer(**question) for question in json.load(sys.stdin)], sys.stdout)
