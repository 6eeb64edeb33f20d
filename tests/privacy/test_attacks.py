"""Attempts to break the privacy claim of whole releases, without use of the proofs.

Entries and owners are tried at random and by hill climbing, differences between neighbours are counted on two runs of
the code that releases, losses are recomputed from the noise, and data are moved into the noise. Seeds are for data and
for the search; no noise is tested.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, Constraint, Within
from privacy.measure import Component, Measure
from privacy.noise.distributions import DiscreteGaussian
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.linear_part import LinearPart
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_net
from privacy.series import Series
from privacy.states import in_l2_squared
from privacy.strategies.choice import REFINES, Choice
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.filters import of_filter
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import Given, Recorded, exact_nodes, listed
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Timeline
from transforms.release import noise as sampled
from transforms.release.linear_chunk import add_noise, merged
from transforms.release.node_tables import nodes_table
from transforms.release.published_tables import estimates_table

Strategy = Tree | Sliding | Factorised
WINDOW = 10
POLES = ((0, 0, 9000), (5, 8, 20000), (77, 9, 16536), (1, 0, 20000))


def contribution(
    components: tuple[Component, ...], cells: int, constraint: Constraint, *, owner: bool = False
) -> Contribution:
    return Contribution(
        promise=Promise(constraint=constraint, window=WINDOW, windows=None, owner=owner),
        components=components,
        cells=cells,
    )


def states(measure: Measure, values: list[float], cells: int) -> np.ndarray:
    """Return [states, cells, components], the first of them no state, in steps."""
    per_value = np.stack(measure.contributions(measure.project(np.array(values)), len(values)), axis=1)
    found = np.zeros((1 + cells * len(values), cells, per_value.shape[1]), dtype=np.int64)
    for place, (cell, value) in enumerate(itertools.product(range(cells), per_value)):
        found[1 + place, cell] = value
    return found


def leaves_of(places: np.ndarray, held: np.ndarray, entry: np.ndarray, windows: int, every: np.ndarray) -> np.ndarray:
    """Return [tries, 1 + windows, cells * components]: at leaf places[i, j] entry[i, j] gets the state held[i, j]."""
    tries = len(places)
    order = np.argsort(places, axis=1, kind="stable")
    each, flat = np.arange(tries), every.reshape(len(every), -1)
    leaves = np.zeros((tries, windows + 1, flat.shape[1]), dtype=np.int64)
    current = np.zeros((tries, int(entry.max()) + 1), dtype=np.int64)
    for j in order.T:
        who, now = entry[each, j], held[each, j]
        leaves[each, places[each, j]] += flat[now] - flat[current[each, who]]
        current[each, who] = now
    return leaves


def nodes_of(strategy: Strategy, leaves: np.ndarray) -> np.ndarray:
    """Return [tries, nodes, cells * components]."""
    tries, rows, width = leaves.shape
    nodes = exact_nodes(strategy, leaves.transpose(1, 0, 2).reshape(rows, tries * width))
    return nodes.reshape(len(nodes), tries, width).transpose(1, 0, 2)


MEASURES = [
    pytest.param(Measure(kind="mean", low=0, high=10), [0.0, 5.0, 10.0], id="mean"),
    pytest.param(Measure(kind="variance", low=-3, high=10), [-3.0, 0.0, 3.5, 10.0], id="variance"),
    pytest.param(Measure(kind="sum", low=-5, high=10), [-5.0, 10.0], id="sum"),
]
SHAPES = [
    *(Tree(branching=2, height=4, refine=r, windows=11, initial_level=o) for r in REFINES[:2] for o in (True, False)),
    Tree(branching=5, height=5, refine="least_squares", windows=7, initial_level=True),
    Sliding(width=4, every=3, windows=11),
    Sliding(width=2, every=5, windows=12),
]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("owner", [False, True])
@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize(("measure", "values"), MEASURES)
def test_no_search_finds_a_unit_that_reaches_further_than_claimed(measure, values, cells, owner):
    """Several components of either sign, several cells, owners whose entries share the changes, cut forests."""
    rng = np.random.default_rng(5)
    every, largest = states(measure, values, cells), [c.largest for c in measure.components]
    for strategy, k in itertools.product(SHAPES, (2, 5)):
        windows, entries = strategy.windows or 0, 3 if owner else 1
        claimed = of_net(strategy, contribution(measure.components, cells, AtMost(k), owner=owner))
        tried = [rng.integers(0, top, (60, k)) for top in (windows + 1, len(every), entries)]
        best = np.zeros(60)
        for _ in range(12):
            moved = [np.where(rng.random(a.shape) < 0.4, rng.integers(0, a.max() + 1, a.shape), a) for a in tried]
            nodes = nodes_of(strategy, leaves_of(*moved, windows, every)) / np.tile(largest, cells)
            squares = (nodes**2).sum((1, 2))
            assert math.sqrt(squares.max()) <= claimed.l2 * (1 + 1e-12)
            assert np.abs(nodes).sum((1, 2)).max() <= claimed.l1 * (1 + 1e-12)
            assert (nodes != 0).any(axis=2).sum(axis=1).max() <= claimed.nodes
            assert np.sqrt((nodes**2).sum(axis=2)).max() <= claimed.node_l2 * (1 + 1e-12)
            better = squares >= best
            tried = [np.where(better[:, None], new, old) for new, old in zip(moved, tried, strict=True)]
            best = np.maximum(best, squares)


def differing(strategy: Strategy, leaves: np.ndarray) -> int:
    """Return how many nodes differ, at most, between neighbours: over a few data sets to which the unit is added."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(5):
        others = rng.integers(-(2**30), 2**30, leaves.shape)
        both, without = (exact_nodes(strategy, data) for data in (others + leaves, others))
        found = max(found, int(np.count_nonzero(both != without)))
    return found


