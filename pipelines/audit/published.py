"""Layer: the public folder of a release on synthetic data, checked as a reader checks it, who has nothing else.

The other layers compare releases with each other. This one compares what is public with what the public plan states:
files with their digests, rows, scales and the grid of nodes with the plan, and the statement with the noise.
"""

from functools import partial
from random import Random

from pipelines.audit.findings import LayerResult
from pipelines.audit.forked import forked
from pipelines.audit.kills import begun, rows_of_life, run_until
from pipelines.audit.outsider import check_public
from pipelines.audit.prepared import Prepared
from pipelines.audit.whole_bounds import halves
from transforms.common.errors import SlackwaterError


def check_published(ready: Prepared, choose: Random) -> LayerResult:
    """Release synthetic rows in two epochs, and check the public folder.

    Args:
        ready: The copy of a spec.
        choose: Source of random choices.
    """
    begun(ready, rows_of_life(ready, choose))
    done = [forked(ready.spec.base, partial(run_until, ready, windows)).done for windows in halves(ready.setting)]
    faults, tried = [] if all(done) else ["a run on synthetic data fails"], {"epochs": len(done)}
    if not faults:
        try:
            for layer in check_public(ready.spec.output.public, None).layers:
                faults += layer.faults
                tried |= layer.tried
        except SlackwaterError as error:
            faults.append(f"the public folder cannot be read: {error}")
    return LayerResult(
        name="published",
        question="Is everything public what the public plan and the manifest state?",
        tried=tried,
        faults=tuple(faults),
    )
