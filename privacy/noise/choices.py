"""Private choice of one place among several, by their scores.

Permute and flip: take the places in a random order, and accept each with probability exp((score - the largest) /
scale), until one is accepted. This is the largest of scores with independent exponential noise of mean `scale`, and it
is never worse than the exponential mechanism with the same guarantee.

Claim: if neighbours' scores differ by at most d, up or down, it is (2 d / scale, 0)-DP. Proof: given the other places'
noise, i is chosen if and only if its own noise is above some number t (or at least t, by a fixed rule for ties). For
the neighbour t is larger by at most 2 d, and Pr[N >= t + 2 d] >= exp(-2 d / scale) Pr[N >= t] for exponential noise
and any t. Average over the others' noise. QED

Sources: McKenna, Sheldon, "Permute-and-Flip", NeurIPS 2020, arXiv:2010.12603; Ding et al., "The Permute-and-Flip
Mechanism is Identical to Report-Noisy-Max with Exponential Noise", 2021, arXiv:2105.07260.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.noise.sampling import permute_and_flip

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PrivateChoice:
    """Choice among places 0, 1, ... with these scores, int64 [places], and this scale, in steps of a score.

    >>> PrivateChoice(np.array([-90, 0, -90]), 1.0).noise(2).tolist()
    [1, 1]
    """

    scores: Ints
    scale: float

    def noise(self, size: int) -> Ints:
        """Return `size` independent choices, int64 [size]."""
        return np.array([permute_and_flip(scores=self.scores, scale=self.scale) for _ in range(size)], dtype=np.int64)