OWNED = [
    Tree(branching=2, height=1, refine="none", windows=1, initial_level=False),
    Tree(branching=2, height=4, refine="none", windows=8, initial_level=False),
    Tree(branching=3, height=2, refine="least_squares", windows=5, initial_level=True),
    Sliding(width=4, every=3, windows=4),
    Factorised(kernel=Coefficients(leak=0.1), windows=2, initial_level=False),
    Factorised(kernel=Exponentials(poles=POLES), windows=2, initial_level=True),
]


@pytest.mark.parametrize("strategy", OWNED, ids=str)
def test_an_owner_whose_entries_lie_in_different_cells_moves_no_more_numbers_than_claimed(strategy: Strategy) -> None:
    """The step from continuous to discrete noise is charged for each number that can differ, not for each node."""
    k = 6
    claimed = of_net(strategy, contribution(Measure(kind="count", fine=True).components, 8, AtMost(k), owner=True))
    leaves = np.zeros(((strategy.windows or 0) + 1, 8), dtype=np.int64)
    leaves[1, :k] = 2**24

    assert differing(strategy, leaves) <= claimed.coordinates


@pytest.mark.parametrize("initial_level", [True, False])
@pytest.mark.parametrize("windows", [40, None])
def test_an_entry_bounded_in_time_moves_no_more_numbers_of_a_factorisation_than_claimed(
    windows: int | None, initial_level: bool
) -> None:
    """It may be in the initial level, far from its span: that is a leaf in addition to the two that the span meets."""
    factorised = Factorised(kernel=Coefficients(leak=0.9, ends=True), windows=windows, initial_level=initial_level)
    claimed = of_net(factorised, contribution(Measure(kind="count", fine=True).components, 3, Within(10)))
    leaves = np.zeros((41, 3), dtype=np.int64)
    leaves[0, 0], leaves[15, 0], leaves[15, 1], leaves[16, 1], leaves[16, 2] = np.array([1, -1, 1, -1, 1]) << 24

    assert differing(factorised, leaves) <= claimed.coordinates


def test_rounding_is_paid_for_at_every_node_that_an_entry_bounded_in_time_moves() -> None:
    factorised = Factorised(kernel=Coefficients(leak=0.9, ends=True), windows=40, initial_level=True)
    held = Measure(kind="sum", low=-1, high=1).components
    claimed = of_net(factorised, contribution(held, 1, Within(10)))
    leaves = np.zeros((41, 1), dtype=np.int64)
    leaves[[0, 15, 16]] = 1
    moved = differing(factorised, leaves << 24)

    # One change of the whole interval in the window filter's first column, and the largest effect of rounding.
    linear = math.sqrt(of_linear(factorised, held, Within(10)))
    assert claimed.l2 - linear >= math.sqrt(moved) / held[0].largest * (1 - 1e-6)


