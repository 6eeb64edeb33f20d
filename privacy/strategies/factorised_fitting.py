"""Parameters of Toeplitz factorisations, chosen without data: the least squared sensitivity times variance.

    square_root   has none
    leaky         the leak, by a search over its logarithm; with at most k changes in n windows it comes out near k / n
    window        the leak, the same way; for sliding numbers of width w near 1.2 / w
    arma          the leak, and one number for the range in which the poles lie

For arma, a factorisation with d decaying poles is to be near the leaky filter c = s^(1/2) / (1 - x), s = 1 - lam x,
where it matters: 1 - x small. Zolotarev's rational function is the best approximation of s^(1/2), in relative error, on
an interval [low, high], with zeros and poles

    -low tan^2(am(j K / (2 d)))   zeros for odd, poles for even j = 1, ..., 2 d - 1; am, K of parameter 1 - low / high.

They take turns, so c is a sum of exponentials with positive weights (privacy.strategies.factorised_coefficients), for
any low and leak. The interval is [low, 2], as 2 is the largest |s| on the unit circle, and low is searched for along
with the leak, which was as good as a search over all zeros and poles. Then gaps get 8 significant bits and weights 16
after the point, and it is such rounded factorisations that the search compares.

Sources: Zolotarev 1877, as in Hale, Higham, Trefethen, SIAM J. Numer. Anal. 46 (2008), section 4. That rational
approximations of the square root make factorisations of little state is from Dvijotham et al., 2024.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from privacy.series import Series
from privacy.strategies.base import Floats
from privacy.strategies.candidates import Asked, Candidate, Offer, whole
from privacy.strategies.choice import Form
from privacy.strategies.factorised import Factorised
from privacy.strategies.factorised_step import WEIGHT, Pole

LEAST = 0.005
"""Leaks of endless filters times windows: in a span of time the error falls with the leak for ever."""

LONG = 4096
"""From so many windows on a fifth decaying pole pays."""


def fit(
    form: Form,
    *,
    windows: int | None,
    over: int,
    initial_level: bool,
    series: Sequence[Series],
    energy: Callable[[Factorised], float],
    worst: bool = False,
) -> Factorised:
    """The factorisation of a form with the least noise.

    Args:
        windows, initial_level: see Factorised.
        over: so many windows are compared; all, where there is an end.
        series: what is published; their variances count alike.
        energy: a bound on the squared sensitivity of a factorisation.
        worst: go by the largest variance of a series instead of its mean.

    >>> from privacy.strategies.factorised_energy import toggles
    >>> level = [Series(kind="level")]
    >>> energy = lambda found: float(toggles(found.coefficients, 64, 4)[4])
    >>> factorised = fit("leaky", windows=64, over=64, initial_level=False, series=level, energy=energy)
    >>> 2 / 64 < factorised.leak < 8 / 64
    True
    """

    def cost(factorised: Factorised) -> float:
        if windows is None and factorised.leak * over < LEAST:  # its coefficients would be millions
            return math.inf
        size = np.max if worst else np.mean
        found = [float(size(factorised.variances(numbers, over))) for numbers in series]
        return energy(factorised) * math.fsum(found) / len(found)

    if form == "square_root":
        return Factorised(form=form, windows=windows, initial_level=initial_level)
    if form != "arma":
        return _search(
            lambda leak: Factorised(form=form, windows=windows, initial_level=initial_level, leak=leak),
            cost,
            _leaks(over),
            (),
        )
    poles = 4 if over < LONG else 5
    return _search(
        lambda leak, low: Factorised(
            form=form, windows=windows, initial_level=initial_level, poles=dyadic(*zolotarev(leak, low, poles))
        ),
        cost,
        _leaks(over),
        (1 / over,),
    )


def zolotarev(leak: float, low: float, poles: int) -> tuple[Floats, Floats]:
    """Zeros and poles of an approximately leaky filter, as gaps 1 - p and 1 - t that take turns and rise.

    Returns:
        [poles] gaps of zeros, and [poles - 1] of poles besides 1.

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
    """The exponentials of prod (1 - p x) / ((1 - x) prod (1 - t x)), rounded: u_i at t_i = 1, those given, 0.

    >>> dyadic(np.array([0.5]), np.array([]))
    ((0, 0, 32768), (1, 0, 32768))
    """
    gaps = np.array([0.0, *poles, 1.0])
    found = {(0, 0): 0}
    for place, gap in enumerate(gaps):
        weight = np.prod(zeros - gap) / np.prod(np.delete(gaps, place) - gap)
        rounded = _significant(gap) if gap else (0, 0)
        # Poles that round to the same are one.
        found[rounded] = found.get(rounded, 0) + max(1, round(float(weight) * 2**WEIGHT))
    heaviest = max(found, key=lambda pole: found[pole])
    found[heaviest] += 2**WEIGHT - sum(found.values())
    return tuple((a, b, u) for (a, b), u in found.items())


def _significant(gap: float) -> tuple[int, int]:
    """(a, b) with a / 2^b near a number in (0, 1], in lowest terms and with a < 2^8.

    >>> _significant(0.3), _significant(0.5), _significant(0.999)
    ((77, 8), (1, 1), (1, 0))
    """
    exponent = 8 - math.frexp(gap)[1]
    a, b = round(gap * 2.0**exponent), exponent
    shared = min(b, (a & -a).bit_length() - 1)
    return a >> shared, b - shared


def _leaks(windows: int) -> Floats:
    """From far below one change in all windows up to half the level in each: a factor of at most 4 apart."""
    lowest, highest = math.log(0.05 / windows), math.log(0.5)
    return np.exp(np.linspace(lowest, highest, 2 + int((highest - lowest) / math.log(4))))


def _search(
    build: Callable[..., Factorised], cost: Callable[[Factorised], float], leaks: Floats, others: tuple[float, ...]
) -> Factorised:
    """The best of a coarse scan over leaks, then Nelder and Mead's search in logarithms from there: no chance in it."""
    from scipy.optimize import minimize  # slow to import

    tried: dict[Factorised, float] = {}

    def objective(logarithms: Floats) -> float:
        leak, *rest = np.exp(logarithms).tolist()
        if not (leak <= 1 and all(number < 1 for number in rest)):
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


ORDER: tuple[Form, ...] = ("square_root", "leaky", "arma", "window")
"""In which forms are tried; of equal ones the first is taken."""


def _candidates(asked: Asked) -> Iterator[Candidate]:
    """In a span of time only where the spec asks for one: whoever comes and goes there moves a filter as far as any
    frequency lets him, and none that was tried has less error than levels by themselves (tests/privacy/test_span_plan).
    """
    if not asked.counted and asked.choice.name == "auto":
        return
    windows, over = asked.horizon(asked.leaf), asked.nominal // asked.leaf

    def energy(factorised: Factorised) -> float:
        return asked.squared_norm(factorised, asked.leaf)

    for form in ORDER if asked.choice.form is None else (asked.choice.form,):
        if windows is not None or form == "window":
            series = [s.merged(asked.leaf) for s in asked.series]
            found = fit(
                form, windows=windows, over=over, initial_level=asked.initial_level, series=series, energy=energy
            )
            yield whole(asked, found)


FACTORISED = Offer(
    sparse=Factorised.sparse, candidates=_candidates, lacking="the form {form} needs an end of the schedule"
)
