"""Layer: keys that are found privately: which keys the program finds, and how likely it finds one of a single unit.

Decisions. A release of synthetic changelogs with chosen noise, epoch by epoch, is compared with the rule of
docs/proofs/discovery.md: the numbers of all keys, as if they were listed, decide with exact levels which keys are found
in which window, and which rows are public. Each node of a key must get noise of the plan, once.

Units alone in keys. For neighbours, the probability that a key of one of them is found is computed from the noise of
the plan in another way than the planner does, and compared with the delta of discovery. No sample is needed for this,
so the size of delta does not matter.

Canaries. Keys with one unit, and keys that are near the threshold with and without a unit, are released with real
noise. A reader sees only which ones are found.
"""

import math
from collections.abc import Iterator
from itertools import islice
from random import Random
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.audit.alone import LEVEL, levels, levels_of
from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import Life, Move, Surroundings, neighbours
from pipelines.audit.mutations import corpus, cuts_of
from pipelines.audit.scale import FALSE_ALARM
from pipelines.audit.shared_noise import SharedNoise
from pipelines.audit.stages import Epochs, Released, Stages
from privacy.evidence.betting import at_least, epsilon_of
from privacy.noise.kinds import NOISE
from privacy.planning.discovered_part import DiscoveredPart, FoundParts
from transforms.aggregation.discovered_key import KeySums
from transforms.aggregation.node_sums import BOUNDED
from transforms.release.discovered_chunk import NewSums, publish

TOLERANCE = 1e-6
TRIALS = 2**16
MOST_ALONE = 15
"""Lives of units that are alone in keys, which are tried first, also after the time limit."""


def check_discovery(stages: Stages, setting: Surroundings, *, seconds: float, choose: Random) -> Iterator[LayerResult]:
    """Test how keys are found; nothing without a query that finds keys.

    Args:
        stages: Stages of the copy.
        setting: Facts about the spec.
        seconds: Processor time for lives.
        choose: Source of random choices.
    """
    if not stages.universe:
        return
    until, tried, faults = process_time() + seconds, {"pairs of changelogs": 0, "keys found": 0}, dict[str, None]()
    shares = dict.fromkeys(stages.universe, 0.0)
    lives = [*_alone(setting, choose), *(life for _, life in islice(corpus(setting, choose), 100))]
    for number, life in enumerate(lives):
        if number >= MOST_ALONE and process_time() > until:
            break
        reach = {query: 2 * threshold for query, threshold in stages.thresholds.items()}
        shared = SharedNoise(universe=stages.universe, reach=reach, salt=choose.randrange(2**20))
        one, two = (_decided(stages, epochs, shared, faults, tried) for epochs in neighbours(life, setting))
        tried["pairs of changelogs"] += 1
        for query, both in levels_of(one, two).items():
            part = _part(stages, query)
            shares[query] = max(shares[query], both.chance(part) / part.delta / life.times)
    delta = math.fsum(_part(stages, query).delta for query in stages.universe)
    if delta > stages.spec.privacy.delta * (1 + TOLERANCE):
        faults[f"discovery has a delta of {delta:.3g}, and the spec allows {stages.spec.privacy.delta:.3g}"] = None
    names = {query: stages.job.aggregation.queries[query].name for query in stages.universe}
    found = []
    for query, name in names.items():
        found.append(f"{name}: a key of one unit is found with at least {shares[query]:.3f} of the delta of discovery")
        if shares[query] > 1 + TOLERANCE:
            faults[f"{name}: a key of one unit is found with {shares[query]:.3g} times the delta of discovery"] = None
        told, wrong = _canaries(stages, query)
        tried["canaries"] = tried.get("canaries", 0) + 2 * TRIALS
        found.append(f"{name}: {told}")
        faults |= dict.fromkeys(f"{name}: {text}" for text in wrong)
    yield LayerResult(
        name="discovery",
        question="Are keys found by the rule of the plan, and keys of one unit as rarely as it says?",
        tried=tried,
        found=tuple(found),
        faults=(*faults,)[:8],
        untested=("How often real noise finds a key of one unit: less often than any number of trials shows.",),
        measures={"share": max(shares.values())},
    )


def _part(stages: Stages, query: int) -> DiscoveredPart:
    part = stages.job.plan.discovered_of(query)
    assert part is not None
    return part


def _alone(setting: Surroundings, choose: Random) -> Iterator[Life]:
    """Yield lives of a unit that is alone in keys from the first moment on: all entries in one key, and in several."""
    keys = {name: pool.alone for name, pool in setting.columns.items() if pool.alone}
    states = [{**setting.corners[0], **dict(zip(keys, of, strict=True))} for of in zip(*keys.values(), strict=False)]
    span = setting.promise.span
    begin = setting.end(0) + (-1 if span is None else 1)
    for entries in sorted({1, 2, setting.entries}) if states else ():
        for places in sorted({1, min(entries, len(states))}):
            moves = [Move(begin + 1, entry, states[entry % places]) for entry in range(entries)]
            back = [Move(setting.end(2) + 1, 0, None), Move(setting.end(2) + 2, 0, states[0])]
            gone = [Move(setting.end(1) + 1, entry, None) for entry in range(entries)]
            since = None if span is None else begin
            yield Life((*moves,), False, cuts_of(setting, choose), since=since)
            yield Life((*moves, *gone), False, cuts_of(setting, choose), since=since)
            yield Life((*moves, *back), False, cuts_of(setting, choose), since=since)


