"""What a noisy distance is compared with: the public offset of the threshold.

It is a function of what was published and of public parameters, in grid steps. Whatever it is costs nothing: it may be
steered, and clamped, as one likes. The noise of the threshold is not in it, and is never clamped or shown: that is what
made the paper's DSAT cost 45 times its epsilon (docs/proofs/adaptive.md).

    dsft      floor + threshold
    dsat      floor + margin + unit * sinh(u), u >= 0; in a span the margin grows as samples are used up
    bd, ba    the error of a sample: the mean L1 norm of its noise

`floor` is the mean L1 norm of a sample's noise: the distance that there is where nothing changes. Where samples are
made with sums over cells it is, nearly, that of what distances are measured from (privacy.adaptive.sketch). `margin` is
what the noise of a distance alone exceeds in so few windows that it asks for a quarter of the samples. dsat never goes
below: nothing is gained by a sample that noise asks for, and it would be missing when something happens. So fewer
windows are sampled than there could be where little changes. In a span the last samples are dearer: the margin has
b2 * reserve * ln((1 + 1 / left) / (1 + 1 / samples)) more, next to nothing while many are left. `unit` is about the
standard deviation of a noisy distance. sinh is linear at 0 and exponential beyond, so that steering needs to know
neither how large histograms are nor how fast they change.

dsat is steered by e, how many samples it is ahead of schedule (`samples` of `among`, evenly), beyond a dead band:
u = proportional * e + integral * (sum of e over the windows, divided by the windows for one sample). A positive e makes
the threshold higher. This is a PI controller: the derivative of e is a single sample, and noise. Within the dead band
nothing moves; the paper's error |E - delta| / delta is 1 where the controller is right on its target, so that it never
settles.
"""

import math

from privacy.adaptive.carry import AdaptiveCarry, beyond, unspent
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales
from privacy.adaptive.sketch import Reading
from privacy.noise.kinds import NOISE

FARTHEST = 60.0
"""Largest u: sinh of it, 2^85, is beyond any distance."""


def mean_norm(scales: Scales, units: int, cells: int) -> float:
    """The mean L1 norm of the noise of a sample that takes so many units.

    >>> round(mean_norm(Scales(sensitivity=1, threshold=None, test=None, whole=50.0, units=1), 1, 20))
    1000
    >>> round(mean_norm(Scales(sensitivity=1, threshold=None, test=None, whole=50.0, units=1, noise="gaussian"), 1, 20))
    798
    """
    scale = scales.sample(units).scale
    return cells * NOISE[scales.noise].mean_size(scale)


def offset(
    adaptive: Adaptive, scales: Scales, carry: AdaptiveCarry, *, units: int, cells: int, reading: Reading | None = None
) -> int:
    """The offset for the next window, if a sample of it would take so many units.

    Args:
        reading: of what was published last, where samples are not made cell by cell.
    """
    if reading is None:
        floor, root = mean_norm(scales, units, cells), math.sqrt(cells)
    else:
        floor, root = reading.mean_norm * scales.sample(units).variance ** 0.5, reading.root
    if adaptive.threshold is not None:
        return round(floor) + adaptive.threshold
    if adaptive.gains is None:
        return round(floor)
    b1, b2 = scales.threshold or 0, scales.test or 0
    pace = adaptive.units / adaptive.among
    margin = b2 * math.log(2 / pace)
    if adaptive.reserve:
        left = max(unspent(adaptive, carry), 1)
        margin += b2 * adaptive.reserve * math.log((1 + 1 / left) / (1 + 1 / adaptive.units))
    unit = b1 + b2 + scales.sample(1).scale * root
    u = adaptive.gains.proportional * beyond(carry.ahead, adaptive.gains.dead_band)
    u += adaptive.gains.integral * carry.ahead_so_far * pace
    return round(floor + margin + unit * math.sinh(min(max(u, 0.0), FARTHEST)))