def of_linear(factorised: Factorised, components: tuple[Component, ...], part: Within) -> float:
    return of_filter(
        factorised.coefficients,
        leaves=factorised.leaves(factorised.windows or 0),
        initial_level=factorised.initial_level,
        touched=part.touched(WINDOW),
        states=in_l2_squared(components, 1),
    )[-1]


LEVELS = (Series(kind="level"), Series(kind="change"), Series(kind="sliding", width=6))
WEEKS = (Series(kind="sliding", width=6, every=2), Series(kind="sliding", width=4, every=4))


def strategies(windows: int | None, *, initial_level: bool) -> list[Strategy]:
    trees = [
        Tree(branching=c, height=h, refine=r, windows=windows, initial_level=initial_level)
        for r in REFINES
        for c, h in ((2, 4), (7, 2))
    ]
    if windows is None:
        return [*trees, Factorised(kernel=Coefficients(leak=0.1, ends=True), windows=None, initial_level=initial_level)]
    factorised = [
        Factorised(kernel=Coefficients(), windows=windows, initial_level=initial_level),
        Factorised(kernel=Coefficients(leak=0.1), windows=windows, initial_level=initial_level),
        Factorised(kernel=Exponentials(poles=POLES), windows=windows, initial_level=initial_level),
    ]
    return [*trees, *factorised]


def released_from(strategy: Strategy, leaf: int, series: tuple[Series, ...], measure: Measure) -> LinearPart:
    nothing = Sensitivity(l1=1, l2=1, nodes=1, node_l1=1, node_l2=1, coordinates=1)
    return LinearPart(
        query=0,
        family="net",
        leaf=leaf,
        strategy=strategy,
        series=series,
        sensitivity=nothing,
        noise=tuple(DiscreteGaussian(2.0**26) for _ in measure.components),
        share=1.0,
        paper_epsilon=None,
    )


