"""The spec's hash depends on what it says, not on how it is written."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.document import read_document
from tests.pipelines.spec_text import GOOD, changed, loaded
from tests.searches import examples

FULL = """\
release: wards
changelog:
  format: csv
  path: [a/*.csv, b/*.csv]
  entry: stay
  time: at
  before: before_
  after: after_
  order: [lsn, seq]
  timezone: Europe/Paris
  types: {ward: string, waited: float64}
  bad_rows: 0.25
privacy:
  unit: entry
  epsilon: 1.5
  delta: 1.0e-9
  constraint: {by: fare, classes: {day: {at_most: 2}, month: {within: 31d}}}
  mechanism: gaussian
  accounting: rdp
  split: weights
  states: {none: [a], a: [b, none], b: [none]}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-02-01T00:00:00Z}
queries:
  - name: beds
    measure: {variance: waited, min: 0, max: 240, invalid: max}
    where: "ward <> 'x'"
    by: {ward: [a, b, other], sex: [1, 2]}
    publish: [level, change]
    weight: 2
  - name: stays
    measure: {sum: nights, min: 0, max: 30}
    publish: [entered, {sliding: 1w, every: 2d}]
    consistent: false
    strategy: {factorised: leaky}
strategy: {tree: {branching: 16, height: 3, refine: bottom_up}}
output: {public: out/public, private: out/private, format: jsonl, bigquery: {estimates: house-1.wards.beds}}
"""

CHANGES = [
    ("release: wards", "release: wards2"),
    ("format: csv", "format: jsonl"),
    ("[a/*.csv, b/*.csv]", "[b/*.csv, a/*.csv]"),
    ("entry: stay", "entry: stay_id"),
    ("time: at", "time: when"),
    ("before: before_", "before: old_"),
    ("after: after_", "after: new_"),
    ("[lsn, seq]", "[seq, lsn]"),
    ("Europe/Paris", "Europe/Rome"),
    ("ward: string", "ward: int64"),
    ("bad_rows: 0.25", "nulls: ''"),
    ("epsilon: 1.5", "epsilon: 1.6"),
    ("delta: 1.0e-9", "delta: 1.0e-8"),
    ("by: fare", "by: fee"),
    ("at_most: 2", "at_most: 3"),
    ("within: 31d", "within: 30d"),
    ("{day:", "{days:"),
    ("mechanism: gaussian", "mechanism: auto"),
    ("accounting: rdp", "accounting: pld"),
    ("split: weights", "adaptive_data: true"),
    ("b: [none]", "b: [a]"),
    ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    ("every: 1d", "every: 12h"),
    ("2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"),
    ("name: beds", "name: bed"),
    ("variance: waited", "mean: waited"),
    ("variance: waited", "variance: waiting"),
    ("min: 0, max: 240", "min: 1, max: 240"),
    ("max: 240", "max: 241"),
    ("invalid: max", "invalid: min"),
    ("ward <> 'x'", "ward <> 'y'"),
    ("[a, b, other]", "[b, a, other]"),
    ("[1, 2]", "['1', '2']"),
    ("sex:", "gender:"),
    ("[level, change]", "[change, level]"),
    ("weight: 2", "weight: 3"),
    ("sliding: 1w", "sliding: 8d"),
    ("every: 2d", "every: 3d"),
    ("{sliding: 1w, every: 2d}", "left"),
    ("consistent: false", "consistent: true"),
    ("factorised: leaky", "factorised: arma"),
    ("    strategy: {factorised: leaky}\n", ""),
    ("branching: 16", "branching: 8"),
    ("height: 3", "height: 4"),
    ("bottom_up", "none"),
    ("strategy: {tree: {branching: 16, height: 3, refine: bottom_up}}", "strategy: auto"),
    ("public: out/public", "public: out/open"),
    ("private: out/private", "private: out/closed"),
    ("format: jsonl", "format: parquet"),
]


@pytest.mark.slow
@pytest.mark.few(20)
@pytest.mark.parametrize(("old", "new"), CHANGES, ids=[f"{old} -> {new}" for old, new in CHANGES])
def test_a_changed_field_changes_the_hash(tmp_path: Path, old: str, new: str) -> None:
    before = loaded(tmp_path, FULL)
    after = loaded(tmp_path, changed(old, new, FULL))

    assert before.sha256 != after.sha256


def test_the_hash_of_a_spec_stays_the_same_in_later_versions(tmp_path: Path) -> None:
    """A key that a later version adds must not count unless it is given."""
    assert loaded(tmp_path, FULL).sha256 == "e9ac9568af8d064722b9310605a8a854873583ec5205602f09576f8046e24bb6"


def test_split_and_expected_change_the_hash(tmp_path: Path) -> None:
    text = changed("    weight: 1\n", "    expected: 100\n")
    text = changed("{mean: waited, min: 0, max: 240}", "count\n    expected: 10", text)
    split = changed("delta: 0", "split: relative_error", text)

    texts = [GOOD, split, changed("expected: 100", "expected: 200", split)]

    assert len({loaded(tmp_path, text).sha256 for text in texts}) == 3


def test_unit_and_its_number_of_entries_change_the_hash(tmp_path: Path) -> None:
    owned = changed("unit: entry", "unit: p")
    texts = [GOOD, owned, *(changed("{at_most: 4}", f"{{at_most: 4, entries: {n}}}", owned) for n in (1, 2))]

    assert len({loaded(tmp_path, text).sha256 for text in texts}) == 4


@given(seed=st.integers(0, 2**32))
@examples(8)
def test_order_of_keys_and_comments_change_nothing(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("spec")
    first = loaded(folder, FULL)
    shuffled = _shuffled(read_document(folder / "spec.yaml").content, random.Random(seed))

    second = loaded(folder, f"# JSON is YAML, too\n{json.dumps(shuffled, indent=1)}")

    assert first == second


def test_equivalent_specs_have_the_same_hash(tmp_path: Path) -> None:
    same = changed("epsilon: 1.0", "epsilon: 1  # a whole number")
    same = changed("  delta: 0\n", "", same)
    same = changed("path: data/*.parquet", "path: ['data/*.parquet']", same)
    same = changed("every: 1d", "every: 24h", same)
    same = changed("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", same)
    same = changed("strategy: auto\n", "", same)
    same = changed("weight: 1", "consistent: false", same)

    assert loaded(tmp_path, same).sha256 == loaded(tmp_path, GOOD).sha256


def test_settings_that_stop_a_run_are_not_frozen(tmp_path: Path) -> None:
    """Otherwise a table that really lost half of its rows would end its release."""
    snapshots = changed("  time: at\n", "", changed("format: parquet", "format: snapshots"))
    snapshots = changed("data/*.parquet", "data/%Y-%m-%d.parquet", snapshots)
    texts = [
        [FULL, changed("bad_rows: 0.25", "bad_rows: 0", FULL)],
        [snapshots, changed("  entry:", "  shrink: 0.9\n  entry:", snapshots)],
        [snapshots, changed("  entry:", "  every: 1d\n  entry:", snapshots)],
    ]

    same = [len({loaded(tmp_path, text).sha256 for text in pair}) == 1 for pair in texts]

    assert same == [True, True, False]


def test_a_tree_without_settings_and_a_week_in_days_are_the_same(tmp_path: Path) -> None:
    first = changed("[level, change]", "{sliding: 1w}", changed("strategy: auto", "strategy: tree"))
    second = changed("[level, change]", "[{sliding: 168h}]", changed("strategy: auto", "strategy: {tree: {}}"))

    assert loaded(tmp_path, first).sha256 == loaded(tmp_path, second).sha256


def _shuffled(value: Any, order: random.Random) -> Any:
    """A plain copy with the keys of every mapping in another order; lists stay as they are."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: _shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [_shuffled(item, order) for item in value]
    return value


def test_a_span_makes_another_release_and_everything_is_the_default_protection(tmp_path: Path) -> None:
    def hashed(privacy: str) -> str:
        return loaded(tmp_path, changed("constraint: {at_most: 4}", privacy, GOOD)).sha256

    everything = hashed("constraint: {at_most: 4}")

    assert hashed("constraint: {at_most: 4}\n  protects: everything") == everything
    assert len({everything, hashed("protects: {span: 7d}"), hashed("protects: {span: 14d}")}) == 3
    assert hashed("protects: {span: 14d}") == hashed("protects: {span: 2w}")
