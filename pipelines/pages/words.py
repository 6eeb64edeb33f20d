"""What a release promises, in words, for the person who answers for it. Each sentence is made from facts of the spec.

The claim itself and what it rests on are `privacy.planning.statement`'s; here they are explained.
"""

import math
from collections.abc import Iterator

from pipelines.reports.plan_report import series_document, series_text
from pipelines.spec.durations import length_text
from pipelines.spec.load import Spec
from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from privacy.counted import counted, listed, time_text
from privacy.planning.plan import Plan
from privacy.planning.statement import extent
from privacy.protection import Span
from privacy.series import Series
from privacy.upward import shown
from transforms.aggregation.queries import Query


def unit(spec: Spec) -> str:
    """Name of the privacy unit."""
    return "entry" if spec.privacy.owner is None else "owner"


def who(spec: Spec) -> str:
    """Describe the privacy unit, as the spec defines it."""
    entry, owner = spec.changelog.source.entry, spec.privacy.owner
    if owner is None:
        return f"One entry: all changes of one value of {entry}."
    return f"One owner (one value of {owner}): all changes of all its entries (values of {entry})."


def covered(spec: Spec) -> str:
    """The part of one unit's activity to which epsilon applies."""
    protects = spec.privacy.protects
    return extent(protects, unit(spec), whole=_whole(spec)) if isinstance(protects, Span) else f"one {unit(spec)}"


def _whole(spec: Spec) -> bool:
    """Whether a place is protected at all times of the release."""
    protects, schedule = spec.privacy.protects, spec.schedule
    if not isinstance(protects, Span) or not protects.near or schedule.windows is None:
        return False
    return protects.boundaries(schedule.every, schedule.slack) > schedule.windows


def what(spec: Spec) -> str:
    """Describe what the release protects of the unit."""
    protects, one = spec.privacy.protects, f"an {unit(spec)}"
    if not isinstance(protects, Span):
        return (
            f"Whether {one} is in the data at all, and so everything about it: what it is, when it came, how it "
            "changed and when it left."
        )
    until = "for as long as the release runs" if spec.schedule.until is None else "until the release ends"
    begin = f"{_capital(covered(spec))}, {until}"
    span = time_text(protects.length)
    longer = f"What lasts longer than {length_text(protects.length)} costs epsilon once for each {span}."
    if not protects.near:
        return f"{begin}, compared with not being there in that time. {longer}"
    further = "Places further apart cost epsilon once for each such distance."
    return (
        f"{begin}. That {one} is there at all, when, and everything else about it is NOT hidden. {further}"
        f"{'' if _whole(spec) else f' {longer}'}"
    )


def how_well(spec: Spec, epsilon: float, delta: float) -> list[str]:
    """Epsilon and delta, explained."""
    to_come = ", also those still to come" if spec.schedule.until is None else ""
    said = [
        f"Epsilon is {shown(epsilon)} and delta is {shown(delta)} for {covered(spec)}, in all queries, cells and "
        f"windows together{to_come}.",
        f"What is published would have been published with nearly the same probability {_otherwise(spec)}: "
        f"{likelihood(epsilon, delta)}",
    ]
    if not delta and not isinstance(spec.privacy.protects, Span):
        said.append(
            f"So a reader who thinks it as likely as not that an {unit(spec)} is in the data, and knows everything "
            f"about all others, can be {sure(epsilon)} sure at most after reading all of it."
        )
    return said


def likelihood(epsilon: float, delta: float) -> str:
    """How far two probabilities may differ, as the end of a sentence."""
    factor = math.exp(epsilon) if epsilon < 500 else math.inf
    besides = f", except with probability {shown(delta)}" if delta else ""
    return f"the two differ by a factor of at most {_rough(factor)}{besides}."


def sure(epsilon: float) -> str:
    """How sure somebody can be at most, without delta, for whom two things were as likely before."""
    return _percent(1 / (1 + math.exp(-epsilon)) if epsilon < 500 else 1.0)