def aggregation_of(measure: Measure, windows: int) -> Aggregation:
    query = Query(name="beds", measure=measure, by=(("cell", (0, 1)),))
    return Aggregation(
        queries=(query,), timeline=Timeline(start=0, every=WINDOW, windows=windows), constraint=AtMost(3)
    )


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize(("horizon", "closed"), [(24, 24), (24, 17), (None, 13)])
@pytest.mark.parametrize(("leaf", "series"), [(1, LEVELS), (1, LEVELS[1:]), (2, WEEKS)])
def test_data_moved_into_the_noise_change_no_published_byte(leaf, series, horizon, closed, monkeypatch):
    """x and z give the same as x + d and z - C d: publications are a function of noisy nodes, bit by bit.

    The noise of unfinished nodes is moved as well, by their current sums.
    """
    measure, rng = Measure(kind="variance", low=0, high=10, fine=True), np.random.default_rng(3)
    aggregation = aggregation_of(measure, closed)
    for strategy in strategies(None if horizon is None else horizon // leaf, initial_level=series[0].kind == "level"):
        released = released_from(strategy, leaf, series, measure)
        exact, moved = rng.integers(-(2**36), 2**36, (2, 3, closed + 1, 2))
        end = strategy.windows or 10 * closed
        names = listed(strategy.nodes(end))

        def all_nodes(leaves: np.ndarray, strategy=strategy, end=end) -> np.ndarray:
            told, _, _ = merged(leaves, None, leaf)
            after = np.zeros((end + 1 - len(told), 2), dtype=np.int64)  # no changes from here on
            return exact_nodes(strategy, np.concatenate([told, after]))

        noise = [Recorded(2, salt=component) for component in range(3)]
        less = [
            {name: z.row(name) - row for name, row in zip(names, all_nodes(x + d) - all_nodes(x), strict=True)}
            for x, d, z in zip(exact, moved, noise, strict=True)
        ]
        protected = []
        for data, known in ((exact, noise), (exact + moved, [Given(rows, 2) for rows in less])):
            monkeypatch.setattr(
                sampled, "sample_noise", lambda _, nodes, *, component, cells, known=known: known[component](nodes)
            )
            protected.append(add_noise(data, released))
        for table in (estimates_table, nodes_table):
            here, there = (table(one, aggregation, released, 0) for one in protected)
            assert here.equals(there), strategy


@pytest.mark.parametrize("refine", [*REFINES, "factorised"])
def test_before_the_first_merged_leaf_closes_nothing_is_published(refine):
    """Weekly numbers alone, on leaves of two days, released after the first day."""
    measure = Measure(kind="count", fine=True)
    strategy: Strategy = Factorised(kernel=Coefficients(leak=0.1), windows=12, initial_level=False)
    if refine != "factorised":
        strategy = Tree(branching=2, height=3, refine=refine, windows=12, initial_level=False)
    released = released_from(strategy, 2, WEEKS, measure)

    told = add_noise(np.ones((1, 2, 2), dtype=np.int64), released)

    assert estimates_table(told, aggregation_of(measure, 1), released, 0).num_rows == 0
    assert nodes_table(told, aggregation_of(measure, 1), released, 0).num_rows == 0


def plan(
    mechanism: Mechanism, accounting: Accounting, delta: float, measures: list[Measure], *, owner: bool = False
) -> Plan:
    series = (Series(kind="level"), Series(kind="sliding", width=3), Series(kind="sliding", width=7, every=2))
    choices = itertools.cycle([Choice(name=n) for n in ("sliding", "tree", "disjoint")])
    demands = [
        Demand(name=f"q{i}", measure=measure, cells=1 + i, series=series, weight=1.0 + i, choice=next(choices))
        for i, measure in enumerate(measures)
    ]
    return make_plan(
        demands,
        promise=Promise(constraint=AtMost(4), window=WINDOW, windows=20, owner=owner),
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism=mechanism,
        accounting=accounting,
    )


SEVERAL = [
    Measure(kind="count"),
    Measure(kind="mean", low=0, high=10),
    Measure(kind="variance", low=0, high=10),
    Measure(kind="sum", low=-5, high=10),
]


@pytest.mark.slow
@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("accounting", ["naive", "advanced", "zcdp", "rdp", "pld"])
def test_the_worst_of_all_pure_releases_with_this_noise_keeps_the_budget(accounting: Accounting, queries: int) -> None:
    """Randomised responses with the same losses are the worst case; their delta is summed over all outcomes."""
    made = plan("laplace", accounting, 1e-6, SEVERAL[:queries])
    losses = []
    for r in made.parts:
        largest = [c.largest for c in made.demands[r.query].measure.components]
        losses.append(
            max(r.sensitivity.l1 * c / distribution.scale for c, distribution in zip(largest, r.noise, strict=True))
        )
    likely = 1 / (1 + np.exp(-np.array(losses)))
    truthful = np.array(list(itertools.product((True, False), repeat=len(losses))))
    one, other = (np.where(truthful == side, likely, 1 - likely).prod(axis=1) for side in (True, False))

    assert len(losses) >= 3
    assert np.maximum(one - math.e * other, 0).sum() <= 1e-6 + 1e-14
    assert np.maximum(one - math.e**0.5 * other, 0).sum() > 1e-6  # half the budget would not suffice


@pytest.mark.slow
@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("accounting", ["naive", "zcdp", "rdp", "pld"])
def test_gaussian_noise_of_this_size_keeps_the_budget_by_its_exact_distribution(
    accounting: Accounting, queries: int
) -> None:
    """A release is one Gaussian of sensitivity mu; the cost of the grid is added if no proof avoids it."""
    made = plan("gaussian", accounting, 1e-6, SEVERAL[:queries])
    squares, grid = 0.0, 0.0
    for r in made.parts:
        largest = [c.largest for c in made.demands[r.query].measure.components]
        squares += (
            max(r.sensitivity.l2 * c / distribution.scale for c, distribution in zip(largest, r.noise, strict=True))
            ** 2
        )
        grid += r.sensitivity.coordinates / (42 * min(distribution.scale for distribution in r.noise) ** 2)
    mu = math.sqrt(squares)
    delta = float(norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu))

    assert delta + (0 if accounting in ("zcdp", "rdp") else (1 + math.e) * grid) <= 1e-6
