"""Rules of specs whose keys are found, with file, line and key."""

import re

import pytest

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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("delta: 1.0e-9", "delta: 0", "privacy.delta: missing; a key that only one unit has"),
        ("  until: 2026-02-01T00:00:00Z\n", "", "schedule.until: missing; keys are found in a release with an end"),
        ("publish: [level]", "publish: [level, left]", r"queries\[0\].publish: keys are found by levels"),
        ("publish: [level]", "publish: [change]", r"queries\[0\].publish: keys are found by levels"),
        ("publish: [level]", "publish: [level, {marginals: [[]]}]", r"queries\[0\].publish: keys are found by levels"),
        ("measure: count", "measure: {sum: n, min: 0, max: 9}", r"queries\[0\].measure: keys are found by counts"),
        ("weight: 1", "consistent: true", r"queries\[0\].consistent: found keys are published as they are"),
        ("weight: 1", "strategy: sliding", r"queries\[0\].strategy: keys are found with one of auto, disjoint, tree"),
        ("strategy: auto", "strategy: {adaptive: ba}", r"17: .*|strategy: keys are found with one of auto, disjoint"),
        ("{discover: true}", "{discover: false}", r"queries\[0\].by.ward.discover: expected true"),
        ("{discover: true}", "{discover: true, min: 3}", r"queries\[0\].by.ward.min: unknown key"),
        ("{ward: {discover: true}}", "{ward: {discover: true}, ok: [1]}", r"queries\[0\].by: a key that is found is"),
        ("unit: entry", "unit: entry\n  protects: {span: 2d}", "privacy.constraint.at_most: keys cannot be found"),
    ],
)
def test_a_release_that_cannot_find_keys_is_refused_with_what_to_do(tmp_path, old, new, message) -> None:
    found = problems(tmp_path, changed(old, new, FINDS))

    assert any(re.search(message, line) for line in found), found
    assert all(re.match(r".*spec.yaml:\d+: ", line) for line in found)
