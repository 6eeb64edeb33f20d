"""The text of a first spec, with a comment for whoever will change it."""

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from pipelines.changelog.questions import EVER
from pipelines.changelog.source import LOGS, ending_of
from pipelines.changelog.suggest import in_flow
from pipelines.spec.durations import MONTH, UNITS, parse_length
from pipelines.spec.times import parse_moment_or_date, time_text

UTC = "UTC"

OTHER = "other"
"""The cell of all values that are not listed."""

_TEXT = """\
# Made by `slackwater init`. The spec is published with the release, but for its paths and comments: write nothing
# private in the rest, and read no choice off the data. Once a release has begun it keeps its spec.
release: {release}
changelog:
  format: {format}
  path: {path}
  entry: {entry}  # the key of what comes, changes and goes
  time: {time}  # when it did
  freshness: newer_file  # a window waits for a file stored after its end: a stalled export is no quiet day
{zone}  # before: before_  # the prefix of columns with the state before a change, where there are such; so `after`
privacy:
  unit: {unit}  # who is protected: entry, each by itself, or the column that names the person behind it
  epsilon: {epsilon}  # the budget of all that is ever published
  # delta: 1.0e-9  # allows Gaussian noise; far below one in the number of people
{protects}schedule:
  start: {start}
  every: {every}
{until}{calendar}queries:
  - name: entries
    measure: count
{by}    publish: [level]  # how many are there at the end of each window; entered, left: have come, have left
    # where: "column = 'value'"  # in SQL, over the columns of one state
  # - name: mean_age
  #   measure: {{mean: age, min: 0, max: 120}}  # bounds that are no secret; values beyond them count as the bound
  #   publish: [level]
output:
  public: releases/{release}/public  # to give away
  private: releases/{release}/private  # exact facts and the noise: keep it, and show it to nobody
"""

_SPAN = """\
  protects: {{span: {span}}}  # all that each of these does in any such time; what lasts longer costs more epsilons
{entries}  # constraint: {{at_most: 4}}  # without protects: all that they ever do; more changes than that are cut off
"""
_ENTRIES = "  constraint: {{entries: {entries}}}  # entries of each that count at the same time; more are left out\n"
_EVER = """\
  constraint: {{at_most: {at_most}}}  # changes of each that count for a query; more are cut off
  # protects: {{span: 14d}}  # in place of constraint: less noise, and what each does in any 14 days is protected
"""


def new_spec(answers: Mapping[str, str], *, stem: str, naive: bool) -> str:
    """The spec's text.

    Args:
        answers: to `pipelines.changelog.questions.QUESTIONS`, by their names.
        stem: of the spec's file, which names the release.
        naive: whether times in the files name no zone.
    """
    named = {name: in_flow(answers[name]) for name in ("path", "entry", "time", "unit")}
    column, _, values = answers["by"].partition("=")
    cells = [value.strip() for value in values.split(",")]
    by = in_flow({column.strip(): cells if OTHER in cells else [*cells, OTHER]})
    entries, zone = _ENTRIES.format(**answers) if "entries" in answers else "", answers["timezone"]
    start, until, calendar = _schedule(answers)
    made = {
        "release": re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "first-release",
        "format": LOGS[ending_of(answers["path"])],
        "zone": f"  {'' if naive or zone != UTC else '# '}timezone: {zone}  # of times that name none\n",
        "protects": (_EVER if answers["span"] == EVER else _SPAN).format(**{**answers, "entries": entries}),
        "start": start,
        "until": f"  until: {until}\n" if until else "  # until: 2030-01-07T00:00:00Z  # the end of the last window\n",
        "calendar": f"  timezone: {zone}  # whose days, weeks and months these are\n" if calendar else "",
        "by": f"    by: {by}\n"
        if values
        else "    # by: {column: [a, b, other]}  # a count for each of these values\n",
    }
    return _TEXT.format(**{**answers, **named, **made})


def _schedule(answers: Mapping[str, str]) -> tuple[str, str, bool]:
    """Start, end (empty: none), and whether windows are those of a calendar.

    A date is its midnight in the time zone; windows of days, weeks or months there are those of its calendar.
    """
    zone, every = answers["timezone"], parse_length(answers["every"])
    dated = len(answers["start"]) == len("2026-01-05")
    if dated and (every % MONTH == 0 or (zone != UTC and every % UNITS["d"] == 0)):
        return answers["start"], answers["until"], True

    def moment(text: str) -> str:
        found = parse_moment_or_date(text)
        if isinstance(found, datetime):
            return text
        return time_text(datetime(found.year, found.month, found.day, tzinfo=ZoneInfo(zone)))

    return moment(answers["start"]), answers["until"] and moment(answers["until"]), False
