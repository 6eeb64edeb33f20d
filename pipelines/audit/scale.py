"""Layer: the noise that the release step adds, with this plan.

The release step gets sums of zero, so its nodes are noise. Each part of the plan gives enough samples to see an error
of `ERROR` in its scale. The distributions of the plan are sampled again, often enough to see values near zero with a
wrong probability, and integers of a block that are wrongly weighted. All tests together fail for correct noise with
probability at most `FALSE_ALARM`.
"""

import multiprocessing
from collections.abc import Sequence
from time import process_time

import numpy as np

from pipelines.audit.findings import LayerResult
from pipelines.audit.stages import Stages
from privacy.evidence.fine_structure import FineStructure
from privacy.evidence.repeats import repeated, run_length
from privacy.evidence.uniforms import deviations, needed, seen
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints
from transforms.aggregation.node_sums import NodeKey
from transforms.release import noise
from transforms.release.linear_chunk import LinearChunk
from transforms.release.protected import protected_from_bytes

FALSE_ALARM = 1e-6
ERROR = 0.05

MOST_CALLS = 400
LARGEST_CALL = 2**20
"""Most leaves of one call of the release step."""

FINE = 2**23
"""Samples of one distribution for its fine structure: blocks whose places are equally likely are seen at each scale."""

WORKERS = 3
STREAM = 2000

Noise = list[tuple[Ints, NoiseDistribution]]


def check_scale(stages: Stages, *, seconds: float, error: float = ERROR) -> LayerResult:
    """Test the noise of all parts of a plan.

    Args:
        stages: Stages of the copy.
        seconds: Processor time.
        error: Relative error of a scale to see.
    """
    began = process_time()
    keys = [key for key in stages.keys if key[3] == 0]
    groups = {name: found for key in keys for name, found in _linear(stages, key, error, began + seconds).items()}
    groups |= _adaptive(stages, error)
    faults, tried, sees = [], 0, 0.0
    for name, found in groups.items():
        samples = sum(len(part) for part, _ in found)
        uniform = np.random.default_rng().random(samples)
        each = FALSE_ALARM / (4 * len(groups))
        tried, sees = tried + samples, max(sees, seen(samples, each))
        for one in deviations([part for part, _ in found], [of for _, of in found], uniform, failure=each):
            if not one.passed:
                faults.append(
                    f"{name}: {one.name} has error {one.found:.4g}, allowed {one.allowed:.4g}, {one.samples} samples"
                )
    fine, wrong = _fine(groups, began + seconds)
    faults += wrong
    streams, twice = _independent(stages, keys)
    if twice:
        faults.append(f"{twice} runs of noise occur twice, in workers, epochs or restarts")
    return LayerResult(
        name="noise",
        question="Does each node get fresh noise of the stated scale?",
        tried={
            "samples of noise": tried,
            "parts with separate noise": len(groups),
            "distributions sampled for their fine structure": len(fine),
            "streams compared": streams,
        },
        found=(
            f"sees a scale that is wrong by {sees:.1%} or more",
            *fine,
            "fails for correct noise with probability 1e-6, and misses these errors with at most this probability",
        ),
        faults=tuple(faults),
        measures={"sees": sees},
    )


def _fine(groups: dict[str, Noise], until: float) -> tuple[list[str], list[str]]:
    """Test the fine structure of the distributions of a plan, the narrowest first, as long as there is time.

    Returns:
        A description of the smallest change that each test sees, and faults.
    """
    laws = sorted({of for found in groups.values() for _, of in found}, key=lambda of: of.scale)
    said, faults, each = list[str](), list[str](), FALSE_ALARM / (4 * max(1, len(laws)))
    for law in laws:
        if said and process_time() > until:
            break
        fine = FineStructure(law)
        zero, places = fine.sees(FINE, failure=each)
        near = f"a zero that is {zero:.1%} too frequent" if zero < 1 else "no single values, which are rare"
        said.append(f"noise of scale {law.scale:.4g}: sees {near}" + (", and blocks without weights" if places else ""))
        found = fine.deviations(lambda size, of=law: noise.sample_level(1, of, size), FINE, failure=each)  # type: ignore[misc]
        faults += [
            f"noise of scale {law.scale:.4g}: {one.name} has error {one.found:.4g}, allowed {one.allowed:.4g}"
            for one in found
            if not one.passed
        ]
    return said, faults


