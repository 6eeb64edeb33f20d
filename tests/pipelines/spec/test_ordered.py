"""Ordered keys in a spec: what they become, and what is refused."""

from pathlib import Path

import pytest

from privacy.cells.space import Axis
from tests.pipelines.spec_text import changed, loaded, problems
from transforms.aggregation.ordered_key import OrderedKey

DAY = 86_400_000_000
WARDS = "{ward: [a, b, other]}"


def by(keys: str) -> str:
    return changed(WARDS, keys)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("{from: 0, to: 100, step: 5}", OrderedKey(start=0, step=5, steps=20)),
        ("{from: -0.5, to: 1, step: 0.25}", OrderedKey(start=-50, step=25, steps=6, digits=2)),
        ("{from: 0, to: 1, step: 0.1}", OrderedKey(start=0, step=1, steps=10, digits=1)),
        ("{from: 0, to: 1.0e3, step: 1.0e-3}", OrderedKey(start=0, step=1, steps=10**6, digits=3)),
        (
            "{from: 1970-01-01T01:00:00+01:00, to: 1970-01-15T00:00:00Z, step: 1w}",
            OrderedKey(start=0, step=7 * DAY, steps=2, moments=True),
        ),
    ],
)
def test_an_ordered_key_is_exact(tmp_path: Path, key: str, expected: OrderedKey) -> None:
    query = loaded(tmp_path, by(f"{{age: {key}}}")).queries[0]

    assert query.by == (("age", expected),)
    assert query.cells == expected.steps + 2


def test_ordered_and_listed_keys_combine_and_the_plan_distinguishes_them(tmp_path: Path) -> None:
    query = loaded(tmp_path, by("{ward: [a, b], age: {from: 0, to: 100, step: 5}}")).queries[0]

    assert query.axes == query.demand.axes == (Axis(cells=22, ordered=True), Axis(cells=2))
    assert loaded(tmp_path, by("{ward: [a, b]}")).queries[0].demand.axes == ()


def test_one_number_written_in_two_ways_is_one_spec(tmp_path: Path) -> None:
    keys = ("{from: 0, to: 100, step: 5}", "{from: 0.0, to: 1.0e2, step: 5.0}", "{from: 0, to: 100, step: 10}")

    first, same, other = (loaded(tmp_path, by(f"{{age: {key}}}")).sha256 for key in keys)

    assert first == same != other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("{from: 0, to: 100, step: 7}", "to: steps of 7 from 0 do not end there; use 98 or 105"),
        ("{from: 0, to: 1, step: 0.3}", "to: steps of 0.3 from 0.0 do not end there; use 0.9 or 1.2"),
        (
            "{from: 2026-01-01T00:00:00Z, to: 2026-01-02T00:00:00Z, step: 7h}",
            "to: steps of 7h from 2026-01-01T00:00:00Z do not end there; use 2026-01-01T21:00:00Z or 2026-01-02T04:00",
        ),
        ("{from: 100, to: 0, step: 5}", "to: must be above from, 100"),
        ("{from: 5, to: 5, step: 5}", "to: must be above from, 5"),
        ("{from: 0, to: 100, step: 0}", "step: expected a number above zero"),
        ("{from: 0, to: 100, step: -5}", "step: expected a number above zero"),
        ("{from: 0, to: 100}", "step: missing; add step: 5, the length of each range"),
        ("{from: 0, to: 100, step: 5, stp: 5}", "stp: unknown key; did you mean 'step'?"),
        ("{from: .nan, to: 100, step: 5}", "from: expected a finite number"),
        ("{from: 0, to: .inf, step: 5}", "to: expected a finite number"),
        ("{from: true, to: 100, step: 5}", "from: expected a number, or a time such as"),
        ("{from: 0, to: 1.0e15, step: 5}", "to: a number below 10^15"),
        ("{from: 0, to: 1, step: 1.0e-16}", "step: a number below 10^15, of at most 15 digits"),
        ("{from: 0, to: 10, step: 1.0e-15}", "step: the edges have too many digits"),
        ("{from: 0, to: 2026-01-01T00:00:00Z, step: 1d}", "to: from and to must both be numbers, or"),
        ("{from: 0, to: 10, step: 1d}", "step: expected a number, as from and to are"),
        ("{from: 2026-01-01T00:00:00Z, to: 2026-01-02T00:00:00Z, step: 5}", "step: expected a duration such as 1d"),
        ("{from: 2026-01-01, to: 2026-01-02T00:00:00Z, step: 1h}", "from: the time has no zone; write 2026-01-01T00"),
        ("{from: youth, to: age, step: 1}", "from: expected a number or a time: expected a time such as"),
    ],
)
def test_a_wrong_key_is_one_line_with_its_place(tmp_path: Path, key: str, error: str) -> None:
    found = problems(tmp_path, by(f"{{age: {key}}}"))

    assert found[0].startswith(f"spec.yaml:20: queries[0].by.age.{error}"), found


