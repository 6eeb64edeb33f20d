"""Time and memory of one window of a million cells with marginals or a tree, each in a separate process."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.marginals.compared import LEVEL, part_of
from privacy.cells.choice import CellChoice
from privacy.measure import Measure
from privacy.noise.kinds import Mechanism
from transforms.aggregation.hierarchy_key import Node, hierarchy_of, values_of
from transforms.aggregation.queries import Query
from transforms.release.linear_chunk import add_noise
from transforms.release.marginal_tables import marginals_of, noise_of_rows, over_rows


def _marginals() -> Query:
    names, size = "abcdef", 10
    kept = [(), *((one,) for one in names), ("a", "b"), ("a", "c"), ("a", "b", "c")]
    return Query(
        name="people",
        measure=Measure(kind="count"),
        by=tuple((name, tuple(range(size))) for name in names),
        publish=(LEVEL,),
        marginals=tuple(kept),
        over=CellChoice(marginals=tuple(tuple(map(names.index, one)) for one in kept)),
    )


def _tree() -> Query:
    states = [
        Node(
            f"{state}",
            tuple(
                Node(f"{state}.{n}", tuple(Node(20_000 * state + 50 * n + t) for t in range(50))) for n in range(400)
            ),
        )
        for state in range(50)
    ]
    return Query(
        name="places",
        measure=Measure(kind="count"),
        by=(("place", values_of(states)),),
        publish=(LEVEL,),
        hierarchies=(("place", hierarchy_of(states, root="all")),),
        over=CellChoice(workload="levels"),
    )


def _cells() -> Query:
    return Query(name="each", measure=Measure(kind="count"), by=(("place", tuple(range(1_000_000))),), publish=(LEVEL,))


QUERIES: dict[str, Callable[[], Query]] = {
    "cells alone": _cells,
    "six keys, ten marginals": _marginals,
    "tree of four levels": _tree,
}


def table() -> str:
    """Measure each query in a separate process."""
    head = ["| query | nodes | noise | noise, least squares: s | sums: s | errors: s | memory, MB |"]
    head.append("|---|--:|---|--:|--:|--:|--:|")
    for name in QUERIES:
        for mechanism in ("laplace", "gaussian"):
            command = [sys.executable, "-m", "benchmarks.marginals", "--alone", name, "--mechanism", mechanism]
            head.append(subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip())
    return "\n".join(head)


def alone(name: str, mechanism: Mechanism) -> str:
    """Return the line of one query; memory is the increase of the process' peak from the dense leaves on."""
    query = QUERIES[name]()
    part, _ = part_of(query, query.over, mechanism=mechanism, windows=1)
    leaves = np.random.default_rng(1).integers(0, 100, (1, 2, query.cells))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    ((sums,),) = add_noise(leaves, part).sums
    noisy = time.process_time()
    for marginal in marginals_of(query):
        over_rows(sums, query, marginal.levels)
    summed = time.process_time()
    for marginal in marginals_of(query):
        noise_of_rows(query, part.over, [marginal.levels])
    errors = time.process_time()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    nodes = query.cells if part.over is None else part.over.nodes
    seconds = f"{noisy - begin:.2f} | {summed - noisy:.2f} | {errors - summed:.2f}"
    return f"| {name} | {nodes:,} | {mechanism} | {seconds} | {peak:,.0f} |"
