"""Cells that a condition selects, compared with single values; and no cell is cut."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.measure import Measure
from tests.searches import examples
from transforms.aggregation.cells_where import cells_where
from transforms.aggregation.expression import Condition
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError

DAY = 86_400_000_000
AGE, X = OrderedKey(start=0, step=5, steps=4), OrderedKey(start=-2, step=1, steps=3, digits=1)
QUERY = Query(
    name="beds",
    measure=Measure(kind="count"),
    by=(("age", AGE), ("ward", ("a", "b", "other")), ("x", X), ("n", (1, 2))),
)
TIMES = Query(
    name="t", measure=Measure(kind="count"), by=(("t", OrderedKey(start=0, step=DAY, steps=3, moments=True)),)
)

COMPARISONS = st.one_of(
    st.tuples(
        st.just("age"), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(-2, 44).map(lambda n: n / 2)
    ),
    st.tuples(st.just("x"), st.sampled_from(["<", ">="]), st.integers(-3, 2).map(lambda n: n / 10)),
    st.tuples(st.just("ward"), st.sampled_from(["=", "<>"]), st.sampled_from(["'a'", "'other'"])),
    st.tuples(st.just("n"), st.sampled_from(["=", "<>"]), st.sampled_from([1, 2])),
)
TREES = st.recursive(
    COMPARISONS,
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner) | st.tuples(st.just("not"), inner),
    max_leaves=4,
)


def text(tree: tuple) -> str:
    if tree[0] == "not":
        return f"not ({text(tree[1])})"
    return " ".join(f"({text(part)})" if isinstance(part, tuple) else str(part) for part in tree)


def holds(tree: tuple, state: dict) -> bool:
    if tree[0] == "not":
        return not holds(tree[1], state)
    left, how, right = tree
    if how in ("and", "or"):
        both = holds(left, state), holds(right, state)
        return all(both) if how == "and" else any(both)
    value, other = state[left], right.strip("'") if isinstance(right, str) else right
    answers = {"<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other}
    return {"=": value == other, "<>": value != other, **answers}[how]


def values(key: OrderedKey, cell: int, step: float, *, whole: bool) -> list[float]:
    """Return values of a cell that include each possible constant and values on both sides of it."""
    unit = 10**key.digits
    low, high = ((key.start + (cell + shift) * key.step) / unit for shift in (-1, 0))
    low, high = (low - 9 * step, high) if cell == 0 else (low, high + 99 * step if cell == len(key) - 1 else high)
    count = round((high - low) / (step / 4))
    found = [low + i * step / 4 for i in range(count)]
    return [value for value in found if not whole or value == int(value)]


@examples(10)
@given(tree=TREES, whole=st.booleans())
def test_a_condition_selects_whole_cells_or_is_refused(tree: tuple, whole: bool) -> None:
    ages = [values(AGE, cell, 0.5, whole=whole) for cell in range(len(AGE))]
    xs = [[round(value, 6) for value in values(X, cell, 0.1, whole=False)] for cell in range(len(X))]
    expected, cut = [], False
    for age, ward, x, n in product(ages, ("a", "b", "other"), xs, (1, 2)):
        answers = {holds(tree, {"age": a, "ward": ward, "x": b, "n": n}) for a in age for b in (x[0], x[1], x[-1])}
        cut |= len(answers) > 1
        expected.append(True in answers)

    if cut:
        with pytest.raises(SpecError, match="cuts the cell"):
            cells_where(Condition.parse(text(tree)), QUERY, whole=frozenset(["age"] if whole else []))
        return
    found = cells_where(Condition.parse(text(tree)), QUERY, whole=frozenset(["age"] if whole else []))

    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t >= '1970-01-02'", [0, 0, 1, 1, 1]),
        ("t < timestamptz '1970-01-03 01:00:00+01'", [1, 1, 1, 0, 0]),
        ("t <= '1970-01-01T23:59:59.999999'", [1, 1, 0, 0, 0]),
        ("t is not null", [1, 1, 1, 1, 1]),
    ],
)
def test_times_are_compared_with_times(condition: str, expected: list[int]) -> None:
    assert cells_where(Condition.parse(condition), TIMES).tolist() == expected


@pytest.mark.parametrize(
    ("condition", "query", "error"),
    [
        ("age > 5", QUERY, "cuts the cell [5, 10) of age; nearest edges: 5, 10; write age < 5 or age < 10, or >="),
        ("age < -3", QUERY, "cuts the cell below of age; nearest edges: 0; write age < 0"),
        ("age between 0 and 30", QUERY, "cuts the cell above of age; nearest edges: 20; write"),
        (
            "t < '1970-01-02 12:00'",
            TIMES,
            "nearest edges: 1970-01-02T00:00:00Z, 1970-01-03T00:00:00Z; write t < '1970",
        ),
        ("t < 'noon'", TIMES, "compares t with another kind of value; its values are times"),
        ("age < 1e17", QUERY, "has a number beyond 2^53"),
        ("age < 'old'", QUERY, "compares age with another kind of value; its values are numbers"),
        ("age < null", QUERY, "compares age with another kind of value; its values are numbers"),
        ("ward = 'c'", QUERY, "compares ward with 'c', which is not one of its cells: 'a', 'b', 'other'"),
        ("ward = 1", QUERY, "compares ward with 1, which is not one of its cells: 'a', 'b', 'other'"),
        ("n = 3", QUERY, "compares n with 3, which is not one of its cells: 1, 2"),
        ("bed = 3", QUERY, "'bed' is not a key of query beds; its keys are age, ward, x, n"),
        (
            'ward = "a"',
            QUERY,
            "'a' is not a key of query beds; its keys are age, ward, x, n; put a text in single quotes",
        ),
        ("age + 1 > 5", QUERY, "compare keys with numbers, times or names alone, joined by and, or and not"),
        ("age > x", QUERY, "compare keys with numbers, times or names alone"),
        ("ward like 'a%'", QUERY, "compare keys with numbers, times or names alone"),
        ("case when age > 5 then true end", QUERY, "compare keys with numbers, times or names alone"),
    ],
)
def test_an_unsuitable_condition_is_refused_with_a_reason(condition: str, query: Query, error: str) -> None:
    with pytest.raises(SpecError) as caught:
        cells_where(Condition.parse(condition), query)

    assert error in str(caught.value)


def test_a_condition_on_a_million_cells_is_fast() -> None:
    axis = OrderedKey(start=0, step=1, steps=998, digits=1)
    query = Query(name="map", measure=Measure(kind="count"), by=(("x", axis), ("y", axis)))

    found = cells_where(Condition.parse("x >= 0.3 and x < 50.7 and y >= 10 and y < 30"), query)

    assert len(found) == 10**6
    assert found.sum() == 504 * 200
