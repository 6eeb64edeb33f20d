"""Grid steps of integers, which are projected once for each different one, equal those of the same floats."""

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.measure import Measure
from transforms.aggregation.grid_steps import grid_steps
from transforms.aggregation.queries import Query

NEAR = st.integers(-2, 3) | st.none()
FAR = st.integers(-(2**63), 2**63 - 1) | st.none()


@given(
    values=st.lists(NEAR, max_size=12) | st.lists(NEAR | FAR, max_size=8) | st.lists(FAR, max_size=3),
    invalid=st.sampled_from(["drop", "min", "max"]),
    cut=st.integers(0, 3),
)
@example([-1, 0, 1, 2, None], "drop", 0)
@example([None, 2**63 - 1, 2**63 - 2, 2**63 - 1], "drop", 0)
@example([None, -(2**63), -(2**63) + 1, 1 - 2**63], "drop", 1)
def test_integers_have_the_steps_of_equal_floats(values: list[int | None], invalid: str, cut: int) -> None:
    query = Query(name="x", measure=Measure(kind="sum", low=-1, high=2.5), column="x", invalid=invalid)
    column = pa.array(values, pa.int64())[cut:]

    found, counts = grid_steps(column, query)
    expected, expected_counts = grid_steps(column.cast(pa.float64(), safe=False), query)

    assert counts.tolist() == expected_counts.tolist()
    assert found[counts].tolist() == expected[counts].tolist()
