"""A spec to start from, for `slackwater changelog --suggest`, made from the schema of the files.

From the rows it uses only one fact: whether a column of text holds any number, so that its sum is an example.
"""

import re
from collections.abc import Iterator

from pipelines.changelog.first_spec import ENTRY, FILL_IN, first_spec, in_flow, section_of
from transforms.common.kinds import NUMERIC
from transforms.common.source import Source
from transforms.release.published_columns import PUBLISHED
from transforms.sources.columns.layout import Layout
from transforms.sources.formats.table import FORMATS
from transforms.sources.inspection import measurable

_ONE = {"id", "ids", "uuid", "guid", "key", "ref", "email", "phone", "iban", "ssn"}
_LABEL = {"code", "number", "zip", "postcode", "year"}
"""Last words of the names of columns that are identifiers, and of numbers whose sum is meaningless."""

_BY = f"""\
  # - name: {{name}}
  #   measure: count
  #   by: {{{{{{column}}: []}}}}  {FILL_IN}: public values, and other for all values not listed: [a, b, other]
  #   publish: [level]
"""

_SUM = f"""\
  # - name: {{name}}
  #   measure:
  #     {{{{sum: {{column}}, min: , max: }}}}  {FILL_IN}: bounds; values beyond them count as the bound
  #   publish: [level]
"""


def suggested(source: Source, layout: Layout) -> str:
    """Return the text of the spec.

    Args:
        source: The changelog that the spec will read.
        layout: The columns of its states; if it was converted, those of the original files.
    """
    untyped = FORMATS[layout.source.format if source.every is not None else source.format].untyped
    notes = ""
    if untyped:
        notes = "  # types: {age: int64}  # of columns that are not text; measured ones are numbers anyway\n"
    elif any(kind == "string" for _, kind in _columns(layout)):
        notes = "  # types: {price: float64}  # of columns of text that hold numbers, such as decimals\n"
    keys = [column for column, kind in _columns(layout) if kind in ("int64", "string")]
    owners = sorted(keys, key=lambda column: not _last_word(column) & _ONE)  # the likely ones first
    examples = _examples(layout, measurable(layout) if untyped else frozenset())
    return first_spec(
        section_of(source),
        {"unit": source.owner or ENTRY},
        notes=notes,
        owners=f": {', '.join(map(in_flow, owners[:8]))}" if owners else "",
        examples="".join(template.format(name=name, column=in_flow(column)) for name, column, template in examples),
    ).rstrip("\n")


def _examples(layout: Layout, numbers: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (name, column, template) of the queries that the columns suggest; the owner is no key and no number."""
    names: set[str] = {"entries", "units"}
    for column, kind in _columns(layout):
        if column == layout.source.owner:
            continue
        last = _last_word(column)
        listed = kind in ("string", "bool") and column.lower() not in PUBLISHED and not last & _ONE
        measured = (kind in NUMERIC or column in numbers) and not last & (_ONE | _LABEL)
        for prefix, template, fits in (("by", _BY, listed), ("sum", _SUM, measured)):
            if fits:
                yield _query_name(f"{prefix}_{column}", names), column, template


def _last_word(column: str) -> set[str]:
    """Return the last word of a name in any usual spelling, as a set of one; empty if it has no word.

    >>> _last_word("patient_id"), _last_word("patientID"), _last_word("ZipCode"), _last_word("paid"), _last_word("42")
    ({'id'}, {'id'}, {'code'}, {'paid'}, set())
    """
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", column)[-1:]}


def _columns(layout: Layout) -> list[tuple[str, str]]:
    """Return the columns of the states with their kinds, except the key."""
    return [(column, kind) for column, kind in layout.states if column != layout.source.entry]


def _query_name(wanted: str, taken: set[str]) -> str:
    """Return a valid name for a query that no other query has.

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
