"""The audit of a public folder, by a reader who has nothing else.

The folder's files must be those of its manifest, with exactly the rows that the plan states; the plan must be for the
published spec, and its noise must be enough for the claim. In cells that the reader knows to be empty, published nodes
are noise alone, and must be distributed as the plan states.
"""

import re
from collections.abc import Iterator
from time import process_time

import numpy as np
import pyarrow as pa

from pipelines.audit.audited import Audited
from pipelines.audit.findings import LayerResult
from pipelines.audit.scale import FALSE_ALARM
from pipelines.audit.witnessed import check_witness
from pipelines.common.errors import ArgumentError
from pipelines.epochs.plans import SAME
from pipelines.published.release import Published, published
from pipelines.store.folder import folder_at, read_public
from privacy.evidence.repeats import repeated, run_length
from privacy.evidence.uniforms import deviations, seen
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from privacy.planning.spent import covered
from privacy.series import Ints
from transforms.aggregation.expression import Condition, evaluate
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Timeline, planned
from transforms.common.errors import RefusedError, SpecError
from transforms.common.output_formats import read_whole
from transforms.release.node_tables import nodes_table
from transforms.release.protected import Protected, columns_of
from transforms.release.published_columns import key_types, nodes_types
from transforms.release.release import NODES

DISTRIBUTIONS = {one.name: one for one in (DiscreteLaplace, DiscreteGaussian)}


def check_public(folder: str, empty: str | None, witness: str | None = None) -> Audited:
    """Check the public folder of a release.

    Args:
        folder: The folder.
        empty: Condition on the key columns: cells that are known to be empty; None: none are known.
        witness: Path of the release's witness, or of a copy; None: it is unavailable.

    Raises:
        RefusedError: The folder holds no release, or one of another version; or the witness is unavailable.
        SpecError: The condition is wrong.
    """
    began = process_time()
    condition = None if empty is None else _condition(empty)
    release = published(folder)
    budget = release.plan.budget
    tables = {place: _nodes(release, place) for place in range(len(release.spec.queries))}
    layers = [_files(release), _statement(release), *_rows(release, tables)]
    layers.append(_noise(release, tables, condition))
    layers += [] if witness is None else [check_witness(release, witness)]
    return Audited(
        subject=f"public folder {folder}",
        claim=release.epochs[0].statement,
        epsilon=budget.epsilon,
        delta=budget.delta,
        layers=tuple(layers),
        seconds=process_time() - began,
    )


def _condition(text: str) -> Condition:
    try:
        return Condition.parse(text)
    except SpecError as error:
        raise ArgumentError("empty", str(error).removeprefix("where: ")) from None


def _files(release: Published) -> LayerResult:
    """Compare each file with its digest in the manifest."""
    folder, faults = folder_at(release.folder, private=False), []
    files = [(name, digest) for epoch in release.epochs for name, digest in epoch.files.items()]
    for name, digest in files:
        try:
            read_public(folder, name, digest.sha256, of="a release")
        except RefusedError as error:
            faults.append(str(error))
    return LayerResult(
        name="files",
        question="Are all files those of the manifest?",
        tried={"epochs": len(release.epochs), "files": len(files)},
        faults=tuple(faults[:5]),
    )


def _statement(release: Published) -> LayerResult:
    """Compare the statement with the plan, and the plan's noise with the claim."""
    plan, faults = release.plan, []
    if any(epoch.statement != plan.statement for epoch in release.epochs):
        faults.append("the statement in the manifest is not that of the plan")
    if not covered(plan, plan.budget.epsilon * (1 + SAME)):
        faults.append("the noise of the plan is too small for its claim")
    return LayerResult(
        name="plan",
        question="Is the plan's noise enough for the statement?",
        tried={"parts": len(plan.parts)},
        faults=tuple(faults),
        untested=(
            "The sensitivities in the plan are those that this version computes; audit the spec to attack them.",
        ),
    )


def _nodes(release: Published, place: int) -> pa.Table | None:
    """Return all published nodes of a query; None if it has none, or a file is damaged."""
    query, folder = release.spec.queries[place], folder_at(release.folder, private=False)
    own = re.compile(rf"{NODES}/{re.escape(query.name)}-(net|entered|left)-\d+.*")
    files = {name: digest for epoch in release.epochs for name, digest in epoch.files.items() if own.fullmatch(name)}
    found = []
    for name, digest in files.items():
        try:
            found.append(read_whole(read_public(folder, name, digest.sha256, of="a release"), name))
        except RefusedError:
            return None
    return pa.concat_tables(found, promote_options="permissive") if found else None


