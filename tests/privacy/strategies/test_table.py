"""Strategies are extensible: a new one is planned, spent, stored and stated through its interface alone.

Its norms depend only on r, D and m, so that neighbours of another kind are supported as well.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pipelines.spec.load import load
from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.planning.spent import spent
from privacy.planning.statement import REACTING
from privacy.problems import RuleError
from privacy.series import Series
from privacy.states import States
from privacy.strategies.base import Moved
from privacy.strategies.candidates import Offer, StrategyTerms, whole
from privacy.strategies.choice import Choice
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.sliding import Sliding
from privacy.strategies.table import OFFERS, STRATEGIES
from privacy.strategies.tree.tree import Tree
from privacy.touched import Touched, at_most
from tests.e2e.specs import SPEC
from tests.pipelines.spec_text import changed
from tests.privacy.steps import exact_nodes
from tests.test_house import PACKAGES, ROOT, modules
from transforms.common.errors import SpecError

LEVEL = Series(kind="level")


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Each level is a node: any change moves all later ones."""

    windows: int
    kind, name, variant = "levels", "levels", ""
    sparse, of_levels, certifiable, in_advance, bounded = True, True, False, False, True
    summed_levels = True
    disjoint_layers = ()

    @property
    def parameters(self):
        return {}

    def settled(self):
        return self

    def stretch(self, nodes):
        return None

    def variances(self, series, windows):
        return np.ones(windows)

    def norm(self, states, leaves, *, closely=False):
        return self.windows * max(states.radius, states.diameter if leaves.present else Fraction(0))

    def norms(self, states, changes, *, closely=False):
        return [self.norm(states, at_most(j)) for j in range(1, changes + 1)]

    def moved(self, leaves, *, cells, each, largest, shared):
        return Moved(nodes=self.windows, coordinates=self.windows * min(cells, 2) * len(largest))

    def so_far(self, leaves):
        return replace(self, windows=leaves) if leaves else None


@pytest.mark.usefixtures("plan_again")
def test_a_strategy_in_the_table_is_planned_spent_kept_and_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = Offer(sparse=True, candidates=lambda asked: iter([whole(asked, Levels(windows=asked.windows))]))
    monkeypatch.setitem(OFFERS, "sliding", offer)  # replaces a name of the spec
    monkeypatch.setitem(STRATEGIES, "levels", Levels)
    demand = Demand(name="beds", measure=Measure(kind="count"), cells=1, series=(LEVEL,), choice=Choice(name="sliding"))

    def planned(owner=False, **given):
        promise = Promise(constraint=AtMost(40), window=10, windows=10, owner=owner)
        asked = {"budget": Budget(epsilon=1), "mechanism": "laplace", "accounting": None}
        return make_plan([demand], promise, **{**asked, **given})

    plan = planned()
    (released,) = plan.parts
    assert released.strategy == Levels(windows=10)
    assert (released.sensitivity.l1, released.sensitivity.nodes) == (10.0, 10)
    assert released.noise[0].scale == pytest.approx(10)
    assert released.paper_epsilon == pytest.approx(1)
    assert spent(plan, 4).epsilon == pytest.approx(0.4)
    assert plan.conditions[0] == REACTING
    assert plan_from_json(plan_to_json(plan)) == plan

    # An owner's entries are split by the strategy's own bounds; here two that appear reach further than one.
    assert planned(owner=True).parts[0].sensitivity.l1 == 400.0
    assert planned(budget=Budget(epsilon=1, delta=1e-6), mechanism="gaussian").parts[0].sensitivity.l2 == math.sqrt(10)


def test_a_strategy_in_the_table_is_read_from_a_spec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
        if terms.windows is None:
            yield RuleError("levels need an end")

    path = tmp_path / "spec.yaml"
    path.write_text(changed("strategy: disjoint", "strategy: levels", SPEC))
    with pytest.raises(SpecError, match=r"expected one of auto, disjoint, .*, not 'levels'"):
        load(path)

    monkeypatch.setitem(OFFERS, "levels", Offer(sparse=True, candidates=lambda _: iter(()), problems=problems))
    assert load(path).queries[0].strategy == Choice(name="levels")
    path.write_text(changed("  until: 2026-01-06T00:00:00Z\n", "", path.read_text()))
    with pytest.raises(SpecError, match=r"spec.yaml:\d+: strategy: levels need an end"):
        load(path)


@pytest.mark.parametrize("name", ["Factorised", "Sliding", "Tree", "WeightedLevels", "Direct"])
def test_only_its_own_files_and_the_table_know_a_strategy(name: str) -> None:
    own = STRATEGY_FILES[name]
    knowing = {
        str(path.relative_to(ROOT))
        for path in (path for package in PACKAGES for path in modules(package))
        if re.search(rf"^from privacy\.strategies\S* import .*\b{name}\b", path.read_text(), re.MULTILINE)
    }

    assert {path for path in knowing if not path.startswith(own)} == {"privacy/strategies/table.py"}


