"""Strategies over cells are extensible: a new one is a separate file, a row of the table, and keys of the spec."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.spec.load import load
from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.offer import CellTerms, CellUse, lightest
from privacy.cells.product import Product
from privacy.cells.table import OFFERS
from privacy.planning.make_plan import make_plan
from privacy.problems import RuleError
from tests.pipelines.spec.test_cells import written
from tests.test_house import PACKAGES, ROOT, modules, syntax
from transforms.common.errors import SpecError


class Pairs:
    """Single cells, and sums of two adjacent cells."""

    settings: tuple[str, ...] = ()
    sketched = Product

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        def along(cells: int, ordered: bool) -> Layers:
            return Layers(cells=cells, sizes=(1, 2), weights=(1, 1)) if ordered else Layers(cells=cells)

        return (Product(axes=tuple(along(axis.cells, axis.ordered) for axis in terms.space)),)

    def sketcher(self, terms: CellTerms) -> Product | None:
        return lightest(self.strategies(terms))

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        if use.apart:
            yield RuleError("pairs are not for a distance", "cells", "strategy")


@pytest.mark.parametrize("strategy", ["disjoint", "{adaptive: bd}"])
def test_a_strategy_in_the_table_is_read_from_a_spec_and_planned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, strategy: str
) -> None:
    path = written(tmp_path, "{strategy: pairs}", ("strategy: disjoint", f"strategy: {strategy}"))
    with pytest.raises(SpecError, match=r"expected one of auto, each, .*, not 'pairs'"):
        load(path)

    monkeypatch.setitem(OFFERS, "pairs", Pairs())
    spec = load(path)
    demands = [query.demand for query in spec.queries]
    plan = make_plan(demands, spec.promise, budget=Budget(epsilon=1.0), mechanism="laplace", accounting=None)
    over = plan.parts[0].over

    assert isinstance(over, Product)
    assert [axis.sizes for axis in over.axes] == [(1, 2), (1,)]


OWN = {
    "quadtree": {"privacy/cells/quadtree.py"},
    "kdtree": {"privacy/cells/kdtree/kdtree.py", "privacy/cells/kdtree/reading.py", "privacy/cells/kdtree/regions.py"},
}


@pytest.mark.parametrize("name", OWN)
def test_only_its_own_files_and_the_table_know_a_strategy(name: str) -> None:
    """No file imports it or compares with its name; messages and docstrings may recommend it."""
    knowing = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        if name not in path.read_text():
            continue
        for node in ast.walk(syntax(path)):
            imported = isinstance(node, ast.ImportFrom) and f"privacy.cells.{name}" in str(node.module)
            if imported or (isinstance(node, ast.Constant) and node.value == name):
                knowing.add(str(path.relative_to(ROOT)))

    assert knowing - OWN[name] == {"privacy/cells/table.py"}
