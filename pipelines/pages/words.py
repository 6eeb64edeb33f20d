"""Explanations of the promise of a release, for the person responsible. Each sentence follows from the spec.

`privacy.planning.statement` makes the claim itself and its conditions.
"""

import math
from collections.abc import Iterator

from pipelines.pages.conditions import condition_text
from pipelines.pages.subject import (
    WEAK_EPSILON,
    a,
    column_text,
    covered,
    covers_all,
    entries,
    entry,
    is_labelled,
    several,
    unit,
    units,
)
from pipelines.spec.durations import length_text
from pipelines.spec.load import Spec
from privacy.cells.table import sketcher_class
from privacy.constraint import AtMost, AtOnce, Constraint
from privacy.counted import counted, listed, time_text
from privacy.series import Series
from privacy.upward import shown
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import marginal_name, marginals_of


def who(spec: Spec) -> str:
    """Describe the privacy unit, as the spec defines it."""
    key, owner, one = spec.changelog.source.entry, spec.privacy.owner, unit(spec)
    entry_values = "" if is_labelled(spec, key) else f" (values of {key})"
    unit_value = "" if is_labelled(spec, owner or key) else f" (one value of {owner or key})"
    if spec.privacy.protects.span is not None:  # protects a part of its changes: see `covered`
        if owner is None:
            return f"One {one}{unit_value}. A person with several is protected for each alone."
        return f"One {one}{unit_value}, with all its {entries(spec)}{entry_values}."
    if owner is None:
        return f"One {one}{unit_value}, with all its changes."
    return f"One {one}{unit_value}, with all changes of all its {entries(spec)}{entry_values}."


def what(spec: Spec) -> str:
    """Describe what the release protects of the unit."""
    protects, one = spec.privacy.protects.span, a(unit(spec))
    if protects is None:
        return (
            f"Whether {one} is in the data at all, and so everything about it: its values, its times of arrival "
            "and departure, and its changes."
        )
    until = "for as long as the release runs" if spec.schedule.until is None else "until the release ends"
    begin = f"{_capital(covered(spec))}, {until}"
    if not protects.near:
        return f"{begin}, compared with being absent during that time. {longer(spec)}"
    return f"{begin}. That {one} is present at all, when, and everything else about it is NOT hidden. {longer(spec)}"


def longer(spec: Spec) -> str:
    """Return the cost of differences that are larger than what epsilon covers; empty without any."""
    protects = spec.privacy.protects.span
    if protects is None:
        return ""
    length, span = length_text(protects.length), time_text(protects.length)
    further = ["Places further apart cost epsilon once for each such distance."] if protects.near else []
    lasting = f"A difference that lasts longer than {length} costs epsilon once for each {span}."
    return " ".join([*further, *([] if covers_all(spec) else [lasting])])


def how_well(spec: Spec, epsilon: float, delta: float) -> list[str]:
    """Return sentences that explain epsilon and delta.

    Args:
        spec: The spec of the release.
        epsilon, delta: Privacy parameters of the whole release.
    """
    to_come = ", including future ones" if spec.schedule.until is None else ""
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)} for {covered(spec)}, in all queries, cells and "
        f"windows together{to_come}.",
        f"The same numbers would have been published with nearly the same probability {otherwise(spec)}: "
        f"{likelihood(epsilon, delta)}",
    ]
    return [*said, *belief(spec, epsilon, delta)]


def belief(spec: Spec, epsilon: float, delta: float) -> list[str]:
    """Return how sure a reader can become that a unit is in the data; empty with a delta or a span.

    Args:
        spec: The spec of the release.
        epsilon, delta: Privacy parameters of the whole release.
    """
    if delta or spec.privacy.protects.span is not None:
        return []
    return [
        f"With this epsilon, a reader who first thinks that {a(unit(spec))} is in the data with a chance of 50 %, and "
        f"knows everything about all others, can be at most {sure(epsilon)} sure after reading all numbers."
    ]


def weakness(spec: Spec, epsilon: float) -> str:
    """Return a warning if epsilon is so large that the promise is weak; empty otherwise.

    Args:
        spec: The spec of the release.
        epsilon: Epsilon of the whole release.
    """
    if epsilon <= WEAK_EPSILON:
        return ""
    factor = f"{math.ceil(math.exp(epsilon)):,}" if epsilon < 25 else f"10^{epsilon / math.log(10):,.0f}"
    return (
        f"Weak protection: epsilon is {shown(epsilon)}. The published numbers may be up to about {factor} "
        f"(e^epsilon) times as likely as {otherwise(spec)}, so a reader may learn much about {covered(spec)}. "
        f"Publications on differential privacy call epsilon above {WEAK_EPSILON:g} weak or no formal protection "
        "(Ponomareva and others, How to DP-fy ML, 2023)."
    )


def likelihood(epsilon: float, delta: float) -> str:
    """Return the largest ratio of two probabilities, as the end of a sentence."""
    factor = math.exp(epsilon) if epsilon < 500 else math.inf
    exception = f", except with probability {shown(delta)}" if delta else ""
    return f"the two differ by a factor of at most {_rough(factor)}{exception}."


