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
        ("{for: ranges} # adaptive", CellChoice(workload="ranges")),
        ("{strategy: kdtree, height: 3, splits: 0.2} # adaptive", CellChoice(name="kdtree", height=3, splits=0.2)),
    ],
)
def test_the_purpose_of_cells_is_read(tmp_path, cells, choice):
    adaptive = [("strategy: disjoint", "strategy: {adaptive: bd}")] if "adaptive" in cells else []
    assert load(written(tmp_path, cells, *adaptive)).queries[0].over == choice


def test_cells_are_optimised_for_published_ranges_by_default(tmp_path):
    ranges = "publish: [level, {ranges: [{age: {from: 20}}, {age: {to: 65}}]}]"
    listed = (((5, 22), None), ((0, 14), None))
    for cells, choice in (
        ("", CellChoice(workload="listed", listed=listed)),
        ("cells: {for: listed, strategy: tree}", CellChoice(name="tree", workload="listed", listed=listed)),
        ("cells: {for: ranges}", CellChoice(workload="ranges")),
        ("cells: {strategy: each}", CellChoice(name="each")),
    ):
        (tmp_path / "spec.yaml").write_text(
            changed("publish: [level, change]", f"{ranges}\n    {cells}", changed(*ORDERED, SPEC))
        )
        assert load(tmp_path / "spec.yaml").queries[0].over == choice


@pytest.mark.parametrize(
    ("cells", "changes", "message"),
    [
        ("{for: ranges}", [(", age: {from: 0, to: 100, step: 5}", "")], "for keys whose cells have an order"),
        ("{for: cells}", [], "states only defaults"),
        (
            "{for: range}",
            [],
            r"for: expected one of cells, prefixes, ranges, listed, not 'range'; did you mean 'ranges'",
        ),
        ("{for: listed}", [], "for: listed is for ranges that are published"),
        ("{branching: 4, for: ranges}", [], "of a tree; add strategy: tree"),
        ("{for: medians}", [], "cells, prefixes"),
        (
            "{for: ranges}",
            [("measure: count", "measure: count\n    consistent: true"), ("step: 5", "step: 0.0001")],
            "at most .* cells, list fewer",
        ),
        ("{strategy: kdtree}", [], "a kdtree looks at the data: for samples of strategy"),
        ("{strategy: tree, height: 3}", [], "height: of a kdtree; add strategy: kdtree"),
        ("{strategy: kdtree, height: 9}", [], "height: expected at most 8"),
        ("{strategy: kdtree, splits: 1}", [], "splits: expected"),
        ("{strategy: kdtree, for: ranges}", [], "for: a kdtree is the same for all of them"),
        ("{strategy: quadtree}", [], "a quadtree is over two keys with an order; use tree for one"),
    ],
)
def test_impossible_settings_are_refused_with_a_reason(tmp_path, cells, changes, message):
    with pytest.raises(SpecError, match=message):
        load(written(tmp_path, cells, *changes))


def test_settings_of_a_kdtree_are_used_if_they_are_given(tmp_path):
    """The digest is the same with and without them."""
    adaptive = ("strategy: disjoint", "strategy: {adaptive: bd}")
    said = ("{strategy: kdtree}", "{strategy: kdtree, height: 2}", "{strategy: kdtree, splits: 0.3}")
    assert len({load(written(tmp_path, cells, adaptive)).sha256 for cells in said}) == 3


def test_a_column_of_a_kdtree_is_no_key(tmp_path):
    path = written(tmp_path, "{strategy: kdtree}", ("strategy: disjoint", "strategy: {adaptive: bd}"))
    path.write_text(path.read_text().replace("ward:", "Spread_Over:"))
    with pytest.raises(SpecError, match="have a column spread_over, for kdtrees"):
        load(path)
