"""A private choice of one place among several, by their scores.

Permute and flip: take the places in a random order, and each with the chance exp((score - the largest) / scale), until
one is taken. It is the largest of scores with independent exponential noise of mean `scale`, and never does worse than
the exponential mechanism of the same claim.

Claim: where neighbours' scores differ by at most d, in either direction, it is (2 d / scale, 0)-DP. Proof: given the
other places' noise, i is chosen if and only if its own noise is above some number t (or t or more, by a rule for ties
that is fixed). For the neighbour t is larger by 2 d at most, and Pr[N >= t + 2 d] >= exp(-2 d / scale) Pr[N >= t] for
exponential noise, whatever t is. Average over the others' noise. QED

Sources: McKenna, Sheldon, "Permute-and-Flip", NeurIPS 2020, arXiv:2010.12603; Ding et al., "The Permute-and-Flip
Mechanism is Identical to Report-Noisy-Max with Exponential Noise", 2021, arXiv:2105.07260.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.noise.sampling import permute_and_flip

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Places 0, 1, ... with these scores.

    >>> Choice(np.array([-90, 0, -90]), 1.0).noise(2).tolist()
    [1, 1]
    """

    scores: Ints
    scale: float

    def noise(self, size: int) -> Ints:
        """So many independent choices."""
        return np.array([permute_and_flip(scores=self.scores, scale=self.scale) for _ in range(size)], dtype=np.int64)
