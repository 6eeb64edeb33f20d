"""Seeded faults: small changes of the program, each with the layer of the audit that must see it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of the program that breaks its claim.

    Attributes:
        name: What is wrong.
        file: The changed file.
        old: Text that occurs once in it.
        new: What takes its place.
        layer: Layer that must see it.
        spec: Name of the spec that is audited, in `specs`.
    """

    name: str
    file: str
    old: str
    new: str
    layer: str
    spec: str


_STATES = "privacy/states.py"
_SPAN = "privacy/planning/sensitivity_in_span.py"
_SENSITIVITY = "privacy/planning/sensitivity.py"
_BOUNDING = "transforms/aggregation/contribution_bounding.py"
_LEAVES = "transforms/aggregation/leaf_sums.py"
_CHUNK = "transforms/release/linear_chunk.py"
_NOISE = "transforms/release/noise.py"
_SAMPLING = "privacy/noise/sampling.py"
_WORDS = "privacy/noise/exact/words.py"
_SAMPLE = "return distribution.noise(len(nodes.end) * cells).reshape(-1, cells)"

_OF_SENSITIVITY = (
    Fault("a move costs as much as an arrival", _STATES, "diameter=max(radius, *apart)", "diameter=radius", "sensitivity", "wards"),
    Fault("only one component of a state is charged", _STATES, "    radius = Fraction(len(components) * _largest(corners))\n    apart", "    radius = Fraction(_largest(corners))\n    apart = (Fraction(1) for _ in ())\n    _ = components\n    apart", "sensitivity", "mean"),
    Fault("the range of a sum is charged as its maximum", _STATES, "Fraction(max(c.high, 0) - min(c.low, 0), c.largest)", "Fraction(max(c.high, 0), c.largest)", "sensitivity", "signed"),
    Fault("one change too few is priced", "privacy/touched.py", "return Touched(changes, changes - 1, in_a_row=False)", "return Touched(changes - 1, changes - 2, in_a_row=False)", "sensitivity", "wards"),
    Fault("a time span touches one window less", "privacy/constraint.py", "met = -(-(self.span + slack) // window) + 1", "met = -(-(self.span + slack) // window)", "sensitivity", "within"),
    Fault("a protected span is rounded down to windows", "privacy/protection.py", "return -(-(self.length + slack) // window)", "return max(1, (self.length + slack) // window)", "sensitivity", "span"),
    Fault("one change too many counts", _BOUNDING, "< (most - used_before)[unit]]", "<= (most - used_before)[unit]]", "sensitivity", "wards"),
    Fault("the bound starts again in each epoch", _BOUNDING, "after = used_before + np.bincount(unit, minlength=units)", "after = np.bincount(unit, minlength=units) - used_before", "sensitivity", "wards"),
    Fault("contribution bounding is skipped", _BOUNDING, "        rows = rows[_nth_of_unit(chains, rows, unit) < (most - used_before)[unit]]\n", "", "sensitivity", "wards"),
    Fault("the time of a bound starts again in each epoch", _BOUNDING, "first_time = np.where(known.first_time == NOT_YET, first_time, known.first_time)", "first_time = np.where(first_time == NOT_YET, known.first_time, first_time)", "sensitivity", "within"),
    Fault("changes after the time span count", _BOUNDING, "(since <= _unsigned(span)[chains.unit])", "(since <= 2 * _unsigned(span)[chains.unit])", "sensitivity", "within"),
    Fault("an unlisted class is not bounded", _BOUNDING, "most, span = np.zeros(units, dtype=np.int64), np.full(units, NO_SPAN)", "most, span = np.full(units, NO_LIMIT), np.full(units, NO_SPAN)", "sensitivity", "classes"),
    Fault("one entry too many counts at once", _BOUNDING, "at_once > together[unit]", "at_once > together[unit] + 1", "sensitivity", "units"),
    Fault("NaN is not recognised", "transforms/aggregation/grid_steps.py", "missing = np.isnan(numbers)", "missing = np.zeros(len(numbers), dtype=bool)", "sensitivity", "mean"),
    Fault("values are not clamped", "privacy/measure.py", "scaled = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)", "scaled = np.clip(np.asarray(values, dtype=np.float64), -1e15, 1e15)", "sensitivity", "signed"),
    Fault("values are clamped from above only", "privacy/measure.py", "scaled = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)", "scaled = np.clip(np.asarray(values, dtype=np.float64), -1e15, self.high)", "sensitivity", "signed"),
    Fault("all events of a window count as entered", _LEAVES, "        if counting.events is not None:\n", "        if False:\n", "sensitivity", "span"),
    Fault("the first events that leave count", _LEAVES, 'last = family == "left" and counting.events is not None', "last = False", "sensitivity", "span"),
    Fault("one entry more of an owner counts at the ends of windows", "transforms/aggregation/window_ends.py", "counted_at, nth = _first_at(boundary[by_key], until[by_key], entries)", "counted_at, nth = _first_at(boundary[by_key], until[by_key], entries + 1)", "sensitivity", "ownerspan"),
    Fault("a unit counts once for each of its entries", "transforms/aggregation/presence.py", "if not query.measure.distinct or chains.rank is None:", "if True:", "sensitivity", "units"),
    Fault("an owner is priced as one entry", _SENSITIVITY, "found = _best_split([length(bound) for bound in bounds], part.together())", "found = length(bounds[-1])", "sensitivity", "owners"),
    Fault("each second change enters, in several cells", _SENSITIVITY, 'events = k if family == "entered" else k - 1', "events = (k + 1) // 2", "sensitivity", "wards"),
    Fault("the window in which a span ends is left out", _SPAN, "events, (entries, squared) = events_in_blocks(unit) if _renewed(unit) else (boundaries + 1, unit.at_once(most))", "events, (entries, squared) = events_in_blocks(unit) if _renewed(unit) else (boundaries, unit.at_once(most))", "sensitivity", "span"),
    Fault("events that return are not priced", _SPAN, "l1=above(len(in_layers) * (events * one + longer)),", "l1=above(len(in_layers) * events * one),", "sensitivity", "span"),
    Fault("one boundary of a span is not priced", _SPAN, "        l1=above(strategy.norm_apart(in_one, boundaries)),", "        l1=above(strategy.norm_apart(in_one, boundaries - 1)),", "sensitivity", "span"),
    Fault("several entries at once are priced as one", _SPAN, "return apart_in_l1(unit.components, unit.cells, 1, unit.corners(1)).times(one)", "return apart_in_l1(unit.components, unit.cells, 1, unit.corners(1))", "sensitivity", "ownerspan"),
    Fault("a distance is priced as half of it", _STATES, "return max(one + other - 2 * both for one, other, both in corners)", "return max(one + other - 2 * both for one, other, both in corners) // 2", "sensitivity", "distance"),
    Fault("epsilons of queries are not added up", "privacy/accounting/composition.py", "return min(above(sum(exact, Fraction(0))), _pure(ratios, accounting, delta))", "return min(above(max(exact)), _pure(ratios, accounting, delta))", "sensitivity", "wards"),
    Fault("the noise of a plan is half as wide", "privacy/planning/linear_part.py", "noise=tuple(kind.distribution(math.nextafter(noise.scale * c.largest, math.inf)) for c in components),", "noise=tuple(kind.distribution(math.nextafter(noise.scale * c.largest / 2, math.inf)) for c in components),", "sensitivity", "wards"),
    Fault("Gaussian sensitivities are not added up", "privacy/accounting/composition.py", "        return gaussian_epsilon(math.hypot(*ratios), delta)\n    weights", "        return gaussian_epsilon(max(ratios), delta)\n    weights", "sensitivity", "gauss"),
    Fault("wider noise for less important windows stays narrow", "privacy/noise/distributions.py", "scale=above(Fraction(distribution.scale) * Fraction(stretch))", "scale=above(Fraction(distribution.scale))", "sensitivity", "weights"),
    Fault("shards are made by entry and not by unit", "transforms/aggregation/sharding.py", "    unit = table[unit_column(table)]\n    if shards == 1:", '    unit = table["entry"]\n    if shards == 1:', "sensitivity", "owners"),
    Fault("a range of an ordered key counts twice at its edge", "transforms/aggregation/projection.py", "        cell *= inside  # a product takes a fifth of the time of np.where\n", "", "sensitivity", "signed"),
)

