"""Definitions of the kinds of numbers where a page uses them, and a glossary for its end."""

import re
from collections.abc import Iterable, Iterator

from pipelines.pages import words
from pipelines.pages.subject import WEAK_EPSILON, column_text, covered, hidden, unit
from pipelines.spec.durations import length_text
from pipelines.spec.load import Spec
from privacy.counted import listed
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query

INTERVAL = (
    "95 % interval",
    "A range that holds the number without noise with at least 95 % probability. Of 100 intervals at most about 5 do "
    "not.",
)


def mostly_noise(*, sums: bool = True, ratios: bool = False) -> str:
    """Return the rule by which pages mark numbers as mostly noise.

    Args:
        sums: Whether the page has counts or sums.
        ratios: Whether it has numbers of which the interval is compared with their possible range.
    """
    zero, wide = "its 95 % interval contains zero", "its 95 % interval is wider than half of the possible range"
    of_sums = f"A count or sum is mostly noise if {zero}"
    of_one = f"A number is mostly noise if {zero if sums else wide}"
    rule = f"{of_sums}; a mean, second moment, variance or quantile, if {wide}" if sums and ratios else of_one
    return f"{rule}. Numbers of a kind are mostly noise if more than half of them are: a single one says little."


ROUNDING = (
    "rounding",
    "Each shown number is rounded separately. The sum of shown numbers can differ from a shown sum in its last digits.",
)


def meanings(query: Query, spec: Spec, of: str) -> list[str]:
    """Return what the numbers of each kind of a query are; `of` is as for `words.measured`."""
    return [words.meaning(series, query, spec, of) for series in query.publish]


def bounds_cut(spec: Spec) -> bool:
    """Return whether the contribution bound can cut off anything."""
    at_once = spec.privacy.constraint.at_once
    return at_once is None or at_once.changes is not None or spec.privacy.owner is not None


def bounded(spec: Spec) -> str:
    """Return what changes the data before they are counted, as a noun; empty if nothing does."""
    clamping = ["clamping"] if any(query.column is not None for query in spec.queries) else []
    return listed([*(["contribution bounding"] if bounds_cut(spec) else []), *clamping])


def coverage(query: Query, spec: Spec) -> str:
    """Return what the intervals of a query cover, and what they do not."""
    left_out = ["changes beyond the contribution bound"] if bounds_cut(spec) else []
    if query.column is not None:
        left_out.append(f"what values lost when they were clamped to {query.measure.low:g} to {query.measure.high:g}")
    covers = "The 95 % intervals cover the noise alone."
    if not left_out:
        return f"{covers} No change is cut off."
    return f"{covers} They do not cover {listed(left_out)}: if much was cut off, numbers are too low or too high."


def compared_with(spec: Spec) -> dict[str, bool]:
    """Return the arguments of `mostly_noise` for a release."""
    ratio = [len(query.measure.components) > 1 for query in spec.queries]
    return {"sums": not all(ratio), "ratios": any(ratio) or any(query.quantiles for query in spec.queries)}


