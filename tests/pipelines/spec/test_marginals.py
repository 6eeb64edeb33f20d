"""`{marginals: [...]}` in `publish:`: what is read, and what is refused with a reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.spec.load import Spec, load
from privacy.cells.choice import CellChoice
from privacy.problems import RuleError
from tests.e2e.specs import SPEC
from tests.pipelines.spec_text import changed
from transforms.common.errors import SpecError

KEYS = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: [1, 2]}")


def loaded(folder: Path, publish: str, *changes: tuple[str, str]) -> Spec:
    text = SPEC
    for old, new in (KEYS, ("publish: [level, change]", f"publish: {publish}"), *changes):
        text = changed(old, new, text)
    path = folder / "spec.yaml"
    path.write_text(text)
    return load(path)


def test_marginals_keep_their_order_and_each_has_a_sum_that_may_get_noise(tmp_path):
    (query,) = loaded(tmp_path, "[level, {marginals: [[], [ward]]}]").queries
    assert query.marginals == ((), ("ward",))
    assert [series.kind for series in query.publish] == ["level"]
    assert query.over == CellChoice(marginals=((), (1,)))
    assert query.together


@pytest.mark.slow
@pytest.mark.parametrize(
    ("publish", "changes", "message"),
    [
        ("[level, {marginals: [[town]]}]", [], r"marginals\[0\]\[0\]: not a key; the query has ward, age"),
        ("[level, {marginals: [[ward, ward]]}]", [], r"marginals\[0\]\[1\]: listed twice"),
        ("[level, {marginals: [[], [age, ward]]}]", [], r"marginals\[1\]: keeps all keys"),
        ("[level, {marginals: [[age], [], [age]]}]", [], r"marginals\[2\]: the same keys as \[0\]"),
        ("[level, {marginals: []}]", [], "marginals: expected at least 1"),
        ("[{marginals: [[]]}]", [], "needs numbers; list them next to it, as in .level, {marginals"),
        ("[level, {marginals: [[]]}, {marginals: [[age]]}]", [], "a second list of marginals"),
        ("[level, {marginals: [{by: [town], weight: 2}]}]", [], r"marginals\[0\]\.by\[0\]: not a key"),
        ("[level, {marginals: [{by: [], weight: 0}]}]", [], r"marginals\[0\]\.weight: expected a number above 0"),
        ("[level, {marginals: [{by: [age, ward], weight: 2}]}]", [], "the weight of the cells and no marginal"),
        ("[level, {marginals: [{weight: 2}]}]", [], r"marginals\[0\]\.by: missing"),
        (
            "[level, {marginals: [[]]}]",
            [
                ("age: [1, 2]", "age: {from: 0, to: 9, step: 3}, hour: {from: 0, to: 24, step: 6}"),
                ("measure: count", "measure: count\n    cells: {strategy: quadtree}"),
            ],
            r"cells\.strategy: a quadtree gives no noise to sums over other keys",
        ),
        ("[level, {marginals: [[]]}]", [("by: {ward: [a, b, other], age: [1, 2]}", "by: {}")], "the query has none"),
        (
            "[level, {marginals: [[]]}]",
            [("measure: count", "measure: count\n    cells: {strategy: each}")],
            "cells: marginals choose the sums that get noise",
        ),
        (
            "[level, {marginals: [[]]}]",
            [("ward: [a, b, other]", "ward: [a, all]")],
            "the text all for the sum over ward",
        ),
        (
            "[level, {marginals: [[]]}]",
            [("strategy: disjoint", "strategy: {adaptive: bd}")],
            "adaptive publishes levels alone",
        ),
        (
            "[level, {marginals: [[]]}]",
            [("measure: count", "measure: units"), ("epsilon: 1.0", "unit: age\n  epsilon: 1.0")],
            "publish: marginals: a unit counts once in each cell",
        ),
    ],
)
def test_impossible_marginals_are_refused_with_the_place_and_the_reason(tmp_path, publish, changes, message):
    with pytest.raises(SpecError, match=message):
        loaded(tmp_path, publish, *changes)


def test_a_value_all_is_allowed_for_a_key_that_every_marginal_keeps(tmp_path):
    (query,) = loaded(tmp_path, "[level, {marginals: [[ward]]}]", ("ward: [a, b, other]", "ward: [a, all]")).queries
    assert dict(query.by)["ward"] == ("a", "all")


def test_levels_with_weights_may_have_marginals(tmp_path):
    weights = "strategy: {direct: {weights: [1, 2]}}"
    (query,) = loaded(tmp_path, "[level, {marginals: [[]]}]", ("strategy: disjoint", weights)).queries
    assert query.strategy.weights == (1.0, 2.0)
    with pytest.raises(SpecError, match="weights are of levels by themselves"):
        loaded(tmp_path, "[level, change, {marginals: [[]]}]", ("strategy: disjoint", weights))


def test_units_with_one_entry_at_a_time_have_marginals(tmp_path):
    changes = (
        ("measure: count", "measure: units"),
        ("epsilon: 1.0", "unit: age\n  epsilon: 1.0"),
        ("4}", "4, entries: 1}"),
    )
    (query,) = loaded(tmp_path, "[level, {marginals: [[]]}]", *changes).queries
    assert query.marginals == ((),)


def test_weights_are_those_of_the_tables_and_the_cells_count_as_much_as_all_marginals(tmp_path):
    (query,) = loaded(tmp_path, "[level, {marginals: [[], {by: [ward], weight: 4}]}]").queries
    assert query.marginals == ((), ("ward",))
    assert query.over == CellChoice(marginals=((), (1,)), shares=(5.0, 1.0, 4.0))
    own = "[level, {marginals: [{by: [ward, age], weight: 0.5}, {by: [ward], weight: 4}]}]"
    (query,) = loaded(tmp_path, own).queries
    assert query.marginals == (("ward",),)
    assert query.over == CellChoice(marginals=((1,),), shares=(0.5, 4.0))


def test_listed_keys_come_first_in_a_query_with_marginals(tmp_path):
    changes = (("age: [1, 2]", "age: {from: 0, to: 9, step: 3}, place: {tree: {A: [a], B: [b]}}"),)
    (query,) = loaded(tmp_path, "[level, {marginals: [[age], [place]]}, {quantiles: [0.5]}]", *changes).queries
    assert [name for name, _ in query.by] == ["ward", "age", "place"]
    assert query.over == CellChoice(marginals=((1,), (2,)), workload="levels")
    assert [axis.listed for axis in query.demand.axes] == [True, False, False]
    with pytest.raises(RuleError, match="keys of listed values come first"):
        replace(query.demand, axes=query.demand.axes[::-1])