def sure(epsilon: float) -> str:
    """Return how sure a reader can be at most, without delta, if two cases were equally likely before."""
    return _percent(1 / (1 + math.exp(-epsilon)) if epsilon < 500 else 1.0)


def otherwise(spec: Spec) -> str:
    """Return the case with which the release is compared."""
    protects, one = spec.privacy.protects.span, f"the {unit(spec)}"
    if protects is None:
        return f"without {one}"
    when = "" if covers_all(spec) else " during one such period"
    return (
        f"if {one} had been elsewhere within that distance{when}"
        if protects.near
        else f"if {one} had been absent{when}"
    )


def bound(constraint: Constraint, spec: Spec) -> str:
    """Describe the contribution bound, which is enforced."""
    one = a(unit(spec))
    if constraint.column is not None:
        each = " ".join(f"For {name}: {bound(part, spec)}" for name, part in constraint.classes)
        return f"The {constraint.column} of {one}'s first state decides. {each} Others contribute nothing."
    if constraint.at_once is not None:
        return _at_once(constraint.at_once, spec)
    cut = f"Later changes are cut off: the {unit(spec)} keeps counting as it was."
    if constraint.span is not None:
        return f"Changes of {one} count up to {length_text(constraint.span)} after its first one. {cut}"
    counts = "1 change of {} counts" if constraint.changes == 1 else f"{constraint.changes:,} changes of {{}} count"
    return f"At most {counts.format(one)} for each query. {cut}{_entries(constraint, spec)}"


def _entries(constraint: AtMost, spec: Spec) -> str:
    if constraint.entries is None:
        return ""
    more = several(constraint.entries, spec)
    return f" Changes stop counting once earlier ones have put more than {more} of it into the query at once."


def _at_once(constraint: AtOnce, spec: Spec) -> str:
    one, said = a(unit(spec)), ""
    if spec.privacy.owner is not None:
        said = f"At the end of each window at most {several(constraint.entries, spec)} of {one} can count. "
    if constraint.changes is None or constraint.block is None:
        return f"{said}No change is cut off: at the end of each window {a(entry(spec))} counts with its current state."
    return (
        f"{said}In each {time_text(constraint.block)} at most {counted(constraint.changes, 'change')} of {one} can "
        "count; all that it changes within one window is one change. Further changes are deferred until that "
        "period ends."
    )


def not_protected(spec: Spec, delta: float) -> list[str]:
    """Return a sentence for each fact that the promise does not cover, or covers less."""
    protects, one = spec.privacy.protects.span, unit(spec)
    said = []
    if protects is not None and protects.near:
        near = listed([column_text(spec, column) for column, _ in protects.near])
        said = [f"That {a(one)} is present at all, when, and everything about it except {near}."]
    elif protects is not None:
        length = length_text(protects.length)
        said = [f"What {a(one)} does for longer than {length}, such as a habit or a long stay, is protected less."]
    twice = "twice epsilon and more than twice delta" if delta else "twice epsilon"
    groups = f"Facts that several {units(spec)} share are protected less: for two of them with {twice}."
    person = f" A person with several {units(spec)} is such a group." if spec.privacy.owner is None else ""
    return [
        *said,
        f"General facts: the {_measured(spec.queries[0], spec)} reveals something about everybody, in the data or not.",
        f"{groups}{person}",
        "Knowledge from other sources. Epsilon and delta of other releases about the same people add to these.",
        "That the release exists, its spec, when and for how long it runs, and whether a run fails.",
        "The private folder of the release and the exact data.",
    ]


def measured(query: Query, of: str, spec: Spec) -> list[str]:
    """Describe the numbers of a query, in sentences.

    Args:
        query: The query.
        of: Kind of numbers: `ranges`, `quantiles` or the name of a marginal, or one of the former with a marginal's
            name; empty for numbers of cells.
        spec: The spec of the release.
    """
    return [
        f"{what_is_measured(query, of, spec)} Windows of {spec.schedule.length}.",
        f"Published: {listed([_with_meaning(series, query, spec) for series in query.publish])}.",
        *apart(query, spec),
    ]


def what_is_measured(query: Query, of: str, spec: Spec) -> str:
    """Return what a query measures, as a sentence; the arguments are those of `measured`."""
    low, high = query.measure.low, query.measure.high
    bounds = "" if query.column is None else f", each value clamped to {low:g} to {high:g}"
    return f"{_capital(_measured(query, spec, of, conditions=True))}{bounds}."


