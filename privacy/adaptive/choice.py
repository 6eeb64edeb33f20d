"""What a spec can say of adaptive publication; the rest follows from the release."""

from dataclasses import dataclass

from privacy.adaptive.policy import (
    NEEDS,
    RESERVE,
    Adaptive,
    Gains,
    Noise,
    Policy,
    Smooth,
    Spread,
    usual_decisions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveChoice:
    """A policy and its public parameters; None where the policy has none, or where the usual one is taken.

    Attributes:
        samples: most samples among all windows, or in any span.
        threshold: in the measure's units, summed over all cells.
        decisions: share of the query's budget, epsilon or rho, for decisions.
        gains: of steering.
        interval: windows from one sample to the next.
        smooth: how `pegasus` smooths.
        weights: how much the samples of a rhythm matter, one after another; none: all the same.
    """

    policy: Policy
    samples: int | None = None
    threshold: float | None = None
    decisions: float | None = None
    gains: Gains | None = None
    interval: int | None = None
    weights: tuple[float, ...] = ()
    smooth: Smooth = "mean"

    def settled(
        self,
        *,
        windows: int | None,
        span: int | None,
        cells: int,
        grid: float,
        noise: Noise = "laplace",
        spread: Spread | None = None,
    ) -> Adaptive:
        """The policy of a release.

        Args:
            windows: of a release that protects everything; None where a span is protected.
            span: how many windows that is; None where everything is protected.
            grid: the measure's units in one step.
            noise: of samples.
            spread: where there are weights.

        Raises:
            ValueError: a parameter that is missing, or that the policy does not have.

        >>> AdaptiveChoice(policy="ba").settled(windows=None, span=7, cells=1, grid=1.0).decisions
        0.25
        """
        needs = NEEDS[self.policy]
        decisions = usual_decisions(self.policy, cells, noise) if self.decisions is None else self.decisions
        return Adaptive(
            policy=self.policy,
            windows=windows,
            span=span,
            decisions=decisions,
            samples=self.samples,
            threshold=None if self.threshold is None else round(self.threshold / grid),
            gains=Gains() if self.gains is None and "gains" in needs else self.gains,
            interval=self.interval,
            spread=spread,
            reserve=RESERVE if self.policy == "dsat" and span is not None else 0.0,
            smooth=self.smooth,
        )
