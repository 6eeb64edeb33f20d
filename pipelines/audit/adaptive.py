"""Layer: adaptive queries, whose data decide which windows are sampled: exact losses on small histograms.

Two streams of levels that neighbours may have are compared on the same published transcript. The probability of each
comes from the decisions of the program itself (privacy.evidence), so the loss is exact. The search begins with streams
that are made to cost as much as the plan states, one for each order of answers, whose single decisions are checked,
too: it does not depend on chance whether an error of a decision is seen.

`TRANSCRIPTS` has what the layer needs of each policy. A policy without an entry is reported as not tested.
"""

import math
from collections.abc import Iterator, Sequence
from random import Random
from time import process_time

from pipelines.audit.findings import LayerResult
from pipelines.audit.stages import Stages
from pipelines.audit.transcripts import Stream, Transcripts
from pipelines.audit.transcripts_of_groups import OfGroups
from pipelines.audit.transcripts_of_samples import OfSamples
from privacy.evidence.chances import work
from privacy.noise.kinds import NOISE
from privacy.planning.adaptive_part import AdaptivePart

TOLERANCE = 1e-6

MOST_WORK = 2**22
"""Largest number of values of a threshold's noise over which a loss is added up."""

TRANSCRIPTS: dict[str, Transcripts] = {
    **dict.fromkeys(("fixed", "dsft", "dsat", "bd", "ba"), OfSamples()),
    "pegasus": OfGroups(),
}
"""Transcripts of each policy, by its name."""


def check_adaptive(stages: Stages, *, seconds: float, choose: Random) -> Iterator[LayerResult]:
    """Search for streams whose loss exceeds the share of an adaptive query; nothing without such a query.

    Args:
        stages: Stages of the copy.
        seconds: Processor time.
        choose: Source of random choices.
    """
    adaptive = stages.job.plan.adaptive
    tried, total, faults, found, untested = 0, 0.0, dict[str, None](), [], []
    for part in adaptive:
        name = stages.job.aggregation.queries[part.query].name
        kind = TRANSCRIPTS.get(part.rule.name)
        made = [] if kind is None else [*kind.made(part)]
        left_out = f"policy {part.rule.name}" if kind is None else kind.untested(part)
        untested += [] if left_out is None else [f"{name}: {left_out}"]
        if kind is None or not made:
            continue
        tried += len(made)
        for stream in made:
            faults |= dict.fromkeys(f"{name}: {wrong}" for wrong in kind.wrong(part, stream))
        if not NOISE[part.scales.noise].pure or work(part.scales) > MOST_WORK:
            untested.append(f"{name}: the exact loss of all windows together, with noise of this kind or size")
            continue
        worst, number = _worst(kind, part, choose, process_time() + seconds / len(adaptive), made)
        tried += number
        share = stages.job.plan.share(part) * stages.job.plan.budget.epsilon
        total += worst
        found.append(f"{name}: the worst loss is {worst:.4f}, and its share of the budget is {share:.4f}")
        if worst > share * (1 + TOLERANCE):
            faults[f"{name}: a loss of {worst:.4f} exceeds its share of {share:.4f}"] = None
    if adaptive:
        yield LayerResult(
            name="decisions",
            question="Do decisions and samples of adaptive queries cost more than the plan says?",
            tried={"adaptive queries": len(adaptive), "pairs of streams": tried},
            found=tuple(found),
            faults=(*faults,),
            untested=tuple(untested),
            measures={"loss": total},
        )


def _worst(
    kind: Transcripts, part: AdaptivePart, choose: Random, until: float, made: Sequence[Stream]
) -> tuple[float, int]:
    """Return the largest loss of these streams and of those that climbing finds, and how many were tried."""
    losses = sorted(((_loss(kind, part, stream), place) for place, stream in enumerate(made)), reverse=True)
    best, tried = losses[0][0], 0
    while process_time() < until and not math.isinf(best):
        stream = made[losses[tried % len(losses)][1]] if tried % 2 == 0 else kind.drawn(part, choose)
        loss, failed = _loss(kind, part, stream), 0
        tried += 1
        while failed < 25 and process_time() < until:
            other = kind.changed(stream, part, choose)
            now = _loss(kind, part, other)
            tried += 1
            failed = 0 if now > loss else failed + 1
            if now >= loss:
                stream, loss = other, now
        best = max(best, loss)
    return best, tried


def _loss(kind: Transcripts, part: AdaptivePart, stream: Stream) -> float:
    left, right = kind.log_chances(part, stream)
    if (math.isinf(left) and math.isinf(right)) or math.isnan(left + right):
        return 0.0  # neither is ever published so, or so rarely that the sum is not exact
    return abs(left - right)