def _measured(query: Query, spec: Spec, of: str = "", *, conditions: bool = False) -> str:
    kind, ordered = query.measure.kind.replace("_", " "), [column_text(spec, name) for name, _ in query.ordered]
    made, _, table = of.partition(" ")
    which = ""
    if conditions and query.where is not None:
        which = f" {condition_text(query.where, dict(spec.about))}"
    text = f"count of {entries(spec)}{which}"
    if query.column is not None:
        text = f"{kind} of {column_text(spec, query.column)} over {entries(spec)}{which}"
    if query.measure.distinct:
        text = f"count of {units(spec)} with {a(entry(spec))} there{which}"
    if made == "quantiles":
        text = f"quantiles of {ordered[0]} over {entries(spec)}{which}"
    comma = "," if which else ""
    if of in [marginal_name(query, marginal) for marginal in marginals_of(query)]:
        return f"{text}, {of}"
    if table:
        return f"{text}{comma} by ranges of {listed(ordered)}, {table}" if made == "ranges" else f"{text}, {table}"
    keys = [f"ranges of {listed(ordered)}"] if made == "ranges" else []
    known = [name for name, _ in query.ordered]
    keys += [column_text(spec, name) for name, _ in query.by if not of or name not in known]
    return f"{text}{comma} by {listed(keys)}" if keys else text


def _with_meaning(series: Series, query: Query, spec: Spec) -> str:
    return f"{series.kind} ({meaning(series, query, spec)})"


def meaning(series: Series, query: Query, spec: Spec, of: str = "") -> str:
    """Return what the numbers of a series are.

    Args:
        series: The series.
        query: The query.
        spec: The spec of the release.
        of: As for `measured`.
    """
    noun = units(spec) if query.measure.distinct else entries(spec)
    kind = query.measure.kind.replace("_", " ")
    if of.startswith("quantiles"):
        noun = f"quantiles of {column_text(spec, query.ordered[0][0])} over {noun}"
    elif query.column is not None:
        noun = f"{kind} of {column_text(spec, query.column)} over {noun}"
    at_once = spec.privacy.constraint.at_once
    ends = at_once is not None and at_once.changes is not None
    most = "" if ends or at_once is None else f" ({_most(at_once, spec)})"
    here, came, went = "are present", "came", "went"
    if query.where is not None:
        condition = f'the condition "{condition_text(query.where, dict(spec.about))}"'
        here, came, went = f"match {condition}", f"began to match {condition}", f"stopped matching {condition}"
    entered, left = f"{came} within a window{most}", f"{went} within a window{most}"
    if ends:
        entered = f"{here} at the end of a window and not at its start"
        left = f"{here} at the start of a window and not at its end"
    match series.kind:
        case "level" if _once(spec):
            return f"{noun} that {came} by the end of a window: each is counted once, and stays counted"
        case "level":
            return f"{noun} that {here} at the end of a window"
        case "entered":
            return f"{noun} that {entered}"
        case "left":
            return f"{noun} that {left}"
    width, every = (length_text(each * spec.schedule.every) for each in (series.width, series.every))
    steps = "" if series.width == series.every else f", in steps of {every}"
    over = "within a window" if series.kind == "change" else f"over {width}{steps}"
    if _once(spec):
        return f"{noun} that {came} {over}: each is counted once"
    if query.column is not None or of.startswith("quantiles"):  # values of what stays can change
        return f"change of the level {over}"
    gone = "went" if query.where is None else "stopped matching it"
    return f"{noun} that {came}, minus those that {gone}, {over}"


def _once(spec: Spec) -> bool:
    """Return whether one change of an entry counts, which is that it comes: a change of the level then counts events.

    Of an owner, one change of all its entries counts: not every entry that comes.
    """
    constraint, alone = spec.privacy.constraint, spec.privacy.owner is None
    return alone and constraint.changes == 1 and constraint.column is None and constraint.at_once is None


def _most(at_once: AtOnce, spec: Spec) -> str:
    if spec.privacy.owner is None:
        return f"each {entry(spec)} counts at most once in a window"
    return f"at most {several(at_once.entries, spec)} of one {unit(spec)} count in a window"


def apart(query: Query, spec: Spec) -> Iterator[str]:
    """Describe how numbers were computed, as far as readers must know it."""
    adaptive = query.adaptive
    if query.consistent:
        yield "Cells are made non-negative, with the same sum: cells near zero are too high on average, others too low."
    if query.discovers:
        yield (
            "Keys are not listed in advance: a key is published from the first window on in which its noisy count "
            f"or sum reaches a threshold. Keys with few {entries(spec)} are missing, and the first number of a key is "
            "too high on average."
        )
    if adaptive is None:
        return
    for sentence in (
        adaptive.sentence(lambda windows: length_text(windows * spec.schedule.every)),
        sketcher_class(query.over.name).sentence,
    ):
        if sentence:
            yield sentence


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _rough(factor: float) -> str:
    """Return a factor rounded up, so that the text does not promise more than is proved.

    >>> _rough(2.7182), _rough(1e9)
    ('2.72', '1e+09')
    """
    if not math.isfinite(factor):
        return "any number"
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 1000 else shown(factor, 3)


def _percent(share: float) -> str:
    """Return a share in percent, rounded up.

    >>> _percent(0.7311)
    '74 %'
    """
    return f"{math.ceil(share * 100)} %" if share < 0.99 else f"{math.ceil(share * 10_000) / 100:g} %"