def glossary(spec: Spec, plan: Plan, parts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the terms that a page of a release uses, each with its meaning.

    Args:
        spec: The spec.
        plan: Its plan.
        parts: The other HTML of the page.
    """
    return used([*_kinds(spec), *_of_data(spec), *_of_noise(spec, plan), *_of_release(spec, plan)], parts)


def used(terms: Iterable[tuple[str, str]], parts: Iterable[str]) -> list[tuple[str, str]]:
    """Return those of some terms that a page uses; `parts` is its other HTML."""
    text = " ".join(_NO_TEXT.sub(" ", part) for part in parts).replace("&nbsp;", " ")
    return [(name, said) for name, said in terms if re.search(rf"\b{_FOUND_BY.get(name, name)}", text, re.IGNORECASE)]


_NO_TEXT = re.compile(r"<a download[^>]*>|<[^>]*>")
"""Links with files in them, and tags."""

_FOUND_BY = {"stands out": "stands? out", "rounding": "rounded"}
"""Other forms of terms on pages."""

_KINDS = {
    "level": "What is present at the end of a window: the sum of all changes so far.",
    "change": "The level at the end of a window minus the level at its start.",
    "sliding": "The change over several windows. The next number begins one or more windows later.",
    "entered": "What came within a window, or began to match the condition of a query.",
    "left": "What went within a window, or stopped matching the condition of a query.",
}
"""Meanings of kinds that differ between the queries of a page, which says each at its query."""


def _kinds(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the meaning of each kind, as at its query."""
    found: dict[str, dict[str, None]] = {}
    for query in spec.queries:
        for series in query.publish:
            found.setdefault(series.kind, {})[words.meaning(series, query, spec)] = None
    if found.keys() & {"change", "sliding"}:
        found.setdefault("level", {words.meaning(Series(kind="level"), query, spec): None for query in spec.queries})
    for kind, general in _KINDS.items():
        if kind in found:
            said = [*found[kind]] if kind != "sliding" else []
            yield kind, f"{said[0][0].upper()}{said[0][1:]}." if len(said) == 1 else general


def _of_data(spec: Spec) -> Iterator[tuple[str, str]]:
    yield (
        "window",
        f"The period that a number is about, here {length_text(spec.schedule.every)}. It does not contain its end.",
    )
    yield "query", "A question to the data, such as a count. Each has a section of this page."
    yield "cell", "A group that has separate numbers."
    if ordered := [(name, key) for query in spec.queries for name, key in query.ordered]:
        name, key = ordered[0]
        low, high = (f"{edge:g}" for edge in key.edges(0, 2))
        yield (
            "range",
            f"Values of an ordered column, such as {column_text(spec, name)} {low} to {high}, without its end.",
        )
    yield "curator", "Who holds the data and publishes the numbers."
    yield "changelog", "The record of all insertions, changes and deletions, from which the numbers are computed."
    yield "spec", "The file in which the curator states what is published and how it is protected."
    yield "mutation", "One insertion, change or deletion."
    yield "mechanism", "The part of the program that adds noise."
    yield "public folder", "The published files."
    yield "private folder", "Files that the next run needs. They have exact data and are not published."


def _of_noise(spec: Spec, plan: Plan) -> Iterator[tuple[str, str]]:
    weak = plan.budget.epsilon > WEAK_EPSILON
    yield "noise", f"A random amount in each number. It hides {'little of ' if weak else ''}{hidden(spec)}."
    yield INTERVAL
    yield "mostly noise", mostly_noise(**compared_with(spec))
    yield "stands out", "Of a number: far from the other numbers of its series, with its whole interval."
    yield ROUNDING
    yield "strategy", "How noise is shared by the numbers of a query. The intervals take it into account."
    if any(query.adaptive is not None for query in spec.queries):
        yield "repeated", "Of a number: the last new number, published again. Its error is unknown."
        yield "policy", "How a query that is published adaptively decides which windows have new numbers."
    yield (
        "measurement",
        "Numbers that get their noise together and are charged together, such as the counts of one query.",
    )


def _of_release(spec: Spec, plan: Plan) -> Iterator[tuple[str, str]]:
    one, span, change = unit(spec), spec.privacy.protects.span, bounded(spec)
    place = "the place of " if span is not None and span.near else ""
    yield "differential privacy", f"A proved limit to what the published numbers reveal about {covered(spec)}."
    yield "privacy unit", f"What is protected, here {place}one {one}."
    yield (
        "epsilon",
        f"How much the probability of any published result depends on {covered(spec)}: by a factor of at most "
        "e^epsilon. Smaller protects more.",
    )
    if plan.budget.delta:
        yield "delta", "A small probability with which the bound by epsilon may fail."
    if plan.share_unit == "rho":
        yield "rho", "Another measure of the limit, in which the shares of queries add up."
    yield "contribution bound", f"The most that one {one} can count for: see Bounds in the privacy label."
    data = f"after {change}" if change else "as they are counted; nothing is cut off"
    yield "bounded data", f"The data {data}. Numbers and intervals describe these."
    yield "clamping", "Counting a value outside its limits as the nearest limit."
    yield "sensitivity", f"How far one {one} can move a number before noise is added."
    yield "witness", "A record of what was published, kept outside the folders of the release. It reveals old copies."
    yield "epoch", "One run of the release and the windows that it published."
