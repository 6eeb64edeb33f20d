"""Copies of specs for audits: columns that identify entries or owners and that queries read too."""

from random import Random

import numpy as np
import pytest

from pipelines.audit.lives import neighbours
from pipelines.audit.prepared import prepared
from pipelines.audit.whole_bounds import whole_bounds
from pipelines.spec.load import load

SPEC = """\
release: own
changelog: {changelog}
privacy: {{unit: {unit}, epsilon: 1.0, constraint: {{at_most: 4}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-07T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{{key}: [a, b, other]}}, where: "{key} <> 'c'", publish: [level]}}
output: {{public: out/public, private: out/private}}
"""


@pytest.mark.parametrize(
    ("changelog", "unit", "key"),
    [
        ("{format: csv, path: data/*.csv, entry: id, time: at}", "nurse", "nurse"),
        ("{format: csv, path: data/*.csv, entry: id, time: at}", "entry", "id"),
        ("{format: jsonl, path: data/*, entry: id, time: at, before: before, after: after}", "nurse", "nurse"),
        ("{format: parquet, path: data/*, entry: id, time: at}", "nurse", "id"),
        ("{format: debezium, path: data/*, entry: id}", "nurse", "nurse"),
    ],
)
def test_a_unit_is_in_every_cell_if_a_query_reads_the_column_that_identifies_it(tmp_path, changelog, unit, key):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(changelog=changelog, unit=unit, key=key), encoding="utf-8")
    ready = prepared(load(path), tmp_path / "audited", Random(3))
    keys = ready.stages.keys
    moved = np.zeros(3, dtype=bool)

    for _, life in whole_bounds(ready.setting):
        one, two = (ready.stages.release(side) for side in neighbours(life, ready.setting))
        for node in keys:
            moved |= (one.leaves(node) != two.leaves(node)).reshape(-1, 3).any(axis=0)
        if moved.all():
            break

    assert moved.all()
    assert ready.spec.queries[0].listed[0][0] == key
    assert key not in (ready.spec.changelog.source.entry, ready.spec.privacy.owner)
