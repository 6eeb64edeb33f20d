"""One run of a release in this process, and the processor time of each of its stages, as JSON.

python -m benchmarks.noise.stages SPEC slackwater|opendp
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.noise.opendp import opendp_samples
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace

spent: Counter[str] = Counter()
"""Thread's processor seconds by stage, without those of stages within."""

samples = 0
within: list[float] = []


def timed(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """Add the time of each call, or of each step of an iterator, to a stage."""

    def measure(step: Callable[[], Any]) -> Any:
        begun = time.thread_time()
        within.append(0.0)
        try:
            return step()
        finally:
            taken = time.thread_time() - begun
            spent[stage] += taken - within.pop()  # type: ignore[assignment]
            if within:
                within[-1] += taken

    @wraps(work)
    def call(*arguments: Any, **named: Any) -> Any:
        result = measure(lambda: work(*arguments, **named))
        return steps(result) if isinstance(result, Iterator) else result

    def steps(iterator: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while (item := measure(lambda: next(iterator, end))) is not end:
            yield item

    return call


def sampling(name: str, own: Callable[..., Any], opendp: bool) -> Callable[..., Any]:
    """Return a method that samples noise, counts samples and measures its time.

    Args:
        name: Laplace or Gaussian.
        own: our method.
        opendp: whether OpenDP samples instead.
    """

    def noise(self: Any, size: int) -> Any:
        global samples
        samples += size
        return opendp_samples(name, self.scale, size) if opendp else own(self, size)

    return timed("noise", noise)


def main() -> None:
    spec, source = sys.argv[1:]
    began = time.time()
    for name, kind in (("Laplace", DiscreteLaplace), ("Gaussian", DiscreteGaussian)):
        kind.noise = sampling(name, kind.noise, source == "opendp")  # type: ignore[method-assign]
    import pipelines.epochs.plans as plans
    import transforms.common.sinks as sinks
    import transforms.release.release as release

    plans.make_plan = timed("plan", plans.make_plan)  # type: ignore[attr-defined]
    release.protect = timed("numbers", release.protect)
    release.tables = timed("tables", release.tables)
    sinks.write_table = timed("files", sinks.write_table)
    from pipelines.cli import main as command

    sys.stdout, out = sys.stderr, sys.stdout
    try:
        code = command(["run", spec])
    finally:
        sys.stdout = out
    assert not code
    processor = time.process_time()
    spent["everything else"] = processor - sum(spent.values())  # type: ignore[assignment]
    numbers = sum(pq.read_metadata(file).num_rows for file in Path(spec).parent.glob("public/estimates/*.parquet"))
    print(
        json.dumps(
            {
                "wall": time.time() - began,
                "processor": processor,
                "samples": samples,
                "numbers": numbers,
                "stages": dict(spent),
            }
        )
    )


if __name__ == "__main__":
    main()