def _otherwise(spec: Spec) -> str:
    """The case with which the unit is compared."""
    protects, one = spec.privacy.protects, f"the {unit(spec)}"
    if not isinstance(protects, Span):
        return f"without {one}"
    when = "" if _whole(spec) else " in one such time"
    return (
        f"if {one} had been elsewhere{when}, as near as that" if protects.near else f"if {one} had not been there{when}"
    )


def bound(constraint: Constraint, spec: Spec) -> str:
    """Describe the contribution bound, which is enforced."""
    one = f"an {unit(spec)}"
    if isinstance(constraint, ByClass):
        each = " ".join(f"For {name}: {bound(part, spec)}" for name, part in constraint.classes)
        return f"The {constraint.column} of {one}'s first state decides. {each} Others contribute nothing."
    if isinstance(constraint, AtOnce):
        return _at_once(constraint, spec)
    cut = f"Later ones are cut off: the {unit(spec)} counts on as it was."
    if isinstance(constraint, Within):
        return f"Changes of {one} count up to {length_text(constraint.span)} after its first one. {cut}"
    counts = "1 change of {} counts" if constraint.changes == 1 else f"{constraint.changes:,} changes of {{}} count"
    return f"At most {counts.format(one)} for each query. {cut}{_entries(constraint)}"


def _entries(constraint: AtMost) -> str:
    if constraint.entries is None:
        return ""
    more = counted(constraint.entries, "entry")
    return f" None counts from the moment when those before have put more than {more} of it into the query at once."


def _at_once(constraint: AtOnce, spec: Spec) -> str:
    one, said = f"an {unit(spec)}", ""
    if spec.privacy.owner is not None:
        said = f"At the end of each window at most {counted(constraint.entries, 'entry')} of {one} can count. "
    if constraint.changes is None or constraint.block is None:
        return f"{said}No change is cut off: at the end of each window an entry counts as it is then."
    return (
        f"{said}In each {time_text(constraint.block)} at most {counted(constraint.changes, 'change')} of {one} can "
        "count; all that it changes within one window is one change. Further changes are held back until that time "
        "ends."
    )


def not_protected(spec: Spec, delta: float) -> list[str]:
    """A sentence for each thing that the promise does not cover, or covers less."""
    protects, one = spec.privacy.protects, unit(spec)
    said = []
    if isinstance(protects, Span) and protects.near:
        near = listed([column for column, _ in protects.near])
        said = [f"That an {one} is there at all, when, and everything about it except {near}."]
    elif isinstance(protects, Span):
        length = length_text(protects.length)
        said = [f"Protected less: what an {one} does for longer than {length}, such as a habit or a long stay."]
    twice = "twice epsilon and more than twice delta" if delta else "twice epsilon"
    groups = f"Protected less: what several {counted(2, one)[2:]} have in common, two of them with {twice}."
    person = " A person with several entries is such a group." if one == "entry" else ""
    return [
        *said,
        f"What is true in general: the {_measured(spec.queries[0])} tells something about everybody, whether in the "
        "data or not.",
        f"{groups}{person}",
        "What is known from elsewhere. Epsilon and delta of other releases about the same people add to these.",
        "That the release exists, its spec, when and for how long it runs, and whether a run fails.",
        "The private folder of the release and the exact data.",
    ]


def movements(plan: Plan) -> list[tuple[str, str, str, str]]:
    """For each part of each query: its name, how far one unit can move the noisy sums, and the noise on each.

    In units of the largest that a state can add to a sum.
    """
    rows = []
    for released in plan.released:
        demand = plan.demands[released.query]
        kinds = ", ".join(series_text(series_document(series, plan)) for series in released.series)
        component = demand.measure.components[0]
        deviation = released.noise[0].variance ** 0.5 / component.largest
        rows.append(
            (
                f"{demand.name}: {kinds}",
                shown(released.sensitivity.l1, 4),
                shown(released.sensitivity.l2, 4),
                f"{deviation:.4g}",
            )
        )
    for part in plan.adaptive:
        component = plan.demands[part.query].measure.components[0]
        deviation = part.deviation / component.largest
        rows.append((f"{plan.demands[part.query].name}: level", "-", "-", f"{deviation:.4g}"))
    return rows