STRATEGY_FILES = {
    "Factorised": "privacy/strategies/factorised/",
    "Sliding": "privacy/strategies/sliding.py",
    "Tree": "privacy/strategies/tree/",
    "WeightedLevels": "privacy/strategies/direct/",
    "Direct": "privacy/strategies/direct/",
}


@dataclass(frozen=True, kw_only=True)
class Growing(Levels):
    """`Levels` with less error, and a carry that grows."""

    share: float
    variant, bounded = "growing", False

    def variances(self, series, windows):
        return self.share * np.ones(windows)


@pytest.mark.usefixtures("plan_again")
@pytest.mark.parametrize(("share", "taken"), [(0.99, Levels), (0.97, Growing)])
def test_a_carry_that_does_not_grow_is_worth_one_percent_of_error(monkeypatch, share, taken) -> None:
    """Half a percent less error is not enough, one and a half percent are."""
    both = (Levels(windows=10), Growing(windows=10, share=share))
    offer = Offer(sparse=True, candidates=lambda asked: (whole(asked, one) for one in both))
    for name in OFFERS:
        monkeypatch.setitem(OFFERS, name, replace(offer, candidates=lambda _: iter(())))
    monkeypatch.setitem(OFFERS, "sliding", offer)
    demand = Demand(name="beds", measure=Measure(kind="count"), cells=1, series=(LEVEL,))
    promise = Promise(constraint=AtMost(40), window=10, windows=10, owner=False)
    asked = {"budget": Budget(epsilon=1), "mechanism": "laplace", "accounting": None}

    (released,) = make_plan([demand], promise, **asked).parts

    assert type(released.strategy) is taken


SPAN, WINDOWS = 3, 7
"""Neighbours that are equal outside of 3 adjacent windows, where each may be present or not: g in {-1, 0, 1}."""

ONE = States(radius=Fraction(1), diameter=Fraction(2), hulls=())
ONE_SQUARED = States(radius=Fraction(1), diameter=Fraction(4), hulls=())
MOVED = Touched(SPAN + 1, 0, in_a_row=True)


def differences() -> np.ndarray:
    """Return leaf sums [pairs, 1 + WINDOWS] of all differences of two such neighbours; 0 before the start."""
    found = []
    for begin, inside in itertools.product(range(1, WINDOWS + 1), itertools.product((-1, 0, 1), repeat=SPAN)):
        levels = np.zeros(1 + WINDOWS + SPAN, dtype=np.int64)
        levels[begin : begin + SPAN] = inside
        found.append(np.diff(levels[: 1 + WINDOWS], prepend=0))
    return np.array(found)


def columns(strategy: Tree | Sliding | Factorised) -> np.ndarray:
    """Return C, [nodes, 1 + WINDOWS], in steps fine enough for any strategy."""
    return exact_nodes(strategy, np.eye(1 + WINDOWS, dtype=np.int64) << 24) / 2**24


@pytest.mark.parametrize(
    "strategy",
    [
        *(
            Tree(branching=c, height=h, refine="none", windows=WINDOWS, initial_level=False)
            for c, h in ((2, 1), (2, 3), (3, 2))
        ),
        *(Sliding(width=w, every=p, windows=WINDOWS) for w, p in ((2, 1), (5, 2), (3, 3))),
        *(Factorised(kernel=Coefficients(), windows=WINDOWS, initial_level=o) for o in (False, True)),
        Factorised(kernel=Coefficients(leak=0.2), windows=WINDOWS, initial_level=False),
    ],
    ids=str,
)
def test_norms_hold_for_neighbours_that_differ_in_a_span(strategy) -> None:
    moved = differences() @ columns(strategy).T

    assert (moved**2).sum(axis=1).max() <= float(strategy.norm(ONE_SQUARED, MOVED)) * (1 + 1e-6)
    if strategy.sparse:
        reached = np.abs(moved).sum(axis=1).max()
        assert reached <= strategy.norm(ONE, MOVED)
        if strategy == Tree(branching=2, height=1, refine="none", windows=WINDOWS, initial_level=False):
            # r + (m - 1) D is one more than 2 w, which also counts the return to equality.
            assert (reached, strategy.norm(ONE, MOVED)) == (2 * SPAN, 2 * SPAN + 1)


def test_adjacent_leaves_meet_exactly_the_stated_number_of_nodes() -> None:
    for moved, leaves, there_are in itertools.product(range(12), range(1, 6), (1, 2, 5, 100)):
        ends = leaves * there_are
        met = max(len({leaf // leaves for leaf in range(begin, begin + moved) if leaf < ends}) for begin in range(ends))
        assert Touched(moved, moved, in_a_row=True).nodes(leaves, there_are).appearing == met
