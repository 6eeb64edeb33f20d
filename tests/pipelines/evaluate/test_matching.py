"""What `evaluate` warns of; one whole run of it on a spec that matches nothing, and one whose bound cuts."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipelines.evaluate.matching import matching, matching_text, warnings
from privacy.measure import Measure
from tests.e2e.specs import DAY, START, WINDOWS, CommandLine, Row, changelog, write, write_spec
from transforms.aggregation.matched import COUNTS
from transforms.aggregation.node_sums import MATCHED
from transforms.aggregation.queries import Query
from transforms.common.ipc import to_bytes

QUERY = Query(name="beds", measure=Measure(kind="count"), by=(("ok", (True, False)), ("ward", ("a", "b", "other"))))
HEALTHY = {
    "rows": 1000,
    "rows_before": 10,
    "rows_after": 0,
    "rows_matched": 600,
    "units": 500,
    "units_matched": 400,
    "changes": 800,
    "changes_cut": 8,
    "units_cut": 8,
}
CELLS = [100, 100, 100, 100, 100, 100]
NUMBER = {"kind": "level", "truth": 100.0, "bounding_rmse": 2.0, "relative_error": 0.1, "bias": 1.0, "bias_last": 2.0}


def evaluated(counts: dict[str, int], cells: list[int], number: dict[str, Any]) -> list[dict[str, Any]]:
    node = [*range(-len(COUNTS), 0), *range(len(cells))]
    table = pa.table({"node": node, "sum.0": [*({**HEALTHY, **counts}[name] for name in COUNTS), *cells]})
    (found,) = matching([QUERY], {(MATCHED, 0, "net", 0): [to_bytes(table)]})
    return [{"name": "beds", "matched": found, "numbers": [{**NUMBER, **number}]}]


NOTHING = {"rows_matched": 0, "units_matched": 0, "changes": 0, "changes_cut": 0, "units_cut": 0}
WARNED: list[tuple[dict[str, int], list[int], dict[str, Any], str]] = [
    (dict.fromkeys(COUNTS, 0), [0] * 6, {}, "query beds: the changelog has no mutations; see changelog.path"),
    (
        NOTHING,
        [0] * 6,
        {},
        "query beds: nothing matches: no entry is ever in the query. Check `where` and the values of",
    ),
    ({"units_matched": 4}, CELLS, {}, "query beds: almost nothing matches: 0.80% of the units; see `where` and `by`"),
    ({}, [5, 5, 190, 5, 5, 390], {}, "query beds: other has 97% of the rows of ward: the listed values match almost"),
    ({}, [0, 100, 100, 0, 100, 100], {}, "query beds: nothing is ever in ward = a, which is noise alone"),
    (
        {"rows_after": 600},
        CELLS,
        {},
        "query beds: 60% of the rows have times after the last closed window; see schedule.until and --until",
    ),
    (
        {"rows_before": 600},
        CELLS,
        {"kind": "entered"},
        "query beds: 60% of the rows have times before schedule.start, so they are in no number",
    ),
    (
        {"rows_before": 1000, "rows_after": 0},
        CELLS,
        {},
        "query beds: no row has a time in a closed window; see schedule.st",
    ),
    (
        {"units_cut": 100},
        CELLS,
        {"bounding_rmse": 30.0, "bias": 20.0, "bias_last": 55.0},
        "query beds, level: biased: the contribution bound cuts off changes of 25% of the units; before noise, the "
        "mean error is +20 and +55 in the last window",
    ),
    (
        {"units_cut": 100},
        CELLS,
        {"bounding_rmse": 30.0, "bias": 20.0, "bias_last": None},  # a mean of nothing there
        "query beds, level: biased: the contribution bound cuts off changes of 25% of the units; before noise, the "
        "mean error is +20",
    ),
    (
        {"units_cut": 0, "changes_cut": 0},
        CELLS,
        {"bounding_rmse": 30.0, "bias": -20.0, "bias_last": 0.0},
        "query beds, level: biased: changes that are undone within a window, late, held back or beyond `entries` do "
        "not count; before noise, the mean error is -20 and +0 in the last window",
    ),
    ({}, CELLS, {"relative_error": 0.6}, "query beds, level: mostly noise: the error is 60% of the size of the truth"),
]


@pytest.mark.parametrize(
    ("counts", "cells", "number", "warning"),
    WARNED,
    ids=[f"{place}: {case[-1][:50]}" for place, case in enumerate(WARNED)],
)
def test_plan_warns_of_settings_that_make_numbers_useless(counts, cells, number, warning):
    (found,) = warnings(evaluated(counts, cells, number))

    assert found.startswith(warning)
    assert [*warnings(evaluated({}, CELLS, {}))] == []
    assert [*warnings(evaluated({"rows_before": 600}, CELLS, {}))] == []  # levels count such rows


def test_rows_are_listed_by_each_value_of_each_key():
    (query,) = evaluated({}, [10, 20, 30, 40, 50, 450], {})

    by = {key: [one["rows"] for one in values] for key, values in query["matched"]["cells"].items()}
    assert by == {"ok": [60, 540], "ward": [50, 70, 480]}
    assert "  ward: b 11.7%, a 8.3%, other 80.0%" in matching_text([query])


def by_entry(rows: Sequence[Row]) -> dict[str, int]:
    """How often the ward of each stay changes, being there at the start counted too; unlisted wards are one."""
    seen: dict[str, list[str | None]] = {}
    for row in rows:
        before, after = (row[f"{side}_ward"] for side in ("before", "after"))
        seen.setdefault(row["stay"], [None, *([before] if before else [])]).append(after)
    cells = {stay: [w if w in (None, "a", "b") else "other" for w in wards] for stay, wards in seen.items()}
    return {stay: sum(one != two for one, two in pairwise(wards)) for stay, wards in cells.items()}


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write(tmp_path / "data/all.parquet", changelog())
    return CommandLine(tmp_path, capsys)


@pytest.mark.slow
def test_an_evaluation_without_matching_rows_reports_it(slackwater: CommandLine) -> None:
    """Such an evaluation once looked as good as any other."""
    write_spec(slackwater.folder, ("age >= 0", "age >= 1000000"))

    said = slackwater("evaluate", "spec.yaml", "--runs=1")

    assert said.code == 0
    assert "warning: query beds: nothing matches: no entry is ever in the query." in said.out


@pytest.mark.slow
def test_an_evaluation_reports_the_loss_by_the_bound_and_its_effect_on_the_last_level(
    slackwater: CommandLine,
) -> None:
    """With one change nobody who came moves or leaves any more."""
    write_spec(slackwater.folder, ("at_most: 4", "at_most: 1"))

    told = json.loads(slackwater("evaluate", "spec.yaml", "--runs=1", "--json").out)

    (query,) = told["queries"]
    changes = by_entry([row for row in changelog() if row["at"] < START + WINDOWS * DAY])
    matched, (level, _) = query["matched"], query["numbers"]
    assert (matched["units"], matched["units_matched"]) == (40, 40)
    assert matched["units_cut"] == sum(count > 1 for count in changes.values())
    assert matched["changes"] == sum(changes.values())
    assert matched["share_of_units_cut"] == matched["units_cut"] / 40
    assert matched["rows"] == len(changelog())
    assert level["bias_last"] > level["bias"] > 0  # who left is counted as there, ever more of them
    assert level["relative_error"] == pytest.approx(level["rmse_total"] / level["truth"])
    assert np.sign(level["bounding_rmse"]) == 1
    assert any("level: biased: the contribution bound cuts off changes of" in warning for warning in told["warnings"])