def _decided(
    stages: Stages, epochs: Epochs, shared: SharedNoise, faults: dict[str, None], tried: dict[str, int]
) -> Released:
    """Release epochs with noise near the thresholds, and compare what is found with the rule."""
    shared.drawn.clear()
    with shared.used():
        released = stages.release(epochs)
    faults |= shared.wrong
    if any(number > 1 for number in shared.drawn.values()):
        faults["a node of a key gets noise twice"] = None
    for query in stages.universe:
        shown, wanted = _shown(released, query), _wanted(released, query)
        tried["keys found"] += len({row[2] for row in wanted})
        name = stages.job.aggregation.queries[query].name
        if [row[:3] for row in shown] != [row[:3] for row in wanted]:
            faults[f"{name}: rows of keys are public in other windows than the rule says"] = None
        elif not all(np.allclose(one[3], two[3], rtol=1e-9, atol=1e-6) for one, two in zip(shown, wanted, strict=True)):
            faults[f"{name}: numbers of found keys are not those of listed keys with the same noise"] = None
    return released


Row = tuple[int, int, str, tuple[float, ...]]
"""Place of the series, window, key, and the value of each component."""


def _shown(released: Released, query: int) -> list[Row]:
    """Return the public rows of a query, in order; those of the cells of a key keep theirs."""
    found: list[Row] = []
    for table in released.shown[query]:
        columns = [table[name].to_pylist() for name in table.column_names]
        found += [(series, window, key, tuple(values)) for series, window, key, *values in zip(*columns, strict=True)]
    return sorted(found, key=lambda row: row[:3])


def _wanted(released: Released, query: int) -> list[Row]:
    """Return the rows that the rule makes public."""
    stages = released.stages
    part, asked = _part(stages, query), stages.job.aggregation.queries[query]
    keys, windows = stages.universe[query].to_pylist(), released.timelines[-1].windows
    numbers = _numbers(released, query)
    noisy = numbers[part.series.index(LEVEL)][0].reshape(windows, len(keys), asked.each).sum(axis=2)
    crosses = (levels(released, query) > 0) & (noisy >= part.threshold)
    first = np.where(crosses.any(axis=0), 1 + crosses.argmax(axis=0), windows + 1)
    rows: list[Row] = []
    for place, (series, values) in enumerate(zip(_series(stages, query), numbers, strict=True)):
        for number, end in enumerate(series.ends(windows).tolist()):
            begins = end if series.kind == "level" else end - series.width
            for at in np.flatnonzero(first <= begins).tolist():
                cells = range(at * asked.each, (at + 1) * asked.each)
                rows += [(place, end, keys[at], tuple(float(v[number, cell]) for v in values)) for cell in cells]
    return sorted(rows, key=lambda row: row[:3])


def _series(stages: Stages, query: int) -> list[Any]:
    return [one for part in _parts(stages, query) for one in part.series]


def _parts(stages: Stages, query: int) -> FoundParts:
    parts = stages.job.plan.found_parts(query)
    assert parts is not None
    return parts


def _numbers(released: Released, query: int) -> list[list[np.ndarray]]:
    """Return for each series and component the numbers of all keys, as if they were listed, [numbers, cells]."""
    found: list[list[np.ndarray]] = []
    for part in _parts(released.stages, query):
        key = (BOUNDED, query, part.family, 0)
        place = released.parts(key).index(part)
        blocks = [block[place].sums for block in released.protected(key)]
        found += [
            [np.concatenate([block[series][c] for block in blocks]) for c in range(len(part.noise))]
            for series in range(len(part.series))
        ]
    return found


def _canaries(stages: Stages, query: int) -> tuple[str, list[str]]:
    """Release keys of one unit, and keys near the threshold with and without the unit, with real noise, in one window.

    Returns:
        A sentence on the keys that a reader sees, and faults.
    """
    from scipy.special import bdtrc  # slow to import

    parts, plan = _parts(stages, query), stages.job.plan
    part, unit = parts[0], plan.demands[query].measure.components[0].largest
    alone = int(_found(parts, np.full(TRIALS, unit)).sum())
    wrong = []
    if alone and bdtrc(alone - 1, TRIALS, part.delta) < FALSE_ALARM:
        wrong.append(f"{alone} of {TRIALS:,} keys of one unit are found")
    coins = np.random.default_rng().random(TRIALS) < 0.5  # choices of the test, not noise
    others = max(unit, part.threshold - round(part.noise[0].scale))
    found = _found(parts, others + unit * coins)
    correct, mistaken = int((found & coins).sum()), int((found & ~coins).sum())
    told = f"{alone} of {TRIALS:,} keys of one unit are found, and {correct + mistaken:,} keys near the threshold"
    if not NOISE[plan.mechanism].pure:
        return told, wrong
    strict = epsilon_of(at_least(correct, mistaken, FALSE_ALARM))
    if strict > plan.budget.epsilon:
        wrong.append(f"epsilon is at least {strict:.3f} by which keys are found")
    bound = epsilon_of(at_least(correct, mistaken, 1e-3))
    return f"{told}: epsilon is at least {bound:.3f} by which ones, with confidence 99.9 %", wrong


def _found(parts: FoundParts, sums: np.ndarray) -> np.ndarray:
    """Return which keys are found in the first window, bool [keys], by real noise.

    Args:
        parts: Parts of the query.
        sums: Exact level of each key in grid steps, in its first cell.
    """
    place, keys = np.arange(len(sums)), pa.array(np.arange(len(sums)).astype(str))
    cell = np.zeros(len(sums), dtype=np.int64) if parts[0].cells > 1 else None
    new = NewSums(windows=1, sums=KeySums(keys, place, np.ones(len(sums), dtype=np.int64), sums, cell))
    shown = publish(parts, None, new)[1]
    found = np.zeros(len(sums), dtype=bool)
    found[np.unique(shown["key"].to_numpy().astype(np.int64))] = True
    return found
