"""Split of a release's delta between noise and the discovery of keys."""

from fractions import Fraction

from privacy.upward import below


def split(delta: float, queries: int, *, pure: bool) -> tuple[float, float]:
    """Return the delta of the noise, and that of each query that finds keys; together at most `delta`.

    Noise that needs no delta leaves all of it. Otherwise each side gets a half: a threshold and the scale of Gaussian
    noise grow with the square root of the logarithm of 1 / delta, so no other split is much better.

    Args:
        delta: delta of the release.
        queries: number of queries that find keys.
        pure: whether the noise needs no delta.

    >>> split(1e-6, 0, pure=False), split(1e-6, 2, pure=True), split(1e-6, 1, pure=False)
    ((1e-06, 0.0), (0.0, 5e-07), (5e-07, 5e-07))
    """
    if not queries:
        return delta, 0.0
    noise = 0.0 if pure else delta / 2
    return noise, below((Fraction(delta) - Fraction(noise)) / queries)


def of_noise(delta: float, found: float) -> float:
    """Return the part of a release's delta that its noise has; rounded down.

    Args:
        delta: delta of the release.
        found: sum of the deltas of all queries that find keys.
    """
    return delta if not found else max(0.0, below(Fraction(delta) - Fraction(found)))
