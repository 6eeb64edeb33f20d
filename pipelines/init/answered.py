"""Turn the answers to `slackwater init` into the text of a spec."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipelines.changelog.first_spec import first_spec, in_flow
from pipelines.changelog.recognise import LOGS, ending_of
from pipelines.common.parser import values_of_column
from pipelines.spec.durations import MONTH, UNITS, parse_length
from pipelines.spec.times import parse_moment_or_date, time_text
from transforms.aggregation.listed_key import OTHER
from transforms.common.zones import zone_of

UTC = "UTC"

_BEFORE = (
    "  # before: before_  # prefix of columns with the state before a change, if there are any; likewise `after`\n"
)


def spec_of_answers(answers: Mapping[str, str], *, stem: str, naive: bool) -> str:
    """Return the text of the spec.

    Args:
        answers: Answers to `pipelines.init.questions.QUESTIONS`, by their names.
        stem: Stem of the name of the spec's file, which names the release.
        naive: Whether times in the files have no zone.
    """
    by = ""
    if answers["by"]:
        column, cells = values_of_column(answers["by"])
        by = in_flow({column: cells if OTHER in cells else [*cells, OTHER]})
    start, until, calendar = _schedule(answers)
    zone, before = answers["timezone"], "" if answers["to"] else _BEFORE
    stays = {"from": answers["time"], "to": answers["to"]} if answers["to"] else {"time": answers["time"]}
    section: dict[str, Any] = {
        "format": LOGS[ending_of(answers["path"])],
        "path": answers["path"],
        "entry": answers["entry"],
        **stays,
    }
    if answers.get("deleted"):
        column, marks = values_of_column(answers["deleted"])
        section["deleted"] = {column: marks}
    return first_spec(
        {**section, "freshness": "newer_file"},
        {**answers, "start": start, "until": until, "by": by, "calendar": zone if calendar else ""},
        release=re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "first-release",
        notes=f"  {'' if naive or zone != UTC else '# '}timezone: {zone}  # of times without a zone\n{before}",
    )


def _schedule(answers: Mapping[str, str]) -> tuple[str, str, bool]:
    """Return the start, the end (empty: no end), and whether windows follow the calendar of the time zone.

    A date means its midnight in the time zone. Windows of days, weeks or months follow the calendar of a time zone.
    """
    zone, every = answers["timezone"], parse_length(answers["every"])
    dated = len(answers["start"]) == len("2026-01-05")
    if dated and (every % MONTH == 0 or (zone != UTC and every % UNITS["d"] == 0)):
        return answers["start"], answers["until"], True

    def moment(text: str) -> str:
        found = parse_moment_or_date(text)
        if isinstance(found, datetime):
            return text
        return time_text(datetime(found.year, found.month, found.day, tzinfo=zone_of(zone)))

    return moment(answers["start"]), answers["until"] and moment(answers["until"]), False
