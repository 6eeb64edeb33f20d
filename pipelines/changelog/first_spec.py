"""The text of a first spec: the given answers, and marked places for values that only the data controller may choose.

A contribution bound, clamping bounds, cells or dates that are taken from the data would reveal something about people,
and no accounting covers that; the spec is published with the release.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pipelines.spec.durations import duration_text
from transforms.common.source import Source

FILL_IN = "# FILL IN"
"""Marks a missing value: the key before it has no value yet, so no command accepts the spec as it is."""

ENTRY, EVER = "entry", "ever"
"""Answers: each entry is protected separately; everything that a unit ever does is protected, instead of a span."""

_TEXT = """\
# A first spec. It is published with the release, except for its paths and comments: write nothing private in the rest.
# Do not take bounds, cells or dates from the data: they reveal something about people that epsilon does not cover.
# Replace each FILL IN with a public value. Once a release has begun, it keeps its spec.
release: {release}
changelog:
{changelog}{notes}privacy:
{unit}{epsilon}  # delta: 1.0e-9  # allows Gaussian noise; far below one in the number of people
{protects}schedule:
{start}{every}{until}{calendar}queries:
  - name: {name}
    measure: {measure}
{by}    publish: [level]  # the number at the end of each window; entered, left: arrivals and departures
    # where: "column = 'value'"  # in SQL, over the columns of one state
{examples}output:
  public: releases/{release}/public  # safe to publish
  private: releases/{release}/private  # exact facts and the noise: keep it secret
"""

_COMMENTS = {
    "entry": "key of the entry",
    "time": "when the change happened",
    "from": "begin of the stay",
    "to": "its end; empty: it has not ended",
    "freshness": "a window waits for a file stored after its end, in case the export stalls",
}
_UNTIL = "  # until: 2030-01-07T00:00:00Z  # the end of the last window; without it the release has no end\n"
_BY = (
    "    # by: {column: [a, b, other]}  # a count for each of these values; unknown ones: {column: {discover: true}}\n"
)
_COUNT = "count"
_UNITS = "units  # owners with at least one entry; count: entries, with more noise if several of an owner count"
_AT_MOST = "  # constraint: {at_most: 4}  # instead of protects: everything that a unit ever does, with more noise\n"
_NO_SPAN = "  # protects: {span: 14d}  # instead of constraint: what a unit does in any 14 days, with less noise\n"


def first_spec(
    section: Mapping[str, Any],
    given: Mapping[str, str],
    *,
    release: str = "first-release",
    notes: str = "",
    owners: str = "",
    examples: str = "",
) -> str:
    """Return the text of the spec.

    Args:
        section: The section `changelog`.
        given: Answers by the names of `pipelines.init.questions`: `unit`, and others unless they are to be filled in;
            `by` as the spec has it, and `calendar`, the time zone of windows of days, weeks or months.
        release: Name of the release.
        notes: Lines with comments at the end of the section `changelog`.
        owners: Columns that may be the privacy unit, for a comment.
        examples: Lines with further queries.
    """
    who = "all entries of one owner together are protected"
    if given["unit"] == ENTRY:
        who = f"each entry is protected; or name the column of the person behind it{owners}"
    until, by, calendar = (given.get(name) for name in ("until", "by", "calendar"))
    return _TEXT.format(
        release=release,
        changelog="".join(_key(key, in_flow(value), _COMMENTS.get(key, "")) for key, value in section.items()),
        notes=notes,
        unit=_key("unit", in_flow(given["unit"]), who),
        epsilon=_key("epsilon", given.get("epsilon"), "the whole budget of everything ever published, such as 1.0"),
        protects=_protects(given),
        start=_key("start", given.get("start"), "a public date: the day of the first change seen is itself data"),
        every=_key("every", given.get("every", "1w"), "length of a window; longer ones have smaller errors"),
        until=f"  until: {until}\n" if until else _UNTIL,
        calendar=_key("timezone", calendar, "whose days, weeks and months these are") if calendar else "",
        name="entries" if given["unit"] == ENTRY else "units",
        measure=_COUNT if given["unit"] == ENTRY else _UNITS,
        by=f"    by: {by}\n" if by else _BY,
        examples=examples,
    )


def _protects(given: Mapping[str, str]) -> str:
    if given.get("span") == EVER:
        cut = "changes of a unit that count for a query; more are cut off"
        return _nested("constraint", "at_most", given["at_most"], cut) + _NO_SPAN
    span = "everything that a unit does in any period of this length is protected, such as 14d"
    lines = _nested("protects", "span", given.get("span"), span)
    if given["unit"] != ENTRY:
        entries = "entries of one owner that count at the same time, such as 1; more are left out"
        lines += _nested("constraint", "entries", given.get("entries"), entries)
    return lines + _AT_MOST


def _key(key: str, value: str | None, comment: str) -> str:
    """Return a line of a section, with a mark if there is no value."""
    if value is None:
        return f"  {key}:  {FILL_IN}: {comment}\n"
    return f"  {key}: {value}  # {comment}\n" if comment else f"  {key}: {value}\n"


def _nested(section: str, key: str, value: str | None, comment: str) -> str:
    if value is None:
        return f"  {section}:\n  {_key(key, None, comment)}"
    return _key(section, f"{{{key}: {value}}}", comment)


def section_of(source: Source) -> dict[str, Any]:
    """Return the section `changelog` of a spec that reads this source."""
    section: dict[str, Any] = {
        "format": source.format,
        "path": source.paths[0] if len(source.paths) == 1 else list(source.paths),
        "entry": source.entry,
        "time": source.time if source.until is None else None,
        "from": source.time if source.until is not None else None,
        "to": source.until,
        "before": _state(source, "before"),
        "after": _state(source, "after"),
        "deleted": None if source.deleted is None else {source.deleted[0]: list(source.deleted[1])},
        "owner": dict(source.forms).get("owner"),
        "order": list(source.order),
        "timezone": source.timezone,
        "types": dict(source.types),
        "nulls": list(source.nulls),
        "expires": None if source.expires is None else duration_text(source.expires),
        "every": None if source.every is None else duration_text(source.every),
        "kafka": source.kafka,
    }
    return {key: value for key, value in section.items() if value}


def _state(source: Source, side: str) -> Any:
    name, form = {"before": source.before, "after": source.after}[side], dict(source.forms).get(side)
    return name if form is None else {form: name}


def in_flow(value: Any) -> str:
    """Return a value in YAML's flow style; text is in quotes unless YAML can read it only as text.

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