def _rows(release: Published, tables: dict[int, pa.Table | None]) -> Iterator[LayerResult]:
    """Compare the rows of nodes with those that the plan states, and their values with its grid."""
    faults, rows = [], 0
    for place, query in enumerate(release.spec.queries):
        wanted, table = _stated(release, place), tables[place]
        if wanted is None:
            continue
        if table is None or table.num_rows != wanted.num_rows:
            faults.append(f"{query.name}: the nodes are not those of the plan")
            continue
        rows += table.num_rows
        if not _same(_sorted(table, release), _sorted(wanted, release)):
            faults.append(f"{query.name}: the nodes, or the scales of their noise, are not those of the plan")
        elif len(off := _off_grid(_sorted(table, release), _sorted(wanted, release))):
            faults.append(f"{query.name}: {len(off)} values are not on the public grid")
    yield LayerResult(
        name="rows",
        question="Are the published nodes exactly those of the plan, with its scales, on its grid?",
        tried={"nodes": rows},
        faults=tuple(faults),
    )


def _stated(release: Published, place: int) -> pa.Table | None:
    """Return the nodes of a query as the plan states them, with the size of one step of the grid as the value."""
    plan, spec = release.plan, release.spec
    if spec.queries[place].discovers:  # nodes of keys stay private
        return None
    timeline = Timeline(
        start=release.bounds.start, every=release.bounds.every, windows=release.windows, ends=release.bounds.ends
    )
    aggregation = Aggregation(
        queries=planned(spec.queries, plan),
        timeline=timeline,
        constraint=plan.promise.constraint,
        owner=spec.privacy.owner,
    )
    found, cells = [], spec.queries[place].cells
    for part in plan.linear(place):
        nodes = len(part.strategy.nodes(release.windows // part.leaf, since=None).end)
        ones = [np.ones((nodes, columns_of(part, cells)), dtype=np.int64) for _ in part.noise]
        found.append(nodes_table(Protected(nodes=ones, sums=[]), aggregation, part, 0))
    return pa.concat_tables(found) if found else None


def _sorted(table: pa.Table, release: Published) -> pa.Table:
    """Return a table in an order that its values do not decide, with types of all formats."""
    types = {**nodes_types(release.spec.queries)}
    columns = {}
    for name, kind in types.items():
        column = table[name] if name in table.column_names else pa.nulls(table.num_rows, kind)
        columns[name] = column.cast(kind) if column.type != kind else column
    whole = pa.table(columns)
    keys = [name for name in types if name not in ("noisy_value", "scale")]
    return whole.sort_by([(name, "ascending") for name in keys])


def _same(one: pa.Table, two: pa.Table) -> bool:
    names = [name for name in one.column_names if name not in ("noisy_value", "scale")]
    scales = np.allclose(one["scale"].to_numpy(), two["scale"].to_numpy(), rtol=1e-12, atol=0)
    return scales and all(one[name].to_pylist() == two[name].to_pylist() for name in names)


def _off_grid(table: pa.Table, wanted: pa.Table) -> Ints:
    """Return the rows whose value is no whole number of steps."""
    steps = table["noisy_value"].to_numpy() / wanted["noisy_value"].to_numpy()
    return np.flatnonzero(np.abs(steps - np.rint(steps)) > 1e-6 * np.maximum(1, np.abs(steps)) * 2.0**-20 + 1e-9)


def _noise(release: Published, tables: dict[int, pa.Table | None], condition: Condition | None) -> LayerResult:
    """Test the noise of nodes in cells that are known to be empty."""
    name, question = "noise", "Is the noise in empty cells as wide as the plan states?"
    if condition is None:
        return LayerResult(
            name=name, question=question, tried={}, untested=("No cells are known to be empty: give --empty.",)
        )
    noise: list[Ints] = []
    laws: list[NoiseDistribution] = []
    for place, found in tables.items():
        wanted = _stated(release, place)
        if found is None or wanted is None or found.num_rows != wanted.num_rows:
            continue
        table, steps = _sorted(found, release), _sorted(wanted, release)["noisy_value"].to_numpy()
        if not condition.columns <= {*key_types(release.spec.queries)}:
            raise ArgumentError(
                "empty", f"reads other columns than the keys {', '.join(key_types(release.spec.queries))}"
            )
        rows = np.flatnonzero(evaluate([condition], table)[0])
        values = np.rint(table["noisy_value"].to_numpy()[rows] / steps[rows]).astype(np.int64)
        scales = table["scale"].to_numpy()[rows] / steps[rows]
        for scale in np.unique(scales):
            noise.append(values[scales == scale])
            laws.append(DISTRIBUTIONS[table["mechanism"][0].as_py()](float(scale)))
    samples = sum(map(len, noise))
    uniform = np.random.default_rng().random(samples)
    faults = []
    if laws:
        faults += [
            f"{one.name} has an error of {one.found:.3g}, allowed {one.allowed:.3g}"
            for one in deviations(noise, laws, uniform, failure=FALSE_ALARM / 2)
            if not one.passed
        ]
        widest = max(range(len(laws)), key=lambda number: laws[number].scale)
        if repeated([noise[widest]], run_length(laws[widest], len(noise[widest]), FALSE_ALARM / 4)):
            faults.append("noise occurs twice")
    return LayerResult(
        name=name,
        question=question,
        tried={"nodes in empty cells": samples},
        found=(f"sees a scale that is wrong by {seen(samples, FALSE_ALARM / 2):.0%} or more",) if samples else (),
        faults=tuple(faults),
        untested=() if samples else ("No node satisfies the condition.",),
    )
