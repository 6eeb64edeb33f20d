"""The privacy unit in the words of a release's subject, and the sentence that begins its page."""

import re
from dataclasses import replace

from pipelines.spec.about import column_label_of
from pipelines.spec.durations import length_text
from pipelines.spec.load import Spec
from privacy.counted import counted, listed
from privacy.planning.statement import extent
from privacy.upward import shown

ENTRY, OWNER = "entry", "owner"
"""Nouns for privacy units without a label."""

WEAK_EPSILON = 10.0
"""A larger epsilon gives weak or no formal protection.

Source: Ponomareva et al., How to DP-fy ML, Journal of Artificial Intelligence Research 77, 2023 (tier 3).
"""

_NOUN = re.compile(r"[a-z]+(?:[ -][a-z]+)?")
"""A label whose plural is formed like that of an English noun."""


def column_text(spec: Spec, column: str) -> str:
    """Return the label of a column, or its name."""
    return dict(spec.about).get(column_label_of(column), column)


def _noun(spec: Spec, column: str, otherwise: str) -> str:
    return dict(spec.about).get(column_label_of(column), otherwise)


def entry(spec: Spec) -> str:
    """Return the noun for an entry: the label of its column, or "entry"."""
    return _noun(spec, spec.changelog.source.entry, ENTRY)


def entries(spec: Spec) -> str:
    """Return the noun for several entries; "entries" if the label has no simple plural."""
    noun = entry(spec)
    return counted(2, noun if _NOUN.fullmatch(noun) else ENTRY)[2:]


def several(number: int, spec: Spec) -> str:
    """Return a number of entries."""
    return f"1 {entry(spec)}" if number == 1 else f"{number:,} {entries(spec)}"


def unit(spec: Spec) -> str:
    """Return the noun for the privacy unit: the label of its column, or "entry" or "owner"."""
    owner = spec.privacy.owner
    return entry(spec) if owner is None else _noun(spec, owner, OWNER)


def units(spec: Spec) -> str:
    """Return the noun for several privacy units."""
    noun, otherwise = unit(spec), ENTRY if spec.privacy.owner is None else OWNER
    return counted(2, noun if _NOUN.fullmatch(noun) else otherwise)[2:]


def a(noun: str) -> str:
    """Return a noun with its article; with "one" if it is a label.

    >>> a("owner"), a("hour")
    ('an owner', 'one hour')
    """
    return f"an {noun}" if noun in (ENTRY, OWNER) else f"one {noun}"


def is_labelled(spec: Spec, column: str) -> bool:
    """Return whether the curator states a label of a column."""
    return column_label_of(column) in dict(spec.about)


def _each(spec: Spec) -> str:
    """Return the privacy unit after "each", with its column if it has no label."""
    column = spec.changelog.source.entry if spec.privacy.owner is None else spec.privacy.owner
    noun = unit(spec)
    return f"each {noun}" if is_labelled(spec, column) else f"each {noun} (column {column})"


def covers_all(spec: Spec) -> bool:
    """Return whether a place is protected at all times of the release."""
    span, schedule = spec.privacy.protects.span, spec.schedule
    if span is None or not span.near or schedule.windows is None:
        return False
    return span.boundaries(schedule.every, schedule.slack) > schedule.windows


def covered(spec: Spec) -> str:
    """Return the part of one unit's activity to which epsilon applies."""
    span = spec.privacy.protects.span
    if span is None:
        return f"one {unit(spec)}"
    labelled = replace(span, near=tuple((column_text(spec, column), distance) for column, distance in span.near))
    return extent(labelled, unit(spec), whole=covers_all(spec))


def hidden(spec: Spec) -> str:
    """Return what the noise hides of one unit, as the end of a sentence."""
    span, one = spec.privacy.protects.span, unit(spec)
    if span is not None and span.near:
        near = listed([f"{distance} in {column_text(spec, column)}" for column, distance in span.near])
        when = "" if covers_all(spec) else f" within any {length_text(span.length)}"
        return f"where any one {one} is{when}, up to {near}"
    of_owner = "" if spec.privacy.owner is None else f", in all its {entries(spec)} together"
    if span is None:
        return f"whether any one {one} is in the data, and everything about it{of_owner}"
    return f"what any one {one} does within any {length_text(span.length)}{of_owner}"


def limits(spec: Spec, epsilon: float) -> str:
    """Return the most important conclusions that numbers do not allow, as the end of a sentence.

    Args:
        spec: The spec of the release.
        epsilon: Epsilon of the whole release.
    """
    span, one = spec.privacy.protects.span, unit(spec)
    if epsilon > WEAK_EPSILON:
        said = ""
    elif span is None:
        said = f"whether any one {one} is in the data, "
    elif span.near:
        said = f"where exactly any one {one} is, "
    else:
        said = f"what any one {one} did within {length_text(span.length)}, "
    return f"{said}why numbers differ, or what the exact numbers are."


def protects(spec: Spec, epsilon: float) -> str:
    """Return the sentences that begin the page: who is protected, and what the numbers hide.

    Args:
        spec: The spec of the release.
        epsilon: Epsilon of the whole release.
    """
    span = spec.privacy.protects.span
    whose, what, more = f"Protects {_each(spec)}", hidden(spec), ""
    if span is not None and span.near:
        whose = f"Protects the place of {_each(spec)}"
        more = " Noise does not hide that it is present, when, or anything else about it."
    elif span is not None:
        of_owner = "" if spec.privacy.owner is None else f", in all its {entries(spec)} together"
        whose, what = f"Protects what {_each(spec)} does within any {length_text(span.length)}{of_owner}", "it"
        more = " What lasts longer is protected less."
    if epsilon > WEAK_EPSILON:
        return f"{whose}, but weakly: with epsilon = {shown(epsilon)}, noise hides little of {what}.{more}"
    return f"{whose}: noise in all numbers hides {what}.{more}"
