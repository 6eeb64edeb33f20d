"""`slackwater plan`: the cost of a release and the margins of error of its numbers, before any data is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipelines.common.arguments import Moment, SpecLike, moment_of, spec_of
from pipelines.common.value import Value
from pipelines.epochs.job import job_of
from pipelines.epochs.plans import has_begun, plan_for
from pipelines.plan.accuracy import accuracy, warnings
from pipelines.plan.advice import Advice, advice_of, advice_text
from pipelines.plan.counted_units import with_other_counts
from pipelines.plan.document import plan_document
from pipelines.plan.explained import explained_text
from pipelines.plan.horizon import horizon_of, window_text
from pipelines.plan.table import plan_text
from pipelines.plan.variants import Errors
from pipelines.spec.load import Spec
from pipelines.spec.series import series_text
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Timeline
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, SlackwaterError, SpecError
from transforms.sources.files.listing import matching
from transforms.sources.inspection import unread_marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Value):
    """Cost of a release, and margins of error of its numbers.

    Attributes:
        release: Name of the release.
        epsilon, delta: Of everything that the release ever publishes, together.
        statement: The claim in words.
        conditions: Conditions of the claim.
        warnings: Doubtful choices of the spec.
        begun: Whether the release has begun, and continues with this plan; None if it is unknown here.
        explain: Whether the text shows all strategies, sensitivities and shares of the budget.
        page: The page that was written.
        document: All of it, as `to_json` returns it.
        status: State of a release in the output folders, for the text; empty without a release.
        ask: Function that computes `advice`.
    """

    release: str
    epsilon: float
    delta: float
    statement: str
    conditions: tuple[str, ...]
    warnings: tuple[str, ...]
    begun: bool | None
    explain: bool = False
    page: str | None = None
    document: dict[str, Any] = field(repr=False)
    status: str = field(repr=False)
    ask: Callable[[], list[Advice]] = field(default=list, repr=False, compare=False)

    def advice(self) -> list[Advice]:
        """Plan the spec with changes, and return those that reduce errors most; none if the release has begun."""
        return self.ask()

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater plan --json`."""
        return self.document

    def text(self) -> str:
        """Return the text that `slackwater plan` prints."""
        shown = explained_text(self.document) if self.explain else plan_text(self.document, advice_text(self.advice()))
        page = "" if self.page is None else f"As a page: {self.page}"
        return "\n".join(filter(None, [shown, self.status, page]))


def plan(spec: SpecLike, *, until: Moment = None, explain: bool = False) -> Planned:
    """Plan a release: its cost and the margins of error of its numbers. Reads no data and costs no privacy.

    Args:
        spec: The path of a spec, or what `load` returns.
        until: Average errors over the windows up to this moment. None: to the schedule's end, or to now, or over the
            first year if no window has closed.
        explain: Show all strategies, sensitivities and shares of the budget in the text.

    Raises:
        SpecError: The spec is wrong, or `until` has no zone.

    >>> planned = plan("templates/specs/wards.yaml")
    >>> round(planned.epsilon, 9), planned.delta
    (1.0, 0.0)
    """
    end = moment_of("until", until)
    spec = spec_of(spec)
    commits = _commits(spec)
    made = plan_for(spec, commits or ())
    begun = None if commits is None else has_begun(spec, commits)
    timeline = horizon_of(spec, end)
    document = {**whole_document(spec, made, timeline.windows), "begun": begun}
    document["warnings"] += [] if commits else of_first_file(spec, timeline, made)
    return Planned(
        release=spec.release,
        epsilon=made.budget.epsilon,
        delta=made.budget.delta,
        statement=made.statement,
        conditions=made.conditions,
        warnings=tuple(document["warnings"]),
        begun=begun,
        explain=explain,
        document=document,
        status=_status(begun, commits),
        ask=list if commits else partial(advice_of, spec, made, timeline.windows, now=_errors(document), until=end),
    )


def _errors(document: dict[str, Any]) -> Errors:
    return {
        f"{query['name']}: {series_text(number)}": number
        for query in document["queries"]
        for number in query["accuracy"]
    }


def _status(begun: bool | None, commits: Sequence[Commit] | None) -> str:
    if begun is None:
        return "Whether this release has begun is unknown here; a release that has begun keeps its own plan."
    if begun:
        return "This release has begun and continues with this plan, even if planning again would give another one."
    return "The output folders hold a release of another spec, so `run` refuses this one." if commits else ""


def whole_document(spec: Spec, plan: Plan, windows: int) -> dict[str, Any]:
    """Return `plan_document` with the margins of error and the warnings.

    Args:
        spec: The spec.
        plan: Its plan.
        windows: Number of windows over which errors are averaged.
    """
    document = plan_document(spec, plan, windows)
    found = [accuracy(query, plan, place, windows) for place, query in enumerate(spec.queries)]
    shown = with_other_counts(spec, plan, windows, found)
    for query, of_query in zip(document["queries"], shown, strict=True):
        query["accuracy"] = of_query
    return {**document, "over": window_text(spec, windows), "warnings": [*warnings(spec, plan, windows, found)]}


def of_first_file(spec: Spec, timeline: Timeline, plan: Plan) -> list[str]:
    """Return why a run would refuse the existing local files, or may misread them, judged by the form of the first one.

    No value is shown, and no number of a plan depends on the file.

    Args:
        spec: The spec.
        timeline: Windows that a run would publish.
        plan: Plan of the release.
    """
    source = spec.changelog.source
    if source.every is not None or any("://" in path for path in source.paths):
        return []
    try:
        if not matching(source.paths):
            return []
        layout = job_of(spec, timeline, plan=plan).layout
    except (InputError, SpecError) as error:
        return str(error).splitlines()
    return [
        f"column {name} is not read; if it marks deletions, name it with their values, for example "
        f"changelog.deleted: {{{name}: [delete]}}"
        for name in unread_marks(layout)
    ]


def _commits(spec: Spec) -> Sequence[Commit] | None:
    """Return the committed epochs; None if this account cannot see them."""
    try:
        refuse_unreachable([spec.output.private])
    except SlackwaterError:
        return None
    try:
        return Store(spec.output.public, spec.output.private).commits()
    except PermissionError:
        return None
