"""Exact privacy loss of rules that sample or repeat, on small histograms, from the decisions of the program itself.

The probability that levels are published as given flags and sketches has a closed form, except for the rule that
decides. That rule is asked: for each window the least noise with which it samples is found by bisection, with a
threshold's noise of 0; a threshold's noise of r moves it by r. A sketch has the probability of its private choices, for
the scores that the program computes, times that of its noise.

`wrong_decisions` checks what the sum assumes, one decision after the other.

Only for rules that compare a noisy distance with a noisy threshold, with any samples that publish their private choices
first, and then sums with Laplace noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from privacy.adaptive.base import Rule, Stepped
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.scales import Scales
from privacy.bisection import last_holding
from privacy.cells.base import Reading, Sketcher
from privacy.evidence.chances import CERTAIN, MOVED, Answer, log_chance_of, log_mass, log_pick
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution
from privacy.series import Ints


class _SamplingError(Exception):
    """A sample is being taken: the decision is known, and the rest of the step is not needed."""


@dataclass(slots=True)
class _Chosen:
    """Source of chosen noise. Requests for one number are for the threshold, if it is fresh, then for a distance.

    Attributes:
        fresh: Whether the threshold's noise is sampled.
        distance, threshold: Their noise.
        sketch: Public numbers of the sample: private choices first.
        added: Noise of the sample's sums; None: a request for it is an error.
        asked: Distributions of the noise, by its purpose.
        picks: Private choices.
    """

    fresh: bool
    distance: int
    threshold: int
    sketch: Ints
    added: Ints | None
    asked: dict[str, NoiseDistribution] = field(default_factory=dict)
    picks: list[PrivateChoice] = field(default_factory=list)

    def __call__(self, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
        if isinstance(distribution, PrivateChoice):
            if self.added is None:
                raise _SamplingError
            self.picks.append(distribution)
            return self.sketch[len(self.picks) - 1 : len(self.picks)]
        if size > 1:
            if self.added is None:
                raise _SamplingError
            self.asked["sample"] = distribution
            return self.added[-size:]
        if self.fresh and not self.asked:
            self.asked["threshold"] = distribution
            return np.array([self.threshold])
        self.asked["distance"] = distribution
        return np.array([self.distance])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A window that is published with chosen noise.

    Attributes:
        rule, scales, over: As of `log_chance`.
        carry: Carry of the window before; None before the first.
        reading: Reading of the last published numbers; None before the first window.
        level: Exact level, int64 [cells].
        value: Public numbers if it is sampled, int64 [numbers].
    """

    rule: Rule
    scales: Scales
    over: Sketcher
    carry: AdaptiveCarry | None
    reading: Reading | None
    level: Ints
    value: Ints

    @property
    def fresh(self) -> bool:
        return self.scales.threshold is not None and (self.carry is None or self.carry.rho is None)

    def step(self, distance: int, threshold: int = 0, *, whole: bool = True) -> tuple[Stepped, _Chosen]:
        """Publish it; return the result, and what was asked of the noise.

        Raises:
            _SamplingError: The window is sampled, and `whole` is false.
        """
        added = None
        if whole:
            picks = iter(self.value.tolist())
            exact = self.over.sketch(self.level, lambda _: next(picks), lambda size: np.zeros(size, dtype=np.int64))
            added = self.value - exact if len(self.value) == len(exact) else np.zeros_like(exact)
        chosen = _Chosen(self.fresh, distance, threshold, self.value, added)
        step = self.rule.publication.step
        return step(self.scales, self.over, self.carry, self.level, chosen, self.reading), chosen

    def samples(self, distance: int, threshold: int = 0) -> bool:
        """Return whether it is sampled."""
        try:
            return self.step(distance, threshold, whole=False)[0].units > 0
        except _SamplingError:
            return True

    def least(self, threshold: int = 0) -> int:
        """Return the least noise with which a sample is taken."""

        def sampled(noise: int) -> bool:
            return self.samples(noise, threshold)

        return last_holding(sampled, CERTAIN, -CERTAIN, near=lambda good, bad: good - bad <= 1, whole=True)


