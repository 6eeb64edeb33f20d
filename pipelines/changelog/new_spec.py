"""The text of a first spec, with a comment for whoever will change it."""

import re
from collections.abc import Mapping

from pipelines.changelog.source import LOGS, ending_of
from pipelines.changelog.suggest import in_flow

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
  # timezone: Europe/Paris  # of times that name none
  # before: before_  # the prefix of columns with the state before a change, where there are such; so `after`
privacy:
  unit: {unit}  # who is protected: entry, each by itself, or the column that names the person behind it
  epsilon: {epsilon}  # the budget of all that is ever published
  # delta: 1.0e-9  # allows Gaussian noise; far below one in the number of people
  constraint: {{at_most: {at_most}}}  # so many changes of each count for a query, and more are cut off
{owner}  # protects: {{span: 14d}}  # of what each does in any 14 days, for years; at_most is not needed then
schedule:
  start: {start}
  every: {every}
{until}queries:
  - name: entries
    measure: count
{by}    publish: [level, entered, left]  # how many are there at the end of each window, have come, have left
    # where: "column = 'value'"  # in SQL, over the columns of one state
  # - name: mean_age
  #   measure: {{mean: age, min: 0, max: 120}}  # bounds that are no secret; values beyond them count as the bound
  #   publish: [level]
output:
  public: releases/{release}/public  # to give away
  private: releases/{release}/private  # exact facts and the noise: keep it, and show it to nobody
"""

_OWNER = "  # constraint: {at_most: 4, entries: 1}  # one entry of each at a time: with a delta less noise\n"


def new_spec(answers: Mapping[str, str], *, stem: str) -> str:
    """The spec's text.

    Args:
        answers: to `pipelines.changelog.init.QUESTIONS`, by their names.
        stem: of the spec's file, which names the release.
    """
    named = {name: in_flow(answers[name]) for name in ("path", "entry", "time", "unit")}
    until, (column, _, values) = answers["until"], answers["by"].partition("=")
    cells = [value.strip() for value in values.split(",")]
    by = in_flow({column.strip(): cells if OTHER in cells else [*cells, OTHER]})
    made = {
        "release": re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "first-release",
        "format": LOGS[ending_of(answers["path"])],
        "until": f"  until: {until}\n" if until else "  # until: 2030-01-01T00:00:00Z  # the end of the last window\n",
        "owner": "" if answers["unit"] == "entry" else _OWNER,
        "by": f"    by: {by}\n"
        if values
        else "    # by: {column: [a, b, other]}  # a count for each of these values\n",
    }
    return _TEXT.format(**{**answers, **named, **made})
