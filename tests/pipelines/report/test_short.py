"""What a report on several queries begins with."""

from dataclasses import replace
from typing import Any

from pipelines.report.facts import StatedNumber, StatedQuery, StatedSeries
from pipelines.report.sentences import sentences_of
from pipelines.report.short import in_short
from tests.pipelines.pages.elements import Elements

LINES = [{"v": [30.0], "lo": [25.0], "hi": [35.0]}, {"v": [9.0], "lo": [4.0], "hi": [14.0]}]
ALIKE = [LINES[0], {"v": [29.0], "lo": [24.0], "hi": [34.0]}, {"v": [28.0], "lo": [23.0], "hi": [33.0]}]


def stated(label: str, *standing_out: str) -> StatedQuery:
    latest = StatedNumber(
        cell={}, value=1.0, low=0.0, high=2.0, repeated=False, name="level", text="level: 1 (95 % interval 0 to 2)"
    )
    series = StatedSeries(
        kind="level",
        meaning="",
        window="noon",
        window_start="",
        window_end="",
        latest=(latest,),
        cells=2,
        differences=(),
        standing_out=standing_out,
        judged=True,
        noise=None,
    )
    return StatedQuery(query="q", of="", label=label, measured=(), coverage="", series=(series,))


def drawn(lines: list[Any] | None) -> dict[str, Any]:
    cells = [[name] for name in "abc"[: len(lines or [])]]
    picture = {} if lines is None else {"picture": {"kind": "bars"}}
    return {"series": [{"cells": lines}], "cells": cells, "part": "", "within": None, "origin": "q", **picture}


def begin(queries: list[StatedQuery], lines: list[Any]) -> list[str]:
    said = "".join(in_short(queries, {"queries": [drawn(one) for one in lines]}))
    return [" ".join(Elements(one).text.split()) for one in said.split("<li>")[1:]]


def test_three_queries_have_what_stands_out_and_their_largest_cell_or_latest_number() -> None:
    days = [f"Trips, level, all cells together, {day} May: {day}0 ± 3, where 5 is usual" for day in (1, 2, 3)]
    queries = [stated("Single"), stated("Beds"), stated("Trips", *days[:1]), stated("Trips", *days)]

    assert begin(queries[:2], [None, LINES]) == [
        "Single: 1 (95 % interval 0 to 2).",
        "Beds: Largest: a: 30 (25 to 35).",
    ]
    assert begin(queries, [None, LINES, LINES, ALIKE]) == [
        "Single: 1 (95 % interval 0 to 2).",
        "Trips: Stands out, all cells together: 1 May: 10 ± 3, where 5 is usual. Largest: a: 30 (25 to 35).",
        "Trips: Stands out, all cells together: 2 May: 20 ± 3, where 5 is usual; 3 May: 30 ± 3, where 5 is usual; "
        "and 1 before.",
    ]


def test_one_query_has_no_such_begin() -> None:
    assert begin([stated("Beds", "Beds, level, noon: 9 ± 1, where 2 is usual")], [LINES]) == []


def test_a_query_without_a_clear_largest_cell_and_without_outliers_says_so() -> None:
    first, second = begin([stated("Beds"), stated("Trips")], [ALIKE, LINES])

    assert first == "Beds: No largest cell can be named."
    assert second == "Trips: Largest: a: 30 (25 to 35)."


def test_a_section_says_what_stands_out_before_its_warnings() -> None:
    query = replace(stated("Trips", "Trips, level, 1 May: 10 ± 3, where 5 is usual"), measured=("Count of trips.",))

    said = [Elements(one).text.strip() for one in sentences_of(query, ["Mostly noise."], headlined=True)]

    assert said[2:] == [
        "Numbers that stand out by more than the noise:",
        "1 May: 10 ± 3, where 5 is usual",
        "Mostly noise.",
    ]


def test_a_query_without_a_clear_largest_cell_has_its_number_of_all_cells() -> None:
    beds = stated("Beds")
    (series,) = beds.series
    whole = replace(series.latest[0], cell=None, name="level, all cells together", text="level, all cells together: 9")
    (first, _) = begin([replace(beds, series=(replace(series, latest=(whole,)),)), stated("Trips")], [ALIKE, LINES])

    assert first == "Beds: all cells together: 9. No largest cell can be named."
