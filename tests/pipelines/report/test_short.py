"""What a report begins with, and what its sections then leave out."""

from dataclasses import replace
from typing import Any

from pipelines.report.facts import StatedDifference, StatedNumber, StatedQuery, StatedSeries
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
    return {"series": [{"cells": lines or []}], "cells": cells, "part": "", "within": None, "origin": "q", **picture}


def begin(queries: list[StatedQuery], lines: list[Any]) -> list[str]:
    said = "".join(in_short(queries, {"queries": [drawn(one) for one in lines]}))
    return [" ".join(Elements(one).text.split()) for one in said.split("<li>")[1:]]


def test_three_queries_have_what_stands_out_and_their_largest_cell_or_latest_number() -> None:
    days = [f"Trips, level, all cells together, {day} May: {day}0 (7 to 13)" for day in (1, 2, 3)]
    queries = [stated("Single"), stated("Beds"), stated("Trips", *days[:1]), stated("Trips", *days)]

    assert begin(queries[:2], [None, LINES]) == [
        "Single: Latest, noon: 1 (0 to 2).",
        "Beds: Largest, noon: a: 30 (25 to 35).",
    ]
    assert begin(queries, [None, LINES, LINES, ALIKE]) == [
        "Single: Latest, noon: 1 (0 to 2).",
        "Trips: Stands out, all cells together: 1 May: 10 (7 to 13). Largest, noon: a: 30 (25 to 35).",
        "Trips: Stands out, all cells together: 2 May: 20 (7 to 13); 3 May: 30 (7 to 13); and 1 before.",
    ]


def test_a_single_query_has_its_changes_too_and_its_section_does_not_repeat_them() -> None:
    beds = stated("Beds", "Beds, level, noon: 9 (8 to 10), where the median is 2")
    (series,) = beds.series
    change = StatedDifference(
        **dict.fromkeys(("window", "minus_window", "minus_window_end", "name", "minus_name", "real", "difference"), ""),
        cell=None,
        minus_cell=None,
        window_end="noon",
        value=1.0,
        low=0.0,
        high=2.0,
        probability=0.95,
        text="all cells together: from 8 to 9, 1 higher; may be noise alone",
    )
    query = replace(beds, measured=("Count.",), series=(replace(series, differences=(change,)),))

    assert begin([query], [LINES]) == [
        "Stands out: noon: 9 (8 to 10), where the median is 2.",
        "Largest, noon: a: 30 (25 to 35).",
        "Since the window before: all cells together: from 8 to 9, 1 higher; may be noise alone.",
    ]
    alone, among = ("".join(sentences_of(query, (), alone=one)) for one in (True, False))
    assert ("from 8 to 9" in alone, "from 8 to 9" in among) == (False, True)


def test_a_query_of_few_cells_without_a_clear_largest_one_has_the_number_of_each() -> None:
    beds = stated("Beds")
    (series,) = beds.series
    two = replace(series, latest=(*series.latest, replace(series.latest[0], name="b", text="b: 7")))

    first, _ = begin([replace(beds, series=(two,)), stated("Trips")], [ALIKE, LINES])

    assert first == "Beds: Latest, noon: 1 (0 to 2); b: 7. No largest cell can be named."


def test_a_query_without_a_clear_largest_cell_and_without_outliers_says_so() -> None:
    first, second = begin([stated("Beds"), stated("Trips")], [ALIKE, LINES])

    assert first == "Beds: Latest, noon: 1 (0 to 2). No largest cell can be named."
    assert second == "Trips: Largest, noon: a: 30 (25 to 35)."


def test_a_section_says_what_stands_out_before_its_warnings() -> None:
    query = replace(stated("Trips", "Trips, level, 1 May: 10 (7 to 13)"), measured=("Count of trips.",))

    said = [Elements(one).text.strip() for one in sentences_of(query, ["Mostly noise."], headlined=True)]

    assert said[2:] == [
        "Far outside the usual range, by more than the noise:",
        "1 May: 10 (7 to 13)",
        "Mostly noise.",
    ]


def test_a_query_without_a_clear_largest_cell_has_its_number_of_all_cells() -> None:
    beds = stated("Beds")
    (series,) = beds.series
    whole = replace(series.latest[0], cell=None, name="level, all cells together", text="level, all cells together: 9")
    (first, _) = begin([replace(beds, series=(replace(series, latest=(whole,)),)), stated("Trips")], [ALIKE, LINES])

    assert first == "Beds: Latest, noon: all cells together: 9. No largest cell can be named."


def test_the_course_of_all_windows_and_the_overlap_of_the_highest_number_are_named() -> None:
    day, total = 86_400_000, {"v": [10.0, 30.0, 20.0], "lo": [9.0, 29.0, 19.0], "hi": [11.0, 31.0, 21.0]}
    lines = [{"v": [value] * 3, "lo": [value - 2] * 3, "hi": [value + 2] * 3} for value in (7.0, 6.0, 1.0)]
    shown = {"kind": "level", "cells": lines, "total": total, "first": day, "step": day, "width": day}

    def said(**changed: Any) -> list[str]:
        data = {"queries": [{**drawn(lines), "series": [{**shown, **changed}]}]}
        html = "".join(in_short([stated("Beds")], data))
        return [" ".join(Elements(one).text.split()) for one in html.split("<li>")[1:]]

    assert said() == [
        "No clear largest; highest number, noon: a: 7 (5 to 9). The interval of b overlaps this one.",
        "All cells together: highest at the end of 2 January 1970: 30 (29 to 31), lowest at the end of 1 January 1970: "
        "10 (9 to 11).",
        "No single window with an interval is far from all others.",
    ]
    rising = {name: sorted(line) for name, line in total.items()}
    first = (
        "All cells together: from 10 (9 to 11) at the end of 1 January 1970 to 30 (29 to 31) at the end of 3 January"
    )
    assert said(total=rising)[1] == f"{first} 1970."
    assert not any("1970" in one for one in said(repeated=[False, True, False]))
    flat = {name: [5.0] * 3 if name == "v" else [None] * 3 for name in total}
    assert not any("1970" in one for one in said(total=flat))
    wide = {**total, "lo": [0.0, 15.0, 5.0], "hi": [20.0, 45.0, 35.0]}
    assert not any("1970" in one for one in said(total=wide))


def test_queries_without_numbers_yet_are_left_out() -> None:
    beds, trips = stated("Beds"), stated("Trips")
    empty = replace(beds, series=(replace(beds.series[0], latest=()),))

    assert begin([empty, trips], [None, LINES]) == ["Trips: Largest, noon: a: 30 (25 to 35)."]
    assert in_short([empty, empty], {"queries": [drawn(None)] * 2}) == []
    unknown = [{"v": [None], "lo": [None], "hi": [None]}] * 2
    assert begin([empty, trips], [unknown, LINES]) == ["Trips: Largest, noon: a: 30 (25 to 35)."]