_OF_NOISE = (
    Fault("noise is half as wide", _NOISE, _SAMPLE, _SAMPLE.replace(".reshape", ".reshape").replace("distribution.noise(len(nodes.end) * cells)", "(distribution.noise(len(nodes.end) * cells) // 2)"), "noise", "wards"),
    Fault("noise is shared by cells", _NOISE, _SAMPLE, "return distribution.noise(len(nodes.end)).repeat(cells).reshape(-1, cells)", "noise", "wards"),
    Fault("noise is shared by nodes", _NOISE, _SAMPLE, "return np.tile(distribution.noise(cells), (len(nodes.end), 1))", "noise", "wards"),
    Fault("the first node of a step has no noise", _NOISE, _SAMPLE, "return np.vstack([0 * distribution.noise(cells), distribution.noise(max(0, len(nodes.end) - 1) * cells).reshape(-1, cells)])[: len(nodes.end)]", "noise", "wards"),
    Fault("noise is even", _NOISE, _SAMPLE, "return (distribution.noise(len(nodes.end) * cells) // 2 * 2).reshape(-1, cells)", "noise", "gauss"),
    Fault("noise is never negative", _NOISE, _SAMPLE, "return np.abs(distribution.noise(len(nodes.end) * cells)).reshape(-1, cells)", "noise", "wards"),
    Fault("large noise is cut off", _NOISE, _SAMPLE, "return np.clip(distribution.noise(len(nodes.end) * cells), -3 * int(distribution.scale), 3 * int(distribution.scale)).reshape(-1, cells)", "noise", "wards"),
    Fault("noise is 6 % too narrow", _SAMPLING, "return make_sampler(law, scale).sample(size)", "return make_sampler(law, scale * 0.94).sample(size)", "noise", "wards"),
    Fault("Gaussian noise is 10 % too narrow", _SAMPLING, "return _sample(gaussian, scale, size)", "return _sample(gaussian, scale * 0.9, size)", "noise", "gauss"),
    Fault("noise of one size is sampled once", _SAMPLING, "def _sample(law", "@lru_cache(maxsize=64)\ndef _sample(law", "noise", "wards"),
    Fault("noise has a fixed seed", _WORDS, "np.frombuffer(token_bytes(size * kind.itemsize), dtype=kind)", "np.frombuffer(np.random.default_rng(size).bytes(size * kind.itemsize), dtype=kind)", "noise", "wards"),
    Fault("forked workers share a generator", _WORDS, "    words: Unsigned = np.frombuffer(token_bytes(size * kind.itemsize), dtype=kind)", "    words: Unsigned = np.frombuffer(_SHARED.bytes(size * kind.itemsize), dtype=kind)", "noise", "wards"),
    Fault("noise for windows of less weight is too narrow", _CHUNK, "widened(distribution, float(width)), nodes.of(rows)", "distribution, nodes.of(rows)", "noise", "weights"),
    Fault("later epochs have no noise", _CHUNK, "        def sample(nodes: Nodes, distribution: NoiseDistribution = distribution, component: int = component) -> Ints:\n", "        def sample(nodes: Nodes, distribution: NoiseDistribution = distribution, component: int = component) -> Ints:\n            if held is not None:\n                return np.zeros((len(nodes.end), leaves.shape[2]), dtype=np.int64)\n", "noise", "span"),
    Fault("zero is sampled twice as often", "privacy/noise/exact/sampler.py", "        kept &= (magnitude | (negative ^ 1)) != 0\n", "", "noise", "wards"),
    Fault("places in a block are not weighted", "privacy/noise/exact/sampler.py", "        kept = self._kept(block, place)\n", "        kept = np.ones(len(block), dtype=bool)\n", "noise", "wards"),
    Fault("samples of adaptive queries are half as wide", "privacy/noise/sampling.py", "return _sample(laplace, scale, size)", "return _sample(laplace, scale / 2 if size > 1 else scale, size)", "noise", "adaptive"),
)

