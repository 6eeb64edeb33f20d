"""Definitions of the kinds of numbers where a page uses them, and a glossary for its end."""

from collections.abc import Iterator

from pipelines.pages import words
from pipelines.pages.subject import entries, unit
from pipelines.spec.load import Spec
from privacy.counted import listed
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query

INTERVAL = (
    "95 % interval",
    "A range that holds the number without noise with at least 95 % probability. Of 100 intervals at most about 5 do "
    "not.",
)

ROUNDING = (
    "rounding",
    "Each shown number is rounded separately. The sum of shown numbers can differ from a shown sum in its last digits.",
)


def meanings(query: Query, spec: Spec, of: str) -> list[str]:
    """Return what the numbers of each kind of a query are; `of` is as for `words.measured`."""
    return [words.meaning(series, query, spec, of) for series in query.publish]


def coverage(query: Query, spec: Spec) -> str:
    """Return what the intervals of a query cover, and what they do not."""
    left_out = []
    constraint = spec.privacy.constraint
    at_once = constraint.at_once
    if at_once is None or at_once.changes is not None or spec.privacy.owner is not None:
        left_out.append("changes beyond the contribution bound")
    if query.column is not None:
        left_out.append(f"what values lost when they were clamped to {query.measure.low:g} to {query.measure.high:g}")
    covers = "The 95 % intervals cover the noise alone."
    if not left_out:
        return f"{covers} No change is cut off."
    return f"{covers} They do not cover {listed(left_out)}: if much was cut off, numbers are too low or too high."


def glossary(spec: Spec, plan: Plan) -> list[tuple[str, str]]:
    """Return the terms that the page of a release uses, each with its meaning."""
    return [*_glossary(spec, plan)]


def _glossary(spec: Spec, plan: Plan) -> Iterator[tuple[str, str]]:
    one, kinds = unit(spec), {series.kind for query in spec.queries for series in query.publish}
    yield "window", f"The time of one number, here {spec.schedule.length}. It does not contain its end."
    yield (
        "level",
        f"The {entries(spec)} that are present at the end of a window. Charts have it at that moment.",
    )
    if kinds & {"change", "sliding"}:
        yield "change", "The level at the end of a window minus the level at its start."
    if "sliding" in kinds:
        yield "sliding", "The change over several windows. The next number begins one or more windows later."
    if kinds & {"entered", "left"}:
        yield "entered, left", "What came and what went within a window. Their difference is the change."
    yield "noise", f"A random amount in each number. It hides whether any one {one} is in the data."
    yield INTERVAL
    yield "contribution bound", f"The most that one {one} can count for: see Bounds in the privacy label."
    yield "bounded data", "The data after the contribution bound and clamping. Numbers and intervals describe these."
    yield "privacy unit", f"What the protection is for, here one {one}."
    yield (
        "epsilon",
        f"How much one {one} can change the probability of any published result: by a factor of at most e^epsilon. "
        "Smaller protects more.",
    )
    if plan.budget.delta:
        yield "delta", "A small probability with which the bound by epsilon may fail."
    yield (
        "mostly noise",
        "More than half of the intervals of these numbers contain zero, or are wider than half of the possible range. "
        "A single one of them says little.",
    )
    yield "stands out", "Of a number: far from the other numbers of its series, with its whole interval."
    if any(query.adaptive is not None for query in spec.queries):
        yield "repeated", "Of a number: the last new number, published again. Its error is unknown."
        yield "policy", "How a query that is published adaptively decides which windows have new numbers."
    if any(query.ordered for query in spec.queries):
        yield "20 to 25", "A range of an ordered key: it contains 20, and 25 is in the next one."
    yield ROUNDING
    yield (
        "measurement",
        "Numbers that get their noise together and are charged together, such as the counts of one query.",
    )
    yield "witness", "A record of what was published, kept outside the folders of the release. It reveals old copies."
    yield "epoch", "One run of the release and the windows that it published."