def test_too_many_cells_or_ordered_keys_are_refused(tmp_path: Path) -> None:
    one = "{from: 0, to: 10000, step: 1}"

    many = problems(tmp_path, by(f"{{x: {one}, y: {one}}}"))
    three = problems(
        tmp_path, by("{x: {from: 0, to: 1, step: 1}, y: {from: 0, to: 1, step: 1}, z: {from: 0, to: 1, step: 1}}")
    )

    assert many == ["spec.yaml:20: queries[0].by: 100,040,004 cells; take larger steps, below 10,000,000 in all"]
    assert three == ["spec.yaml:20: queries[0].by.z: 3 keys with an order; at most 2, list cells of the others"]


def test_a_column_is_a_number_in_all_queries_or_a_time(tmp_path: Path) -> None:
    found = problems(tmp_path, by("{waited: {from: 2026-01-01T00:00:00Z, to: 2026-01-02T00:00:00Z, step: 1h}}"))

    assert found == [
        "spec.yaml:20: queries[0].by.waited: ranges of times, but the column holds numbers elsewhere; use one kind",
    ]


AGES = "{ward: [a, b], age: {from: 0, to: 100, step: 5}}"


def test_quantiles_combine_with_levels_and_sliding_sums(tmp_path: Path) -> None:
    query = loaded(
        tmp_path, changed("[level, change]", "[level, {quantiles: [0.25, 0.5]}, {sliding: 7d}]", by(AGES))
    ).queries[0]

    assert [series.kind for series in query.publish] == ["level", "sliding"]
    assert query.quantiles == (0.25, 0.5)
    assert query.together


@pytest.mark.parametrize(
    ("keys", "publish", "error"),
    [
        (AGES, "[{quantiles: [0.5]}]", "publish[0]: needs numbers; list them next to it"),
        (AGES, "[level, {quantiles: [0.5, 1]}]", "publish[1].quantiles[1]: expected a number below 1"),
        (AGES, "[level, {quantiles: [0.5, 0.5]}]", "publish[1].quantiles[1]: 0.5 is listed twice"),
        (AGES, "[level, {quantiles: []}]", "publish[1].quantiles: expected at least 1"),
        (AGES, "[level, {quantiles: 0.5}, {quantiles: 0.9}]", "publish[2]: a second list of quantiles"),
        (WARDS, "[level, {quantiles: [0.5]}]", "publish: quantiles are along one key with ranges of numbers"),
        (
            "{at: {from: 2026-01-01T00:00:00Z, to: 2026-02-01T00:00:00Z, step: 1d}}",
            "[level, {quantiles: [0.5]}]",
            "publish: quantiles are along one key with ranges of numbers",
        ),
        (
            "{age: {from: 0, to: 100, step: 0.001}}",
            "[level, {quantiles: [0.5]}]",
            "publish: quantiles are along 10,000 cells at most; take larger steps",
        ),
        (
            "{quantile: {from: 0, to: 100, step: 5}}",
            "[level, {quantiles: [0.5]}]",
            "by.quantile: the published files have a column quantile, for quantiles; rename it",
        ),
    ],
)
def test_quantiles_that_cannot_be_are_refused(tmp_path: Path, keys: str, publish: str, error: str) -> None:
    found = problems(tmp_path, changed("[level, change]", publish, by(keys)))

    assert len(found) == 1
    assert f"queries[0].{error}" in found[0]


