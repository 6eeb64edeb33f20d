"""`{tree: ...}` under `by:`: what is read, and what is refused with a reason."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pipelines.spec.load import Spec, load
from pipelines.spec.public import public_spec
from privacy.cells.choice import CellChoice
from tests.e2e.specs import SPEC
from tests.pipelines.spec_text import changed
from transforms.common.errors import SpecError

DEEP = "{a: {b: {c: {d: {e: {f: {g: [h]}}}}}}, i: [j]}"
TREE = "{Bavaria: [{Upper: [Munich, Rosenheim]}, Hof], Hesse: [Kassel], East: [other]}"


def loaded(folder: Path, tree: str, *changes: tuple[str, str]) -> Spec:
    text = SPEC
    for old, new in (("by: {ward: [a, b, other]}", f"by: {{ward: {{tree: {tree}}}, age: [1, 2]}}"), *changes):
        text = changed(old, new, text)
    path = folder / "spec.yaml"
    path.write_text(text)
    return load(path)


def test_values_are_the_cells_and_inner_nodes_are_the_levels(tmp_path: Path) -> None:
    (query,) = loaded(tmp_path, TREE).queries
    assert dict(query.by)["ward"] == ("Munich", "Rosenheim", "Hof", "Kassel", "other")
    ((name, hierarchy),) = query.hierarchies
    assert name == "ward"
    assert [level.names for level in hierarchy.levels] == [("Upper",), ("Bavaria", "Hesse", "East"), ("all",)]
    assert query.over == CellChoice(workload="levels")
    assert query.axes[1].children == hierarchy.children
    assert query.together


def test_the_order_of_nodes_counts_in_the_digest_of_the_spec(tmp_path: Path) -> None:
    one = loaded(tmp_path, "{A: [1, 2], B: [3]}").sha256
    assert one == loaded(tmp_path, "[{A: [1, 2]}, {B: [3]}]").sha256
    assert one != loaded(tmp_path, "{B: [3], A: [1, 2]}").sha256


ROWS = {
    "town": ["Munich", "Upper", "Hof", "Kassel", "Rosenheim", "other"],
    "state": ["Upper", "Bavaria", "Bavaria", "Hesse", "Upper", None],
}
NESTED = "[{Bavaria: [{Upper: [Munich, Rosenheim]}, Hof]}, {Hesse: [Kassel]}, other]"


@pytest.mark.parametrize("name", ["places.csv", "places.parquet"])
def test_a_file_of_children_and_parents_is_published_as_its_nodes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(pa.table(ROWS), path)
    else:
        pq.write_table(pa.table(ROWS), path)

    found, listed = loaded(tmp_path, f"{{path: {path}, child: town, parent: state}}"), loaded(tmp_path, NESTED)

    assert found.queries == listed.queries
    assert found.sha256 == listed.sha256
    shown = public_spec(found.text)
    assert str(path) not in shown
    (tmp_path / "public.yaml").write_text(shown)
    assert load(tmp_path / "public.yaml").queries == listed.queries


@pytest.mark.parametrize(
    ("children", "parents", "message"),
    [
        (["a", "a"], ["x", "y"], "'a' has two rows"),
        (["a", None], ["x", "y"], "a row without child"),
        (["a", "b", "c"], ["x", "c", "b"], "some nodes are below themselves"),
        ([f"{n}" for n in range(12)], [f"{n + 1}" for n in range(12)], "more than 8 levels"),
        (["a", "b"], ["x", "a"], None),
    ],
)
def test_rows_that_are_no_tree_are_refused(
    tmp_path: Path, children: list[str | None], parents: list[str], message: str | None
) -> None:
    path = tmp_path / "places.parquet"
    pq.write_table(pa.table({"child": children, "parent": parents}), path)
    tree = f"{{path: {path}, child: child, parent: parent}}"
    if message is None:
        assert dict(loaded(tmp_path, tree).queries[0].by)["ward"] == ("b",)
        return
    with pytest.raises(SpecError, match=rf"by\.ward\.tree: .*{message}"):
        loaded(tmp_path, tree)
    with pytest.raises(SpecError, match=r"tree: .*has no column 'kid'; it has child, parent"):
        loaded(tmp_path, tree.replace("child: child", "child: kid"))


@pytest.mark.parametrize(
    ("tree", "changes", "message"),
    [
        (
            "{path: places.csv, child: town, parent: state}",
            [],
            r"by\.\w+\.tree: places.csv: cannot be read \(No such file or directory\); check the path",
        ),
        ("[a, b]", [], "tree: has no inner node"),
        ("{A: [a], B: []}", [], r"tree\.B: has no values"),
        ("{A: a}", [], r"tree\.A: expected a list of values, or inner nodes"),
        ("{A: [a, 0.5]}", [], r"tree\.A\[1\]: expected text, a whole number"),
        ("{A: [a], B: [a]}", [], "'a' is there twice"),
        ("{A: [A, b]}", [], "'A' is there twice"),
        ("{A: [other], B: [other]}", [], "'other' is there twice.*every value that is not listed"),
        ("{A: [all], B: [b]}", [], "all is the name of the root"),
        ("{a: {b: {c: {d: {e: {f: {g: {h: [i]}}}}}}}, j: [k]}", [], "9 levels of inner nodes; at most 8"),
        (
            "{A: [a]}",
            [("measure: count", "measure: count\n    cells: {strategy: each}")],
            "cells: for keys whose cells have an order",
        ),
        (DEEP, [("age: [1, 2]", f"x: {{tree: {DEEP}}}, y: {{tree: {DEEP}}}, z: {{tree: {DEEP}}}")], "6,561 marginals"),
        (
            "{A: [a]}",
            [("strategy: disjoint", "strategy: {adaptive: bd}"), ("[level, change]", "[level]")],
            "by: numbers of a hierarchy are not published adaptively",
        ),
        (
            "{A: [a]}",
            [("measure: count", "measure: units"), ("epsilon: 1.0", "unit: age\n  epsilon: 1.0")],
            "by: a unit counts once in each cell",
        ),
    ],
)
def test_impossible_trees_are_refused_with_the_place_and_the_reason(
    tmp_path: Path, tree: str, changes: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        loaded(tmp_path, tree, *changes)
