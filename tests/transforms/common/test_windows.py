"""Windows of unequal lengths: the window of a time, and the most windows that a span touches."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.accounting import Budget
from privacy.adaptive.fixed import Fixed
from privacy.constraint import AtMost, AtOnce, Within
from privacy.measure import Measure
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import spent
from privacy.protection import EVERYTHING, Span
from privacy.series import Series
from privacy.strategies.choice import Choice
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Timeline
from transforms.common.windows import Windows
from transforms.release.mismatch import refuse_mismatch

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=12)
DAYS = Windows(start=100, every=24, ends=(124, 147, 171, 195, 220))
"""Clocks go forward on the second day and back on the fifth."""


def of_lengths(lengths: list[int], every: int) -> Windows:
    return Windows(start=7, every=every, ends=tuple((7 + np.cumsum(lengths)).tolist()))


@given(st.integers(1, 9), st.integers(1, 12))
def test_windows_of_one_length_are_the_same_listed_or_not(every: int, count: int) -> None:
    plain, listed = Windows(start=7, every=every), of_lengths([every] * count, every)
    times = np.arange(0, 7 + every * count)

    for ask in (
        lambda w: w.of(times),
        lambda w: w.at(np.arange(count)),
        lambda w: w.closed(20) if every * count > 20 else 0,
    ):
        np.testing.assert_array_equal(ask(plain), ask(listed))
    for one, other in zip(plain.numbers(times[7:]), listed.numbers(times[7:]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (plain.slack, listed.slack) == (0, 0)


def test_a_time_lies_in_its_window_of_the_calendar() -> None:
    assert DAYS.of(np.array([99, 100, 146, 147, 219])).tolist() == [0, 1, 2, 3, 5]
    assert [DAYS.closed(moment) for moment in (0, 146, 147, 1000)] == [0, 1, 2, 5]
    assert [part.tolist() for part in DAYS.numbers(np.array([100, 148, 220, 99]))] == [
        [0, 2, 5, -1],
        [True, False, True, False],
    ]


@given(LENGTHS, st.integers(1, 9), st.integers(1, 40))
def test_a_span_holds_no_more_ends_of_windows_than_are_charged(lengths: list[int], every: int, span: int) -> None:
    """For every possible beginning of a span: the proof is in docs/proofs/strategies.md#calendars."""
    windows = of_lengths(lengths, every)
    bounds, slack = np.array([windows.start, *(windows.ends or ())]), windows.slack

    held = max(int(((bounds >= begin) & (bounds < begin + span)).sum()) for begin in range(-40, 120))
    met = max(len(np.unique(windows.of(np.arange(begin, begin + span + 1)))) for begin in range(7, int(bounds[-1])))

    assert held <= Span(span).boundaries(every, slack)
    assert met <= Within(span).touched(every, slack).appearing


def test_a_day_of_23_hours_lets_a_span_hold_one_more_end() -> None:
    bounds = np.array([DAYS.start, *(DAYS.ends or ())])
    held = max(int(((bounds >= begin) & (bounds < begin + 48)).sum()) for begin in range(100, 220))

    assert held == 3 == Span(48).boundaries(24, DAYS.slack)
    assert Span(48).boundaries(24) == 2, "without the slack that would not be charged"


EACH = AtOnce()
TWO_DAYS = Span(48)
BLOCKS = AtOnce(changes=2, block=72)
QUERY = Query(name="beds", measure=Measure(kind="count"), strategy=Choice(name="disjoint"))


def plan_of(
    slack: int, protects: Span | None = TWO_DAYS, constraint: AtOnce | AtMost | Within = EACH, query: Query = QUERY
) -> Plan:
    return make_plan(
        [query.demand],
        promise=Promise(
            constraint=constraint,
            window=24,
            windows=5,
            owner=False,
            protects=EVERYTHING if protects is None else protects,
            slack=slack,
        ),
        budget=Budget(epsilon=1.0),
        mechanism="laplace",
        accounting=None,
    )


@pytest.mark.parametrize(
    ("protects", "constraint"),
    [(TWO_DAYS, EACH), (TWO_DAYS, BLOCKS), (None, Within(48))],
    ids=["span", "blocks", "within"],
)
def test_shorter_windows_cost_more_and_a_plan_without_slack_is_refused(
    protects: Span | None, constraint: AtOnce | Within
) -> None:
    equal, slack = (plan_of(slack, protects, constraint) for slack in (0, 1))
    timeline = Timeline(start=DAYS.start, every=24, windows=5, ends=DAYS.ends)
    aggregation = Aggregation(queries=(QUERY,), timeline=timeline, constraint=constraint)

    more = slack.parts[0].sensitivity.l1 - equal.parts[0].sensitivity.l1
    assert more == (0 if constraint == BLOCKS else 2 if constraint == EACH else 1), "blocks are whole windows anyway"
    assert [spent(plan, 4).epsilon for plan in (equal, slack)] == pytest.approx([1, 1])
    assert plan_from_json(plan_to_json(slack)) == slack
    refuse_mismatch(slack, aggregation)
    with pytest.raises(ValueError, match="windows of equal lengths"):
        refuse_mismatch(equal, aggregation)
    twice = AtMost(2)  # for windows of any length
    refuse_mismatch(plan_of(0, None, twice), dataclasses.replace(aggregation, constraint=twice))


def test_entered_and_sampled_numbers_allow_for_shorter_windows() -> None:
    entered = dataclasses.replace(QUERY, publish=(Series(kind="entered"),))
    levels = (Series(kind="level"),)
    sampled = dataclasses.replace(QUERY, publish=levels, adaptive=Fixed(interval=1), strategy=Choice())

    charged = [plan_of(slack, None, Within(48), entered).parts[0].sensitivity.l1 for slack in (0, 1)]
    spans = [plan_of(slack, query=sampled).parts[0].rule.period.span for slack in (0, 1)]

    assert (charged, spans) == ([3, 4], [2, 3])


def test_a_block_as_long_as_the_span_is_refused_if_windows_can_be_shorter() -> None:
    with pytest.raises(ValueError, match="at least as long as the span"):
        plan_of(1, Span(48), AtOnce(changes=2, block=48))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Windows(start=5, every=1, ends=(5,)), "each window must end after"),
        (lambda: DAYS.end(6), "known for 5 windows, not for 6"),
        (lambda: Timeline(start=0, every=1, windows=2, ends=(4,)), "has 1 window, but windows=2"),
        (lambda: dataclasses.replace(DAYS, every=0), "every: expected a duration above zero"),
    ],
)
def test_invalid_windows_are_refused(make, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        make()
