"""Plans depend on the spec and the version alone, and not on the machine that computes them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.epochs.plans import plan_of
from pipelines.spec.load import load
from tests.releases.make import HEAD, SPECS
from transforms.common.errors import SpecError

PRINTED = """
import json, sys
from pipelines.epochs.plans import plan_of
from pipelines.spec.load import load
from privacy.planning.alternatives import alternatives
from privacy.planning.document import plan_to_json

for path in sys.argv[1:]:
    plan = plan_of(load(path))
    print(json.dumps(plan_to_json(plan), sort_keys=True))
    for place, demand in enumerate(plan.demands):
        for option in alternatives(plan, place) if demand.adaptive is None else ():
            print(option.name, option.kind, [part.strategy.parameters for part in option.parts])
"""

MACHINES = (
    {"OPENBLAS_NUM_THREADS": "1"},
    {
        "OPENBLAS_NUM_THREADS": "4",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3",
        "PYTHONHASHSEED": "1",
    },
)
"""Variables with which NumPy and OpenBLAS compute as on other processors, with other threads and orders of hashes."""

PLANNED = """\
privacy: {epsilon: 1, delta: 1.0e-9, constraint: {at_most: 4}}
queries:
  - name: ranges
    measure: count
    by: {age: {from: 0, to: 24, step: 1}}
    cells: {for: ranges}
    publish: [level, entered]
  - name: levels
    measure: count
    publish: [level, {sliding: 2d, every: 1d}]
"""


@pytest.mark.slow
def test_each_machine_computes_the_same_plans_and_alternatives(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.yaml" for name in ("ranges", "planned")]
    for path in paths:
        path.write_text(SPECS.get(path.stem, HEAD + PLANNED))

    children = [
        subprocess.Popen(
            [sys.executable, "-c", PRINTED, *map(str, paths)],
            env={**os.environ, **machine},
            stdout=subprocess.PIPE,
            text=True,
        )
        for machine in MACHINES
    ]
    printed = [child.communicate()[0] for child in children]

    assert [child.returncode for child in children] == [0, 0]
    assert printed[0].count("\n") > len(paths)
    assert printed[1] == printed[0]


TREE = "strategy: {tree: {branching: 16, height: 9}}"


@pytest.mark.parametrize(
    ("text", "place"),
    [(f"{HEAD}{TREE}\n{PLANNED}", "12: strategy"), (f"{HEAD}{PLANNED}    {TREE}", "21: queries[1].strategy")],
    ids=["of the spec", "of a query"],
)
def test_a_strategy_that_does_not_fit_is_reported_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace("    cells: {for: ranges}\n", ""))

    with pytest.raises(SpecError) as caught:
        plan_of(load(path))

    reason = "no tree of this shape fits into the schedule; leave out some of its settings"
    assert str(caught.value) == f"{path}:{place}: {reason}"
