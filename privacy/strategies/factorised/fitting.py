"""Parameters of Toeplitz factorisations with the least squared sensitivity times variance, chosen without data.

    square_root   has none
    leaky         the leak, by a search over its logarithm; with at most k changes in n windows it is near k / n
    window        the leak, the same way; for sliding numbers of width w near 1.2 / w
    arma          the leak, and one number for the range in which the poles lie

For arma, a factorisation with d decaying poles approximates the leaky filter c = s^(1/2) / (1 - x), s = 1 - lam x, for
small 1 - x, which matters most. Zolotarev's rational function is the best approximation of s^(1/2), in relative error,
on an interval [low, high], with zeros and poles

    -low tan^2(am(j K / (2 d)))   zeros for odd, poles for even j = 1, ..., 2 d - 1; am, K of parameter 1 - low / high.

Zeros and poles alternate, so c is a sum of exponentials with positive weights
(privacy.strategies.factorised.coefficients), for any low and leak. The interval is [low, 2], as 2 is the largest |s| on
the unit circle, and low is searched together with the leak, which was as good as a search over all zeros and poles.
Then gaps are rounded to 8 significant bits and weights to 16 bits after the binary point; the search compares these
rounded factorisations.

Sources: Zolotarev 1877, as in Hale, Higham, Trefethen, SIAM J. Numer. Anal. 46 (2008), section 4. Dvijotham et al.,
2024, use rational approximations of the square root for factorisations with few states.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacy.noise.kinds import NOISE
from privacy.problems import RuleError
from privacy.series import Series
from privacy.strategies.base import Floats
from privacy.strategies.candidates import LARGEST_STATE, Candidate, Needs, Offer, StrategyTerms, whole
from privacy.strategies.choice import Choice, FilterForm
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import WEIGHT, Exponentials, Pole
from privacy.strategies.factorised.factorised import Factorised

LEAST = 0.005
"""Least leak of an endless filter times windows: in a span of time a smaller leak always has a smaller error."""

LONG = 4096
"""Number of windows from which a fifth decaying pole reduces the error."""

DIGITS = 9
"""Significant digits of parameters: the last digits of an exponential differ between processors."""


def fit(
    form: FilterForm,
    *,
    windows: int | None,
    over: int,
    initial_level: bool,
    series: Sequence[Series],
    energy: Callable[[Factorised], float],
    worst: bool = False,
) -> Factorised:
    """Return the factorisation of a form with the least noise.

    Args:
        form: form of the filter.
        windows, initial_level: as in `Factorised`.
        over: number of windows over which errors are compared; all windows if the release has an end.
        series: published series; their variances have equal weight.
        energy: returns a bound on the squared sensitivity of a factorisation.
        worst: compare the largest variance of a series instead of its mean.

    >>> from privacy.strategies.factorised.energy import toggles
    >>> level = [Series(kind="level")]
    >>> energy = lambda found: float(toggles(found.coefficients, 64, 4)[4])
    >>> factorised = fit("leaky", windows=64, over=64, initial_level=False, series=level, energy=energy)
    >>> 2 / 64 < factorised.kernel.leak < 8 / 64
    True
    """

    family = FAMILIES[form]

    def build(*parameters: float) -> Factorised:
        return Factorised(kernel=family.kernel(over, *parameters), windows=windows, initial_level=initial_level)

    def cost(factorised: Factorised) -> float:
        size = np.max if worst else np.mean
        found = [float(size(factorised.variances(numbers, over))) for numbers in series]
        return energy(factorised) * math.fsum(found) / len(found)

    def short(leak: float) -> bool:
        return windows is not None or leak * over >= LEAST  # otherwise it would have millions of coefficients

    if family.others is None:
        return build()
    return _search(build, cost, _leaks(over), family.others(over), short)


def zolotarev(leak: float, low: float, poles: int) -> tuple[Floats, Floats]:
    """Return the zeros and poles of an approximately leaky filter, as gaps 1 - p and 1 - t that alternate and rise.

    Args:
        leak: 1 - lam of the leaky filter.
        low: lower end of the interval of the approximation.
        poles: number of poles, including 1.

    Returns:
        Gaps of zeros, float64 [poles], and of poles other than 1, float64 [poles - 1].

    >>> zeros, others = zolotarev(0.01, 0.01, 3)
    >>> bool((zeros[:-1] < others).all() and (others < zeros[1:]).all())
    True
    """
    from scipy.special import ellipj, ellipkm1

    turns = np.arange(1, 2 * poles) / (2 * poles) * ellipkm1(low / 2)
    sine, cosine, _, _ = ellipj(turns, 1 - low / 2)
    roots = low * (sine / cosine) ** 2
    gaps = (roots + leak) / (roots + 1)
    return gaps[0::2], gaps[1::2]


def dyadic(zeros: Floats, poles: Floats) -> tuple[Pole, ...]:
    """Return the exponentials of prod (1 - p x) / ((1 - x) prod (1 - t x)), rounded: u_i at t_i = 1, given poles, 0.

    Args:
        zeros: gaps 1 - p, float64 [poles].
        poles: gaps 1 - t, float64 [poles - 1].

    >>> dyadic(np.array([0.5]), np.array([]))
    ((0, 0, 32768), (1, 0, 32768))
    """
    gaps = np.array([0.0, *poles, 1.0])
    found = {(0, 0): 0}
    for place, gap in enumerate(gaps):
        weight = np.prod(zeros - gap) / np.prod(np.delete(gaps, place) - gap)
        rounded = _significant(gap) if gap else (0, 0)
        # Poles that round to the same value are merged.
        found[rounded] = found.get(rounded, 0) + max(1, round(float(weight) * 2**WEIGHT))
    heaviest = max(found, key=lambda pole: found[pole])
    found[heaviest] += 2**WEIGHT - sum(found.values())
    return tuple((a, b, u) for (a, b), u in found.items())


def _significant(gap: float) -> tuple[int, int]:
    """Return (a, b) with a / 2^b near a number in (0, 1], in lowest terms and with a < 2^8.

    >>> _significant(0.3), _significant(0.5), _significant(0.999)
    ((77, 8), (1, 1), (1, 0))
    """
    exponent = 8 - math.frexp(gap)[1]
    a, b = round(gap * 2.0**exponent), exponent
    shared = min(b, (a & -a).bit_length() - 1)
    return a >> shared, b - shared


def _leaks(windows: int) -> Floats:
    """Return leaks from far below one change in all windows to half the level in each, at most a factor of 4 apart."""
    lowest, highest = math.log(0.05 / windows), math.log(0.5)
    return np.exp(np.linspace(lowest, highest, 2 + int((highest - lowest) / math.log(4))))


def _search(
    build: Callable[..., Factorised],
    cost: Callable[[Factorised], float],
    leaks: Floats,
    others: tuple[float, ...],
    short: Callable[[float], bool],
) -> Factorised:
    """Return the best of a coarse scan over leaks, refined by Nelder and Mead's deterministic search in logarithms.

    Args:
        build: makes a factorisation from a leak and other parameters.
        cost: the value to minimise.
        leaks: leaks of the scan, float64 [leaks].
        others: starting values of the other parameters.
        short: whether a leak gives few enough coefficients.
    """
    from scipy.optimize import minimize  # slow to import

    tried: dict[Factorised, float] = {}

    def objective(logarithms: Floats) -> float:
        leak, *rest = (float(f"{number:.{DIGITS}g}") for number in np.exp(logarithms).tolist())
        if not (leak <= 1 and all(number < 1 for number in rest) and short(leak)):
            return math.inf
        factorised = build(leak, *rest)
        if factorised not in tried:
            tried[factorised] = cost(factorised)
        return tried[factorised]

    first = min((np.log([leak, *others]) for leak in leaks), key=objective)
    corners = np.vstack([first, first + 0.7 * np.eye(len(first))])
    minimize(
        objective,
        first,
        method="Nelder-Mead",
        options={"initial_simplex": corners, "maxfev": 20 * len(first), "xatol": 1e-2, "fatol": 0.0},
    )
    return min(tried, key=lambda factorised: tried[factorised])


@dataclass(frozen=True, slots=True)
class _Family:
    """Kernels of one form.

    Attributes:
        kernel: makes a kernel from the number of windows, the leak and other parameters; without them if `others` is
            None.
        others: starting values of the other parameters for a number of windows; None: nothing is searched.
        endless: whether the release needs no end.
    """

    kernel: Callable[..., Coefficients | Exponentials]
    others: Callable[[int], tuple[float, ...]] | None
    endless: bool = False


def _exponentials(over: int, leak: float, low: float) -> Exponentials:
    return Exponentials(poles=dyadic(*zolotarev(leak, low, 4 if over < LONG else 5)))


FAMILIES: dict[FilterForm, _Family] = {
    "square_root": _Family(lambda over: Coefficients(), None),
    "leaky": _Family(lambda over, leak: Coefficients(leak=leak), lambda over: ()),
    "arma": _Family(_exponentials, lambda over: (1 / over,)),
    "window": _Family(lambda over, leak: Coefficients(leak=leak, ends=True), lambda over: (), endless=True),
}
"""Forms in the order in which they are tried; of equal ones the first is taken."""


def _candidates(asked: Needs) -> Iterator[Candidate]:
    """Yield the best factorisation of each form; for a span of time only if the spec requests a factorisation.

    In a span a unit that repeatedly arrives and departs can move a filter at any frequency. No tested filter had less
    error than direct levels there (tests/privacy/test_span_plan).
    """
    if asked.size > LARGEST_STATE or (not asked.counted and asked.choice.name == "auto"):
        return
    windows, over = asked.horizon(asked.leaf), asked.nominal // asked.leaf

    def energy(factorised: Factorised) -> float:
        return asked.squared_norm(factorised, asked.leaf)

    for form in FAMILIES if asked.choice.form is None else (asked.choice.form,):
        if windows is not None or FAMILIES[form].endless:
            series = [s.merged(asked.leaf) for s in asked.series]
            found = fit(
                form, windows=windows, over=over, initial_level=asked.initial_level, series=series, energy=energy
            )
            yield whole(asked, replace(found, kernel=found.kernel.sized(asked.size)))


def _problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
    if terms.mechanism != "auto" and not NOISE[terms.mechanism].dense:
        needed = "privacy.mechanism: gaussian" if terms.delta else "privacy.delta: 1.0e-9"
        yield RuleError(f"factorised needs Gaussian noise; give {needed}, or use strategy: tree")
    elif terms.accounting == "paper":
        yield RuleError("factorised has no bound with privacy.accounting: paper; remove that, or use strategy: tree")
    if choice.form is not None and not FAMILIES[choice.form].endless and terms.windows is None:
        message = "needs a last window; add schedule.until, or use {factorised: window} or tree"
        yield RuleError(f"{choice.form} {message}")


FACTORISED = Offer(sparse=Factorised.sparse, candidates=_candidates, problems=_problems, finds_keys=True)