def sampled(plan: Plan) -> list[str]:
    """What the table of `movements` has of queries that are published adaptively; nothing without any."""
    return ["-: published adaptively. The noise is that of the first sample."] if plan.adaptive else []


def measured(query: Query, of: str, spec: Spec) -> list[str]:
    """Describe the numbers of a query, in sentences.

    Args:
        of: which numbers: `ranges`, `quantiles`, or those of cells where it is empty.
    """
    where = "" if query.where is None else f", where {query.where.text}"
    bounds = "" if query.column is None else f", each value clamped to {query.measure.low:g} to {query.measure.high:g}"
    return [
        f"{_capital(_measured(query, of))}{where}{bounds}. Windows of {spec.schedule.length}.",
        f"Published: {listed([_series(series, spec) for series in query.publish])}.",
        *_apart(query, spec),
    ]


def _measured(query: Query, of: str = "") -> str:
    kind, ordered = query.measure.kind.replace("_", " "), [name for name, _ in query.ordered]
    text = "count of entries" if query.column is None else f"{kind} of {query.column} over entries"
    if of == "quantiles":
        text = f"quantiles of {ordered[0]} over entries"
    keys = [f"ranges of {listed(ordered)}"] if of == "ranges" else []
    keys += [name for name, _ in query.by if not of or name not in ordered]
    return f"{text} by {listed(keys)}" if keys else text


def _series(series: Series, spec: Spec) -> str:
    """Describe a kind of numbers."""
    span, came, went = isinstance(spec.privacy.protects, Span), "came within a window", "went within a window"
    match series.kind:
        case "level":
            return "level (entries that are there at the end of a window)"
        case "entered":
            return f"entered (entries that {'are there at the end of a window and not at its start' if span else came})"
        case "left":
            return f"left (entries that {'are there at the start of a window and not at its end' if span else went})"
        case "change":
            return "change (what a window added to the level)"
    width, every = (length_text(each * spec.schedule.every) for each in (series.width, series.every))
    return f"sliding (what {width} added to the level, every {every})"


def _apart(query: Query, spec: Spec) -> Iterator[str]:
    """Describe how numbers were made, as far as readers must know it."""
    adaptive = query.adaptive
    if query.consistent:
        yield "Cells are made non-negative, with the same sum: cells near zero are too high on average, others too low."
    if adaptive is None:
        return
    if adaptive.interval is not None:
        every = length_text(adaptive.interval * spec.schedule.every)
        if adaptive.interval > 1:
            yield f"New numbers are published every {every}; the windows between repeat them."
    elif adaptive.policy == "pegasus":
        yield "Each cell is smoothed over windows in which it hardly changed. A smoothed number has no known interval."
    else:
        yield "The data decide, privately, which windows get new numbers; the other windows repeat them."
    if query.over.name == "kdtree":
        yield "Counts are of regions, spread evenly over their cells. A number that was spread has no known interval."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _rough(factor: float) -> str:
    """Rounded up, so that nobody is promised more.

    >>> _rough(2.7182), _rough(1e9)
    ('2.72', '1e+09')
    """
    if not math.isfinite(factor):
        return "any number"
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 1000 else shown(factor, 3)


def _percent(share: float) -> str:
    """Rounded up.

    >>> _percent(0.7311)
    '74 %'
    """
    return f"{math.ceil(share * 100)} %" if share < 0.99 else f"{math.ceil(share * 10_000) / 100:g} %"