def log_chance(
    rule: Rule, scales: Scales, over: Sketcher, levels: Ints, flags: Sequence[bool], values: Sequence[Ints]
) -> float:
    """Return the logarithm of the probability that levels are published with these flags and values.

    Args:
        rule: The rule that decides.
        scales: Scales of its noise.
        over: Makes samples, of at least two numbers.
        levels: Exact levels, int64 [windows, cells].
        flags: Whether each window is sampled.
        values: Public numbers of each window that is sampled, int64 [numbers].

    Returns:
        Not a number if it is too small for the sum over a threshold's noise.
    """
    carry: AdaptiveCarry | None = None
    reading: Reading | None = None
    answers = []
    for level, flag, value in zip(levels, flags, values, strict=True):
        window = _Window(
            rule=rule, scales=scales, over=over, carry=carry, reading=reading, level=level, value=np.asarray(value)
        )
        found, chosen = window.step(CERTAIN if flag else -CERTAIN)
        if (found.units > 0) != flag or (flag and not np.array_equal(found.public, value)):
            return -math.inf
        numbers = 0.0
        if flag:
            size = len(value) - len(chosen.picks)
            assert chosen.added is not None
            numbers = float(log_mass(chosen.added[-size:], scales.sample(found.units).scale).sum())
            numbers += sum(log_pick(choice, int(at)) for choice, at in zip(chosen.picks, value, strict=False))
        answers.append(
            Answer(
                fresh="threshold" in chosen.asked,
                least=window.least() if "distance" in chosen.asked else None,
                above=flag,
                numbers=numbers,
                last=found.carry.rho is None,
            )
        )
        carry, reading = found.carry, found.reading
    return log_chance_of(answers, scales)


def allowed(rule: Rule, scales: Scales, over: Sketcher, wanted: Sequence[bool]) -> tuple[bool, ...]:
    """Return which windows are sampled if decisions answer as wanted; the rule decides about other windows.

    Args:
        rule, scales, over: As of `log_chance`.
        wanted: Whether the answer in each window is 'above'.
    """
    carry: AdaptiveCarry | None = None
    none, flags = np.zeros(over.cells, dtype=np.int64), []
    sketch = over.sketch(none, lambda _: 0, lambda size: np.zeros(size, dtype=np.int64))
    for answer in wanted:
        window = _Window(rule=rule, scales=scales, over=over, carry=carry, reading=None, level=none, value=sketch)
        found, _ = window.step(CERTAIN if answer else -CERTAIN)
        flags.append(found.units > 0)
        carry = found.carry
    return (*flags,)


def wrong_decisions(
    rule: Rule,
    scales: Scales,
    over: Sketcher,
    levels: tuple[Ints, Ints],
    flags: Sequence[bool],
    values: Sequence[Ints],
) -> Iterator[str]:
    """Yield what is wrong with single decisions between two neighbours that are published alike.

    A decision must depend on its own noise and move exactly with the threshold's noise, both of the stated scales. The
    distance must not move by more than the sensitivity. Each sum of a sample must be published with separate noise, and
    all of its private choices have the stated scale.

    Args:
        rule, scales, over, flags, values: As of `log_chance`.
        levels: Exact levels of both neighbours, each int64 [windows, cells].
    """
    carry: AdaptiveCarry | None = None
    reading: Reading | None = None
    for one, two, flag, value in zip(*levels, flags, values, strict=True):
        window, other = (
            _Window(
                rule=rule, scales=scales, over=over, carry=carry, reading=reading, level=level, value=np.asarray(value)
            )
            for level in (one, two)
        )
        found, chosen = window.step(CERTAIN if flag else -CERTAIN)
        if (found.units > 0) != flag and "distance" not in chosen.asked:
            return  # the rule decides without the data
        wanted: dict[str, NoiseDistribution] = {
            **({"threshold": DiscreteLaplace(scales.threshold)} if scales.threshold is not None else {}),
            **({"distance": DiscreteLaplace(scales.test)} if scales.test is not None else {}),
            **({"sample": scales.sample(found.units)} if found.units else {}),
        }
        yield from (f"the noise of a {name} is {law}" for name, law in chosen.asked.items() if law != wanted.get(name))
        if any(choice.scale != scales.split(found.units) for choice in chosen.picks):
            yield "the noise of a private choice is not that of the plan"
        if found.units and not np.array_equal(found.public, value):
            yield "a sample is not its private choices, and its sums with separate noise"
        if "distance" in chosen.asked:
            if not window.samples(CERTAIN) or window.samples(-CERTAIN):
                yield "a decision does not depend on its own noise"
                return
            least = window.least()
            if (apart := abs(other.least() - least)) > scales.sensitivity:
                yield f"a decision moves by {apart} between neighbours, and the plan allows {scales.sensitivity}"
            if "threshold" in chosen.asked and window.least(MOVED) != least + MOVED:
                yield "a decision does not move with the noise of its threshold"
        carry, reading = found.carry, found.reading