def test_ranges_are_cells_from_edge_to_edge_of_each_ordered_key(tmp_path: Path) -> None:
    moments = "{from: 2026-01-01T00:00:00Z, to: 2026-02-01T00:00:00Z, step: 1d}"
    keys = f"{{ward: [a, b], age: {{from: 0, to: 100, step: 5}}, at: {moments}}}"
    first = "{age: {from: 20, to: 65}}, {age: {to: 20.0}, at: {from: 2026-01-08T01:00:00+01:00}}"
    query = loaded(tmp_path, changed("[level, change]", f"[level, {{ranges: [{first}]}}, change]", by(keys))).queries[0]

    assert [series.kind for series in query.publish] == ["level", "change"]
    assert query.ranges == (((5, 14), (0, 33)), ((0, 5), (8, 33)))
    assert query.together


@pytest.mark.parametrize(
    ("publish", "error"),
    [
        ("[{ranges: [{age: {from: 20}}]}]", "publish[0]: needs numbers; list them next to it"),
        ("[level, {ranges: []}]", "publish[1].ranges: expected at least 1"),
        ("[level, {ranges: [{}]}]", "publish[1].ranges[0]: expected at least 1"),
        ("[level, {ranges: [{age: {}}]}]", "publish[1].ranges[0].age: holds all cells; give from or to"),
        ("[level, {ranges: [{age: {from: 20}}]}, {ranges: [{age: {to: 20}}]}]", "publish[2]: a second list of ranges"),
        (
            "[level, {ranges: [{age: {from: 18}}]}]",
            "publish[1].ranges[0].age.from: not an edge of the cells; use 15 or 20",
        ),
        ("[level, {ranges: [{age: {to: 105}}]}]", "publish[1].ranges[0].age.to: not an edge of the cells; use 100"),
        ("[level, {ranges: [{age: {from: -7}}]}]", "publish[1].ranges[0].age.from: not an edge of the cells; use 0"),
        ("[level, {ranges: [{age: {from: 20, to: 20}}]}]", "publish[1].ranges[0].age.to: must be above from"),
        (
            "[level, {ranges: [{age: {from: 2026-01-01T00:00:00Z}}]}]",
            "publish[1].ranges[0].age.from: expected a number, as",
        ),
        (
            "[level, {ranges: [{ward: {from: 20}}]}]",
            "publish[1].ranges[0].ward: not a key with an order; the query has age",
        ),
        (
            "[level, {ranges: [{age: {from: 20}}, {age: {to: 20}}, {age: {from: 2.0e1}}]}]",
            "publish[1].ranges[2]: the same cells as ranges[0]; list them once",
        ),
        (
            "[level, {ranges: [{age: {from: 20}}]}]\n    consistent: true",
            "publish[1]: ranges are sums of cells as they are",
        ),
    ],
)
def test_ranges_that_cannot_be_are_refused(tmp_path: Path, publish: str, error: str) -> None:
    found = problems(tmp_path, changed("[level, change]", publish, by(AGES)))

    assert len(found) == 1
    assert f"queries[0].{error}" in found[0]


def test_ranges_are_of_keys_with_an_order(tmp_path: Path) -> None:
    found = problems(tmp_path, changed("[level, change]", "[level, {ranges: [{ward: {from: 20}}]}]"))

    assert found == [
        "spec.yaml:21: queries[0].publish[1]: ranges are of keys whose cells have an order, as {from: 0, to: 100, "
        "step: 5} under by"
    ]
