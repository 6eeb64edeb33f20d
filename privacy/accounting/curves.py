"""Costs of given noise: epsilon at a delta for Gaussian, zCDP and composed pure mechanisms.

Every function returns an upper bound. If a numerical solver is used, its tolerance is added, so that rounding errs on
the side of privacy. dp_accounting and SciPy are imported in the functions that use them: the imports take over a
second, which a release under pure epsilon avoids.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDERS: NDArray[np.float64] = np.array([1 + x / 10 for x in range(1, 100)] + [*range(11, 64), 128, 256, 512, 1024])
"""Renyi orders alpha at which curves are kept."""

GAP = 1 / 42
"""Constant of `rounding_gap`, derived in docs/proofs/discrete_gaussian.md."""


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon at `delta` of Gaussian noise with sensitivity / sigma = mu (mu-GDP).

    Source: Balle, Wang, "Improving the Gaussian Mechanism", ICML 2018, theorem 8, solved for epsilon: delta falls as
    epsilon rises.

    >>> round(gaussian_epsilon(1 / 4.2247, 1e-6), 4)
    1.0
    """
    if delta <= 0:
        return math.inf
    from scipy.optimize import brentq

    target = math.log(min(1.0, delta) * (1 - 1e-9))

    def beyond(epsilon: float) -> float:
        return _log_gaussian_delta(mu, epsilon) - target

    found, low, high = 0.0, 0.0, 1.0
    if beyond(low) > 0:
        while beyond(high) > 0:
            low, high = high, 10 * high
        found = brentq(beyond, low, high, xtol=1e-12)
    # The solver works on log delta to about 1e-12: both margins exceed its error.
    return float(found) * (1 + 1e-12) + 1e-11


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the smallest delta at `epsilon` of Gaussian noise with sensitivity / sigma = mu.

    It is Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu), with logarithms so that nothing
    underflows. Source: Balle, Wang, "Improving the Gaussian Mechanism", ICML 2018, theorem 8.

    >>> round(gaussian_delta(1 / 4.2247, 1.0) * 1e6, 3)
    1.0
    """
    return math.exp(_log_gaussian_delta(mu, epsilon))


def _log_gaussian_delta(mu: float, epsilon: float) -> float:
    from scipy.special import log_ndtr

    near, far = float(log_ndtr(mu / 2 - epsilon / mu)), epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    # Rounding, or numbers beyond the range of floats, may make the difference zero.
    return near + math.log(-math.expm1(far - near)) if far < near else -math.inf


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon at `delta` of any rho-zCDP mechanism.

    Source: Canonne, Kamath, Steinke 2020, corollary 13. Each order alpha > 1 gives a bound; the
    best order is searched.

    >>> zcdp_epsilon(0.5, 1e-6) < 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    True
    """
    if delta <= 0:
        return math.inf

    from scipy.optimize import minimize_scalar

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return alpha * rho + math.log1p(-1 / alpha) - math.log(delta * alpha) / excess

    best = minimize_scalar(bound, bounds=(-15.0, 25.0), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(best.fun)) * (1 + 1e-12) + 1e-12


def gaussian_renyi(ratios: Sequence[float]) -> NDArray[np.float64]:
    """Return the Renyi divergence at `ORDERS`, float64 [orders], of composed Gaussian noise with these ratios."""
    return ORDERS * math.fsum(r * r for r in ratios) / 2


def pure_renyi(epsilons: Sequence[float]) -> NDArray[np.float64]:
    """Return the Renyi divergence at `ORDERS`, float64 [orders], of composed epsilon_i-DP mechanisms.

    Each is randomised response followed by a function that does not depend on the data (Kairouz, Oh,
    Viswanath 2015), so its divergence is at most that of randomised response.

    >>> bool((pure_renyi([0.5]) <= ORDERS * 0.5**2 / 2).all())
    True
    """
    total = np.zeros_like(ORDERS)
    for epsilon in epsilons:
        likely = -math.log1p(math.exp(-epsilon))
        unlikely = likely - epsilon
        power = np.logaddexp(ORDERS * likely + (1 - ORDERS) * unlikely, ORDERS * unlikely + (1 - ORDERS) * likely)
        # The argument of the logarithm is near 1 if epsilon is small.
        total += (power * (1 + 1e-12) + 1e-15) / (ORDERS - 1)
    return total


def renyi_epsilon(curve: NDArray[np.float64], delta: float) -> float:
    """Return the epsilon at `delta` of a mechanism with this Renyi curve at `ORDERS`, float64 [orders].

    Source: Canonne, Kamath, Steinke 2020, proposition 12; computed by dp_accounting.
    """
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    return float(compute_epsilon(ORDERS, curve, delta)[0]) * (1 + 1e-12)


def advanced_epsilon(epsilons: Sequence[float], slack: float) -> float:
    """Return the epsilon of adaptively composed mechanisms with these epsilons, for `slack` more delta.

    Source: Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015,
    theorem 3.5 (heterogeneous); the first term of its minimum is basic composition.

    >>> advanced_epsilon([0.01] * 1000, 1e-6) < 2
    True
    """
    basic = math.fsum(epsilons)
    if slack <= 0:
        return basic
    squares = math.fsum(e * e for e in epsilons)
    drift = math.fsum(e * math.tanh(e / 2) for e in epsilons)
    logarithm = min(math.log(math.e + math.sqrt(squares) / slack), math.log(1 / slack))
    return min(basic, drift + math.sqrt(2 * squares * logarithm)) * (1 + 1e-12)


def rounding_gap(scale: float) -> float:
    """Return a bound on the total variation between N_Z(0, scale^2) and a normal variable rounded.

    It is 1 / (42 scale^2) for scale >= 10 steps (docs/proofs/discrete_gaussian.md); for narrower
    noise there is no bound here, and the trivial one is returned.

    >>> rounding_gap(2.0**20) < 2.2e-14
    True
    """
    return GAP / scale**2 if scale >= 10 else 1.0
