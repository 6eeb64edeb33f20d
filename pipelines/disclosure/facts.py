"""The twenty points of a deployment's disclosure, each as a text that follows from the spec and the plan.

The manifest holds the texts, and the report shows them as a privacy label. They are public: each is a function of the
spec, the plan and versions, and of no data.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.pages import definitions, words
from pipelines.pages.subject import column_text, covered, limits, unit
from pipelines.spec.about import is_of_pages, label_of
from pipelines.spec.durations import length_text
from pipelines.spec.load import Spec
from privacy.accounting.accounting import COMPOSED
from privacy.counted import listed
from privacy.noise.kinds import NOISE
from privacy.planning.plan import Plan
from privacy.planning.spent import whole
from privacy.upward import shown
from transforms.common.dates import moment_name, start_name

NOT_STATED = "Not stated by the curator."


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The release that is described.

    Attributes:
        spec, plan: Its spec and its plan.
        program: Version of the program; empty if it is unknown.
        sampler: Version of the samplers; 0 if it is unknown.
    """

    spec: Spec
    plan: Plan
    program: str
    sampler: int

    def about(self, key: str) -> str:
        """Return a text of the spec's section `about`; empty if it is missing."""
        return dict(self.spec.about).get(key, "")

    def query(self, name: str) -> str:
        """Return the label of a query, or its name."""
        return self.about(label_of(name)) or name


@dataclass(frozen=True, slots=True)
class Fact:
    """One point of the disclosure: its heading on pages, and the function that makes its text."""

    heading: str
    text: Callable[[Subject], str]


def disclosure(subject: Subject) -> dict[str, str]:
    """Return the texts of all points by their names, in the order of `FACTS`."""
    return {name: fact.text(subject) for name, fact in FACTS.items()}


def page_texts(spec: Spec) -> dict[str, str]:
    """Return the curator's texts for pages: title, description, source, contact and all labels."""
    return {key: text for key, text in spec.about if is_of_pages(key)}


def curator_text(about: Callable[[str], str]) -> str:
    """Return who publishes, from the curator's texts by their keys, which are empty if they are missing."""
    name, type_ = about("curator"), about("curator_type")
    said = f"{name} ({type_})" if type_ else name
    rest = [
        f"{label}: {text}"
        for label, text in (
            ("Contact", about("contact")),
            ("Sector", about("sector")),
            ("Region", about("region")),
        )
        if text
    ]
    return ". ".join([said or NOT_STATED.rstrip("."), *rest]) + "."