def _linear(stages: Stages, key: NodeKey, error: float, until: float) -> dict[str, Noise]:
    """Return noise of the parts of a chunk, by the name of the part and the component."""
    _, number, family, _ = key
    parts, query = stages.job.plan.linear(number, family), stages.job.aggregation.queries[number]
    if not parts:
        return {}
    wanted = needed(error, FALSE_ALARM / (16 * len(stages.job.plan.parts)))
    windows = stages.job.aggregation.timeline.windows
    cells = stages.cells(key)
    alone = all(part.over is None for part in parts)
    times = max(1, min(LARGEST_CALL // ((1 + windows) * cells), -(-wanted // windows // cells) + 1)) if alone else 1
    found: dict[str, Noise] = {}
    for _ in range(MOST_CALLS):
        chunk = LinearChunk(parts, cells * times)
        leaves = np.zeros((len(query.measure.components), 1 + windows, cells * times), dtype=np.int64)
        cut = 1 + windows // 2
        held, first = chunk.step(None, leaves[:, :cut])
        _, second = chunk.step(held, leaves[:, cut:])
        for content, since, last in ((first, None, cut - 1), (second, cut - 1, windows)):
            for place, protected in enumerate(protected_from_bytes(content, parts, cells * times)):
                for component, values in enumerate(protected.nodes):
                    name = f"{query.name}, {family}, part {place + 1}, {query.measure.components[component].name}"
                    found.setdefault(name, []).extend(_by_width(parts[place], component, values, since, last))
        if process_time() > until or min(sum(len(n) for n, _ in of) for of in found.values()) >= wanted:
            break
    return found


def _by_width(part: LinearPart, component: int, values: Ints, since: int | None, last: int) -> Noise:
    """Return the noise of nodes of each width, with its distribution."""
    nodes = part.strategy.nodes(last // part.leaf, since=None if since is None else since // part.leaf)
    stretch = part.strategy.stretch(nodes)
    if stretch is None:
        return [(values.ravel(), part.noise[component])]
    widths = np.unique(stretch)
    return [(values[stretch == w].ravel(), widened(part.noise[component], float(w))) for w in widths]


def _adaptive(stages: Stages, error: float) -> dict[str, Noise]:
    """Return noise of samples of adaptive queries."""
    found: dict[str, Noise] = {}
    for part in stages.job.plan.adaptive:
        distribution = part.scales.sample(1)
        size = needed(error, FALSE_ALARM / (16 * len(stages.job.plan.parts)))
        name = f"{stages.job.aggregation.queries[part.query].name}, samples"
        found[name] = [(noise.sample_level(1, distribution, size), distribution)]
    return found


def _independent(stages: Stages, keys: Sequence[NodeKey]) -> tuple[int, int]:
    """Return the number of streams of noise that were compared, and how many runs occur twice.

    The streams are of forked workers, of their parent before and after, of two epochs, and of two attempts at one.
    """
    found = next(((key, parts) for key in keys if (parts := stages.job.plan.linear(key[1], key[2]))), None)
    if found is None:
        return 0, 0
    key, parts = found
    part = next((one for one in parts if one.over is None), parts[0])
    stream = _Stream(part, len(stages.job.aggregation.queries[key[1]].measure.components), stages)
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        streams = [
            *stream(0),
            *(one for of in pool.map(stream, range(2 * WORKERS), chunksize=1) for one in of),
            *stream(0),
        ]
    length = run_length(part.noise[0], sum(map(len, streams)), FALSE_ALARM / 4)
    return len(streams), repeated(streams, length)


class _Stream:
    """Noise of one worker: of an epoch, and of two attempts at the next one, from one state."""

    def __init__(self, part: LinearPart, components: int, stages: Stages) -> None:
        self._part, self._components = part, components
        self._windows = stages.job.aggregation.timeline.windows
        self._cells = part.over.cells if part.over is not None else max(1, STREAM // self._windows)

    def __call__(self, _: int) -> list[Ints]:
        cut = self._windows // 2
        chunk = LinearChunk((self._part,), self._cells)
        leaves = np.zeros((self._components, 1 + self._windows, self._cells), dtype=np.int64)
        held, first = chunk.step(None, leaves[:, : 1 + cut])
        attempts = [chunk.step(held, leaves[:, 1 + cut :])[1] for _ in range(2)]
        if self._part.strategy.in_advance:  # both attempts have the noise that the first epoch has sampled for later
            attempts = attempts[:1]
        contents = [first, *attempts]
        return [
            values.T.ravel()
            for content in contents
            for protected in protected_from_bytes(content, (self._part,), self._cells)
            for values in protected.nodes
        ]
