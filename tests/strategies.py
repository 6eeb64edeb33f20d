"""Random changelogs for property tests: consistent chains of changes with many edge cases."""

import pyarrow as pa
from hypothesis import strategies as st

from privacy.measure import Measure
from privacy.series import Series
from tests.reference import Mutation, State
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline

COLUMNS = {"ward": pa.string(), "x": pa.float64(), "fare": pa.string()}
TIMELINE = Timeline(start=0, every=10, windows=6)
WARDS = ("a", "b", "other")

ALL = (Series(kind="change"), Series(kind="entered"), Series(kind="left"))
COUNT = Query(
    name="beds",
    measure=Measure(kind="count"),
    by=(("ward", WARDS),),
    publish=ALL,
)
ALONE = Query(name="all", measure=Measure(kind="count"), publish=ALL)
SUM = Query(
    name="stay",
    measure=Measure(kind="sum", low=-3, high=5),
    column="x",
    by=(("ward", ("a", "b")), ("x", OrderedKey(start=-25, step=25, steps=3, digits=1))),
)
MEAN = Query(
    name="mean",
    measure=Measure(kind="mean", low=-3, high=5),
    column="x",
    invalid="max",
    publish=ALL[:2],
)
SQUARES = Query(name="squares", measure=Measure(kind="second_moment", low=-3, high=5), column="x")
VARIANCE = Query(name="variance", measure=Measure(kind="variance", low=-3, high=5), column="x", invalid="min")
QUERIES = (COUNT, ALONE, SUM, MEAN, SQUARES, VARIANCE)

STATES: st.SearchStrategy[State] = st.none() | st.fixed_dictionaries(
    {
        "ward": st.sampled_from(["a", "b", "c", None]),
        "x": st.sampled_from([0.0, 1.0, -3.0, 5.0, 2.5, 1e300, float("inf"), float("-inf"), float("nan"), None]),
        "fare": st.sampled_from(["multi", "pass", "none", None]),
    }
)


@st.composite
def changelogs(draw: st.DrawFn, *, owners: bool = False, inserted: bool = False, most: int = 12) -> list[Mutation]:
    """Draw chains of changes of a few entries, in any order; some mutations occur twice.

    Times lie before, in and after the horizon, and many are equal.

    Args:
        draw: Hypothesis's source of choices.
        owners: Whether each entry has an owner.
        inserted: Whether the changelog holds every entry's insertion. Otherwise some entries exist before it begins.
        most: Largest number of mutations of an entry, without repetitions.
    """
    mutations: list[Mutation] = []
    for entry in range(draw(st.integers(0, 4))):
        owner = draw(st.sampled_from(["p", "q"])) if owners else None
        state = None if inserted else draw(STATES)
        times = sorted(draw(st.lists(st.integers(-15, 70), max_size=most)))
        for seq, time in enumerate(times):
            after = draw(STATES)
            mutation = Mutation(f"e{entry}", time, seq, state, after, owner)
            mutations += [mutation] * draw(st.sampled_from([1, 1, 1, 2]))
            state = after
    return draw(st.permutations(mutations))