_OF_RUNS = (
    Fault("a message says how many rows were read", "pipelines/run/operation.py", "    judge(spec, job, diagnosis, folder)\n    return RowsRead", '    judge(spec, job, diagnosis, folder)\n    print(f"read {diagnosis.rows} rows", file=sys.stderr)\n    return RowsRead', "runs", "wards"),
    Fault("the manifest names the files that were read", "pipelines/store/commit.py", '"until", "ends", "files"),\n    private={"spec": "", "sources": [], ', '"until", "ends", "files", "sources"),\n    private={"spec": "", ', "runs", "wards"),
    Fault("the manifest has the digests of the private state", "pipelines/store/commit.py", '"until", "ends", "files"),\n    private={"spec": "", "sources": [], "plan": "", "state": {}},', '"until", "ends", "files", "state"),\n    private={"spec": "", "sources": [], "plan": ""},', "runs", "wards"),
    Fault("a chunk without data is not published", "transforms/release/release.py", "        key, payloads = chunk\n", "        key, payloads = chunk\n        payloads = list(payloads)\n        if not any(payloads):\n            return\n", "runs", "wards"),
    Fault("the truth is in a file's name", "transforms/release/release.py", "        yield key, pack([str(block).encode(), content])\n", "        yield (key[0], key[1], key[2], key[3]), pack([str(block).encode(), content])\n", "runs", "wards"),
    Fault("numbers are made from exact levels", "privacy/strategies/direct/direct.py", "np.concatenate([known, nodes])", "np.concatenate([known, levels])", "runs", "span"),
    Fault("an error quotes a row", "pipelines/epochs/input_quality.py", '        raise InputError("\\n".join(problems))', '        raise InputError("\\n".join(problems) + Path(diagnosis.reasons[0][0]).read_text())', "runs", "wards"),
)

