"""`cells:` in a query: what ordered cells are for, and what goes with it."""

from pathlib import Path

import pytest

from pipelines.spec.load import load
from privacy.cells.choice import CellChoice
from tests.e2e.specs import SPEC
from tests.pipelines.spec_text import changed
from transforms.common.errors import SpecError

ORDERED = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: {from: 0, to: 100, step: 5}}")


def written(folder: Path, cells: str, *changes: tuple[str, str]) -> Path:
    path = folder / "spec.yaml"
    text = SPEC
    for old, new in (ORDERED, ("publish: [level, change]", f"publish: [level]\n    cells: {cells}"), *changes):
        text = changed(old, new, text)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("cells", "choice"),
    [
        ("{for: ranges}", CellChoice(workload="ranges")),
        ("{for: prefixes, strategy: optimised}", CellChoice(name="optimised", workload="prefixes")),
        ("{strategy: tree, branching: 4}", CellChoice(name="tree", branching=4)),
    ],
)
def test_what_cells_are_for_is_read(tmp_path, cells, choice):
    assert load(written(tmp_path, cells)).queries[0].over == choice


@pytest.mark.parametrize(
    ("cells", "changes", "message"),
    [
        ("{for: ranges}", [(", age: {from: 0, to: 100, step: 5}", "")], "for keys whose cells have an order"),
        ("{for: cells}", [], "says what holds without it"),
        ("{branching: 4, for: ranges}", [], "of a tree; add strategy: tree"),
        ("{for: medians}", [], "cells, prefixes"),
        ("{for: ranges}", [("publish: [level]", "publish: [entered, left]")], "counted in each cell by itself"),
        ("{for: ranges}", [("measure: count", "measure: count\n    consistent: true")], "does not go with consistent"),
        ("{for: ranges}", [("strategy: disjoint", "strategy: {adaptive: bd}")], "noise of its own for each cell"),
    ],
)
def test_what_cannot_be_is_refused_in_words(tmp_path, cells, changes, message):
    with pytest.raises(SpecError, match=message):
        load(written(tmp_path, cells, *changes))
