"""A spec to start from: what the files' schema says, and marked places for what only the data controller may say.

Of the rows only the form is read: whether a column of text holds any number, so that its sum is an example. A
contribution bound, clamping bounds, cells or a horizon taken from the data would reveal something of people, and no
accounting covers that; the spec is published with the release.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pipelines.spec.durations import duration_text
from pipelines.spec.queries import PUBLISHED
from transforms.common.kinds import NUMERIC
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.formats.table import FORMATS
from transforms.sources.inspection import measurable

FILL_IN = "# FILL IN"
"""Marks what is missing: the key before it has no value yet, so that no command takes the spec as it is."""

_ONE = {"id", "ids", "uuid", "guid", "key", "ref", "email", "phone", "iban", "ssn"}
_LABEL = {"code", "number", "zip", "postcode", "year"}
"""Last words of the names of columns that tell one from all others, and of numbers that nobody adds up."""

_HEAD = """\
# A spec to start from. Whatever is marked FILL IN is for you to say, from what is known of the business and is no
# secret. Do not read it off this data: a contribution bound, clamping bounds, cells or dates chosen so reveal
# something of people, and no epsilon covers that. The spec is published with the release, but for its paths and
# comments: write nothing private in the rest.
"""

_PRIVACY = """\
privacy:
  unit: {unit}
  epsilon:  {mark}: the whole budget of everything ever published, such as 1.0
  # delta: 1.0e-9  # allows Gaussian noise; far below one in the number of people
  protects:
    span:  {mark}: all that a unit does in any time of this length is protected, such as 14d
{entries}  # constraint: {{at_most: 4}}  # in place of protects: all that it ever does, with more noise
"""

_ENTRIES = """\
  constraint:
    entries:  {mark}: entries of one owner that count at the same time, such as 1; more are left out
"""

_SCHEDULE = """\
schedule:
  start:  {mark}: 2026-01-01T00:00:00Z, say; the day of the first change seen is itself data, so take a public one
  every: 1w
  # until: 2027-01-01T00:00:00Z  # the end of the last window; without it the release has no end
"""

_COUNT = """\
queries:
  - name: entries
    measure: count
    publish: [level]  # entered, left: how many have come and left
    # where: "column = 'value'"  # in SQL, over the columns of one state
"""

_BY = """\
  # - name: {name}
  #   measure: count
  #   by: {{{column}: []}}  {mark}: public values, and other for all that are not listed: [a, b, other]
  #   publish: [level]
"""

_SUM = """\
  # - name: {name}
  #   measure:
  #     {{sum: {column}, min: , max: }}  {mark}: bounds; values beyond them count as the bound
  #   publish: [level]
"""

_OUTPUT = """\
output:
  public: releases/first-release/public
  private: releases/first-release/private
"""


def suggest(source: Source, layout: Layout) -> str:
    """The spec's text.

    Args:
        source: the changelog that the spec will read.
        layout: the columns of its states; of the files that it was made from, if it was converted.
    """
    format_ = FORMATS[layout.source.format if source.every is not None else source.format]
    untyped = format_.untyped
    section = section_of(source)
    lines = [_HEAD, "release: first-release\n", "changelog:\n"]
    lines += [f"  {key}: {in_flow(value)}\n" for key, value in section.items()]
    if untyped:
        lines.append("  # types: {age: int64}  # of columns that are not text; measured ones are numbers anyway\n")
    elif any(kind == "string" for _, kind in _columns(layout)):
        lines.append("  # types: {price: float64}  # of columns of text that hold numbers, such as decimals\n")
    keys = [column for column, kind in _columns(layout) if kind in ("int64", "string")]
    owners = sorted(keys, key=lambda column: not _last_word(column) & _ONE)  # the likely ones first
    shown = f": {', '.join(map(in_flow, owners[:8]))}" if owners else ""
    if source.owner is None:
        unit, entries = f"entry  # one entry is protected; or name the column of the person behind it{shown}", ""
    else:
        unit = f"{in_flow(source.owner)}  # all entries of one together are protected"
        entries = _ENTRIES.format(mark=FILL_IN)
    lines.append(_PRIVACY.format(unit=unit, entries=entries, mark=FILL_IN))
    lines += [_SCHEDULE.format(mark=FILL_IN), _COUNT]
    lines += [
        template.format(name=name, column=in_flow(column), mark=FILL_IN)
        for name, column, template in _examples(layout, measurable(layout) if untyped else frozenset())
    ]
    return "".join([*lines, _OUTPUT]).rstrip("\n")


def section_of(source: Source) -> dict[str, Any]:
    """The `changelog` section of a spec that reads this."""
    section: dict[str, Any] = {
        "format": source.format,
        "path": source.paths[0] if len(source.paths) == 1 else list(source.paths),
        "entry": source.entry,
        "time": source.time,
        "before": _state(source, "before"),
        "after": _state(source, "after"),
        "owner": dict(source.forms).get("owner"),
        "order": list(source.order),
        "timezone": source.timezone,
        "types": dict(source.types),
        "nulls": list(source.nulls),
        "every": None if source.every is None else duration_text(source.every),
        "kafka": source.kafka,
    }
    return {key: value for key, value in section.items() if value}


def _state(source: Source, side: str) -> Any:
    name, form = {"before": source.before, "after": source.after}[side], dict(source.forms).get(side)
    return name if form is None else {form: name}


def _examples(layout: Layout, numbers: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """(name, column, template) of the queries that the columns suggest."""
    names: set[str] = {"entries"}
    for column, kind in _columns(layout):
        last = _last_word(column)
        listed = kind in ("string", "bool") and column.lower() not in PUBLISHED and not last & _ONE
        measured = (kind in NUMERIC or column in numbers) and not last & (_ONE | _LABEL)
        for prefix, template, fits in (("by", _BY, listed), ("sum", _SUM, measured)):
            if fits:
                yield _query_name(f"{prefix}_{column}", names), column, template


def _last_word(column: str) -> set[str]:
    """Of a name in any of the usual spellings, as a set of one; empty if it has no word.

    >>> _last_word("patient_id"), _last_word("patientID"), _last_word("ZipCode"), _last_word("paid"), _last_word("42")
    ({'id'}, {'id'}, {'code'}, {'paid'}, set())
    """
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", column)[-1:]}


def _columns(layout: Layout) -> list[tuple[str, str]]:
    """The columns of the states, with their kinds, but for the key."""
    return [(column, kind) for column, kind in layout.states if column != layout.source.entry]


def _query_name(wanted: str, taken: set[str]) -> str:
    """A name that a query may have, and no other has.

    >>> _query_name("by_Ort (neu)", {"by_Ort_neu"})
    'by_Ort_neu_2'
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", wanted).strip("_")[:90]
    number = 1
    name = plain
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    taken.add(name)
    return name


def in_flow(value: Any) -> str:
    """A value in YAML's flow style; text in quotes unless it can be nothing else.

    >>> in_flow({"path": "a/*.parquet", "order": ["lsn", "no: 1"]})
    '{path: a/*.parquet, order: [lsn, "no: 1"]}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_flow(key)}: {in_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(in_flow, value)) + "]"
    words = ("true", "false", "null", "yes", "no", "on", "off", "nan", "inf")
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./*-]*", value) and value.lower() not in words
    return value if plain else json.dumps(value, ensure_ascii=not value.isprintable())
