"""Rules of specs whose keys are found, with file, line and key."""

import re

import pytest

from privacy.discovery.rules import ANY
from tests.pipelines.spec_text import GOOD, changed, loaded, problems
from transforms.aggregation.discovered_key import DiscoveredKey

FINDS = changed("by: {ward: [a, b, other]}", "by: {ward: {discover: true}}", changed("[level, change]", "[level]"))
FINDS = changed("delta: 0\n", "delta: 1.0e-9\n", FINDS)


def test_a_key_may_be_found(tmp_path) -> None:
    spec = loaded(tmp_path, FINDS)

    assert spec.queries[0].by == (("ward", DiscoveredKey()),)
    assert spec.queries[0].found_by == "ward"
    assert spec.queries[0].demand.discover
    assert spec.sha256 != loaded(tmp_path, GOOD).sha256


def test_a_key_may_be_found_next_to_listed_keys_and_ranges(tmp_path) -> None:
    by = "{ward: {discover: true}, care: [in, out], age: {from: 0, to: 90, step: 30}}"
    query = loaded(tmp_path, changed("{ward: {discover: true}}", by, FINDS)).queries[0]

    assert [name for name, _ in query.by] == ["age", "care", "ward"]
    assert query.found_by == "ward"
    assert query.each == query.demand.cells // ANY == 2 * len(query.ordered[0][1])
    assert query.demand.axes == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("delta: 1.0e-9", "delta: 0", "privacy.delta: missing; a key that only one unit has"),
        ("  until: 2026-02-01T00:00:00Z\n", "", "schedule.until: missing; keys are found in a release with an end"),
        ("publish: [level]", "publish: [change]", r"queries\[0\].publish: keys are found by levels"),
        (
            "publish: [level]",
            "publish: [level, {marginals: [[]]}]",
            r"queries\[0\].publish: sums over cells need listed",
        ),
        (
            "measure: count",
            "measure: {sum: n, min: -1, max: 9}",
            r"queries\[0\].measure: keys are found by sums of val",
        ),
        ("weight: 1", "consistent: true", r"queries\[0\].consistent: found keys are published as they are"),
        ("weight: 1", "strategy: sliding", r"queries\[0\].strategy: keys are found with one of auto, disjoint, tree"),
        ("strategy: auto", "strategy: {adaptive: ba}", r"17: .*|strategy: keys are found with one of auto, disjoint"),
        ("{discover: true}", "{discover: false}", r"queries\[0\].by.ward.discover: expected true"),
        ("{discover: true}", "{discover: true, min: 3}", r"queries\[0\].by.ward.min: unknown key"),
        ("{ward: {discover: true}}", "{ward: {discover: true}, ok: {discover: true}}", r"by.ok: a second key that is"),
        ("{ward: {discover: true}}", "{ward: {discover: true}, ok: {tree: {A: [1]}}}", r"\[0\].by: a tree does not go"),
        ("publish: [level]", "publish: [level, {ranges: [{ward: {from: 1}}]}]", r"\[0\].publish: sums over cells need"),
        (
            "{ward: {discover: true}}",
            "{ward: {discover: true}, n: {from: 0, to: 2000, step: 1}}",
            r"queries\[0\].by: 2,002 cells of each found key; at most 1,000",
        ),
        ("{ward: {discover: true}}", "{stay: {discover: true}}", r"queries\[0\].by.stay: identifies an entry, so only"),
        ("unit: entry", "unit: ward", r"queries\[0\].by.ward: identifies the privacy unit, so only one unit has each"),
        ("{ward: {discover: true}}", "{ward: {discover: true}, stay: [a]}", r"by.stay: identifies an entry, so only"),
        ("unit: entry", "unit: entry\n  protects: {span: 2d}", "privacy.constraint.at_most: keys cannot be found"),
    ],
)
def test_a_release_that_cannot_find_keys_is_refused_with_what_to_do(tmp_path, old, new, message) -> None:
    found = problems(tmp_path, changed(old, new, FINDS))

    assert any(re.search(message, line) for line in found), found
    assert all(re.match(r".*spec.yaml:\d+: ", line) for line in found)