_OF_MEMBERSHIP = (
    Fault("noise is narrower where there are data", _CHUNK, "        whole, rest, windows = merged(leaves[component], before, released.leaf)\n", "        whole, rest, windows = merged(leaves[component], before, released.leaf)\n        some = bool(whole.any())\n        distribution = distribution if not some else type(distribution)(distribution.scale / 8)\n", "membership", "wards"),
    Fault("nodes with data have no noise", _CHUNK, "        after.append(HeldNoise(", "        found = np.where(released.strategy.step(None if before is None else before.carry, whole, series=series, sample=lambda nodes: np.zeros((len(nodes.end), leaves.shape[2]), dtype=np.int64))[0] != 0, 0, found)\n        after.append(HeldNoise(", "membership", "wards"),
    Fault("noise has the sign of the data", _CHUNK, "        after.append(HeldNoise(", "        found = np.where(whole.any(), np.abs(found), found)\n        after.append(HeldNoise(", "membership", "wards"),
)

FAULTS = (*_OF_SENSITIVITY, *_OF_NOISE, *_OF_RUNS, *_OF_MEMBERSHIP)

CLEAN = tuple(
    Fault(f"no fault, {layer} of {spec}", "privacy/touched.py", "def at_most", "def at_most", layer, spec)
    for layer, spec in (("sensitivity", "owners"), ("noise", "gauss"), ("membership", "span"), ("runs", "units"))
)
"""The unchanged program, which each layer must pass."""