def labelled(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the heading and the text of each point, in the order of `FACTS`, of texts by the names of the points."""
    return [(fact.heading, texts[name]) for name, fact in FACTS.items() if name in texts]


def _dates(subject: Subject) -> str:
    schedule = subject.spec.schedule
    start, until = start_name(schedule.local(schedule.start)), ", without an end"
    if schedule.until is not None:
        until = f" to {moment_name(schedule.local(schedule.until))}"
    return (
        f"Windows of {length_text(schedule.every)} from {start}{until}, in {schedule.clocks}. Each is "
        "published once, after it has closed, and stays as it is."
    )


def _neighbours(subject: Subject) -> str:
    spec = subject.spec
    span, one = spec.privacy.protects.span, unit(spec)
    if span is None:
        return f"Two changelogs that differ by all changes of one {one}."
    if span.near:
        return (
            f"Two changelogs with one {one} at the same times and in the same states, except for its place: "
            f"{covered(spec)}."
        )
    return (
        f"Two changelogs that differ in what one {one} does within {length_text(span.length)}: in one of them it is "
        "absent during that time."
    )


def _parameters(subject: Subject) -> str:
    plan = subject.plan
    said = f"epsilon = {shown(plan.budget.epsilon)}, delta = {shown(plan.budget.delta)} for {covered(subject.spec)}."
    if plan.share_unit == "rho":
        rho = math.fsum(whole(plan).shares)
        said += f" Shares of queries, in rho of zero-concentrated differential privacy, add up to {shown(rho)}."
    return said


def _scope(subject: Subject) -> str:
    longer = words.longer(subject.spec)
    if not longer and subject.spec.schedule.until is not None:
        return "The whole release, up to its end. A release after it has its own budget, which adds to this one."
    if not longer:
        return "The whole release, however long it runs: more windows cost nothing more."
    grown = " Delta then grows faster than in proportion." if subject.plan.budget.delta else ""
    return f"Epsilon covers {covered(subject.spec)}. {longer}{grown}"


def _composition(subject: Subject) -> str:
    plan = subject.plan
    accounting = "pld" if plan.accounting == "advanced" and not NOISE[plan.mechanism].pure else plan.accounting
    return (
        f"All queries, cells and windows together: {COMPOSED[accounting]}. Other releases about the same people add "
        "their epsilons and deltas."
    )


def _spent(subject: Subject) -> str:
    return (
        "The parameters are those of the whole release. The command slackwater ledger computes from the plan the "
        "budget that the published windows have spent, and the remainder."
    )


def _bounds(subject: Subject) -> str:
    said = [words.bound(subject.plan.promise.constraint, subject.spec)]
    said += [
        f"Each {column_text(subject.spec, query.column)} in {subject.query(query.name)} is clamped to "
        f"{query.measure.low:g} to {query.measure.high:g}."
        for query in subject.spec.queries
        if query.column is not None
    ]
    return " ".join(said)


def _unprotected(subject: Subject) -> str:
    return " ".join(words.not_protected(subject.spec, subject.plan.budget.delta))


def _chosen(subject: Subject) -> str:
    return (
        f"{subject.about('justification') or NOT_STATED} The claim requires that nothing in the spec was chosen by "
        "looking at these data."
    )


def _mechanisms(subject: Subject) -> str:
    plan = subject.plan
    each = [
        f"{subject.query(demand.name)}: {name.replace('adaptive ', 'adaptive by policy ')}"
        for demand, name in zip(plan.demands, plan.strategies, strict=True)
    ]
    said = [f"Discrete {plan.mechanism.capitalize()} noise. Strategies, by query: {'; '.join(each)}."]
    said += dict.fromkeys(_policies(subject))
    if any(part.decides for part in plan.parts):
        said.append("Decisions of adaptive queries have separate noise.")
    return " ".join(said)


def _policies(subject: Subject) -> Iterator[str]:
    """Yield what each policy of an adaptive query does."""
    every = subject.spec.schedule.every
    for query in subject.spec.queries:
        if query.adaptive is not None:
            sentence = query.adaptive.sentence(lambda windows: length_text(windows * every))
            said = sentence or "Every window has new numbers."
            yield f"Policy {query.adaptive.name}: {said[0].lower()}{said[1:]}"


def _versions(subject: Subject) -> str:
    if not subject.program:
        return "Not stated: the version of Slackwater that made the release did not record itself."
    return f"Slackwater {subject.program}. Its samplers, version {subject.sampler}, are exact and have no seed."


def _side_channels(subject: Subject) -> str:
    return (
        "Noise is sampled in exact arithmetic, not in floating point. Readers cannot query the data; they see "
        "published files alone. Whether a run fails and how long it takes are not covered."
    )


def _trust(subject: Subject) -> str:
    witness = (
        "No witness outside the two folders records the commits."
        if subject.spec.output.witness is None
        else "A witness outside the two folders records each commit: a run refuses folders that are older."
    )
    return (
        "Central model: the curator, and each account that can read the changelog or the private folder, sees exact "
        f"data and can remove the noise. Readers see the public folder alone. {witness}"
    )


def _errors(subject: Subject) -> str:
    repeated = " Repeated numbers of adaptive queries have neither." if _adaptive(subject) else ""
    return (
        "The published files state the standard deviation of each number's noise (stddev) and its 95 % confidence "
        f"interval, where they are known; pages show the intervals. The intervals cover noise alone.{repeated}"
    )


def _biases(subject: Subject) -> str:
    return " ".join(dict.fromkeys(_biased(subject)))


def _biased(subject: Subject) -> Iterator[str]:
    if bounded := definitions.bounded(subject.spec):
        yield f"Numbers and intervals describe the data after {bounded}. They do not state what was cut off."
    else:
        yield "No change is cut off and no value is clamped."
    ratios = [subject.query(query.name) for query in subject.spec.queries if len(query.measure.components) > 1]
    if ratios:
        yield f"Numbers of {listed(ratios)} are ratios of noisy sums, and slightly biased."
    for query in subject.spec.queries:
        yield from words.apart(query, subject.spec)


def _odds(subject: Subject) -> str:
    spec, budget = subject.spec, subject.plan.budget
    bounded = definitions.bounded(spec)
    total = f" Sums of numbers after {bounded} can differ from the true total." if bounded else ""
    return (
        f"Singling out, linking and inference are bounded alike, for {covered(spec)}. Each outcome is more or "
        f"less likely {words.otherwise(spec)}: {words.likelihood(budget.epsilon, budget.delta)} Readers cannot "
        f"conclude {limits(spec, budget.epsilon)}{total}"
    )


def _evidence(subject: Subject) -> str:
    return (
        "The mechanisms have written proofs and statistical tests. Nobody outside the project has reviewed them, and "
        "no result of an audit is attached."
    )


def _adaptive(subject: Subject) -> bool:
    return any(query.adaptive is not None for query in subject.spec.queries)


FACTS: dict[str, Fact] = {
    "curator": Fact("Curator and contact", lambda subject: curator_text(subject.about)),
    "use": Fact("Intended use", lambda subject: subject.about("use") or NOT_STATED),
    "dates": Fact("Dates", _dates),
    "unit": Fact("Privacy unit", lambda subject: words.who(subject.spec)),
    "neighbours": Fact("Neighbours", _neighbours),
    "parameters": Fact("Privacy parameters", _parameters),
    "scope": Fact("Time scope", _scope),
    "composition": Fact("Composition", _composition),
    "spent": Fact("Spent", _spent),
    "bounds": Fact("Bounds", _bounds),
    "unprotected": Fact("Not protected", _unprotected),
    "chosen": Fact("Choice of parameters", _chosen),
    "mechanisms": Fact("Mechanisms", _mechanisms),
    "versions": Fact("Program", _versions),
    "side_channels": Fact("Side channels", _side_channels),
    "trust": Fact("Trust and access", _trust),
    "errors": Fact("Errors", _errors),
    "biases": Fact("Biases", _biases),
    "odds": Fact("What a reader can conclude", _odds),
    "evidence": Fact("Evidence", _evidence),
}
"""The points by their names, in the order of pages."""
