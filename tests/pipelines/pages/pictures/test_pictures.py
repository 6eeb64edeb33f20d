"""Data behind the charts of each kind: cells of the page, errors of sums over boxes, and main messages."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.pages.charts import chart_document
from pipelines.pages.numbers import Numbers
from pipelines.pages.outline import outline_of
from pipelines.pages.pictures.base import Picture, nothing_more
from pipelines.pages.pictures.grid import rounded_sums
from pipelines.pages.pictures.message import message
from pipelines.pages.pictures.table import PICTURES
from privacy.adaptive.bd import Bd
from privacy.cells.choice import CellChoice
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.protection import Span
from tests.pipelines.pages.all_kinds import (
    COUNT,
    LEVEL,
    STORM,
    WEEKS,
    WINDOWS,
    ages,
    documents,
    half_width,
    numbers_of_truth,
    plan_of,
    stops,
    write_outline,
)
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError


@pytest.fixture(scope="module")
def drawn() -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in documents()}


def answered(query: Query, plan: Plan, window: int, box: list[tuple[int, int]], *, every: bool = False) -> float:
    """Return the half width that `slackwater answer` states for a box, at the first or all listed values."""
    sides = dict(zip([name for name, _ in query.ordered], box, strict=True))
    chosen = np.zeros([len(key) for _, key in query.by])
    chosen[tuple(slice(*sides.get(name, (0, None if every else 1))) for name, _ in query.by)] = 1
    part = plan.of_series(0, query.publish[0])
    half = part.sum_errors(query.publish[0], chosen.ravel(), np.array([window]), None, [])[1][0]
    return float(half * plan.demands[0].measure.components[0].grid)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "most"),
    [
        (stops(), 1.0),
        (stops(CellChoice(name="tree", branching=2, workload="ranges")), 1.15),
        (stops(CellChoice(name="tree", branching=2, workload="ranges"), gaussian=True), 1.0),
        (stops(CellChoice(name="quadtree", workload="ranges"), gaussian=True), 1.0),
        (stops(CellChoice(name="quadtree", workload="ranges")), 1.15),
        (ages(), 1.15),
    ],
    ids=["own noise", "trees", "gaussian trees", "gaussian quadtree", "quadtree", "one key"],
)
def test_the_page_has_the_interval_of_any_box_that_answer_states(asked, most) -> None:
    """Never a narrower one; a wider one only for Laplace noise with different weights."""
    query, plan, truth = asked
    document = chart_document(query, [numbers_of_truth(query, plan, truth)], plan, times=WEEKS, queries=1)
    boxes = (
        [[(0, 22)], [(3, 4)], [(2, 15)]]
        if len(query.ordered) == 1
        else [[(0, 14), (0, 11)], [(3, 9), (2, 3)], [(6, 8), (1, 10)]]
    )

    for window, box, every in product((0, WINDOWS - 1), boxes, (False, True)):
        if every and not document["picture"]["summed"]:
            continue
        found, exact = half_width(document, window, box, every=every), answered(query, plan, window, box, every=every)
        wider = 1.0 if len(query.ordered) == 1 and window else most  # exact for the last windows
        assert exact * (1 - 1e-9) <= found <= exact * wider * (1 + 1e-5), (window, box, every)


@pytest.mark.parametrize("over", [CellChoice(), CellChoice(name="tree", branching=2, workload="ranges")])
def test_a_map_states_sums_over_the_listed_values_and_of_all_cells_and_of_those_beyond_its_edges(over) -> None:
    x, y = OrderedKey(start=0, step=1, steps=3), OrderedKey(start=0, step=1, steps=2)
    query = Query(name="map", measure=COUNT, by=(("x", x), ("kind", ("a", "b")), ("y", y)), publish=(LEVEL,), over=over)
    plan, value = plan_of(query), np.arange(80.0).reshape(2, 40)
    numbers = Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=None)

    document = chart_document(query, [numbers], plan, times=WEEKS, queries=1)
    (series,), picture = document["series"], document["picture"]

    def holds(line: dict[str, Any], chosen: np.ndarray, wider: float) -> bool:
        half = plan.of_series(0, LEVEL).sum_errors(LEVEL, chosen.ravel(), np.array([1]), None, [])[1][0]
        half *= plan.demands[0].measure.components[0].grid
        near = abs(line["v"][1] - value[1] @ chosen.ravel()) <= 1
        return bool(near and half * (1 - 1e-9) <= (line["hi"][1] - line["lo"][1]) / 2 <= half * wider)

    assert picture["choices"] == [["all"], ["a"], ["b"]]
    assert (picture["summed"], picture["choice"]) == (True, 0)
    for place, values in enumerate((slice(None), 0, 1)):
        chosen = np.zeros((5, 2, 4))
        chosen[:, values] = 1
        assert holds(series["totals"][place], chosen, 1.02)
        chosen[1:-1, values, 1:-1] = 0
        assert holds(series["outside"]["lines"][place], chosen, 1.02)
    assert series["outside"]["cells"] == 14
    for cell, (x_cell, y_cell) in enumerate(product(range(5), range(4))):
        chosen = np.zeros((5, 2, 4))
        chosen[x_cell, :, y_cell] = 1
        assert holds(series["cells"][cell], chosen, 1.15 if over.name == "tree" else 1.03)


def test_sums_of_rounded_numbers_are_right_for_any_box() -> None:
    values = np.random.default_rng(1).normal(size=(1, 2 * 9 * 8)) * 100

    found = rounded_sums(values, (9, 8), 0).reshape(2, 9, 8)

    exact = values.reshape(2, 9, 8)
    assert np.array_equal(found, np.rint(found))
    for choice, top, left in product(range(2), range(9), range(8)):
        sums = (grid[choice, top:, left:].cumsum(axis=0).cumsum(axis=1) for grid in (found, exact))
        one, other = sums
        assert np.abs(one - other).max() <= 2


@pytest.mark.slow
def test_a_map_of_a_million_cells_merges_them_with_intervals_of_their_sums() -> None:
    key = OrderedKey(start=0, step=1, steps=998)
    query = Query(name="map", measure=COUNT, by=(("x", key), ("y", key)), publish=(LEVEL,))
    plan, value = plan_of(query), np.ones((2, 1_000_000))
    numbers = Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=None)

    document = chart_document(query, [numbers], plan, times=WEEKS, queries=1)

    merged = document["picture"]["merged"]
    cells = np.array([line["v"][-1] for line in document["series"][0]["cells"]])
    assert merged**2 * len(cells) > 1_000_000 > len(json.dumps(document))
    assert cells.sum() == 1_000_000
    inner = len(document["picture"]["axes"][1]["labels"]) + 1
    line = document["series"][0]["cells"][inner]
    half = answered(query, plan, 0, [(1, 1 + merged), (1, 1 + merged)])
    assert line["v"][0] == merged**2
    assert half <= (line["hi"][0] - line["lo"][0]) / 2 <= half + 1


def test_means_of_too_many_cells_are_not_merged() -> None:
    key = OrderedKey(start=0, step=1, steps=500)
    query = Query(name="wait", measure=Measure(kind="mean", low=0, high=9), by=(("x", key),), publish=(LEVEL,))
    value = np.ones((2, 502))
    numbers = Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=None)

    document = chart_document(query, [numbers], plan_of(query), times=WEEKS, queries=1, within=(0, 9))

    assert "picture" not in document
    assert len(document["cells"]) < 502


@pytest.mark.slow
def test_each_kind_of_query_has_its_chart(drawn) -> None:
    kinds = {name: one.get("picture", {}).get("kind") for name, one in drawn.items()}

    assert kinds == {
        **{"ages": "ordered", "stops": "map", "boxes": "map", "medians, quantiles": "quantiles", "wards": "bars"},
        **{"people": "crossed", "people, total": None, "people, by region": "bars", "people, by sex": "bars"},
        **{"places": "hierarchy", "places, by level 1 of town": "bars", "places, total": None},
        **{"jobs": "hierarchy", "jobs, by town": "bars", "jobs, by level 1 of town": "bars", "jobs, total": None},
        **{"jobs, by sex and level 1 of town": "bars", "jobs, by sex": "bars"},
        **{"rare": "bars", "wait": "ordered", "all": None},
    }


def test_main_messages_name_the_largest_cell_and_the_change_of_the_median(drawn) -> None:
    said = {name: " ".join(message(one, [*drawn.values()])) for name, one in drawn.items()}
    storm = " ".join(message(drawn["stops"], window=STORM))

    assert said["ages"].startswith("Largest: age [45, 50): ")
    assert storm.startswith("Largest cell: lat [44.984, 44.998), long [-93.288, -93.272): ")
    assert said["boxes"].count("lat [44.9") == 2
    assert "[-93.288, -93.272) overlaps this one." in said["boxes"]
    assert said["medians, quantiles"] == (
        "Median: from 34 (32.5 to 35.5) at the end of 7 January 2026 to 42.8 (41.3 to 44.3) at the end of 25 March "
        "2026: 8.8 higher (90 % interval of the difference 5.8 to 11.8); more than the noise explains. Since the "
        "window before: from 42 (40.5 to 43.5): 0.8 higher (90 % interval of the difference -2.2 to 3.8); may be "
        "noise alone. No exact interval of such a difference is known: these follow from the intervals of both "
        "numbers, and are wider than needed."
    )
    assert said["wards"].startswith("Largest: ward 01: ")
    assert "No other interval overlaps this one." in said["wards"]
    assert "of 108 cells cannot be distinguished from zero." in said["stops"]  # 12 by 9: those that a map shows
    assert "cells have intervals wider than half of their range." in said["wait"]
    assert said["places"].startswith("Largest: Bavaria: ")
    assert ". Largest town: Munich: " in said["places"]
    assert said["jobs"].startswith("Highest number: Bavaria: 1,")
    assert said["rare"].endswith("(repeated, no known interval).")
    assert said["all"] == ""
    assert said["jobs"].partition(". ")[2].startswith("The interval of Ulm overlaps this one.")
    assert said["wait"].startswith(
        "No largest cell can be named: the intervals of 21 of 21 other cells overlap that of age [35, 40): 29 (8 to 50)"
    )


def test_a_message_says_that_it_leaves_out_cells_that_are_mostly_noise() -> None:
    line = [{"v": [value], "lo": [low], "hi": [high]} for value, low, high in ((50, 40, 60), (70, -10, 90), (9, 1, 17))]
    document = {"picture": {"kind": "bars"}, "cells": [["a"], ["b"], ["c"]], "part": "", "within": None, "name": "q"}

    said = message({**document, "series": [{"cells": line}]})

    assert said == [
        "Highest number that is not mostly noise: a: 50 (40 to 60).",
        "The interval of b overlaps this one.",
        "1 of 3 cells cannot be distinguished from zero.",
    ]
    axis = {"key": "age", "labels": ["a", "b", "c"], "texts": ["1", "2"]}
    merged = {"kind": "ordered", "axes": [axis], "choices": [["all"]], "choice": 0, "merged": 2, "summed": False}
    line[0]["lo"][0] = 1
    assert message({**document, "picture": merged, "series": [{"cells": line}]}) == [
        "No largest bar can be named: the intervals of age b and age 2 or more overlap that of age below 1: 50 "
        "(1 to 60), the highest that is not mostly noise.",
        "1 of 3 bars cannot be distinguished from zero.",
        "Each bar adds up 2 cells.",
    ]


def test_a_change_of_quantiles_is_that_of_the_shown_numbers() -> None:
    line = {"v": [54.6, 54], "lo": [45, 45], "hi": [65, 65]}
    series = {"kind": "entered", "first": 1_768_262_400_000, "step": 86_400_000, "width": 86_400_000, "cells": [line]}
    document = {"picture": {"shares": [0.25], "key": 0}, "cells": [["0.25"]], "series": [series]}

    assert message(document)[0] == (
        "25 % quantile: from 54.6 (45 to 65) for 12 January 2026 to 54 (45 to 65) for 13 January 2026: 0.6 lower "
        "(90 % interval of the difference -20 to 20); may be noise alone."
    )


def test_the_first_window_has_no_difference_from_itself(drawn) -> None:
    assert message(drawn["medians, quantiles"], window=0) == ["Median: 34 (32.5 to 35.5) at the end of 7 January 2026."]
    assert drawn["medians, quantiles"]["cells"][drawn["medians, quantiles"]["open"]] == ["0.5"]


def test_repeated_windows_have_no_interval_of_a_sum(drawn) -> None:
    assert drawn["rare"]["series"][0]["repeated"] == [window not in (0, 4, 9) for window in range(WINDOWS)]


def test_a_page_opens_at_the_cell_that_its_message_names(drawn) -> None:
    for name, cell in (("ages", "45"), ("stops", "44.98"), ("wait", "35")):
        one = drawn[name]
        assert any(cell in text for text in one["cells"][one["open"]])
        assert cell in message(one)[0]


def test_means_open_at_the_highest_cell_that_is_not_mostly_noise() -> None:
    query = Query(
        name="wait", measure=Measure(kind="mean", low=0, high=90), by=(("ward", ("a", "b", "c")),), publish=(LEVEL,)
    )
    value, half = np.array([[30.0, 60.0, 70.0]]), np.array([[2.0, 20.0, 50.0]])
    numbers = Numbers(series=LEVEL, value=value, low=value - half, high=value + half, total=None)

    document = chart_document(query, [numbers], plan_of(query), times=WEEKS, queries=1, within=(0, 90))

    assert document["open"] == 1
    assert message(document)[0] == "Highest number that is not mostly noise: b: 60 (40 to 80)."


def test_sums_that_mean_nothing_say_why(drawn) -> None:
    assert drawn["wait"]["series"][0]["errors"] == {"why": "A mean cannot be added up.", "unsummed": True}


def test_a_sum_without_an_interval_says_why() -> None:
    key = OrderedKey(start=0, step=1, steps=8)
    query = Query(
        name="map",
        measure=COUNT,
        by=(("x", key), ("y", key)),
        publish=(LEVEL,),
        adaptive=Bd(),
        over=CellChoice(name="kdtree"),
    )
    promise = Promise(
        constraint=AtOnce(1), window=WEEKS.window, windows=WINDOWS, owner=False, protects=Span(4 * WEEKS.window)
    )
    value = np.arange(1200.0).reshape(12, 100)
    numbers = Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=None, repeated=np.zeros(12, bool))

    document = chart_document(query, [numbers], plan_of(query, promise=promise), times=WEEKS, queries=100)

    series = document["series"][0]
    for found in (series["untotalled"], series["outside"]):
        assert "its cells share counts of regions" in found["why"]
    assert series["left"] == 3
    assert series["untotalled"]["line"] == {"v": [*value.sum(axis=1)[3:]], "lo": [None] * 9, "hi": [None] * 9}


def test_a_further_kind_of_chart_is_one_entry_of_the_table(monkeypatch) -> None:
    toy = Picture(suits=lambda subject: subject.query.name == "all", document=nothing_more)
    monkeypatch.setitem(PICTURES, "toy", toy)
    query = Query(name="all", measure=COUNT, publish=(LEVEL,))
    one = np.ones((1, 1))

    document = chart_document(
        query, [Numbers(series=LEVEL, value=one, low=one, high=one, total=None)], plan_of(query), times=WEEKS, queries=1
    )

    assert document["picture"] == {"kind": "toy"}


def test_lines_of_a_geojson_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "city.geojson"
    write_outline(path)

    (ring,) = outline_of(path)

    assert ring[:2] == [(-93.32, 44.9), (-93.21, 44.9)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "not GeoJSON"),
        ('{"type": "Point", "coordinates": [1, 2]}', "has no line and no polygon"),
        ('{"type": "LineString", "coordinates": [[500000, 4500000]]}', "in degrees"),
        (f'{{"type": "LineString", "coordinates": [{", ".join(["[1, 2]"] * 60_001)}]}}', "60,001 points; at most"),
        (None, "No such file or directory"),
    ],
)
def test_an_outline_that_cannot_be_drawn_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "city.geojson"
    if text is not None:
        path.write_text(text)

    with pytest.raises(SpecError, match=message):
        outline_of(path)
